//! The running scheduler: attach, count, park, come back after an ejection, detach.

use std::io::Write;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::capacity::Capacity;
use crate::class::{Ended, LoadedClass};
use crate::counters::{Counters, write_json};
use crate::freezer::{Freezer, thaw_left};
use crate::groups::{Marker, refuse_quotas};
use crate::kernel::RunningKernel;
use crate::options::{Options, Siblings, StartOptions};
use crate::probe::Probe;
use crate::state::StateFolder;
use crate::watch::Meter;
use crate::{PREFIX, SchedulerError, starter};

/// How often the loader looks whether it is to end, or was thrown out.
const LOOK: Duration = Duration::from_millis(50);
const WRITE: Duration = Duration::from_secs(1);
/// How often it looks for quotas that were set since.
const LOOK_FOR_QUOTAS: Duration = Duration::from_secs(2);
/// Attached for so long, a class counts as healthy again.
const HEALTHY: Duration = Duration::from_secs(60);
/// Waits before the class is attached again; after the last one it is given up.
const BACK_OFF: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
];

static IS_ENDING: AtomicBool = AtomicBool::new(false);

extern "C" fn note_signal(_signal: libc::c_int) {
    IS_ENDING.store(true, Ordering::Relaxed);
}

fn end_on_signals() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let handler = note_signal as extern "C" fn(libc::c_int);
        // SAFETY: the handler stores to an atomic and nothing else.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

fn is_ending() -> bool {
    IS_ENDING.load(Ordering::Relaxed)
}

fn wait(duration: Duration) {
    let deadline = Instant::now() + duration;
    while !is_ending() && Instant::now() < deadline {
        thread::sleep(LOOK);
    }
}

/// The class with what surrounds it.
struct Daemon<'a> {
    options: &'a Options,
    state: StateFolder,
    class: LoadedClass<'a>,
    freezer: Freezer,
    marker: Marker,
    counters: Counters,
}

/// Keep the class attached until a signal comes.
///
/// # Errors
///
/// [`SchedulerError::Capability`] if it cannot be attached; [`SchedulerError::Failed`] if the kernel throws it out
/// again and again.
pub(crate) fn keep(
    options: &Options,
    start: &StartOptions,
    out: &mut dyn Write,
) -> Result<(), SchedulerError> {
    starter::end_with(start.starter)?;
    let root = Path::new("/");
    let probe = Probe::read(root, None);
    probe.require()?;
    probe.require_free()?;
    refuse_quotas(root)?;
    let state = StateFolder::at(&options.state);
    let _lock = state.lock()?;
    let marker = Marker::new(start.best_effort_below.as_deref())?;
    thaw_left(&options.state, false);
    let mut place = MaybeUninit::uninit();
    let class = LoadedClass::load(&mut place, start).map_err(explain)?;
    if start.siblings != Siblings::Allow && !class.has_siblings() {
        log("no core of this machine has several hardware threads: `--siblings` changes nothing");
    }
    // Not before: until here there is nothing to restore, and loading takes a while.
    end_on_signals();
    let freezer = Freezer::new(root, &options.state);
    let counters = Counters::new(Some(start.switches), Some(start.siblings));
    let mut daemon = Daemon { options, state, class, freezer, marker, counters };
    let answer = daemon.attach_again_and_again(out);
    daemon.class.detach();
    daemon.freezer.thaw_all();
    daemon.marker.unmark();
    let _ = daemon.write(false);
    daemon.state.clear();
    answer
}

/// The kernel refused: if its type information is defective, that is why.
fn explain(error: SchedulerError) -> SchedulerError {
    let probe = Probe::read(Path::new("/"), Some(&RunningKernel));
    probe.require().err().unwrap_or(error)
}

