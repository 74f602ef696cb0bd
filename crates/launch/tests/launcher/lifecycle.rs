//! Batches, barriers, cancellation, and that nothing survives.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use steelyard_model::{BarrierSpec, Request, RunStatus};

use super::Case;
use super::client::{Serve, groups_of, is_alive, soon, spec, time_scale};
use super::layout::Layout;

pub(crate) const CASES: &[Case] = &[
    ("life::iterations_are_numbered_and_ordered", iterations_are_numbered),
    ("life::a_barrier_releases_all_at_once", a_barrier_releases_all_at_once),
    ("life::a_lonely_barrier_gives_up", a_lonely_barrier_gives_up),
    ("life::cancel_interrupts", cancel_interrupts),
    ("life::a_prepared_batch_can_be_given_up", a_prepared_batch_can_be_given_up),
    ("life::a_killed_zygote_is_replaced", a_killed_zygote_is_replaced),
    ("life::end_of_input_leaves_nothing", end_of_input_leaves_nothing),
    ("life::a_signal_leaves_nothing", a_signal_leaves_nothing),
    ("life::kill_of_the_launcher_leaves_nothing", kill_of_the_launcher_leaves_nothing),
    ("life::kill_of_the_guard_leaves_nothing", kill_of_the_guard_leaves_nothing),
    ("life::kill_of_both_is_cleaned_by_the_next", kill_of_both_is_cleaned_by_the_next),
];

fn iterations_are_numbered(layout: Layout) {
    let mut spec = spec(&["exit", "0"]);
    spec.iterations = 20;
    spec.first_iteration = 5;
    let outcomes = Serve::start(layout).batch(&spec);
    let numbers: Vec<u32> = outcomes.iter().map(|outcome| outcome.iteration).collect();
    assert_eq!(numbers, (5..25).collect::<Vec<_>>());
    for pair in outcomes.windows(2) {
        assert!(pair[0].end_ns.unwrap() < pair[1].start_ns.unwrap());
    }
}

fn barrier(parties: u32, timeout_ns: u64) -> (tempfile::NamedTempFile, BarrierSpec) {
    let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    file.as_file().set_len(8).unwrap();
    let path = file.path().to_owned();
    (file, BarrierSpec { path, parties, timeout_ns })
}

fn a_barrier_releases_all_at_once(layout: Layout) {
    let (_file, meeting) = barrier(2, 10_000_000_000);
    let scale = u64::from(time_scale().min(10));
    let mut spec = spec(&["burn", &(20 * scale).to_string()]);
    spec.barrier = Some(meeting);
    spec.iterations = 2;
    let (mut first, mut second) = (Serve::start(layout), Serve::start(layout));
    first.prepare(&spec);
    second.prepare(&spec);
    first.send(&Request::Go);
    std::thread::sleep(Duration::from_millis(100 * scale));
    second.send(&Request::Go);
    let (one, other) = (first.outcomes(), second.outcomes());
    assert_eq!((one.len(), other.len()), (2, 2));
    let distance = one[0].start_ns.unwrap().abs_diff(other[0].start_ns.unwrap());
    assert!(distance < 20_000_000 * scale, "released {distance} ns apart");
    assert!(one[0].start_ns.unwrap() < other[0].end_ns.unwrap());
}

fn a_lonely_barrier_gives_up(layout: Layout) {
    let (_file, meeting) = barrier(2, 50_000_000);
    let mut spec = spec(&["exit", "0"]);
    spec.barrier = Some(meeting);
    spec.iterations = 3;
    let outcomes = Serve::start(layout).batch(&spec);
    assert_eq!(outcomes.len(), 1);
    assert_eq!(outcomes[0].status, RunStatus::LauncherFailed);
    assert!(outcomes[0].message.as_ref().unwrap().contains("1 arrived"));
}

fn cancel_interrupts(layout: Layout) {
    let mut serve = Serve::start(layout);
    let mut spec = spec(&["sleep", "15000"]);
    spec.iterations = 5;
    serve.prepare(&spec);
    serve.send(&Request::Go);
    std::thread::sleep(Duration::from_millis(50));
    serve.send(&Request::Cancel);
    let outcomes = serve.outcomes();
    assert_eq!(outcomes.len(), 1);
    assert_eq!(outcomes[0].status, RunStatus::Interrupted);
    assert_eq!(serve.run(&super::client::spec(&["exit", "0"])).status, RunStatus::Completed);
}

