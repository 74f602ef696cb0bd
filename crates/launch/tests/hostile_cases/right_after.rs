//! Limits of a run right after one that has used up all it had.

use std::time::{Duration, Instant};

use steelyard_launch::{Launcher, LauncherOptions};
use steelyard_model::{LimitKind, Limits, Metric, RunOutcome, RunSpec, RunStatus};

use super::Case;
use super::bench::{MIB, WORKER, attack, execute_with, must_not_exceed, output};
use super::beside_load::must_end_within;

/// What these leave is still being buried when they are over.
const TREES: [&str; 5] = ["fork", "threads", "clone-parent-all", "endless-sessions", "endless-vfork"];

pub(crate) const CASES: &[(&str, Case)] = &[
    ("memory_right_after_a_tree", memory_right_after_a_tree),
    ("processes_right_after_a_tree", processes_right_after_a_tree),
    ("memory_bombs_in_files_right_after_each_other", memory_bombs_in_files),
];

fn launcher() -> Launcher {
    Launcher::start(&LauncherOptions { worker: WORKER, ..LauncherOptions::default() }).unwrap()
}

/// Executes a specification right after each of the trees, some times.
fn right_after_trees(spec: &RunSpec, check: impl Fn(&RunOutcome)) {
    let mut launcher = launcher();
    for storm in TREES {
        let mut tree = attack("storm", &[storm]);
        tree.limits = Limits { wall_time_ns: Some(50_000_000), ..Limits::default() };
        for _ in 0..6 {
            execute_with(&mut launcher, &tree);
            check(&execute_with(&mut launcher, spec));
        }
    }
}

fn memory_right_after_a_tree() {
    const LIMIT: u64 = 32 * MIB;
    let mut spec = attack("eat-memory", &[]);
    spec.limits.memory_bytes = Some(LIMIT);
    right_after_trees(&spec, |outcome| {
        assert_eq!(outcome.limit, Some(LimitKind::Memory), "{outcome:#?}");
        must_not_exceed(outcome.value(Metric::PeakMemoryBytes).unwrap(), LIMIT);
    });
}

fn processes_right_after_a_tree() {
    right_after_trees(&attack("fork-and-fail", &["32"]), |outcome| {
        assert_eq!(outcome.limit, Some(LimitKind::ProcessCount), "{outcome:#?}");
        assert!(output(outcome).contains("31 forks"), "{}", output(outcome));
    });
}

fn memory_bombs_in_files() {
    let mut launcher = launcher();
    let mut spec = attack("fill-disk", &["536870912"]);
    spec.limits.memory_bytes = Some(64 * MIB);
    spec.limits.disk_bytes = Some(512 * MIB);
    for _ in 0..5 {
        let start = Instant::now();
        let outcome = execute_with(&mut launcher, &spec);
        must_end_within(Duration::from_millis(500), start);
        assert_eq!(outcome.status, RunStatus::OutOfMemory, "{outcome:#?}");
        must_not_exceed(outcome.value(Metric::PeakMemoryBytes).unwrap(), 64 * MIB);
    }
}
