use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::text_file::replace;

const NAME: &str = "governor.json";

/// What the governor counts since it was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counters {
    /// Looks at the pressure.
    pub(crate) looks: u64,
    /// Times the kernel told of pressure.
    pub(crate) wakeups: u64,
    /// Times a quota was set where there was none.
    pub(crate) throttles: u64,
    /// Times commands were parked, again after a blink included.
    pub(crate) parks: u64,
    /// Times parked commands were let run, for a moment or for good.
    pub(crate) thaws: u64,
    /// Times everything was released.
    pub(crate) releases: u64,
    /// Time under a quota [ns].
    pub(crate) limited_ns: u64,
    /// Time parked [ns].
    pub(crate) parked_ns: u64,
}

/// What `status` tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) format: String,
    pub(crate) process_id: u32,
    /// What is watched, in words.
    pub(crate) watches: String,
    /// Whether the kernel tells of pressure; otherwise it is looked for regularly.
    pub(crate) is_event_driven: bool,
    /// Groups that are governed.
    pub(crate) groups: Vec<String>,
    pub(crate) has_quota: bool,
    /// Version of the freezer, 0: none.
    pub(crate) freezer_version: u8,
    /// `free`, `limited`, `parked`.
    pub(crate) allowance: String,
    /// Quota [CPUs]; absent: none.
    pub(crate) quota_cpus: Option<f64>,
    /// Share of waiting at the last look, 0 to 1.
    pub(crate) pressure: f64,
    /// The same without best-effort commands, as far as it is known.
    #[serde(default)]
    pub(crate) pressure_alone: Option<f64>,
    /// CPUs that best-effort commands used before the last look.
    pub(crate) used_cpus: Option<f64>,
    pub(crate) counters: Counters,
    /// What was refused last.
    pub(crate) problem: Option<String>,
}

pub(crate) const FORMAT: &str = "steelyard/governor-status/1";

impl Status {
    /// Leaves it for whoever asks; a full disk is no reason to stop governing.
    pub(crate) fn write(&self, state: &Path) {
        if let Ok(text) = serde_json::to_string_pretty(self) {
            let _ = replace(&state.join(NAME), &format!("{text}\n"));
        }
    }

    pub(crate) fn remove(state: &Path) {
        let _ = fs::remove_file(state.join(NAME));
    }

    pub(crate) fn read(state: &Path) -> Option<Self> {
        serde_json::from_str(&fs::read_to_string(state.join(NAME)).ok()?).ok()
    }
}
