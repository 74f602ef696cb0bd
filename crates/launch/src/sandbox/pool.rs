use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{MsgFlags, recv, send};
use nix::unistd::{chdir, geteuid};
use steelyard_model::{Limits, SandboxSpec};

use super::error::{Context as _, SandboxError};
use super::filter::{self, Filter};
use super::namespaces::Handles;
use super::paths::{self, Extra};
use super::root::Plan;
use super::start::FirstProcess;
use super::{init, rights, scratch};

/// First user id of the sandbox's own range; no distribution gives it to an account.
const FIRST_USER: u32 = 60_000;

/// Where a program starts if it does not say.
const HOME: &str = "/box";

/// Pooled namespaces for one [`SandboxSpec`], kept alive by an idle first process.
///
/// Dropping it, or the death of its creator by any signal, ends every process inside.
#[derive(Debug)]
pub struct Pool {
    first: FirstProcess,
    handles: Handles,
    filter: Option<Filter>,
    extras: Vec<Extra>,
    user_id: u32,
    own_user: bool,
    own_ipc: bool,
    /// Where the process is that clones the runs.
    caller: Whereabouts,
    degraded: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whereabouts {
    Outside,
    Inside,
}

/// What one run sees of a pool.
#[derive(Debug, Clone, Copy)]
pub struct ChildView<'a> {
    /// Limits of the run; `disk_bytes` sizes its writable files.
    pub limits: &'a Limits,
    /// Directory inside the sandbox to start in; `None` is the writable `/box`.
    pub working_directory: Option<&'a Path>,
}

impl Pool {
    /// Makes the namespaces and the root, and returns when they are ready.
    ///
    /// The caller must have one thread. `worker` tells the users of parallel workers apart.
    ///
    /// # Errors
    ///
    /// [`SandboxError`] with the step the kernel refused, or the path that cannot be shown.
    pub fn create(spec: &SandboxSpec, worker: u32) -> Result<Self, SandboxError> {
        let user_id = user_of(spec, worker)?;
        let extras = paths::resolve_extras(spec)?;
        let plan =
            Plan { tree: paths::resolve_tree(spec)?, extras: extras.clone(), network: spec.network, user_id };
        let mut degraded = Vec::new();
        let filter = compile_filter(&mut degraded)?;
        let own_user = !has_rights();
        if own_user {
            degraded.push(format!(
                "outside the sandbox the program is user {} with this user's groups: the launcher lacks \
                 the rights of root, so it uses a user namespace",
                geteuid()
            ));
        }
        let outer_user = if own_user { geteuid().as_raw() } else { user_id };
        degraded.extend(paths::unwritable(&extras, outer_user));
        let first = FirstProcess::start(&plan, own_user)?;
        let (made, more, handles) = first.finish(own_user, user_id)?;
        degraded.extend(more);
        let own_ipc = made.contains(CloneFlags::CLONE_NEWIPC);
        Ok(Self {
            first,
            handles,
            filter,
            extras,
            user_id,
            own_user,
            own_ipc,
            caller: Whereabouts::Outside,
            degraded,
        })
    }

    /// Makes the caller's next child a member of the pool's pid namespace.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Step`] when the kernel refuses.
    pub fn enter_pid_namespace(&self) -> Result<(), SandboxError> {
        self.handles.enter_pid()
    }

    /// Moves the caller in for good, as far as its children will be: into the network and under the name
    /// of the sandbox, without the rights that setting them up does not need. Each child is spared that.
    ///
    /// For a process that does nothing but clone runs.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Step`] when the kernel refuses; the caller must then end.
    pub fn move_in(&mut self) -> Result<(), SandboxError> {
        self.handles.enter_rest()?;
        rights::drop_spare(self.own_user)?;
        self.caller = Whereabouts::Inside;
        Ok(())
    }

    /// Puts a child of the worker into the sandbox: its namespaces, its own writable files, its
    /// directory. The child keeps its rights until [`seal_child`](Self::seal_child).
    ///
    /// `/proc` is read-only afterwards.
    ///
    /// # Errors
    ///
    /// [`SandboxError`] with the step the kernel refused.
    pub fn prepare_child(&self, view: &ChildView<'_>) -> Result<(), SandboxError> {
        let bytes = scratch::wanted_bytes(view.limits);
        // Opened while the caller's own `/proc` is still there.
        let kept = File::open(format!("/proc/{}/ns/mnt", self.first.process)).ok();
        if self.caller == Whereabouts::Outside {
            self.handles.enter_rest()?;
        }
        if self.own_ipc {
            unshare(CloneFlags::CLONE_NEWIPC).step(|| "make the run's own ipc namespace".into())?;
        }
        if !kept.is_some_and(|kept| self.take_kept(&kept, bytes)) {
            self.handles.enter_mount()?;
            unshare(CloneFlags::CLONE_NEWNS).step(|| "make the run's own mount table".into())?;
            scratch::mount_scratch(bytes, &self.extras)?;
        }
        let directory = view.working_directory.unwrap_or(Path::new(HOME));
        chdir(directory).map_err(|error| {
            let problem = format!("cannot start there, as seen inside the sandbox: {error}");
            SandboxError::path("working_directory", directory, problem)
        })
    }

