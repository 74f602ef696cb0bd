//! From the gate to the exit of the first process.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};

use steelyard_host::cgroup::Leaf;

use super::arm::{Armed, Watched};
use super::enforcer::Charge;
use super::launcher::{Batch, Launcher};
use super::verdict::Cause;
use crate::clock::monotonic_ns;
use crate::control::Control;
use crate::error::{During, LaunchError};
use crate::sandbox::Refusals;

/// What a descriptor of the loop means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    Exit,
    Signals,
    Output,
    Error,
    Records,
    Refusal,
    Caller,
}

impl Launcher {
    /// Opens the gate and serves the run until its first process ended.
    pub(super) fn watch(
        &mut self,
        armed: &mut Armed,
        batch: &Batch,
        control: &mut dyn Control,
    ) -> Result<(), LaunchError> {
        // The end of an earlier run must not wake us in this one.
        let is_cancelled = self.read_signals();
        let Some(watched) = &armed.watched else { return Ok(()) };
        self.enforcer.take(self.charge(watched, armed.leaf.as_ref(), batch)?)?;
        if is_cancelled {
            self.end(armed, Cause::Cancelled)?;
        }
        armed.gate_ns = monotonic_ns();
        self.board.open_gate();
        let served = self.serve_until_exit(armed, batch, control);
        armed.enforced = self.enforcer.give_back()?;
        armed.cause = armed.cause.or(armed.enforced);
        served
    }

    /// What the enforcer has to know.
    fn charge(&self, watched: &Watched, leaf: Option<&Leaf>, batch: &Batch) -> Result<Charge, LaunchError> {
        Ok(Charge {
            limits: batch.spec.limits.clone(),
            cpus: batch.cpus.clone(),
            gate_ns: monotonic_ns(),
            pidfd: watched.pidfd.try_clone().during("copy the run's process descriptor")?,
            start: watched.stamper.start_of(),
            board: Arc::clone(&self.board),
            grip: self.grip.on(leaf),
            usage_before_ns: watched.before.usage_ns().unwrap_or(0),
            oom_kills_before: watched.before.oom_kills(),
            kernel_memory_limit: self.kernel_memory_limit,
            counter: Arc::clone(&watched.counters.task_clock),
            cause: None,
            blows: 0,
        })
    }

    fn serve_until_exit(
        &mut self,
        armed: &mut Armed,
        batch: &Batch,
        control: &mut dyn Control,
    ) -> Result<(), LaunchError> {
        loop {
            let (woken, now_ns) = self.wait(armed, control)?;
            if woken.contains(&Wake::Exit) {
                armed.waited_ns = now_ns;
                return Ok(());
            }
            for wake in woken {
                self.serve(wake, armed, batch, control)?;
            }
        }
    }

    fn wait(&self, armed: &Armed, control: &dyn Control) -> Result<(Vec<Wake>, u64), LaunchError> {
        let mut sources: Vec<(Wake, BorrowedFd<'_>)> = Vec::with_capacity(9);
        if let Some(watched) = &armed.watched {
            sources.push((Wake::Exit, watched.pidfd.as_fd()));
            let records = watched.stamper.descriptor().filter(|_| !armed.has_records_ended);
            sources.extend(records.map(|fd| (Wake::Records, fd)));
            let refusals = watched.refusals.as_ref().and_then(Refusals::descriptor);
            sources.extend(refusals.map(|fd| (Wake::Refusal, fd)));
        }
        sources.push((Wake::Signals, self.signals.as_fd()));
        sources.extend(armed.streams.output.descriptor().map(|fd| (Wake::Output, fd)));
        sources.extend(armed.streams.error.descriptor().map(|fd| (Wake::Error, fd)));
        if !armed.is_cancelled() {
            sources.extend(control.descriptor().map(|fd| (Wake::Caller, fd)));
        }
        let mut polled: Vec<PollFd<'_>> =
            sources.iter().map(|(_, fd)| PollFd::new(*fd, PollFlags::POLLIN)).collect();
        loop {
            match poll(&mut polled, PollTimeout::NONE) {
                Err(Errno::EINTR) => {}
                Ok(_) => break,
                Err(errno) => return Err(errno).during("wait for the run"),
            }
        }
        let now_ns = monotonic_ns();
        let is_ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
        let woken = polled.iter().zip(&sources).filter(|(fd, _)| is_ready(fd)).map(|(_, (wake, _))| *wake);
        Ok((woken.collect(), now_ns))
    }

    fn serve(
        &mut self,
        wake: Wake,
        armed: &mut Armed,
        batch: &Batch,
        control: &mut dyn Control,
    ) -> Result<(), LaunchError> {
        match wake {
            Wake::Exit => Ok(()),
            Wake::Signals => self.take_signals(armed),
            Wake::Output | Wake::Error => {
                let sink =
                    if wake == Wake::Output { &mut armed.streams.output } else { &mut armed.streams.error };
                sink.drain();
                let limit = batch.spec.limits.output_bytes;
                if limit.is_some_and(|limit| armed.streams.total_bytes() > limit) {
                    self.end(armed, Cause::Output)?;
                }
                Ok(())
            }
            Wake::Records => {
                if let Some(watched) = &mut armed.watched {
                    watched.stamper.drain();
                    // A closed event stays ready for ever, and other threads may go on for long.
                    armed.has_records_ended = watched.stamper.has_ended();
                }
                Ok(())
            }
            Wake::Refusal => {
                if let Some(refusals) = armed.watched.as_mut().and_then(|watched| watched.refusals.as_mut()) {
                    refusals.answer();
                }
                Ok(())
            }
            Wake::Caller => {
                if control.is_cancelled() {
                    self.end(armed, Cause::Cancelled)?;
                }
                Ok(())
            }
        }
    }

    /// Ends the tree for a reason; the first reason stays.
    fn end(&self, armed: &mut Armed, cause: Cause) -> Result<(), LaunchError> {
        armed.cause.get_or_insert(cause);
        self.kill_tree(armed)
    }

    /// Reads pending signals. Answers whether one asks this process to end.
    pub(super) fn read_signals(&mut self) -> bool {
        while let Ok(Some(info)) = self.signals.read_signal() {
            let is_child = i32::try_from(info.ssi_signo) == Ok(Signal::SIGCHLD as i32);
            self.is_stopping |= !is_child;
        }
        self.is_stopping
    }

    fn take_signals(&mut self, armed: &mut Armed) -> Result<(), LaunchError> {
        if self.read_signals() {
            self.end(armed, Cause::Cancelled)?;
        }
        let (Some(pid), Some(watched)) = (armed.pid, &mut armed.watched) else { return Ok(()) };
        let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG | WaitPidFlag::__WALL;
        loop {
            match waitid(Id::Pid(pid), flags) {
                Ok(WaitStatus::StillAlive) | Err(_) => return Ok(()),
                Ok(status) => armed.is_stopped |= watched.stamper.take_stop(status),
            }
        }
    }

    /// Whether the caller or a signal wants the batch to end.
    pub(super) fn has_cancelled(&mut self, control: &mut dyn Control) -> bool {
        if self.read_signals() {
            return true;
        }
        let is_readable = control.descriptor().is_some_and(|fd| {
            let mut polled = [PollFd::new(fd, PollFlags::POLLIN)];
            poll(&mut polled, PollTimeout::ZERO).is_ok_and(|count| count > 0)
        });
        is_readable && control.is_cancelled()
    }
}
