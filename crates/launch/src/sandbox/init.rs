//! The idle first process of a pool: it builds the root, keeps the namespaces, reaps orphans.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recv, recvmsg, send, setsockopt, sockopt};
use nix::sys::stat::{Mode, umask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, sethostname, setsid};
use serde::{Deserialize, Serialize};
use steelyard_model::NetworkView;

use super::error::{SandboxError, WireError};
use super::keeping::Keeping;
use super::root::{self, Plan};

/// What the first process tells its creator once.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    Ready { made: i32, degraded: Vec<String> },
    Failed(WireError),
}

/// The creator says: the user namespace is mapped, go on.
pub(super) const BEGIN: u8 = b'b';
/// The creator says: end every other process in here, and answer how many there were.
pub(super) const SWEEP: u8 = b's';
/// The creator has opened the namespaces: keep a writable area at hand from now on.
pub(super) const KEEP: u8 = b'k';
/// A child says: I am a run, and have a writable area of this size [bytes, 8 bytes follow].
pub(super) const RUN: u8 = b'r';

/// Everything in here must be over within this time after SIGKILL.
const SWEEP_DEADLINE: Duration = Duration::from_secs(5);

/// Life of the first process; never returns to the caller's code.
pub(super) fn live(plan: &Plan, control: &OwnedFd, creator: Option<&OwnedFd>) -> ! {
    let code = match settle(control, creator) {
        Ok(()) => {
            let report = prepare(plan);
            let ready = matches!(report, Report::Ready { .. });
            let sent = serde_json::to_vec(&report)
                .map_err(io::Error::other)
                .and_then(|text| Ok(send(control.as_raw_fd(), &text, MsgFlags::MSG_NOSIGNAL)?));
            if ready && sent.is_ok() {
                serve(plan, control, creator);
            }
            0
        }
        Err(_) => 1,
    };
    // SAFETY: ends this process without the creator's exit handlers, which are copied into it.
    unsafe { libc::_exit(code) }
}

/// Cuts what was inherited: life without the creator, handlers, terminal, descriptors.
fn settle(control: &OwnedFd, creator: Option<&OwnedFd>) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    nix::sys::prctl::set_name(c"steelyard-init")?;
    reset_signals()?;
    setsid()?;
    umask(Mode::from_bits_truncate(0o022));
    close_others(&[Some(control), creator])?;
    setsockopt(control, sockopt::PassCred, &true)?;
    let mut order = [0_u8; 1];
    loop {
        match recv(control.as_raw_fd(), &mut order, MsgFlags::empty()) {
            Ok(1) if order[0] == BEGIN => return Ok(()),
            Err(Errno::EINTR) => {}
            // The creator died before it set the death signal's stage, or talks another language.
            _ => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Default actions, which the first process of a pid namespace ignores; children need no wait.
fn reset_signals() -> io::Result<()> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    let reap = SigAction::new(SigHandler::SigIgn, SaFlags::SA_NOCLDWAIT, SigSet::empty());
    for signal in Signal::iterator().filter(|signal| !matches!(signal, Signal::SIGKILL | Signal::SIGSTOP)) {
        let action = if signal == Signal::SIGCHLD { &reap } else { &default };
        // SAFETY: neither action has a handler.
        unsafe { sigaction(signal, action) }?;
    }
    SigSet::empty().thread_set_mask()?;
    Ok(())
}

/// Closes every descriptor but the given ones.
fn close_others(keep: &[Option<&OwnedFd>]) -> io::Result<()> {
    let mut kept: Vec<u32> =
        keep.iter().flatten().filter_map(|fd| u32::try_from(fd.as_raw_fd()).ok()).collect();
    kept.sort_unstable();
    let mut first = 0;
    for fd in kept {
        if fd > first {
            close_range(first, fd - 1)?;
        }
        first = fd + 1;
    }
    close_range(first, u32::MAX)
}

fn close_range(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: nothing in this process uses these descriptors any more.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0 {
        return Ok(());
    }
    // KERNEL: close_range came with 5.9.
    let limit = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE)?.0;
    for fd in u64::from(first)..=u64::from(last).min(limit) {
        // SAFETY: as above; a descriptor that is not open is refused.
        unsafe { libc::close(i32::try_from(fd).map_err(io::Error::other)?) };
    }
    Ok(())
}

fn prepare(plan: &Plan) -> Report {
    let (made, mut degraded) = make_namespaces(plan.network);
    match root::build(plan) {
        Ok(more) => {
            degraded.extend(more);
            Report::Ready { made: made.bits(), degraded }
        }
        Err(error) => Report::Failed(WireError::from(&error)),
    }
}

/// The namespaces a host may refuse without the sandbox losing its sense.
fn make_namespaces(network: NetworkView) -> (CloneFlags, Vec<String>) {
    let mut degraded = Vec::new();
    let mut made = CloneFlags::empty();
    let wanted = [
        (CloneFlags::CLONE_NEWNET, "network"),
        (CloneFlags::CLONE_NEWIPC, "ipc"),
        (CloneFlags::CLONE_NEWUTS, "uts"),
    ];
    for (flag, name) in wanted {
        if flag == CloneFlags::CLONE_NEWNET && network == NetworkView::Host {
            degraded.push("the host's network is visible: the specification asks for it".into());
            continue;
        }
        match unshare(flag) {
            Ok(()) => made |= flag,
            Err(error) => degraded.push(format!("no own {name} namespace: the kernel refuses it: {error}")),
        }
    }
    if made.contains(CloneFlags::CLONE_NEWUTS)
        && let Err(error) = sethostname("sandbox")
    {
        degraded.push(format!("the host's name is visible: {error}"));
    }
    (made, degraded)
}

