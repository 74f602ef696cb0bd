//! What the class and the meter count, and its two written forms.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::SchedulerError;
use crate::options::{Siblings, Switches};

/// Name and version of the written form.
pub const FORMAT: &str = "steelyard/scheduler-counters/1";

/// Names of the counters, in the order of `enum counter` in `state.bpf.h`.
pub const COUNTERS: [&str; 15] = [
    "scheduling_events",
    "entry_runs",
    "entry_successes",
    "exit_runs",
    "exit_successes",
    "local_lc_picks",
    "be_picks",
    "self_kicks",
    "heartbeat_blinks",
    "reenqueues",
    "migrations",
    "lent",
    "inversions",
    "holder_moments",
    "be_returns",
];

/// Names of the histograms, in the order of `enum check`.
pub const CHECKS: [&str; 3] = ["entry", "exit", "local"];

/// Buckets of a histogram: the i-th counts durations from 2^i up to 2^(i+1) ns, the first also 0.
pub const BUCKETS: usize = 32;

/// How long LC tasks waited while BE ran on a CPU that they might have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Strictness {
    /// Sum over all waits \[ns\].
    pub violation_ns: u64,
    /// Waits with any such time.
    pub violations: u64,
    /// The longest one \[ns\].
    pub longest_ns: u64,
    /// Waits observed.
    pub events: u64,
    /// Time that BE user threads had a CPU while an LC one had a sibling, another hardware thread of its core \[ns\].
    pub beside_ns: u64,
    /// How often that began.
    pub beside_count: u64,
    /// The longest such time \[ns\].
    pub longest_beside_ns: u64,
}

/// Everything that is counted since the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters {
    /// Whether the class is attached at this moment.
    pub is_active: bool,
    /// How often the kernel threw it out.
    pub ejections: u64,
    /// What the kernel said when the class ended the last time.
    pub last_exit: String,
    /// The checks that are on; `None` where only strictness is measured.
    pub switches: Option<Switches>,
    /// What BE tasks may do beside an LC task on one core; `None` where only strictness is measured.
    pub siblings: Option<Siblings>,
    /// One per name in [`COUNTERS`].
    pub counts: [u64; COUNTERS.len()],
    /// One per name in [`CHECKS`].
    pub histograms_ns: [[u64; BUCKETS]; CHECKS.len()],
    /// The strictness metric; `None` where it cannot be measured.
    pub strictness: Option<Strictness>,
    /// Time that BE tasks were ready and had no CPU for more than one heartbeat, summed over tasks \[ns\].
    pub parked_ns: u64,
}

impl Counters {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(switches: Option<Switches>, siblings: Option<Siblings>) -> Self {
        Self {
            is_active: false,
            ejections: 0,
            last_exit: String::new(),
            switches,
            siblings,
            counts: [0; COUNTERS.len()],
            histograms_ns: [[0; BUCKETS]; CHECKS.len()],
            strictness: Some(Strictness::default()),
            parked_ns: 0,
        }
    }

    /// Give the form of [`FORMAT`].
    #[must_use]
    pub fn to_json(&self) -> Value {
        let counts: serde_json::Map<String, Value> = COUNTERS
            .iter()
            .zip(self.counts)
            .map(|(name, value)| ((*name).to_owned(), value.into()))
            .collect();
        let histograms: serde_json::Map<String, Value> = CHECKS
            .iter()
            .zip(&self.histograms_ns)
            .map(|(name, counts)| ((*name).to_owned(), json!(counts)))
            .collect();
        let switches = self.switches.map(|on| json!({"local": on.local, "entry": on.entry, "exit": on.exit}));
        let strictness = self.strictness.map(|found| {
            json!({
                "violation_ns": found.violation_ns,
                "violations": found.violations,
                "longest_ns": found.longest_ns,
                "events": found.events,
                "beside_ns": found.beside_ns,
                "beside_count": found.beside_count,
                "longest_beside_ns": found.longest_beside_ns,
            })
        });
        json!({
            "format": FORMAT,
            "active": self.is_active,
            "ejections": self.ejections,
            "last_exit": self.last_exit,
            "switches": switches,
            "siblings": self.siblings.map(Siblings::name),
            "counters": counts,
            "histograms_ns": histograms,
            "strictness": strictness,
            "parked_ns": self.parked_ns,
        })
    }
}

/// Write a JSON value whole or not at all.
///
/// # Errors
///
/// [`SchedulerError::File`] if the folder cannot be written.
pub fn write_json(path: &Path, content: &Value) -> Result<(), SchedulerError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = Path::new(&temporary);
    fs::write(temporary, format!("{content}\n")).map_err(|error| SchedulerError::file(temporary, error))?;
    fs::rename(temporary, path).map_err(|error| SchedulerError::file(path, error))
}

