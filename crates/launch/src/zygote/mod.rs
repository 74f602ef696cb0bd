//! Zygotes: the processes from which every run is cloned.
//!
//! The first one lives in the version 1 groups, so that a clone is all it takes to begin a run there.
//! For sandboxed runs it makes a copy of itself, which moves into the sandbox as far as a process can
//! that has to set others up. Their clones are children of the keeper, which waits for them itself.
//!
//! Who lives in a run's groups may die with it: a tree that is being killed still takes memory, and then the
//! zygote is what is left to be killed for it. So the first one is a copy of a seed, which is outside of the
//! groups and makes another one.

mod blueprint;
mod child;
mod clone;
mod schedule;
mod serve;
mod sharing;
mod signals;
pub(crate) mod wire;

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use steelyard_host::cgroup::Groups;
use steelyard_model::{Isolation, RunSpec, SandboxSpec};

use crate::error::{During, LaunchError};
use crate::shared_page::SharedPage;
use wire::{Answer, Order};

/// The keeper's side of both: the one that clones bare runs, and the one that clones sandboxed ones.
#[derive(Debug)]
pub(crate) struct Zygote {
    seed: Process,
    first: Process,
    pooled: Option<Pooled>,
    /// Whose batch it is.
    is_pooled: bool,
}

/// A copy of the first zygote that moved into the pool of one sandbox.
#[derive(Debug)]
struct Pooled {
    sandbox: SandboxSpec,
    worker: u32,
    process: Process,
}

/// One zygote.
#[derive(Debug)]
struct Process {
    pid: Pid,
    socket: OwnedFd,
    /// Whether it was waited for: then its number is anybody's.
    is_buried: bool,
}

/// Descriptors a run begins with.
#[derive(Debug)]
pub(crate) struct ChildDescriptors<'a> {
    pub(crate) input: BorrowedFd<'a>,
    pub(crate) output: BorrowedFd<'a>,
    pub(crate) error: BorrowedFd<'a>,
    pub(crate) metrics: Option<BorrowedFd<'a>>,
    pub(crate) leaf: Option<BorrowedFd<'a>>,
}

impl Zygote {
    /// Forks the seed, and has it make the first one in the version 1 groups.
    pub(crate) fn start(groups: &Groups, page: &SharedPage) -> Result<Self, LaunchError> {
        let (socket, theirs) = socket_pair()?;
        // SAFETY: the launcher has one thread, and the child ends in `live` without returning.
        match unsafe { fork() }.during("fork the zygote")? {
            ForkResult::Child => {
                drop(socket);
                serve::live(&theirs, groups, page)
            }
            ForkResult::Parent { child } => {
                drop(theirs);
                let seed = Process { pid: child, socket, is_buried: false };
                seed.answer()?;
                let first = seed.divide()?;
                Ok(Self { seed, first, pooled: None, is_pooled: false })
            }
        }
    }

    /// Process ids of the zygotes there are.
    pub(crate) fn pids(&self) -> impl Iterator<Item = u32> {
        let pooled = self.pooled.as_ref().map(|pooled| &pooled.process);
        let living = [&self.seed, &self.first].into_iter().chain(pooled).filter(|process| !process.is_buried);
        living.map(|process| process.pid.as_raw().cast_unsigned())
    }

    /// Waits for a zygote that has ended. Answers whether this process is one.
    pub(crate) fn bury(&mut self, pid: Pid) -> bool {
        let pooled = self.pooled.as_mut().map(|pooled| &mut pooled.process);
        let mut all = [&mut self.seed, &mut self.first].into_iter().chain(pooled);
        let Some(found) = all.find(|process| !process.is_buried && process.pid == pid) else { return false };
        let _ = waitpid(pid, None);
        found.is_buried = true;
        true
    }

