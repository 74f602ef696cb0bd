//! From the gate to the exit of the first process.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};

use steelyard_host::cgroup::Leaf;

use super::armed::{Armed, Attached};
use super::batch::Batch;
use super::enclosure::Enclosure;
use super::enforcer::{Charge, Enforcer};
use super::signals::Signals;
use super::stamps::Beginning;
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

/// What a run is served with.
pub(super) struct Watch<'a> {
    pub(super) enclosure: &'a Enclosure,
    pub(super) enforcer: &'a Enforcer,
    pub(super) signals: &'a mut Signals,
    pub(super) control: &'a mut dyn Control,
    pub(super) batch: &'a Batch,
}

impl Watch<'_> {
    /// Opens the gate and serves the run until its first process ended.
    pub(super) fn over(&mut self, armed: &mut Armed) -> Result<(), LaunchError> {
        // The end of an earlier run must not wake us in this one.
        let is_cancelled = self.signals.read();
        let Some(attached) = &armed.attached else { return Ok(()) };
        self.enforcer.take(self.charge(attached, armed.leaf.as_ref())?)?;
        if is_cancelled {
            self.end(armed, Cause::Cancelled)?;
        }
        armed.gate_ns = monotonic_ns();
        self.enclosure.page().open_gate();
        let served = self.serve_until_exit(armed);
        armed.enforced = self.enforcer.give_back()?;
        armed.cause = armed.cause.or(armed.enforced.map(|enforced| enforced.cause));
        served
    }

    /// What the enforcer has to know.
    fn charge(&self, attached: &Attached, leaf: Option<&Leaf>) -> Result<Charge, LaunchError> {
        Ok(Charge {
            limits: self.batch.spec.limits.clone(),
            cpus: self.batch.cpus.clone(),
            gate_ns: monotonic_ns(),
            pidfd: attached.pidfd.try_clone().during("copy the run's process descriptor")?,
            start: attached.stamper.start_of(),
            beginning: Beginning::default(),
            page: Arc::clone(self.enclosure.page()),
            grip: self.enclosure.grip_on(leaf),
            usage_before_ns: attached.before.usage_ns().unwrap_or(0),
            oom_kills_before: attached.before.oom_kills(),
            kernel_memory_limit: self.enforcer.kernel_memory_limit(),
            counter: Arc::clone(&attached.counters.task_clock),
            cause: None,
            most_cpu_ns: None,
            blows: 0,
        })
    }

    fn serve_until_exit(&mut self, armed: &mut Armed) -> Result<(), LaunchError> {
        loop {
            let (woken, now_ns) = self.wait(armed)?;
            if woken.contains(&Wake::Exit) {
                armed.waited_ns = now_ns;
                return Ok(());
            }
            for wake in woken {
                self.serve(wake, armed)?;
            }
        }
    }

    fn wait(&self, armed: &Armed) -> Result<(Vec<Wake>, u64), LaunchError> {
        let mut sources: Vec<(Wake, BorrowedFd<'_>)> = Vec::with_capacity(9);
        if let Some(attached) = &armed.attached {
            sources.push((Wake::Exit, attached.pidfd.as_fd()));
            let records = attached.stamper.descriptor().filter(|_| !armed.has_records_ended);
            sources.extend(records.map(|fd| (Wake::Records, fd)));
            let refusals = attached.refusals.as_ref().and_then(Refusals::descriptor);
            sources.extend(refusals.map(|fd| (Wake::Refusal, fd)));
        }
        sources.push((Wake::Signals, self.signals.descriptor()));
        sources.extend(armed.streams.output.descriptor().map(|fd| (Wake::Output, fd)));
        sources.extend(armed.streams.error.descriptor().map(|fd| (Wake::Error, fd)));
        if !armed.is_cancelled() {
            sources.extend(self.control.descriptor().map(|fd| (Wake::Caller, fd)));
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

    fn serve(&mut self, wake: Wake, armed: &mut Armed) -> Result<(), LaunchError> {
        match wake {
            Wake::Exit => Ok(()),
            Wake::Signals => self.take_signals(armed),
            Wake::Output | Wake::Error => {
                let sink =
                    if wake == Wake::Output { &mut armed.streams.output } else { &mut armed.streams.error };
                sink.drain();
                let limit = self.batch.spec.limits.output_bytes;
                if limit.is_some_and(|limit| armed.streams.total_bytes() > limit) {
                    self.end(armed, Cause::Output)?;
                }
                Ok(())
            }
            Wake::Records => {
                if let Some(attached) = &mut armed.attached {
                    attached.stamper.drain();
                    // A closed event stays ready for ever, and other threads may go on for long.
                    armed.has_records_ended = attached.stamper.has_ended();
                }
                Ok(())
            }
            Wake::Refusal => {
                if let Some(refusals) =
                    armed.attached.as_mut().and_then(|attached| attached.refusals.as_mut())
                {
                    refusals.answer();
                }
                Ok(())
            }
            Wake::Caller => {
                if self.control.is_cancelled() {
                    self.end(armed, Cause::Cancelled)?;
                }
                Ok(())
            }
        }
    }

    /// Ends the tree for a reason; the first reason stays.
    fn end(&self, armed: &mut Armed, cause: Cause) -> Result<(), LaunchError> {
        armed.cause.get_or_insert(cause);
        self.enclosure.kill_tree(armed)
    }

    fn take_signals(&mut self, armed: &mut Armed) -> Result<(), LaunchError> {
        if self.signals.read() {
            self.end(armed, Cause::Cancelled)?;
        }
        let (Some(pid), Some(attached)) = (armed.pid, &mut armed.attached) else { return Ok(()) };
        let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG | WaitPidFlag::__WALL;
        loop {
            match waitid(Id::Pid(pid), flags) {
                Ok(WaitStatus::StillAlive) | Err(_) => return Ok(()),
                Ok(status) => armed.is_stopped |= attached.stamper.take_stop(status),
            }
        }
    }
}
