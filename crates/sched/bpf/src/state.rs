//! The folder of a running scheduler: its process number and its status.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::SchedulerError;
use crate::counters::write_json;

/// The folder, made if it was missing.
#[derive(Debug, Clone)]
pub(crate) struct StateFolder {
    folder: PathBuf,
}

impl StateFolder {
    pub(crate) fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// What the running scheduler said last, if one runs.
    pub(crate) fn status(&self) -> Option<Value> {
        let status: Value = serde_json::from_str(&fs::read_to_string(self.status_path()).ok()?).ok()?;
        let pid = status["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok())?;
        is_scheduler(pid).then_some(status)
    }

    /// Process number of the running scheduler.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.status()?["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok())
    }

    pub(crate) fn write(&self, status: &Value) -> Result<(), SchedulerError> {
        fs::create_dir_all(&self.folder).map_err(|error| SchedulerError::file(&self.folder, error))?;
        write_json(&self.status_path(), status)
    }

    pub(crate) fn clear(&self) {
        // A folder that was there before, or that is gone, is none of our business.
        let _ = fs::remove_file(self.status_path());
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn status_path(&self) -> PathBuf {
        self.folder.join("status.json")
    }
}

/// A process number is used again after its process is gone: the name must fit too.
fn is_scheduler(pid: i32) -> bool {
    // The kernel keeps 15 characters of a name.
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "steelyard-sched")
}
