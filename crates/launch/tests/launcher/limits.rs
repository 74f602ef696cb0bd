//! Every limit ends a run, and says which one it was.

use std::time::{Duration, Instant};

use steelyard_model::{LimitKind, Metric, RunOutcome, RunStatus};

use super::Case;
use super::client::{Serve, execute, spec, time_scale};
use super::layout::Layout;

pub(crate) const CASES: &[Case] = &[
    ("limit::cpu_time", cpu_time),
    ("limit::cpu_time_of_a_tree", cpu_time_of_a_tree),
    ("limit::wall_time", wall_time),
    ("limit::memory", memory),
    ("limit::memory_beside_files_of_earlier_runs", memory_beside_files_of_earlier_runs),
    ("limit::process_count", process_count),
    ("limit::file_size", file_size),
    ("limit::output", output),
    ("limit::output_into_a_file", output_into_a_file),
    ("limit::open_files_and_stack", open_files_and_stack),
];

fn assert_limit(outcome: &RunOutcome, status: RunStatus, limit: LimitKind) {
    assert_eq!((outcome.status, outcome.limit), (status, Some(limit)), "{outcome:?}");
}

fn cpu_time(layout: Layout) {
    let mut spec = spec(&["burn", "60000"]);
    spec.limits.cpu_time_ns = Some(150_000_000);
    let outcome = execute(layout, &spec);
    assert_limit(&outcome, RunStatus::CpuTimeout, LimitKind::CpuTime);
    let used = outcome.value(Metric::CpuNs).unwrap();
    let late_ns = 40_000_000 * u64::from(time_scale());
    assert!((150_000_000..150_000_000 + late_ns).contains(&used), "{used}");
}

fn cpu_time_of_a_tree(layout: Layout) {
    let mut spec = spec(&["tree", "60000"]);
    spec.limits.cpu_time_ns = Some(200_000_000);
    let outcome = execute(layout, &spec);
    assert_limit(&outcome, RunStatus::CpuTimeout, LimitKind::CpuTime);
}

fn wall_time(layout: Layout) {
    let mut spec = spec(&["sleep", "60000"]);
    spec.limits.wall_time_ns = Some(100_000_000);
    let outcome = execute(layout, &spec);
    assert_limit(&outcome, RunStatus::WallTimeout, LimitKind::WallTime);
    let wall = outcome.value(Metric::WallNs).unwrap();
    let late_ns = 300_000_000 * u64::from(time_scale());
    assert!((100_000_000..100_000_000 + late_ns).contains(&wall), "{wall}");
    assert_eq!(outcome.signal, Some(9));
}

fn memory(layout: Layout) {
    let mut spec = spec(&["allocate", "268435456"]);
    spec.limits.memory_bytes = Some(32 << 20);
    let outcome = execute(layout, &spec);
    if layout.has_groups() {
        assert_limit(&outcome, RunStatus::OutOfMemory, LimitKind::Memory);
        assert!(outcome.value(Metric::PeakMemoryBytes).unwrap() <= 33 << 20, "{outcome:?}");
    } else {
        assert_ne!(outcome.status, RunStatus::Completed);
        assert!(outcome.mechanism.degraded.iter().any(|text| text.contains("memory_bytes")));
    }
    // A program below the limit is not touched.
    spec.command = super::programs::command(&["allocate", "8388608"]);
    assert_eq!(execute(layout, &spec).status, RunStatus::Completed);
}

/// Pages of files stay charged to the group of the runs that wrote them: those on disk can be forced out, those in
/// memory stay until somebody removes the file. Neither keeps the next run waiting, or is missing from its room.
fn memory_beside_files_of_earlier_runs(layout: Layout) {
    const LIMIT: u64 = 64 << 20;
    const RUNS: u32 = 5;
    let mut serve = Serve::start(layout);
    for place in ["/var/tmp", "/dev/shm"] {
        let folder = tempfile::tempdir_in(place).unwrap();
        let path = folder.path().join("file");
        let mut spec = spec(&["fill-file", &path.to_string_lossy(), &(LIMIT * 3 / 4).to_string()]);
        spec.limits.memory_bytes = Some(LIMIT);
        spec.iterations = RUNS;
        let begin = Instant::now();
        let outcomes = serve.batch(&spec);
        let walls_ns: u64 = outcomes.iter().map(|outcome| outcome.value(Metric::WallNs).unwrap()).sum();
        let beside = begin.elapsed().saturating_sub(Duration::from_nanos(walls_ns));
        for outcome in &outcomes {
            assert_eq!(outcome.status, RunStatus::Completed, "{outcome:?}");
        }
        assert!(beside < RUNS * Duration::from_millis(500) * time_scale(), "{place}: {beside:?}");
    }
}

fn process_count(layout: Layout) {
    let mut spec = spec(&["fork", "8"]);
    spec.limits.process_count = Some(4);
    let outcome = execute(layout, &spec);
    if layout.has_groups() {
        assert_limit(&outcome, RunStatus::LimitExceeded, LimitKind::ProcessCount);
    } else {
        assert!(outcome.mechanism.degraded.iter().any(|text| text.contains("process_count")));
    }
    spec.limits.process_count = Some(9);
    assert_eq!(execute(layout, &spec).status, RunStatus::Completed);
}

fn file_size(layout: Layout) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let mut spec = spec(&["fill-file", &path.to_string_lossy(), "1048576"]);
    spec.limits.file_size_bytes = Some(65536);
    let outcome = execute(layout, &spec);
    assert_limit(&outcome, RunStatus::LimitExceeded, LimitKind::FileSize);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 65536);
}

fn output(layout: Layout) {
    let mut spec = spec(&["print-forever"]);
    spec.limits.output_bytes = Some(1 << 20);
    let outcome = execute(layout, &spec);
    assert_limit(&outcome, RunStatus::LimitExceeded, LimitKind::Output);
    let stream = outcome.standard_output.unwrap();
    assert!(stream.truncated && stream.total_bytes > 1 << 20);
    assert_eq!(stream.text.len(), 1 << 16);
}

fn output_into_a_file(layout: Layout) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("output");
    let mut spec = spec(&["print-forever"]);
    spec.standard_output = steelyard_model::OutputStream::File { path: path.clone() };
    spec.limits.output_bytes = Some(1 << 20);
    let outcome = execute(layout, &spec);
    assert_limit(&outcome, RunStatus::LimitExceeded, LimitKind::Output);
    assert!(std::fs::metadata(&path).unwrap().len() < 8 << 20);
}

fn open_files_and_stack(layout: Layout) {
    let mut spec = spec(&[]);
    spec.command = vec!["/bin/sh".into(), "-c".into(), "ulimit -n; ulimit -s; ulimit -c".into()];
    spec.limits.open_file_count = Some(64);
    spec.limits.stack_bytes = Some(4 << 20);
    let outcome = execute(layout, &spec);
    assert_eq!(super::client::text(&outcome), "64\n4096\n0\n");
}
