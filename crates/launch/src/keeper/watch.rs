//! From the gate to the exit of the first process.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};

use steelyard_host::cgroup::Leaf;

use super::arm::Armed;
use super::cpu_time::{launch_cpu_ns, within_reason};
use super::launcher::{Batch, Launcher};
use super::timers::next_look;
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
    WallTimer,
    CpuTimer,
    Output,
    Error,
    Records,
    Memory,
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
        if armed.watched.is_none() {
            return Ok(());
        }
        let limits = &batch.spec.limits;
        if let Some(limit_ns) = limits.wall_time_ns {
            self.wall_timer.arm(Duration::from_nanos(limit_ns))?;
        }
        if let Some(after) = next_look(limits, 0, batch.cpu_count) {
            self.cpu_timer.arm(after)?;
        }
        // The end of an earlier run must not wake us in this one.
        if self.read_signals() {
            self.end(armed, Cause::Cancelled)?;
        }
        armed.gate_ns = monotonic_ns();
        self.board.open_gate();
        loop {
            let (woken, now_ns) = self.wait(armed, control)?;
            if woken.contains(&Wake::Exit) {
                armed.waited_ns = now_ns;
                break;
            }
            for wake in woken {
                self.serve(wake, armed, batch, control)?;
            }
        }
        self.wall_timer.disarm()?;
        self.cpu_timer.disarm()
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
        sources.push((Wake::WallTimer, self.wall_timer.descriptor()));
        sources.push((Wake::CpuTimer, self.cpu_timer.descriptor()));
        sources.extend(armed.streams.output.descriptor().map(|fd| (Wake::Output, fd)));
        sources.extend(armed.streams.error.descriptor().map(|fd| (Wake::Error, fd)));
        sources.extend(self.memory_alarm.as_ref().map(|fd| (Wake::Memory, fd.as_fd())));
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
            Wake::WallTimer => self.check_wall_time(armed, batch),
            Wake::CpuTimer => self.check_cpu_time(armed, batch),
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
            Wake::Memory => self.check_memory(armed),
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

    /// The timer began at the gate, the limit counts from the exec.
    fn check_wall_time(&mut self, armed: &mut Armed, batch: &Batch) -> Result<(), LaunchError> {
        self.wall_timer.disarm()?;
        let limit_ns = batch.spec.limits.wall_time_ns.unwrap_or(u64::MAX);
        let start_ns = armed.watched.as_mut().and_then(|watched| watched.stamper.start_ns(&self.board));
        let used_ns = monotonic_ns().saturating_sub(start_ns.unwrap_or(armed.gate_ns));
        match limit_ns.checked_sub(used_ns).filter(|rest_ns| *rest_ns > 0) {
            Some(rest_ns) => self.wall_timer.arm(Duration::from_nanos(rest_ns)),
            None => self.end(armed, Cause::WallTime),
        }
    }

    fn check_cpu_time(&mut self, armed: &mut Armed, batch: &Batch) -> Result<(), LaunchError> {
        self.cpu_timer.disarm()?;
        let limits = &batch.spec.limits;
        let used_ns = self.cpu_time_ns(armed);
        if limits.cpu_time_ns.is_some_and(|limit_ns| used_ns >= limit_ns) {
            return self.end(armed, Cause::CpuTime);
        }
        match next_look(limits, used_ns, batch.cpu_count) {
            Some(after) => self.cpu_timer.arm(after),
            None => Ok(()),
        }
    }

    /// CPU time of the tree by the meters that can be read while it executes.
    fn cpu_time_ns(&self, armed: &mut Armed) -> u64 {
        let Some(watched) = &mut armed.watched else { return 0 };
        let loading_ns = within_reason(watched.stamper.drain().loading_ns());
        let by_counter =
            watched.counters.task_clock.read().map(|counted_ns| counted_ns.saturating_sub(loading_ns));
        let by_group = armed.leaf.as_ref().map_or_else(|| self.groups.resident().usage_ns(), Leaf::usage_ns);
        let start_ns = watched.stamper.start_ns(&self.board);
        // In this order: what the child noted of itself is there once its stamp is.
        let call_ns = self.board.call_ns(start_ns);
        let launch_ns = call_ns.map_or(0, |_| launch_cpu_ns(&self.board.usage(), call_ns));
        let before_ns = watched.before.usage_ns().unwrap_or(0) + launch_ns;
        let since_exec = |total: u64| total.saturating_sub(before_ns);
        // The smaller one, as in the record: a run is not ended for time that it is not charged with.
        let by_meters = [by_counter, by_group.map(since_exec)].into_iter().flatten().min();
        by_meters.or_else(|| process_clock_ns(armed)).unwrap_or(0)
    }

    fn check_memory(&mut self, armed: &mut Armed) -> Result<(), LaunchError> {
        if let Some(alarm) = &self.memory_alarm {
            let mut count = [0_u8; 8];
            // Only the fact matters, and that it is no longer readable.
            let _ = nix::unistd::read(alarm, &mut count);
        }
        let before = armed.watched.as_ref().and_then(|watched| watched.before.oom_kills());
        if self.groups.resident().oom_kills() > before {
            self.end(armed, Cause::Memory)?;
        }
        Ok(())
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

/// CPU time of the first process alone, where nothing counts the tree.
fn process_clock_ns(armed: &Armed) -> Option<u64> {
    let clock = nix::time::clock_getcpuclockid(armed.pid?).ok()?;
    let time = nix::time::clock_gettime(clock).ok()?;
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Some(part(time.tv_sec()) * 1_000_000_000 + part(time.tv_nsec()))
}
