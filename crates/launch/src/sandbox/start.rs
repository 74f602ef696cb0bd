//! Birth and end of the first process of a pool, as its creator sees them.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, send, socketpair};
use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
use nix::unistd::{Pid, getegid, geteuid};

use super::error::{Context as _, SandboxError};
use super::init;
use super::namespaces::{self, Handles, Side};
use super::root::Plan;

/// The idle first process. Dropping it ends it, and with it everything in its pid namespace.
#[derive(Debug)]
pub(super) struct FirstProcess {
    pub process: Pid,
    /// `None` on kernels before 5.3.
    descriptor: Option<OwnedFd>,
    /// Orders go in, answers come out.
    pub control: OwnedFd,
}

impl FirstProcess {
    /// Clones it; it waits for [`finish`](Self::finish).
    pub(super) fn start(plan: &Plan, own_user: bool) -> Result<Self, SandboxError> {
        let (control, inner) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                .step(|| "make a socket pair".into())?;
        let creator = namespaces::pidfd_open(Pid::this()).ok();
        let mut flags = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
        if own_user {
            flags |= CloneFlags::CLONE_NEWUSER;
        }
        match clone_at_home(flags).step(|| "make pid and mount namespaces".into())? {
            Side::Child => {
                drop(control);
                init::live(plan, &inner, creator.as_ref())
            }
            Side::Parent(process) => {
                Ok(Self { process, descriptor: namespaces::pidfd_open(process).ok(), control })
            }
        }
    }

    /// Lets it build the root, and opens its namespaces.
    pub(super) fn finish(
        &self,
        own_user: bool,
        user_id: u32,
    ) -> Result<(CloneFlags, Vec<String>, Handles), SandboxError> {
        if own_user {
            map_user(self.process, user_id)?;
        }
        send(self.control.as_raw_fd(), &[init::BEGIN], MsgFlags::MSG_NOSIGNAL)
            .map_err(|_| SandboxError::InitEnded { during: "it started" })?;
        let (made, degraded) = init::read_report(&self.control)?;
        let handles = Handles::open(self.process, made, own_user)?;
        if !own_user {
            // In a user namespace the area would belong to the program itself, which could change
            // more of it than can be seen; there each run makes its own.
            send(self.control.as_raw_fd(), &[init::KEEP], MsgFlags::MSG_NOSIGNAL)
                .map_err(|_| SandboxError::InitEnded { during: "it started" })?;
        }
        Ok((made, degraded, handles))
    }
}

/// How long the end of a pool is waited for. It takes milliseconds, unless the caller still has a
/// child inside that it has not waited for.
const END_TIMEOUT_MS: u16 = 2000;

impl Drop for FirstProcess {
    fn drop(&mut self) {
        // Nothing can be done about a failure here: it means that the process is gone already.
        if let Some(fd) = &self.descriptor {
            let _ = namespaces::kill_by(fd);
            let _ =
                poll(&mut [PollFd::new(fd.as_fd(), PollFlags::POLLIN)], PollTimeout::from(END_TIMEOUT_MS));
            let _ = waitid(Id::PIDFd(fd.as_fd()), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG);
        } else {
            let _ = kill(self.process, Signal::SIGKILL);
            let _ = waitpid(self.process, None);
        }
    }
}

fn clone_at_home(flags: CloneFlags) -> std::io::Result<Side> {
    // SAFETY: the caller of `Pool::create` has one thread, and the child ends in `init::live`.
    match unsafe { namespaces::clone_into(flags) } {
        // A process that entered another pool's pid namespace cannot make one until it is back.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            namespaces::leave_pid()?;
            // SAFETY: as above.
            unsafe { namespaces::clone_into(flags) }
        }
        other => other,
    }
}

/// One user and one group inside stand for the caller's own.
fn map_user(init: Pid, user_id: u32) -> Result<(), SandboxError> {
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user_id} {} 1", geteuid())),
        ("gid_map", format!("{user_id} {} 1", getegid())),
    ];
    for (file, content) in maps {
        std::fs::write(format!("/proc/{init}/{file}"), content).step(|| format!("write its `{file}`"))?;
    }
    Ok(())
}
