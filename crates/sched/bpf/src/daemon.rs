//! The running scheduler: attach, count, stay, detach.

use std::io::Write;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::class::AttachedClass;
use crate::counters::{Counters, write_json};
use crate::options::{Options, StartOptions};
use crate::state::StateFolder;
use crate::{SchedulerError, probe::Probe};

/// How often the loader looks whether it is to end, or was thrown out.
const LOOK: Duration = Duration::from_millis(50);
const WRITE: Duration = Duration::from_secs(1);

static IS_ENDING: AtomicBool = AtomicBool::new(false);

extern "C" fn note_signal(_signal: libc::c_int) {
    IS_ENDING.store(true, Ordering::Relaxed);
}

/// Let SIGTERM and SIGINT end the program in order.
pub(crate) fn end_on_signals() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let handler = note_signal as extern "C" fn(libc::c_int);
        // SAFETY: the handler stores to an atomic and nothing else.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

/// Whether a signal asked for the end.
pub(crate) fn is_ending() -> bool {
    IS_ENDING.load(Ordering::Relaxed)
}

/// Keep the class attached until a signal comes.
///
/// # Errors
///
/// [`SchedulerError::Capability`] if it cannot be attached; [`SchedulerError::Failed`] if the kernel throws it out.
pub(crate) fn keep(
    options: &Options,
    start: &StartOptions,
    out: &mut dyn Write,
) -> Result<(), SchedulerError> {
    Probe::read(std::path::Path::new("/")).require()?;
    let state = StateFolder::at(&options.state);
    end_on_signals();
    let mut place = MaybeUninit::uninit();
    let class = AttachedClass::attach(&mut place, start)?;
    let write = |is_active: bool, last_exit: &str| {
        let mut counters = Counters::new(Some(start.switches));
        class.add_to(&mut counters);
        counters.is_active = is_active;
        last_exit.clone_into(&mut counters.last_exit);
        let mut status = counters.to_json();
        if let Some(path) = &options.counters {
            write_json(path, &status)?;
        }
        status["pid"] = json!(std::process::id());
        state.write(&status)
    };
    write(true, "")?;
    let _ = writeln!(out, "ready").and_then(|()| out.flush());
    let mut written = Instant::now();
    while !is_ending() {
        thread::sleep(LOOK);
        if let Some(said) = class.exit_text() {
            write(false, &said)?;
            state.clear();
            let hint = "the kernel's own scheduler is active again; best-effort tasks run as SCHED_IDLE";
            return Err(SchedulerError::Failed {
                message: format!("the kernel ended the class: {said}"),
                hint: hint.into(),
            });
        }
        if written.elapsed() >= WRITE {
            write(true, "")?;
            written = Instant::now();
        }
    }
    write(false, "")?;
    state.clear();
    Ok(())
}
