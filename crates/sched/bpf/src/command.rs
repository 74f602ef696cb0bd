//! The commands.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::counters::to_prometheus;
use crate::freezer::thaw_left;
use crate::groups::refuse_quotas;
use crate::kernel::RunningKernel;
use crate::options::{Command, Form, HELP, Options};
use crate::probe::Probe;
use crate::state::StateFolder;
use crate::{SchedulerError, costs, daemon};

/// How long starting and stopping may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Execute one command; gives the exit code.
///
/// # Errors
///
/// [`SchedulerError`]; its exit code is [`SchedulerError::exit_code`].
pub fn execute(words: &[String], out: &mut dyn Write) -> Result<u8, SchedulerError> {
    let options = Options::parse(words)?;
    if !options.is_verbose {
        libbpf_rs::set_print(None);
    }
    let state = StateFolder::at(&options.state);
    match &options.command {
        Command::Help => say(out, HELP),
        Command::Start(start) if start.is_foreground => {
            return daemon::keep(&options, start, out).map(|()| 0);
        }
        Command::Start(_) => return start_behind(words, &state, out).map(|()| 0),
        Command::Stop => return stop(&state, out),
        Command::Status(form) => return Ok(status(&state, *form, out)),
        Command::Probe(form) => return Ok(probe(*form, out)),
        Command::Costs(form) => {
            let found = costs::read(Path::new("/"))?;
            let text = match form {
                Form::Text => costs::to_text(&found),
                Form::Json | Form::Prometheus => format!("{}\n", costs::to_json(&found)),
            };
            say(out, &text);
        }
        Command::Watch => return daemon::watch(&options, out).map(|()| 0),
        Command::Thaw { when_closed } => {
            let count = thaw_left(&options.state, *when_closed);
            say(out, &format!("{count} frozen groups were left and are thawed\n"));
        }
    }
    Ok(0)
}

fn say(out: &mut dyn Write, text: &str) {
    // A reader that went away has what it wanted.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Start a copy of this program that stays, and wait until it is attached.
fn start_behind(words: &[String], state: &StateFolder, out: &mut dyn Write) -> Result<(), SchedulerError> {
    if let Some(pid) = state.pid() {
        let message = format!("it is already started, as process {pid}");
        return Err(SchedulerError::Failed { message, hint: "`steelyard-scheduler stop` ends it".into() });
    }
    Probe::read(Path::new("/"), None).require()?;
    refuse_quotas(Path::new("/"))?;
    state.write(&json!({"pid": 0}))?;
    let log_path = state.log_path();
    let log = OpenOptions::new().create(true).append(true).open(&log_path);
    let log = log.map_err(|error| SchedulerError::file(&log_path, error))?;
    let program =
        std::env::current_exe().map_err(|error| SchedulerError::file(Path::new("/proc/self/exe"), error))?;
    let errors = log.try_clone().map_err(|error| SchedulerError::file(&log_path, error))?;
    let mut child = Process::new(&program);
    child.args(words).arg("--foreground").stdin(Stdio::null()).stdout(log).stderr(errors).process_group(0);
    let mut child = child.spawn().map_err(|error| SchedulerError::file(&program, error))?;
    let deadline = Instant::now() + PATIENCE;
    while state.pid().is_none() {
        let ended = child.try_wait().ok().flatten();
        if ended.is_some() || Instant::now() > deadline {
            let message = format!("it did not start; `{}` says why", log_path.display());
            return Err(SchedulerError::Failed {
                message,
                hint: "`steelyard-scheduler probe` says what is missing".into(),
            });
        }
        thread::sleep(Duration::from_millis(20));
    }
    say(out, &format!("the best-effort class is attached (process {})\n", child.id()));
    Ok(())
}

fn stop(state: &StateFolder, out: &mut dyn Write) -> Result<u8, SchedulerError> {
    let Some(pid) = state.pid() else {
        say(out, "the best-effort class is not started\n");
        return Ok(0);
    };
    ask_to_end(pid, || state.pid() == Some(pid));
    let deadline = Instant::now() + PATIENCE;
    while state.pid() == Some(pid) {
        if Instant::now() > deadline {
            let message = format!("process {pid} did not end within {} s", PATIENCE.as_secs());
            let hint = format!("`kill -9 {pid}`: the kernel then goes back to its own scheduler");
            return Err(SchedulerError::Failed { message, hint });
        }
        thread::sleep(Duration::from_millis(20));
    }
    say(out, "the best-effort class is detached\n");
    Ok(0)
}

/// Sends SIGTERM to a process if it is the one that is meant.
///
/// The handle is opened first and the process looked at afterwards, so that no later process of the same id can be hit.
fn ask_to_end(pid: i32, is_meant: impl Fn() -> bool) {
    // SAFETY: takes an id and flags, gives a new descriptor or -1.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let Some(raw) = i32::try_from(raw).ok().filter(|raw| *raw >= 0) else { return };
    // SAFETY: the call above has just made it, and nobody else knows it.
    let handle = unsafe { OwnedFd::from_raw_fd(raw) };
    if is_meant() {
        let no_info: *const libc::siginfo_t = std::ptr::null();
        // SAFETY: the descriptor is open, and no further information is given. One that has ended is none to ask.
        unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, handle.as_raw_fd(), libc::SIGTERM, no_info, 0);
        }
    }
}

/// Exit code 0: attached; 1: not.
fn status(state: &StateFolder, form: Form, out: &mut dyn Write) -> u8 {
    let status = state.status();
    let is_active = status.as_ref().is_some_and(|status| status["active"].as_bool().unwrap_or(false));
    let status = status.unwrap_or_else(|| json!({"active": false}));
    let text = match form {
        Form::Json => format!("{status}\n"),
        Form::Prometheus => to_prometheus(&status),
        Form::Text if is_active => {
            format!("the best-effort class is attached (process {})\n", status["pid"])
        }
        Form::Text => "the best-effort class is not attached\n".to_owned(),
    };
    say(out, &text);
    u8::from(!is_active)
}

/// Exit code 0: the class can be attached; 3: it cannot.
fn probe(form: Form, out: &mut dyn Write) -> u8 {
    let found = Probe::read(Path::new("/"), Some(&RunningKernel));
    let text = match form {
        Form::Json | Form::Prometheus => format!("{}\n", found.to_json()),
        Form::Text if found.is_available() => found.to_text(),
        Form::Text => found.reasons.iter().map(|reason| format!("{reason}\n")).collect(),
    };
    say(out, &text);
    if found.is_available() { 0 } else { 3 }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn only_the_process_that_is_meant_is_asked_to_end() {
        let mut child = Process::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        ask_to_end(pid, || false);
        thread::sleep(Duration::from_millis(50));
        assert!(child.try_wait().unwrap().is_none());
        ask_to_end(pid, || true);
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
        ask_to_end(pid, || true);
    }
}
