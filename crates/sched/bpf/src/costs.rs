//! What the programs of the class and of the meter cost, as the kernel measures it.

use std::fs;
use std::path::Path;

use libbpf_rs::query::ProgInfoIter;
use serde_json::{Value, json};

use crate::SchedulerError;

/// Programs that are called on the way of a task to a CPU, the class's first; `*.bpf.c` and `meter.bpf.h` have them.
const PROGRAMS: [&str; 12] = [
    "be_select_cpu",
    "be_enqueue",
    "be_dispatch",
    "be_running",
    "be_stopping",
    "be_update_idle",
    "be_tick",
    "note_wakeup",
    "note_wakeup_new",
    "note_switch",
    "note_lock_wait",
    "note_lock_got",
];
/// The switch of the kernel that makes it measure every BPF program.
const SWITCH: &str = "proc/sys/kernel/bpf_stats_enabled";

/// How often a program was called, and how long that took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) name: &'static str,
    pub(crate) calls: u64,
    /// All calls together \[ns\].
    pub(crate) run_ns: u64,
}

/// Read what was measured since the programs were loaded; those that were never called are left out.
pub(crate) fn read(root: &Path) -> Result<Vec<Cost>, SchedulerError> {
    let is_on = fs::read_to_string(root.join(SWITCH)).is_ok_and(|text| text.trim() == "1");
    if !is_on {
        return Err(SchedulerError::Failed {
            message: "cannot say what the class costs: the kernel does not measure its programs".into(),
            hint: "`sysctl kernel.bpf_stats_enabled=1`, for a while: that costs time, too".into(),
        });
    }
    let mut costs: Vec<Cost> = PROGRAMS.iter().map(|name| Cost { name, calls: 0, run_ns: 0 }).collect();
    for program in ProgInfoIter::default() {
        if let Some(cost) = costs.iter_mut().find(|cost| program.name == cost.name) {
            cost.calls += program.run_cnt;
            cost.run_ns += program.run_time_ns;
        }
    }
    costs.retain(|cost| cost.calls > 0);
    Ok(costs)
}

/// Give the form for programs.
pub(crate) fn to_json(costs: &[Cost]) -> Value {
    costs
        .iter()
        .map(|cost| (cost.name.to_owned(), json!({"calls": cost.calls, "run_ns": cost.run_ns})))
        .collect()
}

/// Give the form for people: a line each, with the mean of a call.
pub(crate) fn to_text(costs: &[Cost]) -> String {
    let line = |cost: &Cost| {
        let mean_ns = cost.run_ns / cost.calls;
        format!("{:16}{:>12} calls {mean_ns:>8} ns each\n", cost.name, cost.calls)
    };
    costs.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_does_not_measure_is_named_with_its_switch() {
        let host = tempfile::tempdir().unwrap();
        let error = read(host.path()).unwrap_err();
        assert_eq!(error.exit_code(), 4);
        assert!(error.hint().unwrap().contains("kernel.bpf_stats_enabled=1"));
    }

    #[test]
    fn both_forms_name_the_program() {
        let costs = [Cost { name: "be_enqueue", calls: 4, run_ns: 1000 }];
        assert_eq!(to_json(&costs), json!({"be_enqueue": {"calls": 4, "run_ns": 1000}}));
        assert!(to_text(&costs).contains("250 ns each"), "{}", to_text(&costs));
    }
}