fn a_prepared_batch_can_be_given_up(layout: Layout) {
    let mut serve = Serve::start(layout);
    serve.prepare(&spec(&["sleep", "15000"]));
    serve.send(&Request::Cancel);
    assert!(serve.outcomes().is_empty());
    serve.prepare(&spec(&["sleep", "15000"]));
    // A second preparation replaces the first.
    assert_eq!(serve.run(&spec(&["exit", "0"])).status, RunStatus::Completed);
}

fn name_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

fn a_killed_zygote_is_replaced(layout: Layout) {
    let mut serve = Serve::start(layout);
    let mut spec = spec(&["sleep", "30"]);
    spec.iterations = 20;
    serve.prepare(&spec);
    serve.send(&Request::Go);
    let mut killed = Vec::new();
    let begin = Instant::now();
    while killed.len() < 3 && begin.elapsed() < Duration::from_secs(5) {
        let below = steelyard_host::cgroup::descendants(serve.child.id());
        let mut zygotes = below.into_iter().filter(|pid| name_of(*pid) == "steelyard-zygot");
        if let Some(pid) = zygotes.find(|pid| !killed.contains(pid)) {
            Serve::signal(pid, Signal::SIGKILL);
            killed.push(pid);
        }
        // One run does not lose more than one of them.
        std::thread::sleep(Duration::from_millis(70));
    }
    let outcomes = serve.outcomes();
    let numbers: Vec<u32> = outcomes.iter().map(|outcome| outcome.iteration).collect();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
    assert_eq!(killed.len(), 3, "{outcomes:?}");
    for outcome in &outcomes {
        assert_eq!(outcome.status, RunStatus::Completed, "{outcome:?}");
    }
    assert_eq!(serve.run(&super::client::spec(&["exit", "0"])).status, RunStatus::Completed);
}

/// A launcher with a running daemon, and every process it has.
fn busy(layout: Layout) -> (Serve, Vec<u32>) {
    let mut serve = Serve::start(layout);
    let mut spec = spec(&[]);
    spec.command = vec!["/bin/sh".into(), "-c".into(), "sleep 60 & sleep 60 & wait".into()];
    serve.prepare(&spec);
    serve.send(&Request::Go);
    let guard = serve.child.id();
    let mut all = Vec::new();
    soon("the program has its children", || {
        all = steelyard_host::cgroup::descendants(guard);
        // launcher, zygote, shell, two sleepers
        all.len() >= 5
    });
    all.push(guard);
    (serve, all)
}

fn assert_nothing_left(processes: &[u32], launcher: u32) {
    soon("every process is gone", || !processes.iter().any(|pid| is_alive(*pid)));
    soon("every group is gone", || groups_of(launcher).is_empty());
}

fn end_of_input_leaves_nothing(layout: Layout) {
    let (mut serve, processes) = busy(layout);
    serve.close_input();
    serve.wait();
    assert_nothing_left(&processes, serve.hello.process_id);
}

fn a_signal_leaves_nothing(layout: Layout) {
    let (mut serve, processes) = busy(layout);
    Serve::signal(serve.child.id(), Signal::SIGTERM);
    serve.wait();
    assert_nothing_left(&processes, serve.hello.process_id);
}

fn kill_of_the_launcher_leaves_nothing(layout: Layout) {
    let (mut serve, processes) = busy(layout);
    Serve::signal(serve.hello.process_id, Signal::SIGKILL);
    serve.wait();
    assert_nothing_left(&processes, serve.hello.process_id);
}

fn kill_of_the_guard_leaves_nothing(layout: Layout) {
    let (mut serve, processes) = busy(layout);
    Serve::signal(serve.child.id(), Signal::SIGKILL);
    serve.wait();
    assert_nothing_left(&processes, serve.hello.process_id);
}

fn kill_of_both_is_cleaned_by_the_next(layout: Layout) {
    if !layout.has_groups() {
        // Without groups nobody can find a tree whose launcher and guard died in the same instant.
        return;
    }
    let (mut serve, processes) = busy(layout);
    Serve::signal(serve.child.id(), Signal::SIGSTOP);
    Serve::signal(serve.hello.process_id, Signal::SIGKILL);
    Serve::signal(serve.child.id(), Signal::SIGKILL);
    serve.child.wait().unwrap();
    soon("the launcher is dead", || !is_alive(serve.hello.process_id));
    drop(Serve::start(layout));
    assert_nothing_left(&processes, serve.hello.process_id);
}
