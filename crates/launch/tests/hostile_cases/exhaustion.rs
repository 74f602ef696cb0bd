//! Attempts to use up what the host has.

use std::time::{Duration, Instant};

use steelyard_model::{Flag, LimitKind, Limits, Metric, RunStatus};

use super::Case;
use super::bench::{MIB, attack, execute, must_be_contained, must_not_exceed, output};
use super::beside_load;

pub(crate) const CASES: &[(&str, Case)] = &[
    ("fork_bomb", fork_bomb),
    ("fork_bomb_that_gives_up", fork_bomb_that_gives_up),
    ("memory_bomb", memory_bomb),
    ("memory_bomb_in_files", memory_bomb_in_files),
    ("disk_filler", disk_filler),
    ("inode_filler", inode_filler),
    ("million_open_files", million_open_files),
    ("huge_output", huge_output),
    ("huge_file", huge_file),
    ("endless_loop", endless_loop),
];

/// Half a second of forking: never more processes than allowed, and the clock ends it.
fn fork_bomb() {
    let mut spec = attack("fork-bomb", &[]);
    spec.limits.wall_time_ns = Some(500_000_000);
    let start = Instant::now();
    let outcome = execute(&spec);
    assert_eq!(
        (outcome.status, outcome.limit),
        (RunStatus::WallTimeout, Some(LimitKind::WallTime)),
        "{outcome:#?}"
    );
    beside_load::must_end_within(Duration::from_secs(2), start);
    beside_load::must_be_kept(outcome.value(Metric::WallNs).unwrap(), 500_000_000);
}

fn fork_bomb_that_gives_up() {
    let outcome = execute(&attack("fork-and-fail", &["32"]));
    assert_eq!(outcome.limit, Some(LimitKind::ProcessCount), "{outcome:#?}");
    assert_eq!(outcome.status, RunStatus::LimitExceeded);
    assert!(outcome.flags.contains(&Flag::LeftProcesses), "{outcome:#?}");
}

fn memory_bomb() {
    let mut spec = attack("eat-memory", &[]);
    spec.limits.memory_bytes = Some(64 * MIB);
    let outcome = execute(&spec);
    assert_eq!(
        (outcome.status, outcome.limit),
        (RunStatus::OutOfMemory, Some(LimitKind::Memory)),
        "{outcome:#?}"
    );
    must_not_exceed(outcome.value(Metric::PeakMemoryBytes).unwrap(), 64 * MIB);
}

/// Files in memory count as memory: a disk limit above the memory limit changes nothing.
fn memory_bomb_in_files() {
    let mut spec = attack("fill-disk", &["536870912"]);
    spec.limits.memory_bytes = Some(64 * MIB);
    spec.limits.disk_bytes = Some(512 * MIB);
    let outcome = execute(&spec);
    assert_eq!(
        (outcome.status, outcome.limit),
        (RunStatus::OutOfMemory, Some(LimitKind::Memory)),
        "{outcome:#?}"
    );
}

fn disk_filler() {
    let outcome = execute(&attack("fill-disk", &["8388608"]));
    must_be_contained(&outcome);
    assert!(output(&outcome).contains("wrote"));
}

fn inode_filler() {
    let outcome = execute(&attack("fill-inodes", &["2048"]));
    must_be_contained(&outcome);
}

fn million_open_files() {
    let outcome = execute(&attack("open-files", &[]));
    must_be_contained(&outcome);
    assert!(output(&outcome).contains("25"), "{}", output(&outcome));
}

fn huge_output() {
    let mut spec = attack("flood-output", &[]);
    spec.limits.output_bytes = Some(MIB);
    let outcome = execute(&spec);
    assert_eq!(
        (outcome.status, outcome.limit),
        (RunStatus::LimitExceeded, Some(LimitKind::Output)),
        "{outcome:#?}"
    );
    assert_eq!(output(&outcome).len(), 1 << 16, "only what was asked for is kept");
}

fn huge_file() {
    let mut spec = attack("fill-disk", &["8388608"]);
    spec.limits = Limits { file_size_bytes: Some(MIB), ..spec.limits };
    let outcome = execute(&spec);
    assert_eq!(
        (outcome.status, outcome.limit),
        (RunStatus::LimitExceeded, Some(LimitKind::FileSize)),
        "{outcome:#?}"
    );
}

fn endless_loop() {
    let mut spec = attack("burn-cpu", &["30"]);
    spec.limits.cpu_time_ns = Some(200_000_000);
    let outcome = execute(&spec);
    assert_eq!(
        (outcome.status, outcome.limit),
        (RunStatus::CpuTimeout, Some(LimitKind::CpuTime)),
        "{outcome:#?}"
    );
}
