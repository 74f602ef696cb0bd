//! How a run ended, in one word.

use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use steelyard_model::{LimitKind, Limits, RunStatus};

/// Why the keeper ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Cancelled,
    WallTime,
    CpuTime,
    Output,
    Memory,
    /// The kernel needed more for it than a run may have of the host.
    KernelMemory,
}

/// What is known about the end of a program that did start.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) status: WaitStatus,
    pub(super) cause: Option<Cause>,
    pub(super) wall_ns: u64,
    pub(super) cpu_ns: Option<u64>,
    pub(super) output_bytes: u64,
    pub(super) oom_kills: u64,
    pub(super) refused_processes: u64,
}

/// Status, limit, exit code and signal of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) status: RunStatus,
    pub(super) limit: Option<LimitKind>,
    pub(super) exit_code: Option<i32>,
    pub(super) signal: Option<i32>,
}

/// Judges an end. The keeper's own cause comes first, then what the kernel says, then the program.
///
/// A limit is one even where the program ended by itself a moment after it: otherwise the verdict
/// would depend on how fast the keeper was woken.
pub(super) fn judge(end: &End, limits: &Limits) -> Verdict {
    let (exit_code, signal) = match end.status {
        WaitStatus::Exited(_, code) => (Some(code), None),
        WaitStatus::Signaled(_, signal, _) => (None, Some(signal)),
        _ => (None, None),
    };
    let (status, limit) = match limit_reached(end, limits, signal) {
        Some(found) => found,
        None => match (exit_code, signal) {
            (Some(0), _) => (RunStatus::Completed, None),
            (Some(_), _) => (RunStatus::NonzeroExit, None),
            _ => (RunStatus::Signalled, None),
        },
    };
    Verdict { status, limit, exit_code, signal: signal.map(|signal| signal as i32) }
}

fn limit_reached(
    end: &End,
    limits: &Limits,
    signal: Option<Signal>,
) -> Option<(RunStatus, Option<LimitKind>)> {
    let exceeds = |value: u64, limit: Option<u64>| limit.is_some_and(|limit| value > limit);
    let has_failed = !matches!(end.status, WaitStatus::Exited(_, 0));
    if end.cause == Some(Cause::Cancelled) {
        return Some((RunStatus::Interrupted, None));
    }
    if end.oom_kills > 0 || matches!(end.cause, Some(Cause::Memory | Cause::KernelMemory)) {
        // Without a limit of ours, the host or a group above was out of memory.
        return Some((RunStatus::OutOfMemory, limits.memory_bytes.map(|_| LimitKind::Memory)));
    }
    if end.cause == Some(Cause::Output) || exceeds(end.output_bytes, limits.output_bytes) {
        return Some((RunStatus::LimitExceeded, Some(LimitKind::Output)));
    }
    if end.cause == Some(Cause::WallTime) {
        return Some((RunStatus::WallTimeout, Some(LimitKind::WallTime)));
    }
    let is_cpu = end.cause == Some(Cause::CpuTime)
        || end.cpu_ns.is_some_and(|cpu_ns| exceeds(cpu_ns, limits.cpu_time_ns));
    if is_cpu {
        return Some((RunStatus::CpuTimeout, Some(LimitKind::CpuTime)));
    }
    if exceeds(end.wall_ns, limits.wall_time_ns) {
        return Some((RunStatus::WallTimeout, Some(LimitKind::WallTime)));
    }
    if signal == Some(Signal::SIGXFSZ) && limits.file_size_bytes.is_some() {
        return Some((RunStatus::LimitExceeded, Some(LimitKind::FileSize)));
    }
    // A program may try more processes than it gets and still do its work.
    if has_failed && end.refused_processes > 0 && limits.process_count.is_some() {
        return Some((RunStatus::LimitExceeded, Some(LimitKind::ProcessCount)));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::Pid;

    const ME: Pid = Pid::from_raw(1);

    fn end(status: WaitStatus) -> End {
        End {
            status,
            cause: None,
            wall_ns: 10,
            cpu_ns: Some(10),
            output_bytes: 0,
            oom_kills: 0,
            refused_processes: 0,
        }
    }

    fn killed() -> WaitStatus {
        WaitStatus::Signaled(ME, Signal::SIGKILL, false)
    }

    #[test]
    fn programs_speak_for_themselves() {
        let limits = Limits::default();
        let verdict = judge(&end(WaitStatus::Exited(ME, 0)), &limits);
        assert_eq!((verdict.status, verdict.exit_code), (RunStatus::Completed, Some(0)));
        assert_eq!(judge(&end(WaitStatus::Exited(ME, 3)), &limits).status, RunStatus::NonzeroExit);
        let verdict = judge(&end(killed()), &limits);
        assert_eq!((verdict.status, verdict.signal), (RunStatus::Signalled, Some(9)));
    }

    #[test]
    fn memory_comes_before_a_plain_signal() {
        let limits = Limits { memory_bytes: Some(1), ..Limits::default() };
        let verdict = judge(&End { oom_kills: 1, ..end(killed()) }, &limits);
        assert_eq!((verdict.status, verdict.limit), (RunStatus::OutOfMemory, Some(LimitKind::Memory)));
        let verdict = judge(&End { oom_kills: 1, ..end(killed()) }, &Limits::default());
        assert_eq!(verdict.limit, None);
    }

    #[test]
    fn a_limit_holds_even_if_the_program_ended_by_itself() {
        let limits = Limits { wall_time_ns: Some(9), ..Limits::default() };
        assert_eq!(judge(&end(WaitStatus::Exited(ME, 0)), &limits).status, RunStatus::WallTimeout);
        let limits = Limits { cpu_time_ns: Some(9), wall_time_ns: Some(9), ..Limits::default() };
        assert_eq!(judge(&end(WaitStatus::Exited(ME, 0)), &limits).status, RunStatus::CpuTimeout);
    }

    #[test]
    fn refused_processes_matter_only_to_a_program_that_failed() {
        let limits = Limits { process_count: Some(2), ..Limits::default() };
        let refused = |status| End { refused_processes: 4, ..end(status) };
        assert_eq!(judge(&refused(WaitStatus::Exited(ME, 0)), &limits).status, RunStatus::Completed);
        let verdict = judge(&refused(WaitStatus::Exited(ME, 1)), &limits);
        assert_eq!(verdict.limit, Some(LimitKind::ProcessCount));
    }

    #[test]
    fn a_cancelled_run_is_interrupted_whatever_else_happened() {
        let limits = Limits { output_bytes: Some(1), ..Limits::default() };
        let cancelled = End { cause: Some(Cause::Cancelled), output_bytes: 5, ..end(killed()) };
        assert_eq!(judge(&cancelled, &limits).status, RunStatus::Interrupted);
    }

    #[test]
    fn signals_of_limits_are_named() {
        let limits = Limits { file_size_bytes: Some(1), ..Limits::default() };
        let status = WaitStatus::Signaled(ME, Signal::SIGXFSZ, false);
        assert_eq!(judge(&end(status), &limits).limit, Some(LimitKind::FileSize));
        assert_eq!(judge(&end(status), &Limits::default()).status, RunStatus::Signalled);
    }
}
