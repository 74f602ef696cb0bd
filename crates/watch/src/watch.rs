//! The loop: wait, read rings, take samples, until a signal comes.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use serde_json::{Map, Value, json};

use crate::cpus::{Cpus, refusal};
use crate::output::Output;
use crate::samples::Host;
use crate::switches::{Merge, Pairing};
use crate::threads::Threads;
use crate::{Options, WatchError};

const FORMAT: &str = "steelyard/watch/1";
const NS_PER_MS: u64 = 1_000_000;
/// How long the latest records are held back: a CPU may have taken a stamp and not yet written it.
/// SOURCE: own choice; writing a record takes less than a microsecond unless a hypervisor interferes.
const HOLD_BACK_NS: u64 = NS_PER_MS;

/// Everything that a watch holds.
struct Watch<'a> {
    options: &'a Options,
    host: Host,
    output: Output,
    cpus: Option<Cpus>,
    merge: Merge,
    pairing: Pairing,
    missing: Map<String, Value>,
    start_ns: u64,
    /// CPUs that this process may use.
    allowed: CpuSet,
    /// CPUs that it keeps off.
    avoided: BTreeSet<u32>,
}

/// Watches until SIGTERM, SIGINT or SIGHUP.
pub(crate) fn watch(options: &Options, stdout: &mut dyn Write) -> Result<(), WatchError> {
    let signals = block_signals()?;
    if options.is_with_parent {
        nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)
            .map_err(|error| WatchError::system("asking to end with the parent", error))?;
    }
    let mut missing = Map::new();
    if !is_background() {
        missing.insert("batch".to_owned(), "the class SCHED_BATCH was refused".into());
    }
    let output = Output::create(&options.out, options.limit_mib)?;
    let cpus = match Cpus::open() {
        Ok(cpus) => Some(cpus),
        Err(error) => {
            for name in ["switches", "migrations"] {
                missing.insert(name.to_owned(), refusal(&error).into());
            }
            None
        }
    };
    let mut threads = Threads::new(&options.names);
    if cpus.is_some() {
        // After the events are there: whoever gets a name from now on is recorded.
        threads.read_existing();
    }
    let host = Host::open();
    if !host.has_pressure() {
        missing.insert("pressure".to_owned(), "this kernel offers no /proc/pressure".into());
    }
    let start_ns = now_ns();
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    let (merge, pairing) = (Merge::default(), Pairing::new(threads));
    let mut watch = Watch {
        options,
        host,
        output,
        cpus,
        merge,
        pairing,
        missing,
        start_ns,
        allowed,
        avoided: BTreeSet::new(),
    };
    let said = stdout.write_all(b"ready\n").and_then(|()| stdout.flush());
    said.map_err(|error| WatchError::system("writing to standard output", error))?;
    watch.go_on(&signals)?;
    watch.finish()
}