    /// Whether the writable area kept by the first process is as if it were new; the caller then
    /// is where it is.
    fn take_kept(&self, kept: &File, bytes: u64) -> bool {
        if self.own_user || setns(kept, CloneFlags::CLONE_NEWNS).is_err() {
            return false;
        }
        let message = [&[init::RUN][..], &bytes.to_ne_bytes()].concat();
        let told =
            send(self.first.control.as_raw_fd(), &message, MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT);
        told.is_ok() && scratch::is_untouched(bytes, &self.extras)
    }

    /// Takes every right from the calling child, for good. Nothing may be set up after it.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Step`] when the kernel refuses; the child must then not execute anything.
    pub fn seal_child(&self) -> Result<(), SandboxError> {
        self.drop_rights()?;
        match &self.filter {
            Some(filter) => filter.load().step(|| "load the system call filter".into()),
            None => Ok(()),
        }
    }

    /// Like [`seal_child`](Self::seal_child), and returns a descriptor for
    /// [`Refusals`](super::Refusals): then the launcher hears of refused calls, and must answer
    /// them. `None` where the kernel (before 5.0) or an outer filter has no place for a listener.
    ///
    /// # Errors
    ///
    /// As [`seal_child`](Self::seal_child).
    pub fn seal_child_watched(&self) -> Result<Option<OwnedFd>, SandboxError> {
        self.drop_rights()?;
        let Some(filter) = &self.filter else { return Ok(None) };
        match filter.load_watched() {
            Ok(listener) => Ok(Some(listener)),
            Err(_) => filter.load().step(|| "load the system call filter".into()).map(|()| None),
        }
    }

    fn drop_rights(&self) -> Result<(), SandboxError> {
        if self.caller == Whereabouts::Outside {
            rights::drop_spare(self.own_user)?;
        }
        rights::drop_rest(self.user_id, self.own_user)
    }

    /// Ends every process left inside and returns how many there were.
    ///
    /// The caller must have waited for its own children inside.
    ///
    /// # Errors
    ///
    /// [`SandboxError::InitEnded`] when the pool is gone.
    pub fn sweep(&self) -> Result<u32, SandboxError> {
        let gone = |_| SandboxError::InitEnded { during: "it ended what a run left" };
        send(self.first.control.as_raw_fd(), &[init::SWEEP], MsgFlags::MSG_NOSIGNAL).map_err(gone)?;
        let mut count = [0_u8; 4];
        loop {
            match recv(self.first.control.as_raw_fd(), &mut count, MsgFlags::empty()) {
                Ok(4) => return Ok(u32::from_ne_bytes(count)),
                Err(Errno::EINTR) => {}
                Ok(_) => return Err(gone(Errno::EPIPE)),
                Err(error) => return Err(gone(error)),
            }
        }
    }

    /// Whether a user namespace stands in for the rights of root.
    #[must_use]
    pub fn is_in_user_namespace(&self) -> bool {
        self.own_user
    }

    /// User and group the program is, as seen inside.
    #[must_use]
    pub fn user_id(&self) -> u32 {
        self.user_id
    }

    /// What this host could not give, each with its reason.
    #[must_use]
    pub fn degraded(&self) -> &[String] {
        &self.degraded
    }
}

fn user_of(spec: &SandboxSpec, worker: u32) -> Result<u32, SandboxError> {
    match spec.user_id {
        Some(found @ (0 | u32::MAX)) => Err(SandboxError::UserId { found }),
        Some(user_id) => Ok(user_id),
        None => Ok(FIRST_USER.saturating_add(worker)),
    }
}

fn compile_filter(degraded: &mut Vec<String>) -> Result<Option<Filter>, SandboxError> {
    if filter::is_supported() {
        return Filter::compile().map(Some);
    }
    degraded.push("no system call filter: this kernel was built without seccomp".into());
    Ok(None)
}

/// Whether the caller can do all of it as root; otherwise a user namespace gives it the rights.
fn has_rights() -> bool {
    use caps::Capability::{CAP_CHOWN, CAP_SETGID, CAP_SETPCAP, CAP_SETUID, CAP_SYS_ADMIN, CAP_SYS_CHROOT};
    let needed = [CAP_CHOWN, CAP_SETGID, CAP_SETPCAP, CAP_SETUID, CAP_SYS_ADMIN, CAP_SYS_CHROOT];
    let held = caps::read(None, caps::CapSet::Effective).unwrap_or_default();
    geteuid().is_root() && needed.iter().all(|capability| held.contains(capability))
}
