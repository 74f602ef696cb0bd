//! When a program began and ended.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use steelyard_model::Source;

use crate::clock::monotonic_ns;
use crate::error::LaunchError;
use crate::perf::{ExecRing, ExecWatch, Stamps};
use crate::shared_page::Page;

/// A first thread that ends this much before its process did not end the program [ns].
const EARLY_END_NS: u64 = 1_000_000;

/// The events of every CPU that all runs of a launcher share, or why there are none.
pub(super) type SharedWatch = Result<Arc<ExecWatch>, String>;

/// The mechanism that stamps a run.
#[derive(Debug)]
pub(super) enum Stamper {
    Tracepoints(Arc<ExecWatch>),
    Perf(Arc<ExecRing>),
    Ptrace(Tracer),
    SharedMemory,
}

/// Start and end of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) start_ns: Option<u64>,
    pub(super) end_ns: u64,
    /// Source of both, or of the worse one.
    pub(super) source: Source,
    /// Time that the kernel's counters saw beside the interval: loading the program before its start, and
    /// taking the process down after its end [ns].
    pub(super) loading_ns: u64,
    pub(super) taking_down_ns: u64,
    /// From the end to the kernel's word of it to the parent, if both are known: a control group counts that
    /// too [ns].
    pub(super) burial_ns: Option<u64>,
    /// Whether there were other threads or processes beside the first thread; `None` where nobody tells.
    pub(super) has_others: Option<bool>,
}

impl Stamper {
    /// Attaches the demanded mechanism, or the best that works. What did not work is told.
    pub(super) fn attach(
        pid: i32,
        demanded: Option<Source>,
        watch: &SharedWatch,
        degraded: &mut Vec<String>,
    ) -> Result<Self, LaunchError> {
        let order = [Source::Tracepoint, Source::PerfRecord, Source::Ptrace, Source::SharedMemory];
        let mut refused = String::new();
        for source in order.into_iter().filter(|source| demanded.is_none_or(|wanted| wanted == *source)) {
            let attempt = match source {
                Source::Tracepoint => match watch {
                    Ok(watch) => {
                        watch.turn_to(pid);
                        Ok(Self::Tracepoints(Arc::clone(watch)))
                    }
                    Err(reason) => Err(format!("tracepoints: {reason}")),
                },
                Source::PerfRecord => {
                    let ring = ExecRing::open(pid).map(Arc::new);
                    ring.map(Self::Perf).map_err(|error| format!("perf records: {error}"))
                }
                Source::Ptrace => {
                    Tracer::attach(pid).map(Self::Ptrace).map_err(|error| format!("ptrace: {}", error.desc()))
                }
                _ => Ok(Self::SharedMemory),
            };
            match attempt {
                Ok(stamper) => return Ok(stamper),
                Err(reason) => {
                    degraded.push(reason.clone());
                    refused = reason;
                }
            }
        }
        Err(LaunchError::Capability {
            what: "stamp_source".into(),
            reason: refused,
            hint: Some("leave `stamp_source` out to take the best that works here".into()),
        })
    }

    pub(super) const fn source(&self) -> Source {
        match self {
            Self::Tracepoints(_) => Source::Tracepoint,
            Self::Perf(_) => Source::PerfRecord,
            Self::Ptrace(_) => Source::Ptrace,
            Self::SharedMemory => Source::SharedMemory,
        }
    }

    /// Becomes readable when records have to be taken.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Tracepoints(watch) => Some(watch.descriptor()),
            Self::Perf(ring) => Some(ring.descriptor()),
            _ => None,
        }
    }

    /// Whether no further record can come: the event was the first thread's, which has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        matches!(self, Self::Perf(_)) && self.drain().end_ns.is_some()
    }

    /// Takes records that have come.
    pub(super) fn drain(&mut self) -> Stamps {
        match self {
            Self::Tracepoints(watch) => watch.drain(),
            Self::Perf(ring) => ring.drain(),
            Self::Ptrace(tracer) => tracer.stamps,
            Self::SharedMemory => Stamps::default(),
        }
    }

    /// A stop of the first process. Answers whether the program itself is stopped.
    pub(super) fn take_stop(&mut self, status: WaitStatus) -> bool {
        match self {
            Self::Ptrace(tracer) => tracer.take(status),
            _ => matches!(status, WaitStatus::Stopped(..)),
        }
    }

    /// Ends a traced process: it would wait for its tracer on its way out.
    pub(super) fn let_die(&mut self, pid: Pid) {
        if let Self::Ptrace(tracer) = self {
            tracer.let_die(pid);
        }
    }

    /// What tells another thread when the program began.
    pub(super) fn start_of(&self) -> StartOf {
        match self {
            Self::Tracepoints(watch) => StartOf::Tracepoints(Arc::clone(watch)),
            Self::Perf(ring) => StartOf::Perf(Arc::clone(ring)),
            Self::Ptrace(tracer) => StartOf::Tracer(Arc::clone(&tracer.start_ns)),
            Self::SharedMemory => StartOf::SharedPage,
        }
    }

    /// Both stamps, once the keeper saw the end at `waited_ns`.
    pub(super) fn interval(&mut self, page: &Page, waited_ns: u64) -> Interval {
        let stamps = self.drain();
        let is_told = matches!(self, Self::Tracepoints(_) | Self::Perf(_));
        let has_others = is_told.then(|| stamps.has_others());
        let is_early = |end: u64| {
            stamps.company.has_threads && !stamps.is_whole_end && waited_ns.saturating_sub(end) > EARLY_END_NS
        };
        match (stamps.start_ns, stamps.end_ns.filter(|end| !is_early(*end))) {
            (Some(start), Some(end)) => Interval {
                start_ns: Some(start),
                end_ns: end,
                source: self.source(),
                loading_ns: stamps.loading_ns(),
                taking_down_ns: stamps.taking_down_ns(),
                burial_ns: stamps.burial_ns(),
                has_others,
            },
            (start, end) => Interval {
                start_ns: start.or_else(|| page.exec_ns()),
                end_ns: end.unwrap_or(waited_ns),
                source: Source::SharedMemory,
                loading_ns: stamps.loading_ns(),
                taking_down_ns: 0,
                burial_ns: None,
                has_others,
            },
        }
    }
}