impl Watch<'_> {
    fn go_on(&mut self, signals: &SignalFd) -> Result<(), WatchError> {
        let step_ns = self.options.sample_ms * NS_PER_MS;
        let mut due_ns = self.start_ns;
        loop {
            let now = now_ns();
            if now >= due_ns {
                self.drain(now.saturating_sub(HOLD_BACK_NS));
                let sample = self.host.read(now_ns());
                self.output.sample(&sample);
                // Late samples are not made up for.
                due_ns = (due_ns + step_ns).max(now);
            }
            if self.wait(signals, due_ns)? {
                return Ok(());
            }
        }
    }

    /// Waits until a time, or until a ring is half full; answers whether a signal asks to end.
    fn wait(&mut self, signals: &SignalFd, until_ns: u64) -> Result<bool, WatchError> {
        let mut waited: Vec<BorrowedFd<'_>> = vec![signals.as_fd()];
        if let Some(cpus) = &self.cpus {
            waited.extend(cpus.descriptors());
        }
        let mut waited: Vec<PollFd<'_>> =
            waited.into_iter().map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN)).collect();
        let rest = Duration::from_nanos(until_ns.saturating_sub(now_ns()));
        let milliseconds = u16::try_from(rest.as_nanos().div_ceil(u128::from(NS_PER_MS))).unwrap_or(u16::MAX);
        match poll(&mut waited, PollTimeout::from(milliseconds)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(WatchError::system("waiting for records", error)),
        }
        let is_ready = |descriptor: &PollFd<'_>| descriptor.any().unwrap_or(false);
        let is_asked = waited.first().is_some_and(is_ready);
        let is_half_full = waited.iter().skip(1).any(is_ready);
        if is_half_full {
            self.drain(now_ns().saturating_sub(HOLD_BACK_NS));
        }
        Ok(is_asked)
    }

    fn drain(&mut self, until_ns: u64) {
        let Some(cpus) = &mut self.cpus else { return };
        cpus.drain(&mut self.merge);
        let (pairing, output) = (&mut self.pairing, &mut self.output);
        self.merge.release(until_ns, |event| pairing.take(event, output));
        self.keep_off();
    }

    /// Keeps off the CPUs of the watched threads, as long as there are others.
    fn keep_off(&mut self) {
        let busy = self.pairing.threads.busy_cpus();
        if busy == self.avoided {
            return;
        }
        let mut rest = self.allowed;
        for cpu in &busy {
            // A CPU beyond the largest set is not in this one.
            let _ = usize::try_from(*cpu).map(|cpu| rest.unset(cpu));
        }
        let is_empty = (0..CpuSet::count()).all(|cpu| !rest.is_set(cpu).unwrap_or(false));
        // Refused, or no CPU left: it goes on where it is, and its time shows in the records.
        let _ = sched_setaffinity(Pid::from_raw(0), if is_empty { &self.allowed } else { &rest });
        self.avoided = busy;
    }

    fn finish(mut self) -> Result<(), WatchError> {
        let end_ns = now_ns();
        let last = self.host.read(end_ns);
        self.output.sample(&last);
        self.drain(u64::MAX);
        let open_at_end = self.pairing.finish(end_ns, &mut self.output);
        self.output.flush()?;
        let [switches, migrations, samples] = self.output.counts();
        let content = json!({
            "format": FORMAT,
            "clock": "monotonic",
            "start_ns": self.start_ns,
            "end_ns": end_ns,
            "names": self.options.names,
            "sample_ms": self.options.sample_ms,
            "rows": {"switches": switches, "migrations": migrations, "samples": samples},
            "lost_records": self.cpus.as_ref().map_or(0, |cpus| cpus.lost),
            "left_out_rows": self.output.left_out,
            "unpaired_switches": self.pairing.unpaired,
            "open_at_end": open_at_end,
            "own_cpu_ns": own_cpu_ns(),
            "missing": self.missing,
        });
        write_whole(&self.options.out.join("watch.json"), &content)
    }
}

/// Blocks the signals that ask to end; they are waited for with everything else.
fn block_signals() -> Result<SignalFd, WatchError> {
    let mut ends = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        ends.add(signal);
    }
    let blocked = ends.thread_block().and_then(|()| SignalFd::with_flags(&ends, SfdFlags::SFD_CLOEXEC));
    blocked.map_err(|error| WatchError::system("waiting for signals", error))
}

/// Asks for a class in which waking up preempts nobody, and for a large share once it is its turn: a watcher
/// that starves loses records.
fn is_background() -> bool {
    // SAFETY: no pointers are passed. Refused without the right to it, which only costs records.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -10) };
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are valid for the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) == 0 }
}

fn now_ns() -> u64 {
    // CLOCK_MONOTONIC exists on every Linux and the pointer is valid: the call cannot fail.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| time.num_nanoseconds());
    u64::try_from(now).unwrap_or(0)
}

fn own_cpu_ns() -> u64 {
    let used = getrusage(UsageWho::RUSAGE_SELF);
    let used_us = used.map_or(0, |used| (used.user_time() + used.system_time()).num_microseconds());
    u64::try_from(used_us).unwrap_or(0) * 1000
}

/// Writes a file so that it is there whole or not at all.
fn write_whole(path: &Path, content: &Value) -> Result<(), WatchError> {
    let unfinished = path.with_extension("json.part");
    let written =
        std::fs::write(&unfinished, format!("{content}\n")).and_then(|()| std::fs::rename(&unfinished, path));
    written.map_err(|error| WatchError::system(format!("writing `{}`", path.display()), error))
}
