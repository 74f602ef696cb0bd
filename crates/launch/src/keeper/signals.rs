//! Signals that ask the keeper to end, or tell it of its children.

use std::os::fd::{AsFd, BorrowedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::control::Control;
use crate::error::{During, LaunchError};

/// Where blocked signals are read.
#[derive(Debug)]
pub(super) struct Signals {
    file: SignalFd,
    is_stopping: bool,
}

impl Signals {
    pub(super) fn open() -> Result<Self, LaunchError> {
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let file = SignalFd::with_flags(&watched(), flags).during("watch signals")?;
        Ok(Self { file, is_stopping: false })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Whether a signal that was read asked this process to end.
    pub(super) const fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Reads pending signals. Answers whether one asks this process to end.
    pub(super) fn read(&mut self) -> bool {
        while let Ok(Some(info)) = self.file.read_signal() {
            let is_child = i32::try_from(info.ssi_signo) == Ok(Signal::SIGCHLD as i32);
            self.is_stopping |= !is_child;
        }
        self.is_stopping
    }

    /// Whether the caller or a signal wants the batch to end.
    pub(super) fn has_cancelled(&mut self, control: &mut dyn Control) -> bool {
        if self.read() {
            return true;
        }
        let is_readable = control.descriptor().is_some_and(|fd| {
            let mut polled = [PollFd::new(fd, PollFlags::POLLIN)];
            poll(&mut polled, PollTimeout::ZERO).is_ok_and(|count| count > 0)
        });
        is_readable && control.is_cancelled()
    }
}

/// Blocks the signals that are read. Answers the mask before.
pub(super) fn block() -> Result<SigSet, LaunchError> {
    let old = SigSet::thread_get_mask().during("read the signal mask")?;
    watched().thread_block().during("block signals")?;
    Ok(old)
}

fn watched() -> SigSet {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        set.add(signal);
    }
    set
}