/// The beginning of a program as a thread sees it that must not wait for another one.
#[derive(Debug)]
pub(super) enum StartOf {
    Tracepoints(Arc<ExecWatch>),
    Perf(Arc<ExecRing>),
    /// 0 until the tracer lets the program begin.
    Tracer(Arc<AtomicU64>),
    SharedPage,
}

impl StartOf {
    /// What is known of it by now.
    pub(super) fn try_read(&self, page: &Page) -> Result<Beginning, BeingRead> {
        let stamps = match self {
            Self::Tracepoints(watch) => watch.try_drain(),
            Self::Perf(ring) => ring.try_drain(),
            Self::Tracer(start_ns) => {
                // ORDERING: the stamp alone is read.
                let start_ns = Some(start_ns.load(Ordering::Relaxed)).filter(|ns| *ns != 0);
                return Ok(Beginning { start_ns, is_alone: false });
            }
            Self::SharedPage => return Ok(Beginning { start_ns: page.exec_ns(), is_alone: false }),
        };
        let of = |stamps: Stamps| Beginning { start_ns: stamps.start_ns, is_alone: !stamps.has_others() };
        stamps.map(of).ok_or(BeingRead)
    }

    /// Whether a program may have begun that is not known to have: on a CPU that nobody watches.
    pub(super) const fn may_be_missed(&self) -> bool {
        !matches!(self, Self::Tracer(_))
    }
}

/// When a program began, and with whom.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Beginning {
    pub(super) start_ns: Option<u64>,
    /// Whether its first thread is known to have begun no other.
    pub(super) is_alone: bool,
}

/// Another thread reads the stamps at this moment.
#[derive(Debug)]
pub(super) struct BeingRead;

/// A tracer that looks at exec and exit and at nothing else.
#[derive(Debug)]
pub(super) struct Tracer {
    pid: Pid,
    stamps: Stamps,
    start_ns: Arc<AtomicU64>,
}

impl Tracer {
    fn attach(pid: i32) -> nix::Result<Self> {
        let pid = Pid::from_raw(pid);
        ptrace::seize(pid, ptrace::Options::PTRACE_O_TRACEEXEC | ptrace::Options::PTRACE_O_TRACEEXIT)?;
        Ok(Self { pid, stamps: Stamps::default(), start_ns: Arc::default() })
    }

    fn take(&mut self, status: WaitStatus) -> bool {
        match status {
            WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_EXEC) => {
                let start_ns = *self.stamps.start_ns.get_or_insert_with(monotonic_ns);
                self.start_ns.store(start_ns, Ordering::Relaxed);
                let _ = ptrace::cont(self.pid, None);
                false
            }
            WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_EXIT) => {
                self.stamps.end_ns = Some(monotonic_ns());
                self.stamps.company.has_threads = thread_count(self.pid) != Some(1);
                let _ = ptrace::detach(self.pid, None);
                false
            }
            WaitStatus::PtraceEvent(_, signal, _) => self.stopped(signal),
            WaitStatus::Stopped(_, signal) => {
                // A signal on its way: the program has to get it.
                let _ = ptrace::cont(self.pid, signal);
                false
            }
            _ => false,
        }
    }

    fn let_die(&mut self, pid: Pid) {
        let _ = kill(pid, Signal::SIGKILL);
        let any = WaitPidFlag::WEXITED | WaitPidFlag::WSTOPPED | WaitPidFlag::__WALL;
        let stop = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG | WaitPidFlag::__WALL;
        // Looks without taking, so that the exit stays for its readings.
        while let Ok(WaitStatus::Stopped(..) | WaitStatus::PtraceEvent(..)) =
            waitid(Id::Pid(pid), any | WaitPidFlag::WNOWAIT)
        {
            if let Ok(status) = waitid(Id::Pid(pid), stop) {
                self.take(status);
            }
        }
    }

    /// A stop of the whole program (job control): it stays stopped until someone continues it.
    fn stopped(&self, signal: Signal) -> bool {
        let is_stop = matches!(signal, Signal::SIGSTOP | Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU);
        if is_stop {
            // SAFETY: neither address nor data are used by this request.
            unsafe { libc::ptrace(libc::PTRACE_LISTEN, self.pid.as_raw(), 0, 0) };
        } else {
            let _ = ptrace::cont(self.pid, None);
        }
        is_stop
    }
}

fn thread_count(pid: Pid) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Threads:"))?.trim().parse().ok()
}
