//! The guard: parent of the launcher, alive only to clean up after it.
//!
//! It does nothing until the launcher ends. Then it removes the launcher's groups with what is
//! left in them, and ends every process that became its child, so that not even `kill -9` of the
//! launcher leaves anything. When the guard itself is killed, the launcher is told and does the
//! same. When both are killed at once, the run is killed by the kernel, and the next launcher
//! removes the groups.

use std::path::Path;
use std::process;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getppid};
use steelyard_host::cgroup::{Layout, kill_descendants, remove_groups_of};

use crate::error::{During, LaunchError};

/// Exit code when the launcher did not choose one.
pub const LAUNCHER_FAILED: i32 = 125;

/// Which of the two processes a caller of [`stand_guard`] is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one that launches.
    Launcher,
    /// The guard, after the launcher ended and everything was cleaned up.
    Guard {
        /// What the launcher ended with.
        exit_code: i32,
    },
}

/// Forks the launcher and becomes its guard, until it ends.
///
/// # Errors
///
/// [`LaunchError::System`] when the process cannot fork.
pub fn stand_guard() -> Result<Role, LaunchError> {
    prctl::set_child_subreaper(true).during("become a subreaper")?;
    let mask = SigSet::thread_get_mask().during("read the signal mask")?;
    forwarded().thread_block().during("block signals")?;
    let guard = Pid::this();
    // SAFETY: the program has one thread, and both sides go on with their own copies.
    match unsafe { fork() }.during("fork the launcher")? {
        ForkResult::Parent { child } => {
            let exit_code = watch(child);
            clean_up(child);
            Ok(Role::Guard { exit_code })
        }
        ForkResult::Child => {
            prctl::set_pdeathsig(Signal::SIGTERM).during("bind the launcher to its guard")?;
            if getppid() != guard {
                process::exit(LAUNCHER_FAILED);
            }
            mask.thread_set_mask().during("restore the signal mask")?;
            Ok(Role::Launcher)
        }
    }
}

fn forwarded() -> SigSet {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        set.add(signal);
    }
    set
}

/// Waits for the launcher, handing on what is meant for it. Answers its exit code.
fn watch(launcher: Pid) -> i32 {
    loop {
        match forwarded().wait() {
            Ok(Signal::SIGCHLD) => {
                if let Some(code) = reap(launcher) {
                    return code;
                }
            }
            Ok(signal) => drop(kill(launcher, signal).ok()),
            Err(_) => {}
        }
    }
}

/// Reaps every child that ended; the launcher's exit code if it was among them.
fn reap(launcher: Pid) -> Option<i32> {
    let mut code = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, status)) if pid == launcher => code = Some(status),
            Ok(WaitStatus::Signaled(pid, ..)) if pid == launcher => code = Some(LAUNCHER_FAILED),
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return code,
            Ok(_) | Err(_) => {}
        }
    }
}

fn clean_up(launcher: Pid) {
    let layout = Layout::discover(Path::new("/")).unwrap_or_default();
    // Nobody is left to tell; the next launcher tries again.
    let _ = remove_groups_of(&layout, launcher.as_raw().cast_unsigned());
    let _ = kill_descendants(process::id(), &[], |pid| {
        let _ = waitpid(Pid::from_raw(pid.cast_signed()), Some(WaitPidFlag::WNOHANG));
    });
    // The zygote may have been in the groups until now.
    let _ = remove_groups_of(&layout, launcher.as_raw().cast_unsigned());
}