impl Daemon<'_> {
    fn attach_again_and_again(&mut self, out: &mut dyn Write) -> Result<(), SchedulerError> {
        let (mut tries, mut is_first) = (0, true);
        while !is_ending() {
            let start = Instant::now();
            let ended = match self.keep_attached(is_first, out) {
                Ok(None) => return Ok(()),
                Ok(Some(ended)) => ended,
                Err(error) if is_first || matches!(error, SchedulerError::Quota { .. }) => return Err(error),
                Err(error) => Ended { said: error.to_string(), is_restart: false },
            };
            is_first = false;
            log(&format!("the kernel ended the class: {}", ended.said));
            self.counters.last_exit.clone_from(&ended.said);
            if ended.is_restart {
                continue;
            }
            self.counters.ejections += 1;
            tries = if start.elapsed() > HEALTHY { 0 } else { tries };
            let Some(pause) = BACK_OFF.get(tries) else {
                let count = self.counters.ejections;
                let message = format!("the class is given up after {count} ejections: {}", ended.said);
                let hint = "the kernel's own scheduler is active; best-effort tasks run as SCHED_IDLE";
                return Err(SchedulerError::Failed { message, hint: hint.to_owned() });
            };
            tries += 1;
            // As SCHED_IDLE they would get far more than nothing, right after they got nothing.
            let frozen = self.freezer.freeze_all();
            log(&format!("{frozen} best-effort groups are frozen; attaching again in {} s", pause.as_secs()));
            self.write(false)?;
            wait(*pause);
        }
        Ok(())
    }

    /// One attachment; gives how it ended, or nothing if a signal asked for the end.
    fn keep_attached(
        &mut self,
        is_first: bool,
        out: &mut dyn Write,
    ) -> Result<Option<Ended>, SchedulerError> {
        self.class.attach()?;
        self.freezer.thaw_all();
        self.marker.mark();
        starter::outlive();
        self.write(true)?;
        if is_first {
            let _ = writeln!(out, "ready").and_then(|()| out.flush());
            starter::tell_service_manager();
        } else {
            log("the class is attached again");
        }
        let (mut written, mut capacity) = (Instant::now(), Capacity::new(self.class.cores_of_jobs()));
        let mut looked = Instant::now();
        while !is_ending() {
            thread::sleep(LOOK);
            if let Some(ended) = self.class.ended() {
                return Ok(Some(ended));
            }
            for tgid in self.class.newly_parked() {
                if let Some(group) = self.freezer.freeze_group_of(tgid) {
                    log(&format!(
                        "`{}` has starved for long: frozen until there is capacity",
                        group.display()
                    ));
                }
            }
            if looked.elapsed() >= LOOK_FOR_QUOTAS {
                looked = Instant::now();
                refuse_quotas(Path::new("/"))?;
            }
            if written.elapsed() >= WRITE {
                self.write(true)?;
                written = Instant::now();
                let marked = self.marker.mark();
                if marked > 0 {
                    log(&format!("{marked} groups are marked best-effort"));
                }
                let has_room = capacity.has_room(Path::new("/"), self.class.be_ns());
                if has_room && self.freezer.has_frozen() {
                    self.freezer.thaw_all();
                    log("there is capacity: frozen groups are thawed");
                }
            }
        }
        Ok(None)
    }

    fn write(&self, is_active: bool) -> Result<(), SchedulerError> {
        let mut counters = self.counters.clone();
        counters.is_active = is_active;
        self.class.add_to(&mut counters);
        counters.strictness = self.class.strictness();
        let mut status = counters.to_json();
        if let Some(path) = &self.options.counters {
            write_json(path, &status)?;
        }
        status["pid"] = json!(std::process::id());
        status["has_frozen"] = json!(self.freezer.has_frozen());
        self.state.write(&status)
    }
}

/// Measure strictness under the active policy until a signal comes.
///
/// # Errors
///
/// [`SchedulerError::Capability`] if this machine cannot; [`SchedulerError::File`] if the counters cannot be written.
pub(crate) fn watch(options: &Options, out: &mut dyn Write) -> Result<(), SchedulerError> {
    end_on_signals();
    let mut place = MaybeUninit::uninit();
    let meter = Meter::attach(&mut place)?;
    let write = |out: &mut dyn Write| {
        let mut counters = Counters::new(None, None);
        counters.strictness = Some(meter.strictness());
        let content = counters.to_json();
        match &options.counters {
            Some(path) => write_json(path, &content),
            None => {
                let _ = writeln!(out, "{content}").and_then(|()| out.flush());
                Ok(())
            }
        }
    };
    if options.counters.is_some() {
        let _ = writeln!(out, "ready").and_then(|()| out.flush());
    }
    while !is_ending() {
        write(out)?;
        wait(WRITE);
    }
    write(out)
}

/// Standard error is the log, or leads to it.
fn log(text: &str) {
    let _ = writeln!(std::io::stderr(), "{PREFIX}{text}");
}
