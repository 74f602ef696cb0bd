//! What an endpoint says of itself: `header.R.json`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::CommError;
use crate::channel::Parameters;
use crate::clock::StampCost;
use crate::options::Options;
use crate::record::file_error;
use crate::setup::Agreement;

/// The file of one endpoint; written before the first operation, and again at the end.
#[derive(Debug)]
pub(crate) struct Header {
    path: PathBuf,
    facts: Map<String, Value>,
}

impl Header {
    /// Collects what is known before the first operation.
    pub(crate) fn new(rank: u32, options: &Options, stamps: StampCost, parameters: &Parameters) -> Self {
        let mut facts = Map::new();
        let mut add = |name: &str, value: Value| facts.insert(name.to_owned(), value);
        add("format", json!("steelyard/trace/1"));
        add("rank", json!(rank));
        add("transport", json!(options.transport.name()));
        add("program", json!(concat!("steelyard-comm ", env!("CARGO_PKG_VERSION"))));
        let host = nix::unistd::gethostname().unwrap_or_default();
        add("host", json!(host.to_string_lossy()));
        add("kernel", json!(first_line("/proc/sys/kernel/osrelease")));
        // Endpoints with the same boot share their clock.
        add("boot_id", json!(first_line("/proc/sys/kernel/random/boot_id")));
        add("cpu", json!(crate::placement::current()));
        add("is_pinned", json!(options.cpus.is_some()));
        add("clock", json!("CLOCK_MONOTONIC"));
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        add("clock_source", json!(first_line(source)));
        add("stamp_cost_ns", json!(stamps.cost_ns));
        add("stamp_resolution_ns", json!(stamps.resolution_ns));
        add("gap_us", json!(options.gap_us));
        add("budget_ms", json!(options.budget_ms));
        add("plant_switch", json!(options.switch_text));
        add("plant_noise", json!(options.noise_text));
        if options.noise.is_some() {
            add("plant_seed", json!(options.seed));
        }
        let parameters: Map<_, _> =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        add("parameters", Value::Object(parameters));
        Self { path: options.out.join(format!("header.{rank}.json")), facts }
    }

    /// Adds what the endpoints have agreed on.
    pub(crate) fn add_agreement(&mut self, agreement: &Agreement) {
        let mut add = |name: &str, value: Value| self.facts.insert(name.to_owned(), value);
        add("planned", json!(agreement.operations));
        add("plan_checksum", json!(format!("{:016x}", agreement.checksum)));
        add("block", json!(agreement.block));
        add("probes", json!(agreement.probes));
        add("has_canary", json!(agreement.has_canary));
    }

    /// Writes the file, whole or not at all.
    pub(crate) fn write(&mut self, operations: u64, ended_by: Option<&str>) -> Result<(), CommError> {
        let is_complete = matches!(ended_by, Some("plan" | "budget"));
        self.facts.insert("operations".to_owned(), json!(operations));
        self.facts.insert("is_complete".to_owned(), json!(is_complete));
        self.facts.insert("ended_by".to_owned(), json!(ended_by));
        let text = format!("{:#}\n", Value::Object(self.facts.clone()));
        let temporary = self.path.with_extension("part");
        fs::write(&temporary, text).map_err(|error| file_error(&temporary, &error))?;
        fs::rename(&temporary, &self.path).map_err(|error| file_error(&self.path, &error))
    }
}

/// First line of a file of the kernel; `null` where there is none.
fn first_line(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().next().map(str::to_owned)
}
