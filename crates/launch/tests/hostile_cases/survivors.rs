//! Attempts to outlive the run, or never to end.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};
use steelyard_launch::{Launcher, LauncherOptions, NoControl};
use steelyard_model::{Flag, LimitKind, RunOutcome, RunSpec, RunStatus};

use super::Case;
use super::bench::{attack, execute, execute_with, groups_of, must_be_contained, processes_of};
use super::beside_load;

pub(crate) const CASES: &[(&str, Case)] = &[
    ("double_fork_daemon", double_fork_daemon),
    ("stops_itself", stops_itself),
    ("stops_its_whole_tree", stops_its_whole_tree),
    ("ignores_every_signal", ignores_every_signal),
    ("kills_everyone", kills_everyone),
    ("leaves_shared_memory", leaves_shared_memory),
    ("leaves_files", leaves_files),
    ("killed_launcher", killed_launcher),
];

fn double_fork_daemon() {
    let outcome = execute(&attack("daemon", &[]));
    must_be_contained(&outcome);
    assert!(outcome.flags.contains(&Flag::LeftProcesses), "{outcome:#?}");
}

#[track_caller]
fn must_time_out(outcome: &RunOutcome) {
    let ended = (outcome.status, outcome.limit);
    assert_eq!(ended, (RunStatus::WallTimeout, Some(LimitKind::WallTime)), "{outcome:#?}");
}

fn in_half_a_second(name: &str) -> RunSpec {
    let mut spec = attack(name, &[]);
    spec.limits.wall_time_ns = Some(500_000_000);
    spec
}

fn stops_itself() {
    let outcome = execute(&in_half_a_second("stop-self"));
    must_time_out(&outcome);
    assert!(outcome.flags.contains(&Flag::Stopped), "{outcome:#?}");
}

fn stops_its_whole_tree() {
    let start = Instant::now();
    let outcome = execute(&in_half_a_second("stopped-tree"));
    must_time_out(&outcome);
    assert!(outcome.flags.contains(&Flag::Stopped), "{outcome:#?}");
    beside_load::must_end_within(Duration::from_secs(3), start);
}

fn ignores_every_signal() {
    let outcome = execute(&in_half_a_second("ignore-signals"));
    must_time_out(&outcome);
    assert_eq!(outcome.signal, Some(libc::SIGKILL));
}

/// `kill(-1, SIGKILL)` reaches neither the launcher nor the first process of the pool.
fn kills_everyone() {
    let own = std::process::id().to_string();
    let outcome = execute(&attack("signal-others", &[&own]));
    must_be_contained(&outcome);
}

fn two_runs(first: &str, second: &str) {
    let mut launcher =
        Launcher::start(&LauncherOptions { worker: 978, ..LauncherOptions::default() }).unwrap();
    must_be_contained(&execute_with(&mut launcher, &attack(first, &[])));
    must_be_contained(&execute_with(&mut launcher, &attack(second, &[])));
}

fn leaves_shared_memory() {
    two_runs("leave-ipc", "ipc-is-empty");
}

fn leaves_files() {
    two_runs("write-own-places", "places-are-empty");
}

/// The launcher itself is killed in mid-run.
fn killed_launcher() {
    let worker = 979;
    // SAFETY: this process has one thread.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let mut launcher =
                Launcher::start(&LauncherOptions { worker, ..LauncherOptions::default() }).unwrap();
            launcher.prepare(&attack("ignore-signals", &[])).unwrap();
            let _ = launcher.execute(&mut NoControl, &mut drop);
            // SAFETY: ends the child without the harness's exit handlers.
            unsafe { libc::_exit(1) }
        }
        ForkResult::Parent { child } => {
            let within = |what: &str, holds: &dyn Fn() -> bool| {
                let end = Instant::now() + Duration::from_secs(5);
                while !holds() {
                    assert!(Instant::now() < end, "{what}: not within 5 s");
                    std::thread::sleep(Duration::from_millis(2));
                }
            };
            within("the run lives", &|| !processes_of(60_000 + worker).is_empty());
            kill(child, Signal::SIGKILL).unwrap();
            waitpid(child, None).unwrap();
            within("the run is gone", &|| processes_of(60_000 + worker).is_empty());
            // Empty groups cannot remove themselves: the next launcher does.
            drop(Launcher::start(&LauncherOptions { worker, ..LauncherOptions::default() }).unwrap());
            let child = child.as_raw().cast_unsigned();
            within("its groups are gone", &|| groups_of(child).is_empty());
        }
    }
}