/// Waits for orders until the creator is gone.
fn serve(plan: &Plan, control: &OwnedFd, creator: Option<&OwnedFd>) {
    let mut keeping: Option<Keeping> = None;
    loop {
        let mut watched = vec![PollFd::new(control.as_fd(), PollFlags::POLLIN)];
        watched.extend(creator.map(|creator| PollFd::new(creator.as_fd(), PollFlags::POLLIN)));
        let run = keeping.as_ref().and_then(Keeping::descriptor);
        watched.extend(run.map(|run| PollFd::new(run, PollFlags::POLLIN)));
        match poll(&mut watched, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            Err(_) => return,
            Ok(_) => {}
        }
        let is_creator_gone = creator.is_some() && watched.get(1).is_some_and(is_ready);
        let is_run_over = run.is_some() && watched.last().is_some_and(is_ready);
        let is_order = watched.first().is_some_and(is_ready);
        if is_creator_gone {
            return;
        }
        if is_run_over {
            keeping.iter_mut().for_each(Keeping::end);
        }
        if is_order && answer(plan, control.as_fd(), &mut keeping).is_err() {
            return;
        }
    }
}

fn is_ready(watched: &PollFd<'_>) -> bool {
    watched.revents().is_some_and(|events| !events.is_empty())
}

fn answer(plan: &Plan, control: BorrowedFd<'_>, keeping: &mut Option<Keeping>) -> io::Result<()> {
    let mut bytes = [0_u8; 16];
    let (length, sender) = match receive(control, &mut bytes) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => return Ok(()),
        other => other?,
    };
    match bytes[..length] {
        [] => Err(io::ErrorKind::UnexpectedEof.into()),
        [SWEEP] => {
            let found = sweep();
            if let Some(keeping) = keeping {
                keeping.end();
            }
            send(control.as_raw_fd(), &found.to_ne_bytes(), MsgFlags::MSG_NOSIGNAL)?;
            Ok(())
        }
        [KEEP] => {
            // Without it each run makes its own area, which is slower and just as good.
            *keeping = Keeping::start(&plan.extras).ok();
            Ok(())
        }
        [RUN, ref size @ ..] => {
            if let (Some(keeping), Some(sender), Ok(size)) = (keeping, sender, size.try_into()) {
                keeping.begin(sender, u64::from_ne_bytes(size));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// One message, and the number its sender has in this pid namespace.
fn receive(control: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<(usize, Option<Pid>)> {
    let mut space = nix::cmsg_space!(libc::ucred);
    let mut slices = [io::IoSliceMut::new(bytes)];
    let flags = MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<()>(control.as_raw_fd(), &mut slices, Some(&mut space), flags)?;
    let sender = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmCredentials(who) if who.pid() > 1 => Some(Pid::from_raw(who.pid())),
        _ => None,
    });
    Ok((message.bytes, sender))
}

/// Ends every process of the namespace but this one. Answers how many were alive.
fn sweep() -> u32 {
    let everyone = Pid::from_raw(-1);
    if kill(everyone, None) == Err(Errno::ESRCH) {
        return 0;
    }
    let found = alive();
    let deadline = Instant::now() + SWEEP_DEADLINE;
    loop {
        // Refused only when nobody is left.
        let _ = kill(everyone, Signal::SIGKILL);
        while matches!(waitpid(everyone, Some(WaitPidFlag::WNOHANG)), Ok(status) if status != WaitStatus::StillAlive)
        {
        }
        if alive() == 0 || Instant::now() > deadline {
            return found;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Processes besides this one that have not ended, from `/proc`.
fn alive() -> u32 {
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    let count = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != 1 && is_alive(*pid))
        .count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name in parentheses may contain anything; the state follows the last one.
    !matches!(stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next()), Some('Z' | 'X') | None)
}

/// Reads the report of a first process.
pub(super) fn read_report(control: &OwnedFd) -> Result<(CloneFlags, Vec<String>), SandboxError> {
    let mut text = vec![0_u8; 128 << 10];
    let length = loop {
        match recv(control.as_raw_fd(), &mut text, MsgFlags::empty()) {
            Ok(0) => return Err(SandboxError::InitEnded { during: "it built the root" }),
            Ok(length) => break length,
            Err(Errno::EINTR) => {}
            Err(error) => return Err(SandboxError::step("read the report of the first process", error)),
        }
    };
    match serde_json::from_slice(&text[..length]) {
        Ok(Report::Ready { made, degraded }) => Ok((CloneFlags::from_bits_truncate(made), degraded)),
        Ok(Report::Failed(error)) => Err(error.into()),
        Err(error) => {
            Err(SandboxError::step("read the report of the first process", io::Error::other(error)))
        }
    }
}
