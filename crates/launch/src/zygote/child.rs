//! The child between clone and exec.
//!
//! Everything happens before the gate. After it there are two reads of the child's own usage (so
//! that the set-up can be subtracted), one stamp and `execve`.

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::{AT_FDCWD, AtFlags, FcntlArg, fcntl, openat};
use nix::sys::prctl;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{AccessFlags, chdir, execve, faccessat, setsid};

use super::blueprint::{Blueprint, METRICS_DESCRIPTOR};
use super::schedule::{self, Failure};
use super::signals;
use crate::clock::{monotonic_ns, own_cpu_ns};
use crate::sandbox::{ChildView, Pool};
use crate::shared_page::{Page, Progress, SetUpUsage};

/// Descriptors the keeper sent for the child.
#[derive(Debug)]
pub(super) struct Streams {
    pub(super) input: OwnedFd,
    pub(super) output: OwnedFd,
    pub(super) error: OwnedFd,
    pub(super) metrics: Option<OwnedFd>,
    pub(super) leaf: Option<OwnedFd>,
}

/// What a child is born with.
#[derive(Debug)]
pub(super) struct Birth<'a> {
    pub(super) blueprint: &'a Blueprint,
    pub(super) pool: Option<&'a Pool>,
    pub(super) streams: Streams,
    pub(super) page: &'a Page,
    pub(super) is_in_leaf: bool,
}

/// Descriptors below this are the program's.
const FIRST_OWN_DESCRIPTOR: i32 = 10;

