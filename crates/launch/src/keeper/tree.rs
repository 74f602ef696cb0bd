//! Ending what a run consists of.

use std::process;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use steelyard_host::cgroup::{kill_descendants, own_children};

use super::arm::Armed;
use super::launcher::Launcher;
use crate::error::LaunchError;

impl Launcher {
    /// Ends every process of the run. The first one stays a zombie for its readings.
    pub(super) fn kill_tree(&self, armed: &mut Armed) -> Result<(), LaunchError> {
        if let (Some(pid), Some(watched)) = (armed.pid, &mut armed.watched) {
            watched.stamper.let_die(pid);
        }
        if let Some(leaf) = &armed.leaf {
            return Ok(leaf.kill()?);
        }
        if !self.groups.resident().is_empty() {
            return Ok(self.groups.resident().kill(&self.residents)?);
        }
        self.kill_without_groups(armed.pid)
    }

    fn kill_without_groups(&self, first: Option<Pid>) -> Result<(), LaunchError> {
        if let Some(first) = first {
            // Its children become ours, or of the pool's first process, when it is gone.
            let _ = kill(first, Signal::SIGKILL);
            let _ = waitid(Id::Pid(first), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
        }
        self.zygote.sweep()?;
        let mut spare = self.residents.clone();
        spare.extend(first.map(|pid| pid.as_raw().cast_unsigned()));
        Ok(kill_descendants(process::id(), &spare, |pid| {
            let _ = waitpid(Pid::from_raw(pid.cast_signed()), Some(WaitPidFlag::WNOHANG));
        })?)
    }

    /// Ends what the first process left behind when it ended. Answers whether there was anything.
    pub(super) fn end_left_processes(&self, armed: &mut Armed) -> Result<bool, LaunchError> {
        let first = armed.pid.map(|pid| pid.as_raw().cast_unsigned());
        let is_other = |pid: &u32| Some(*pid) != first && !self.residents.contains(pid);
        if let Some(leaf) = &armed.leaf {
            if !leaf.is_populated() {
                return Ok(false);
            }
            let was_left = leaf.processes().iter().any(is_other);
            leaf.kill()?;
            return Ok(was_left);
        }
        if !self.groups.resident().is_empty() {
            let was_left = self.groups.resident().processes().iter().any(is_other);
            if was_left {
                self.kill_tree(armed)?;
            }
            return Ok(was_left);
        }
        let swept = self.zygote.sweep()?;
        let was_left = own_children().iter().any(is_other);
        if was_left {
            self.kill_without_groups(armed.pid)?;
        }
        Ok(was_left || swept > 0)
    }

    /// Waits for orphans of the run that became our children.
    pub(super) fn reap_orphans(&mut self) {
        let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        loop {
            match waitid(Id::All, peek) {
                Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, _, _)) => {
                    if !self.zygote.bury(pid) {
                        let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
                    }
                }
                Err(Errno::EINTR) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Ends and forgets a run that is not wanted any more.
    pub(super) fn abandon(&mut self, mut armed: Armed) {
        let _ = self.kill_tree(&mut armed);
        if let Some(pid) = armed.pid {
            let _ = waitpid(pid, None);
        }
        self.reap_orphans();
    }
}
