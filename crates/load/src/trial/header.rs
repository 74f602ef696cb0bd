//! `header.json`: what the conductor says of the trial; written at the begin and again at the end.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::LoadError;
use crate::record::file_error;
use crate::trial::plan::FORMAT;

/// The header so far.
#[derive(Debug)]
pub(super) struct Header {
    path: PathBuf,
    facts: Map<String, Value>,
}

impl Header {
    pub(super) fn new(folder: &Path, cpus: &[usize]) -> Self {
        let mut header = Self { path: folder.join("header.json"), facts: Map::new() };
        let host = nix::unistd::gethostname().unwrap_or_default();
        header.set("format", json!(FORMAT));
        header.set("is_complete", json!(false));
        header.set("program", json!(concat!("steelyard-load ", env!("CARGO_PKG_VERSION"))));
        header.set("host", json!(host.to_string_lossy()));
        header.set("kernel", json!(first_line("/proc/sys/kernel/osrelease")));
        header.set("cpus", json!(cpus));
        header.set("clock", json!("monotonic"));
        for stamp in ["start_ns", "best_effort_start_ns", "best_effort_stop_ns", "client_end_ns", "end_ns"] {
            header.set(stamp, json!(0));
        }
        for number in ["work_iterations", "work_ns"] {
            header.set(number, json!(0));
        }
        header.set("applied", json!([]));
        header.set("missing", json!([]));
        header
    }

    pub(super) fn set(&mut self, name: &str, value: Value) {
        self.facts.insert(name.to_owned(), value);
    }

    /// Writes the file, whole or not at all.
    pub(super) fn write(&self) -> Result<(), LoadError> {
        let text = format!("{:#}\n", Value::Object(self.facts.clone()));
        let temporary = self.path.with_extension("part");
        fs::write(&temporary, text).map_err(|error| file_error(&temporary, &error))?;
        fs::rename(&temporary, &self.path).map_err(|error| file_error(&self.path, &error))
    }
}

/// First line of a file of the kernel; `None` where there is none.
pub(super) fn first_line(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().next().map(|line| line.trim().to_owned())
}