/// [`become_program`] as the kernel's clone calls it.
pub(super) extern "C" fn live(birth: *const libc::c_void) -> ! {
    // SAFETY: the zygote gave a `Birth`, and sleeps until this process has executed or ended.
    become_program(unsafe { &*birth.cast::<Birth<'_>>() })
}

/// Becomes the program, or reports on the shared page why not.
pub(super) fn become_program(birth: &Birth<'_>) -> ! {
    let code = match set_up(birth) {
        Ok(meter) => {
            let first = accessible(&birth.blueprint.candidates);
            meter.note_delay();
            birth.page.advance(Progress::Ready);
            birth.page.wait_at_gate();
            let cpu_at_gate_ns = own_cpu_ns();
            let failure = execute(birth, &meter, cpu_at_gate_ns, first);
            birth.page.report(failure.0 as i32, &failure.1);
            birth.page.advance(Progress::ExecFailed);
            if failure.0 == Errno::ENOENT { 127 } else { 126 }
        }
        Err((errno, message)) => {
            // What the sandbox says of itself has its reason in it already.
            let reason = if errno == Errno::UnknownErrno { "" } else { errno.desc() };
            let separator = if reason.is_empty() { "" } else { ": " };
            birth.page.report(errno as i32, &format!("{message}{separator}{reason}"));
            birth.page.advance(Progress::Failed);
            125
        }
    };
    // SAFETY: ends the child without the zygote's exit handlers and destructors.
    unsafe { libc::_exit(code) }
}

fn set_up(birth: &Birth<'_>) -> Result<Meter, Failure> {
    let blueprint = birth.blueprint;
    if let Some(leaf) = birth.streams.leaf.as_ref().filter(|_| !birth.is_in_leaf) {
        enter_leaf(leaf)?;
        birth.page.note_slow_entry();
    }
    setsid().map_err(|errno| (errno, "cannot begin a session".to_owned()))?;
    signals::reset();
    umask(Mode::from_bits_truncate(0o022));
    let meter = Meter::open();
    connect(&birth.streams)?;
    if let Some(pool) = birth.pool {
        let view =
            ChildView { limits: &blueprint.limits, working_directory: blueprint.named_directory.as_deref() };
        pool.prepare_child(&view).map_err(|error| (Errno::UnknownErrno, error.to_string()))?;
    } else {
        chdir(blueprint.directory.as_path()).map_err(|errno| {
            (errno, format!("`working_directory`: cannot enter `{}`", blueprint.directory.display()))
        })?;
    }
    schedule::place(&blueprint.placement)?;
    schedule::limit(&blueprint.limits)?;
    schedule::limit_without_groups(&blueprint.limits, blueprint.ungrouped)?;
    mark_for_closing(METRICS_DESCRIPTOR + i32::from(birth.streams.metrics.is_some()));
    if let Some(pool) = birth.pool {
        let listener = pool.seal_child_watched().map_err(|error| (Errno::UnknownErrno, error.to_string()))?;
        if let Some(listener) = listener {
            // The keeper takes a copy before the gate opens; `execve` closes this one.
            birth.page.offer_listener(listener.into_raw_fd());
        }
    }
    // After the seal: a change of user would clear it.
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    Ok(meter)
}

/// The slow way into a group, for kernels and containers that refuse `CLONE_INTO_CGROUP`.
fn enter_leaf(leaf: &OwnedFd) -> Result<(), Failure> {
    let failure = |errno| (errno, "cannot enter the run's control group".to_owned());
    let file =
        openat(leaf, "cgroup.procs", OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty()).map_err(failure)?;
    nix::unistd::write(file, b"0").map(drop).map_err(failure)
}

/// Puts the streams at the numbers the program expects.
fn connect(streams: &Streams) -> Result<(), Failure> {
    let failure = |errno| (errno, "cannot connect the standard streams".to_owned());
    let high = |descriptor: &OwnedFd| {
        let raw = fcntl(descriptor, FcntlArg::F_DUPFD_CLOEXEC(FIRST_OWN_DESCRIPTOR)).map_err(failure)?;
        // SAFETY: the kernel just made this descriptor for us.
        Ok::<OwnedFd, Failure>(unsafe { OwnedFd::from_raw_fd(raw) })
    };
    let (input, output, error) = (high(&streams.input)?, high(&streams.output)?, high(&streams.error)?);
    let metrics = streams.metrics.as_ref().map(high).transpose()?;
    nix::unistd::dup2_stdin(input.as_fd()).map_err(failure)?;
    nix::unistd::dup2_stdout(output.as_fd()).map_err(failure)?;
    nix::unistd::dup2_stderr(error.as_fd()).map_err(failure)?;
    if let Some(metrics) = metrics {
        // SAFETY: whatever had this number belongs to the zygote and is only a copy here.
        Errno::result(unsafe { libc::dup2(metrics.as_raw_fd(), METRICS_DESCRIPTOR) }).map_err(failure)?;
    }
    Ok(())
}

/// Has `execve` close everything from a number on. Until then the descriptors work.
fn mark_for_closing(first: i32) {
    // SAFETY: changes a flag of our own descriptors.
    let result =
        unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result == 0 {
        return;
    }
    // KERNEL: the flag came with 5.11.
    for descriptor in first..4096 {
        // SAFETY: sets a flag of our own descriptor, or fails on a number that is not open.
        let _ = unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// The first candidate that may be executed, as this child now sees the file system.
fn accessible(candidates: &[CString]) -> usize {
    let may =
        |path: &CString| faccessat(AT_FDCWD, path.as_c_str(), AccessFlags::X_OK, AtFlags::AT_EACCESS).is_ok();
    candidates.iter().position(may).unwrap_or(0)
}

fn execute(birth: &Birth<'_>, meter: &Meter, cpu_at_gate_ns: u64, first: usize) -> (Errno, String) {
    let blueprint = birth.blueprint;
    meter.store(birth.page, cpu_at_gate_ns);
    let mut worst = (Errno::ENOENT, None);
    for candidate in blueprint.candidates.iter().skip(first) {
        birth.page.stamp_exec(monotonic_ns());
        let result: Result<Infallible, Errno> =
            execve(candidate, &blueprint.arguments, &blueprint.environment);
        let Err(errno) = result;
        // As a shell does: a name that is not there is looked for further on, other errors are told.
        if worst.1.is_none() || (worst.0 == Errno::ENOENT && errno != Errno::ENOENT) {
            worst = (errno, Some(candidate));
        }
        if !matches!(errno, Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES) {
            break;
        }
    }
    (worst.0, exec_message(blueprint, worst.0, worst.1.map(CString::as_c_str)))
}

fn exec_message(blueprint: &Blueprint, errno: Errno, tried: Option<&CStr>) -> String {
    let program = blueprint.arguments.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    let exists =
        tried.is_some_and(|path| faccessat(AT_FDCWD, path, AccessFlags::F_OK, AtFlags::empty()).is_ok());
    let reason = match errno {
        Errno::ENOENT if exists => {
            "the file exists, but its interpreter or dynamic loader does not".to_owned()
        }
        Errno::ENOENT if !program.contains('/') => "not found in `PATH`".to_owned(),
        Errno::ENOEXEC => "not a program: neither a known binary format nor a `#!` line".to_owned(),
        _ => errno.desc().to_owned(),
    };
    format!("cannot execute `{program}`: {reason} ({errno:?})")
}

/// Reads what this process used so far.
#[derive(Debug)]
struct Meter {
    schedstat: Option<File>,
    delay_at_gate_ns: std::cell::Cell<u64>,
}

impl Meter {
    /// Opens the file now: a sandbox may hide it later.
    fn open() -> Self {
        let file = File::open("/proc/self/schedstat").ok();
        let delay_at_gate_ns = std::cell::Cell::new(u64::MAX);
        Self { schedstat: file.as_ref().and_then(move_up), delay_at_gate_ns }
    }

    fn run_delay_ns(&self) -> u64 {
        let mut text = [0_u8; 96];
        let length = self.schedstat.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let mut words = std::str::from_utf8(&text[..length]).unwrap_or("").split_ascii_whitespace();
        words.nth(1).and_then(|word| word.parse().ok()).unwrap_or(u64::MAX)
    }

    /// To be called right before the gate.
    fn note_delay(&self) {
        self.delay_at_gate_ns.set(self.run_delay_ns());
    }

    fn store(&self, page: &Page, cpu_at_gate_ns: u64) {
        let mut usage = SetUpUsage {
            run_delay_at_gate_ns: self.delay_at_gate_ns.get(),
            cpu_at_gate_ns,
            run_delay_ns: self.run_delay_ns(),
            ..SetUpUsage::default()
        };
        if let Ok(own) = getrusage(UsageWho::RUSAGE_SELF) {
            usage.user_ns = time_ns(own.user_time());
            usage.system_ns = time_ns(own.system_time());
            usage.minor_faults = count(own.minor_page_faults());
            usage.major_faults = count(own.major_page_faults());
            usage.voluntary_switches = count(own.voluntary_context_switches());
            usage.involuntary_switches = count(own.involuntary_context_switches());
            usage.resident_bytes = count(own.max_rss()) * 1024;
        }
        usage.cpu_at_call_ns = own_cpu_ns();
        page.store_usage(&usage);
    }
}

fn count(value: libc::c_long) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn time_ns(time: nix::sys::time::TimeVal) -> u64 {
    count(time.tv_sec()) * 1_000_000_000 + count(time.tv_usec()) * 1000
}

/// Moves a descriptor out of the way of the program's numbers.
fn move_up(file: &File) -> Option<File> {
    let raw = fcntl(file, FcntlArg::F_DUPFD_CLOEXEC(FIRST_OWN_DESCRIPTOR)).ok()?;
    // SAFETY: the kernel just made this descriptor for us.
    Some(unsafe { File::from_raw_fd(raw) })
}