/// Turn counters as written by [`Counters::to_json`] into Prometheus' text form.
///
/// # Examples
///
/// ```
/// use steelyard_scheduler::counters::{Counters, to_prometheus};
/// let text = to_prometheus(&Counters::new(None, None).to_json());
/// assert!(text.contains("steelyard_scheduler_be_picks_total 0\n"));
/// ```
#[must_use]
pub fn to_prometheus(counters: &Value) -> String {
    let mut text = String::new();
    let mut line = |name: &str, kind: &str, labels: &str, value: u64| {
        let header = format!("# TYPE steelyard_scheduler_{name} {kind}\n");
        if !text.contains(&header) {
            text.push_str(&header);
        }
        let _ = writeln!(text, "steelyard_scheduler_{name}{labels} {value}");
    };
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    line("active", "gauge", "", u64::from(counters["active"].as_bool().unwrap_or(false)));
    line("ejections_total", "counter", "", number(&counters["ejections"]));
    line("parked_ns_total", "counter", "", number(&counters["parked_ns"]));
    for name in COUNTERS {
        line(&format!("{name}_total"), "counter", "", number(&counters["counters"][name]));
    }
    for name in ["violation_ns", "violations", "events", "beside_ns", "beside_count"] {
        line(&format!("strictness_{name}_total"), "counter", "", number(&counters["strictness"][name]));
    }
    for name in ["longest_ns", "longest_beside_ns"] {
        line(&format!("strictness_{name}"), "gauge", "", number(&counters["strictness"][name]));
    }
    for check in CHECKS {
        let buckets = counters["histograms_ns"][check].as_array().cloned().unwrap_or_default();
        let mut sum = 0;
        for (power, count) in buckets.iter().enumerate() {
            sum += number(count);
            let bound = (1_u64 << (power + 1)) - 1;
            line("check_ns_bucket", "counter", &format!("{{check=\"{check}\",le=\"{bound}\"}}"), sum);
        }
        line("check_ns_bucket", "counter", &format!("{{check=\"{check}\",le=\"+Inf\"}}"), sum);
        line("check_ns_count", "counter", &format!("{{check=\"{check}\"}}"), sum);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_written_form_is_there() {
        let switches = Switches { local: true, entry: false, exit: true };
        let mut counters = Counters::new(Some(switches), Some(Siblings::Avoid));
        counters.counts[1] = 7;
        counters.histograms_ns[2][3] = 9;
        let written = counters.to_json();
        assert_eq!(written["format"], FORMAT);
        assert_eq!(written["counters"]["entry_runs"], 7);
        assert_eq!(written["histograms_ns"]["local"][3], 9);
        assert_eq!(written["switches"]["entry"], false);
        assert_eq!(written["siblings"], "avoid");
        for key in ["violation_ns", "violations", "longest_ns", "events", "beside_ns", "longest_beside_ns"] {
            assert_eq!(written["strictness"][key], 0);
        }
        counters.strictness = None;
        assert!(counters.to_json()["strictness"].is_null());
    }

    #[test]
    fn names_stand_in_the_order_of_the_class() {
        let state = include_str!("bpf/state.bpf.h");
        let (_, list) = state.split_once("enum counter {").unwrap();
        let (list, _) = list.split_once("COUNTERS").unwrap();
        let names: Vec<String> = list
            .split(',')
            .filter_map(|word| word.trim().strip_prefix("COUNT_"))
            .map(str::to_lowercase)
            .collect();
        assert_eq!(names, COUNTERS);
    }

    #[test]
    fn buckets_of_prometheus_add_up_and_have_one_header() {
        let mut counters = Counters::new(None, None);
        counters.histograms_ns[0][0] = 2;
        counters.histograms_ns[0][5] = 3;
        let text = to_prometheus(&counters.to_json());
        assert!(text.contains("steelyard_scheduler_check_ns_bucket{check=\"entry\",le=\"1\"} 2\n"));
        assert!(text.contains("steelyard_scheduler_check_ns_bucket{check=\"entry\",le=\"63\"} 5\n"));
        assert!(text.contains("steelyard_scheduler_check_ns_count{check=\"entry\"} 5\n"));
        assert_eq!(text.matches("# TYPE steelyard_scheduler_check_ns_bucket").count(), 1);
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scheduler.json");
        write_json(&path, &json!({"a": 1})).unwrap();
        write_json(&path, &json!({"a": 2})).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\":2}\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