    /// Whether the one that clones the runs of this batch has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.current().has_ended()
    }

    /// Makes another first one, which has to be prepared.
    pub(crate) fn replace(&mut self) -> Result<(), LaunchError> {
        self.is_pooled = false;
        self.pooled = None;
        self.first = self.seed.divide()?;
        Ok(())
    }

    /// Reads the specification and builds what it needs once per batch: the sandbox pool. Answers
    /// what could not be had.
    pub(crate) fn prepare(&mut self, spec: &RunSpec, worker: u32) -> Result<Vec<String>, LaunchError> {
        self.is_pooled = false;
        if let Isolation::Sandbox(sandbox) = &spec.isolation {
            self.divide(sandbox, worker)?;
            self.is_pooled = true;
        }
        let prepared = self.current().prepare(spec, worker);
        if prepared.is_err() {
            // One that failed half-way is in no state that is known.
            self.is_pooled = false;
            self.pooled = None;
        }
        prepared
    }

    /// Clones the next child. It reports on the shared page.
    pub(crate) fn spawn(&self, descriptors: &ChildDescriptors<'_>) -> Result<(), LaunchError> {
        self.current().spawn(descriptors)
    }

    /// Ends what runs left in the sandbox pool and answers how many processes that were.
    pub(crate) fn sweep(&self) -> Result<u32, LaunchError> {
        match self.current().sweep() {
            // What was in the pool has ended with it.
            Err(_) if self.has_ended() => Ok(0),
            answer => answer,
        }
    }

    /// Whether the pool of this batch's runs is gone, or about to go.
    pub(crate) fn has_lost_pool(&self) -> bool {
        self.is_pooled && self.current().sweep().is_err()
    }

    fn current(&self) -> &Process {
        self.pooled.as_ref().filter(|_| self.is_pooled).map_or(&self.first, |pooled| &pooled.process)
    }

    /// Makes a zygote for this sandbox unless the one at hand is.
    fn divide(&mut self, sandbox: &SandboxSpec, worker: u32) -> Result<(), LaunchError> {
        let fits = |pooled: &Pooled| {
            pooled.sandbox == *sandbox && pooled.worker == worker && pooled.process.sweep().is_ok()
        };
        if !self.pooled.as_ref().is_some_and(fits) {
            self.pooled = None;
            let process = self.first.divide()?;
            self.pooled = Some(Pooled { sandbox: sandbox.clone(), worker, process });
        }
        Ok(())
    }
}

impl Process {
    fn divide(&self) -> Result<Self, LaunchError> {
        let (socket, theirs) = socket_pair()?;
        wire::send(&self.socket, Order::Divide, &[theirs.as_fd()])?;
        drop(theirs);
        match self.answer()? {
            Answer::Divided { pid } => {
                let divided = Self { pid: Pid::from_raw(pid), socket, is_buried: false };
                divided.answer()?;
                Ok(divided)
            }
            other => Err(LaunchError::Zygote { what: format!("answered {other:?} to a division") }),
        }
    }

    /// Whether it has ended. One that is ending closes its socket before it can be waited for.
    fn has_ended(&self) -> bool {
        if self.is_buried {
            return true;
        }
        let mut watched = [PollFd::new(self.socket.as_fd(), PollFlags::empty())];
        let is_ending = poll(&mut watched, PollTimeout::ZERO).is_ok_and(|count| count > 0);
        let wait = if is_ending { WaitPidFlag::empty() } else { WaitPidFlag::WNOHANG };
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | wait;
        loop {
            match waitid(Id::Pid(self.pid), look) {
                Err(Errno::EINTR) => {}
                answer => return !matches!(answer, Ok(WaitStatus::StillAlive)),
            }
        }
    }

    fn prepare(&self, spec: &RunSpec, worker: u32) -> Result<Vec<String>, LaunchError> {
        let document = spec_document(spec, worker)?;
        wire::send(&self.socket, Order::Prepare, &[document.as_fd()])?;
        match self.answer()? {
            Answer::Prepared { degraded } => Ok(degraded),
            other => Err(LaunchError::Zygote { what: format!("answered {other:?} to a preparation") }),
        }
    }

    fn spawn(&self, descriptors: &ChildDescriptors<'_>) -> Result<(), LaunchError> {
        let mut list = vec![descriptors.input, descriptors.output, descriptors.error];
        list.extend(descriptors.metrics);
        list.extend(descriptors.leaf);
        let order =
            Order::Spawn { has_metrics: descriptors.metrics.is_some(), has_leaf: descriptors.leaf.is_some() };
        wire::send(&self.socket, order, &list)
    }

    fn sweep(&self) -> Result<u32, LaunchError> {
        wire::send(&self.socket, Order::Sweep, &[])?;
        match self.answer()? {
            Answer::Swept { count } => Ok(count),
            other => Err(LaunchError::Zygote { what: format!("answered {other:?} to a sweep") }),
        }
    }

    fn answer(&self) -> Result<Answer, LaunchError> {
        match wire::receive_answer(&self.socket)? {
            Answer::Failed { code, message, hint } => Err(wire::error_of(&code, message, hint)),
            answer => Ok(answer),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_buried {
            return;
        }
        // It holds nothing that needs saving; the pool's first process dies with it.
        let _ = kill(self.pid, Signal::SIGKILL);
        let _ = waitpid(self.pid, None);
    }
}

fn socket_pair() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
        .during("create a zygote's socket")
}

/// The specification as a file: it may be longer than a message.
fn spec_document(spec: &RunSpec, worker: u32) -> Result<File, LaunchError> {
    let descriptor = memfd_create(c"steelyard-spec", MFdFlags::MFD_CLOEXEC).during("create a memory file")?;
    let mut file = File::from(descriptor);
    let text = serde_json::to_vec(&(spec, worker))
        .map_err(|error| LaunchError::Request { what: "specification", reason: error.to_string() })?;
    file.write_all(&text).during("write a memory file")?;
    file.rewind().during("rewind a memory file")?;
    Ok(file)
}
