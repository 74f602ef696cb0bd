//! Limits beside a load of twice the CPUs: the usual state of a machine that judges programs.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use nix::unistd::setsid;
use steelyard_launch::{Launcher, LauncherOptions};
use steelyard_model::{LimitKind, Limits, Metric, RunOutcome, RunStatus};

use super::bench::{
    MIB, USER, WORKER, attack, execute_with, leaves_nothing, must_not_exceed, processes_of, traces,
};
use super::{Case, LongCase};
use crate::attack::MARK;

/// Trees that multiply as fast as they can.
const STORMS: [&str; 7] =
    ["fork", "fork-and-end", "clone-parent", "clone-parent-all", "vfork", "threads", "loops"];

/// Trees whose processes end as fast as they are made, so that nothing but a group sees all of their CPU time.
const ENDLESS: [&str; 6] = [
    "endless-fork",
    "endless-vfork",
    "endless-sessions",
    "endless-sleepers",
    "endless-workers",
    "endless-threads",
];

/// One of each is for every day, but for memory, which takes a second to be eaten.
pub(crate) const CASES: &[(&str, Case)] = &[
    ("limits_beside_load", limits_beside_load),
    ("cpu_time_of_trees_without_end", cpu_time_of_trees_without_end),
];

/// The number that is promised, of each tree, on an idle machine and on a loaded one.
pub(crate) fn long_cases() -> Vec<(String, LongCase)> {
    let of = |storm: &'static str| {
        let case = |is_loaded: bool| -> LongCase {
            Box::new(move || {
                let _load = is_loaded.then(Load::start);
                rounds(200, storm, true);
            })
        };
        [
            (format!("limits_in_200_runs_of_{storm}"), case(false)),
            (format!("limits_beside_load_in_200_runs_of_{storm}"), case(true)),
        ]
    };
    STORMS.into_iter().chain(ENDLESS).flat_map(of).collect()
}

/// How much longer an emulated machine may need for the same instructions.
fn time_scale() -> u32 {
    std::env::var("STEELYARD_TIME_SCALE").map_or(1, |text| text.parse().unwrap())
}

/// What a limit of time may be overrun by [ns].
fn tolerance_ns(limit_ns: u64) -> u64 {
    u64::from(time_scale()) * (10_000_000 + limit_ns / 100)
}

/// Nothing waits for a program that was ended: of this length at most, its launch included.
#[track_caller]
pub(crate) fn must_end_within(most: Duration, start: Instant) {
    let took = start.elapsed();
    assert!(took < most * time_scale(), "it took {took:?}");
}

#[track_caller]
pub(crate) fn must_be_kept(used_ns: u64, limit_ns: u64) {
    let late_ns = used_ns.checked_sub(limit_ns);
    let is_kept = late_ns.is_some_and(|late_ns| late_ns <= tolerance_ns(limit_ns));
    assert!(is_kept, "{used_ns} ns of {limit_ns} ns");
}

/// Processes that never stop, half of them in sessions of their own: the kernel shares CPUs between sessions first.
struct Load(Vec<Child>);

impl Load {
    fn start() -> Self {
        let count = 2 * std::thread::available_parallelism().unwrap().get();
        let busy = |number: usize| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args([MARK, "burn-cpu", "3600"]);
            if number.is_multiple_of(2) {
                // SAFETY: one system call.
                unsafe { command.pre_exec(|| Ok(setsid().map(drop)?)) };
            }
            command.spawn().unwrap()
        };
        Self((0..count).map(busy).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn limits_beside_load() {
    let _load = Load::start();
    for storm in STORMS {
        rounds(1, storm, storm == "fork");
    }
}

fn rounds(count: u32, storm: &str, eats: bool) {
    let before = traces();
    let options = LauncherOptions { worker: WORKER, ..LauncherOptions::default() };
    let mut launcher = Launcher::start(&options).unwrap();
    let mut worst_ns = [0_u64; 2];
    for _ in 0..count {
        for most_processes in [Some(64), None] {
            worst_ns[0] = worst_ns[0].max(wall_time(&mut launcher, storm, most_processes));
        }
        worst_ns[1] = worst_ns[1].max(cpu_time(&mut launcher, storm, 50_000_000));
        if eats {
            memory(&mut launcher, storm);
        }
    }
    println!("{storm}: {count} runs, overrun at most {worst_ns:?} ns of wall and CPU time");
    drop(launcher);
    leaves_nothing(&before);
}

/// Executes a storm; when the launcher answers, nothing of it is left, and it had no more CPU time than there is.
fn execute(launcher: &mut Launcher, storm: &[&str], limits: Limits) -> RunOutcome {
    let mut spec = attack("storm", storm);
    spec.limits = limits;
    let start = Instant::now();
    let outcome = execute_with(launcher, &spec);
    must_end_within(Duration::from_secs(11), start);
    let left = processes_of(USER);
    assert!(left.is_empty(), "left by {storm:?}: {left:?}");
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    let most_ns = outcome.value(Metric::WallNs).unwrap() * cpus;
    assert!(outcome.value(Metric::CpuNs).unwrap() <= most_ns, "{outcome:#?}");
    outcome
}

#[track_caller]
fn must_be_ended(outcome: &RunOutcome, status: RunStatus, limit: LimitKind) {
    assert_eq!((outcome.status, outcome.limit), (status, Some(limit)), "{outcome:#?}");
}

/// Without a limit of processes the launcher's own bound holds the tree.
fn wall_time(launcher: &mut Launcher, storm: &str, process_count: Option<u64>) -> u64 {
    const LIMIT_NS: u64 = 100_000_000;
    let limits = Limits { wall_time_ns: Some(LIMIT_NS), process_count, ..Limits::default() };
    let outcome = execute(launcher, &[storm], limits);
    must_be_ended(&outcome, RunStatus::WallTimeout, LimitKind::WallTime);
    let wall_ns = outcome.value(Metric::WallNs).unwrap();
    must_be_kept(wall_ns, LIMIT_NS);
    wall_ns - LIMIT_NS
}

fn cpu_time(launcher: &mut Launcher, storm: &str, limit_ns: u64) -> u64 {
    let limits = Limits { cpu_time_ns: Some(limit_ns), process_count: Some(64), ..Limits::default() };
    let outcome = execute(launcher, &[storm], limits);
    must_be_ended(&outcome, RunStatus::CpuTimeout, LimitKind::CpuTime);
    let cpu_ns = outcome.value(Metric::CpuNs).unwrap();
    must_be_kept(cpu_ns, limit_ns);
    cpu_ns - limit_ns
}

/// However little of a tree is seen of each process, and however much of its CPU time is left.
fn cpu_time_of_trees_without_end() {
    let options = LauncherOptions { worker: WORKER, ..LauncherOptions::default() };
    let mut launcher = Launcher::start(&options).unwrap();
    for storm in ENDLESS {
        for limit_ns in [50_000_000, 400_000_000] {
            cpu_time(&mut launcher, storm, limit_ns);
        }
    }
}

fn memory(launcher: &mut Launcher, storm: &str) {
    const LIMIT: u64 = 32 * MIB;
    let limits = Limits {
        memory_bytes: Some(LIMIT),
        wall_time_ns: Some(10_000_000_000),
        process_count: Some(64),
        ..Limits::default()
    };
    let outcome = execute(launcher, &[storm, "memory"], limits);
    must_be_ended(&outcome, RunStatus::OutOfMemory, LimitKind::Memory);
    must_not_exceed(outcome.value(Metric::PeakMemoryBytes).unwrap(), LIMIT);
}
