//! One command, executed best-effort: this process becomes it.

use std::ffi::{CString, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use serde::Serialize;
use steelyard_host::HostRoot;
use steelyard_host::cgroup::Layout;

use crate::options::Given;
use crate::process::Identity;
use crate::status::Status;
use crate::{ClassState, GovernError, Home, Journal, instance, read_class};

const FORMAT: &str = "steelyard/background/1";
/// Lowest priority of the usual scheduling policy.
const LEAST_NICE: i32 = 19;

/// How far a command stands back, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// By the scheduling class: it runs only where nothing else wants to.
    Class,
    /// By `SCHED_IDLE`: it gets next to nothing where something else wants to run.
    Idle,
    /// By its priority.
    Nice,
    /// Not at all.
    None,
}

/// What was done for a command before it began.
#[derive(Debug, Serialize)]
struct Report {
    format: &'static str,
    level: Level,
    /// Whether a governor throttles it while a service waits.
    is_governed: bool,
    process_id: i32,
    applied: Vec<String>,
    missing: Vec<String>,
}

/// Becomes the command; comes back only with an error.
pub(crate) fn background(mut given: Given) -> Result<(), GovernError> {
    let is_quiet = given.flag("--quiet");
    let require = match given.value("--require").as_deref() {
        None => Level::None,
        Some("class") => Level::Class,
        Some("idle") => Level::Idle,
        Some(other) => {
            return Err(GovernError::usage(format!("`--require {other}`: allowed: `class`, `idle`")));
        }
    };
    let status = given.path("--status");
    let named = given.path("--state");
    given.finish()?;
    let state = named.clone().or_else(|| instance::default_state().ok());
    let visible = named.map_or_else(instance::visible_states, |state| vec![state]);
    let Some(program) = given.command.first().cloned() else {
        return Err(GovernError::usage("a command must stand behind `--`"));
    };
    let class = read_class(&HostRoot::system());
    if require == Level::Class && !matches!(class, ClassState::Active(_)) {
        let hint = "`steelyard scheduler start` starts it, or says what this host lacks";
        return Err(GovernError::capability(describe_absence(&class), hint));
    }
    let report = stand_back(&class, state.as_deref(), &visible);
    if report.level > require && require != Level::None {
        let message = format!("this user may not use SCHED_IDLE: {}", report.missing.join("; "));
        return Err(GovernError::capability(
            message,
            "a container's seccomp profile may forbid `sched_setscheduler`",
        ));
    }
    if let Some(path) = status {
        write_report(&path, &report)?;
    }
    if !is_quiet {
        // A closed standard error is no reason not to execute the command.
        let _ = std::io::stderr().write_all(format!("{}\n", sentence(&report, &class)).as_bytes());
    }
    become_command(&program, given.command)
}

fn write_report(path: &Path, report: &Report) -> Result<(), GovernError> {
    let text = serde_json::to_string_pretty(report)
        .map_err(|error| GovernError::system("cannot write the status", error))?;
    std::fs::write(path, format!("{text}\n")).map_err(|source| GovernError::writing(path, source))
}

/// Does everything this host allows, from the most certain to the least.
fn stand_back(class: &ClassState, state: Option<&Path>, visible: &[PathBuf]) -> Report {
    let (mut applied, mut missing) = (Vec::new(), Vec::new());
    if let Some(state) = state
        && let Err(error) = Journal::restore_abandoned(state)
    {
        missing.push(format!("what a killed governor left: {error}"));
    }
    let is_idle = match set_idle() {
        Ok(()) => {
            applied.push("SCHED_IDLE".to_owned());
            true
        }
        Err(error) => {
            missing.push(format!("SCHED_IDLE: {}", error.desc()));
            match set_nice() {
                Ok(()) => applied.push(format!("nice {LEAST_NICE}")),
                Err(error) => missing.push(format!("nice {LEAST_NICE}: {}", error.desc())),
            }
            false
        }
    };
    let home = Home::claim(&Layout::discover(Path::new("/")).unwrap_or_default());
    home.sweep();
    let refused = home.enter();
    match home.weaken() {
        Ok(setting) if refused.is_empty() => applied.push(format!("a group with {setting}")),
        Ok(_) => {}
        Err(error) => missing.push(error.to_string()),
    }
    missing.extend(refused.iter().map(ToString::to_string));
    if home.cpu.is_none() || !refused.is_empty() {
        missing.extend(autogroup());
    }
    let level = match class {
        ClassState::Active(_) if is_idle => Level::Class,
        _ if is_idle => Level::Idle,
        _ if applied.is_empty() => Level::None,
        _ => Level::Nice,
    };
    let is_governed = refused.is_empty() && visible.iter().any(|state| is_governed(state, &home));
    Report { format: FORMAT, level, is_governed, process_id: Identity::own().process_id, applied, missing }
}

/// Policies and priorities then count inside a session only, unless a group takes the command out.
fn autogroup() -> Option<String> {
    let path = Path::new("/proc/sys/kernel/sched_autogroup_enabled");
    let is_on = crate::text_file::look(path).as_deref() == Some("1");
    is_on.then(|| "autogroup scheduling is on: it stands back within this session only".to_owned())
}

fn is_governed(state: &Path, home: &Home) -> bool {
    let Some(status) = instance::living(state).and_then(|_| Status::read(state)) else { return false };
    home.groups().iter().any(|group| status.groups.iter().any(|other| Path::new(other) == *group))
}

fn describe_absence(class: &ClassState) -> String {
    match class {
        ClassState::Unsupported => "the class is not there: this kernel has no sched_ext".to_owned(),
        ClassState::Inactive => "the class is not loaded".to_owned(),
        ClassState::Foreign(name) => format!("another scheduler is loaded: `{name}`"),
        ClassState::Active(name) => format!("the class `{name}` is loaded"),
    }
}

fn sentence(report: &Report, class: &ClassState) -> String {
    let how = report.applied.join(", ");
    match (report.level, class) {
        (Level::Class, ClassState::Active(name)) => {
            format!("steelyard: best-effort by the class `{name}`: {how}")
        }
        (Level::None, _) => {
            format!("steelyard: run like any other command: {}", report.missing.join("; "))
        }
        (_, _) => {
            let governed = if report.is_governed { "governed" } else { "not governed" };
            let mut text =
                format!("steelyard: best-effort by {how}; {governed}; {}", describe_absence(class));
            if !report.missing.is_empty() {
                text.push_str("; missing: ");
                text.push_str(&report.missing.join("; "));
            }
            text
        }
    }
}

fn set_idle() -> Result<(), Errno> {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is this process, and the parameter lives during the call.
    Errno::result(unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameter) }).map(drop)
}

fn set_nice() -> Result<(), Errno> {
    // SAFETY: plain numbers; 0 is this process.
    Errno::result(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LEAST_NICE) }).map(drop)
}

fn become_command(program: &OsString, words: Vec<OsString>) -> Result<(), GovernError> {
    let shown = PathBuf::from(program);
    let words: Result<Vec<CString>, _> =
        words.into_iter().map(|word| CString::new(word.into_vec())).collect();
    let words = words.map_err(|_| GovernError::usage("an argument holds a zero byte"))?;
    // SAFETY: no handler is installed, the default takes its place: Rust ignores this signal from the
    // start, and a command would inherit that.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let Err(error) = nix::unistd::execvp(&words[0], &words);
    let (reason, exit_code) = match error {
        Errno::ENOENT => ("there is no such program".to_owned(), 127),
        other => (other.desc().to_owned(), 126),
    };
    Err(GovernError::Command { message: format!("cannot run `{}`: {reason}", shown.display()), exit_code })
}
