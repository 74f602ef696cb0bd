//! The untouched writable area that a pool keeps for its next run.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::Pid;

use super::error::{Context as _, SandboxError};
use super::namespaces::pidfd_open;
use super::paths::Extra;
use super::scratch;

/// Owned by the first process, whose mount namespace is the kept one.
#[derive(Debug)]
pub(super) struct Keeping {
    /// The mount namespace without a writable area.
    plain: File,
    extras: Vec<Extra>,
    bytes: u64,
    /// First process of the run in flight: what it wrote is thrown away when it ends.
    run: Option<OwnedFd>,
}

impl Keeping {
    /// Starts with the default size. The caller is in the namespace without an area.
    pub(super) fn start(extras: &[Extra]) -> Result<Self, SandboxError> {
        let plain = File::open("/proc/self/ns/mnt").step(|| "open its mount namespace".into())?;
        let mut this = Self { plain, extras: extras.to_vec(), bytes: scratch::DEFAULT_BYTES, run: None };
        this.renew();
        Ok(this)
    }

    /// A run of this size begins: the next one will probably want the same.
    pub(super) fn begin(&mut self, run: Pid, bytes: u64) {
        self.bytes = bytes;
        self.run = pidfd_open(run).ok();
    }

    /// Becomes readable when the run's first process ended.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.run.as_ref().map(AsFd::as_fd)
    }

    /// The run is over: what it wrote goes, and with it the memory that it occupies.
    pub(super) fn end(&mut self) {
        self.run = None;
        if !scratch::is_untouched(self.bytes, &self.extras) {
            self.renew();
        }
    }

    /// On failure the kept area is missing, and children mount their own.
    fn renew(&mut self) {
        if self.try_renew().is_err() {
            let _ = setns(&self.plain, CloneFlags::CLONE_NEWNS);
        }
    }

    fn try_renew(&self) -> Result<(), SandboxError> {
        let own =
            |error: nix::errno::Errno| SandboxError::step("renew the writable area", io::Error::from(error));
        setns(&self.plain, CloneFlags::CLONE_NEWNS).map_err(own)?;
        unshare(CloneFlags::CLONE_NEWNS).map_err(own)?;
        scratch::mount_scratch(self.bytes, &self.extras)
    }
}
