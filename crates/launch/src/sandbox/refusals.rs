//! Hearing of refused system calls, at no cost for those that are allowed.

use std::collections::BTreeSet;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// So many refusals of one run are answered one by one; then the listener is closed, and the
/// kernel refuses further ones by itself (with `ENOSYS`). A flood must not occupy the launcher.
const MOST_ANSWERS: u32 = 64;

/// The launcher's ear at the filter of a run sealed by
/// [`Pool::seal_child_watched`](super::Pool::seal_child_watched).
///
/// A program that makes a refused call sleeps until [`answer`](Self::answer) is called.
#[derive(Debug)]
pub struct Refusals {
    listener: Option<OwnedFd>,
    calls: BTreeSet<i32>,
    answers: u32,
}

impl Refusals {
    /// Takes over the listener that a sealed child has under `number`.
    ///
    /// # Errors
    ///
    /// The kernel's answer: before Linux 5.6, or without the right to look into the child.
    pub fn take(child: BorrowedFd<'_>, number: RawFd) -> io::Result<Self> {
        // SAFETY: no pointers.
        let answer = unsafe { libc::syscall(libc::SYS_pidfd_getfd, child.as_raw_fd(), number, 0) };
        let fd = i32::try_from(answer).map_err(io::Error::other)?;
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this descriptor for us; it is close-on-exec.
        let listener = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { listener: Some(listener), calls: BTreeSet::new(), answers: 0 })
    }

    /// Readable when a call waits for its refusal; `None` when nobody listens any more.
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.listener.as_ref().map(AsFd::as_fd)
    }

    /// Refuses one waiting call with `EPERM`. Call it when the descriptor is readable.
    pub fn answer(&mut self) {
        let Some(listener) = &self.listener else { return };
        let mut watched = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        let is_waiting = poll(&mut watched, PollTimeout::ZERO).is_ok()
            && watched[0].revents().is_some_and(|events| events.contains(PollFlags::POLLIN));
        if !is_waiting {
            // Readable for another reason: no process with this filter is left. To receive now
            // would be to sleep for ever.
            if watched[0].revents().is_some_and(|events| !events.is_empty()) {
                self.listener = None;
            }
            return;
        }
        // SAFETY: zero is a valid value of every field; the kernel demands a zeroed structure.
        let mut call: libc::seccomp_notif = unsafe { zeroed() };
        // SAFETY: the structure outlives the call and has the size that is part of the request.
        let heard =
            unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) };
        if heard != 0 {
            let is_over =
                !matches!(io::Error::last_os_error().raw_os_error(), Some(libc::ENOENT | libc::EINTR));
            if is_over {
                self.listener = None;
            }
            return;
        }
        let refusal = libc::seccomp_notif_resp { id: call.id, val: 0, error: -libc::EPERM, flags: 0 };
        // A caller that was killed in the meantime needs no answer.
        // SAFETY: as above.
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const refusal) };
        self.calls.insert(call.data.nr);
        self.answers += 1;
        if self.answers >= MOST_ANSWERS {
            self.listener = None;
        }
    }

    /// Numbers of the calls that were refused, ascending.
    pub fn calls(&self) -> impl Iterator<Item = i32> + '_ {
        self.calls.iter().copied()
    }
}
