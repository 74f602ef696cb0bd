//! The zygote's life.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::dup2_stderr;
use steelyard_host::cgroup::Groups;
use steelyard_model::{Isolation, RunSpec, SandboxSpec};

use super::blueprint::Blueprint;
use super::child::{self, Birth, Streams};
use super::clone::{Side, clone_copy};
use super::sharing::{Life, Stack, clone_sharing};
use super::signals;
use super::wire::{self, Answer, Order};
use crate::error::LaunchError;
use crate::sandbox::Pool;
use crate::shared_page::{Page, Progress, SharedPage};

/// The seed serves the keeper until it is gone.
pub(super) fn live(socket: &OwnedFd, groups: &Groups, page: &SharedPage) -> ! {
    begin(socket, groups, page, (Place::Outside, settle(socket)))
}

/// So does one that was divided: all but this is as the seed made it.
fn live_divided(socket: &OwnedFd, groups: &Groups, page: &SharedPage, from: Place) -> ! {
    use crate::error::During;
    close_others(socket.as_raw_fd());
    let bound = prctl::set_pdeathsig(Signal::SIGKILL).during("bind a zygote to the keeper");
    let named = bound.and_then(|()| prctl::set_name(c"steelyard-zygot").during("name the zygote"));
    let settled = named.and_then(|()| match from {
        Place::Outside => Ok(groups.resident().enter()?),
        Place::InGroups => Ok(()),
    });
    begin(socket, groups, page, (Place::InGroups, settled))
}

/// Where a zygote is with respect to the version 1 groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    InGroups,
}

fn begin(
    socket: &OwnedFd,
    groups: &Groups,
    page: &SharedPage,
    (place, settled): (Place, Result<(), LaunchError>),
) -> ! {
    let answer = match settled {
        Ok(()) => Answer::Started,
        Err(error) => failed(&error),
    };
    wire::send_answer(socket, &answer);
    let victim = VictimMark::open();
    let mut state = State { groups, batch: None, pool: None, victim, stack: Stack::new().ok() };
    while let Some((order, descriptors)) = wire::receive(socket) {
        match order {
            Order::Divide => wire::send_answer(socket, &divide(descriptors, groups, page, place)),
            Order::Prepare => wire::send_answer(socket, &state.prepare(descriptors)),
            Order::Sweep => wire::send_answer(socket, &state.sweep()),
            Order::Spawn { .. } => state.spawn(Streams::new(descriptors, order), page),
        }
    }
    drop(state);
    // SAFETY: ends the process without the keeper's exit handlers and destructors.
    unsafe { libc::_exit(0) }
}

/// Makes a copy of the calling zygote, a child of the keeper too.
fn divide(descriptors: Vec<OwnedFd>, groups: &Groups, page: &SharedPage, place: Place) -> Answer {
    let Some(socket) = descriptors.into_iter().next() else {
        return failed(&LaunchError::Zygote { what: "got no socket".into() });
    };
    let mut pid = 0;
    // SAFETY: the zygote has one thread, and the child ends in `live_divided`.
    match unsafe { clone_copy(None, &raw mut pid) } {
        Ok(Side::Zygote) => Answer::Divided { pid },
        Ok(Side::Child { .. }) => live_divided(&socket, groups, page, place),
        Err(error) => failed(&LaunchError::Zygote { what: format!("cannot divide: {error}") }),
    }
}

fn failed(error: &LaunchError) -> Answer {
    Answer::Failed { code: error.code().into(), message: error.to_string(), hint: error.hint() }
}

fn settle(socket: &OwnedFd) -> Result<(), LaunchError> {
    use crate::error::During;
    prctl::set_pdeathsig(Signal::SIGKILL).during("bind the zygote to the keeper")?;
    prctl::set_name(c"steelyard-seed").during("name the seed")?;
    signals::settle()?;
    // The keeper's standard streams carry its protocol: nothing else may hold them.
    let null = File::options().read(true).write(true).open("/dev/null").during("open `/dev/null`")?;
    nix::unistd::dup2_stdin(&null).during("replace standard input")?;
    nix::unistd::dup2_stdout(&null).during("replace standard output")?;
    dup2_stderr(&null).during("replace standard error")?;
    drop(null);
    close_others(socket.as_raw_fd());
    Ok(())
}

/// Closes the keeper's descriptors: its locks on the groups have to end with it alone. Nothing
/// here uses them, and their owners are never dropped, since the zygote only ever exits.
fn close_others(socket: i32) {
    for (first, last) in
        [(3, socket - 1), (socket + 1, i32::MAX)].into_iter().filter(|(first, last)| first <= last)
    {
        // SAFETY: see above.
        if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } != 0 {
            // KERNEL: close_range came with 5.9.
            for descriptor in first..=last.min(4096) {
                // SAFETY: see above; a number that is not open is refused.
                unsafe { libc::close(descriptor) };
            }
        }
    }
}

#[derive(Debug)]
struct State<'a> {
    groups: &'a Groups,
    batch: Option<Blueprint>,
    pool: Option<Pool>,
    victim: Option<VictimMark>,
    /// For children that share the zygote's memory; without one they get a copy.
    stack: Option<Stack>,
}

/// SOURCE: proc(5): the out-of-memory killer passes by a process with this mark.
const SPARED: &str = "-1000";

/// Makes runs the first victims when memory is short, and the zygote none: the launcher has to stay.
///
/// What is being killed already is no victim. A tree that dies slower than it takes memory leaves the zygote as
/// the only one in the run's group, unless it is spared altogether.
///
/// A clone inherits the mark, so the zygote bears it while it clones, unless it is spared itself: then the keeper
/// marks the child before its gate opens (`arm.rs`).
#[derive(Debug)]
struct VictimMark {
    file: File,
    own: String,
}

/// In less a child is not set up, and as no victim it would try without end [bytes].
const LEAST_FOR_THE_SPARED: u64 = 1 << 20;

impl VictimMark {
    fn open() -> Option<Self> {
        let mut file = File::options().read(true).write(true).open("/proc/self/oom_score_adj").ok()?;
        let mut own = String::new();
        file.read_to_string(&mut own).ok()?;
        // Needs the right to be spared; without it the mark stays what it was.
        if file.write_at(SPARED.as_bytes(), 0).is_ok() {
            SPARED.clone_into(&mut own);
        }
        Some(Self { file, own })
    }

    /// Whether the zygote has to bear the mark for a child with so much memory.
    fn is_to_bear(&self, memory_bytes: Option<u64>) -> bool {
        self.own != SPARED || memory_bytes.is_some_and(|limit| limit < LEAST_FOR_THE_SPARED)
    }

    fn bear(&self) {
        // Without it the run is merely no preferred victim.
        let _ = self.file.write_at(b"1000", 0);
    }

    fn shed(&self) {
        let _ = self.file.write_at(self.own.as_bytes(), 0);
    }
}

impl State<'_> {
    fn prepare(&mut self, descriptors: Vec<OwnedFd>) -> Answer {
        match self.try_prepare(descriptors) {
            Ok(degraded) => Answer::Prepared { degraded },
            Err(answer) => answer,
        }
    }

    fn try_prepare(&mut self, descriptors: Vec<OwnedFd>) -> Result<Vec<String>, Answer> {
        let nonsense = |reason: String| failed(&LaunchError::Zygote { what: reason });
        let document = descriptors.into_iter().next().ok_or_else(|| nonsense("got no document".into()))?;
        let mut text = Vec::new();
        File::from(document).read_to_end(&mut text).map_err(|error| nonsense(error.to_string()))?;
        let (spec, worker): (RunSpec, u32) =
            serde_json::from_slice(&text).map_err(|error| nonsense(error.to_string()))?;
        let degraded = match &spec.isolation {
            Isolation::Sandbox(sandbox) => self.enter_pool(sandbox, worker)?,
            _ => Vec::new(),
        };
        self.batch = Some(Blueprint::of(&spec, self.groups));
        Ok(degraded)
    }

    /// Makes the pool, once, and moves in.
    fn enter_pool(&mut self, sandbox: &SandboxSpec, worker: u32) -> Result<Vec<String>, Answer> {
        if self.pool.is_none() {
            let refused = |error| sandbox_failed(&error);
            let mut pool = Pool::create(sandbox, worker).map_err(refused)?;
            pool.enter_pid_namespace().map_err(refused)?;
            pool.move_in().map_err(refused)?;
            self.pool = Some(pool);
        }
        Ok(self.pool.as_ref().map(|pool| pool.degraded().to_vec()).unwrap_or_default())
    }

    fn sweep(&self) -> Answer {
        match self.pool.as_ref().map(Pool::sweep) {
            None => Answer::Swept { count: 0 },
            Some(Ok(count)) => Answer::Swept { count },
            Some(Err(error)) => sandbox_failed(&error),
        }
    }

    fn spawn(&self, streams: Option<Streams>, page: &Page) {
        let (Some(blueprint), Some(streams)) = (&self.batch, streams) else {
            page.report(libc::EINVAL, "the zygote was not prepared");
            return page.advance(Progress::Failed);
        };
        let birth = Birth { blueprint, pool: self.pool.as_ref(), streams, page, is_in_leaf: true };
        let memory_bytes = blueprint.limits.memory_bytes;
        let cloned = match &self.victim {
            Some(mark) if mark.is_to_bear(memory_bytes) => {
                mark.bear();
                let cloned = self.clone_child(birth);
                mark.shed();
                cloned
            }
            Some(_) => {
                page.note_spared();
                self.clone_child(birth)
            }
            None => self.clone_child(birth),
        };
        if let Err(error) = cloned {
            page.report(error.raw_os_error().unwrap_or(0), &format!("cannot clone the run: {error}"));
            page.advance(Progress::Failed);
        }
    }

    fn clone_child(&self, mut birth: Birth<'_>) -> io::Result<()> {
        let (leaf, pid) = (birth.streams.leaf.as_ref(), birth.page.pid_address());
        if let Some(stack) = self.stack.as_ref().filter(|_| may_share(birth.pool)) {
            let life = (child::live as Life, (&raw const birth).cast());
            // SAFETY: the zygote has one thread. The child only reads what both know, and allocates.
            match unsafe { clone_sharing(leaf, pid, stack, life) } {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
                done => return done,
            }
        }
        // SAFETY: the zygote has one thread, and the child ends in `become_program`.
        match unsafe { clone_copy(leaf, pid) }? {
            Side::Zygote => Ok(()),
            Side::Child { is_in_leaf } => {
                birth.is_in_leaf = is_in_leaf;
                child::become_program(&birth)
            }
        }
    }
}

/// Whether a child may share the zygote's memory while it is set up.
///
/// KERNEL: in a user namespace the child changes whether its memory may be looked at, and that is a
/// property of the memory, not of the process.
fn may_share(pool: Option<&Pool>) -> bool {
    pool.is_none_or(|pool| !pool.is_in_user_namespace())
}

fn sandbox_failed(error: &crate::sandbox::SandboxError) -> Answer {
    Answer::Failed { code: "capability".into(), message: error.to_string(), hint: Some(error.hint()) }
}

impl Streams {
    fn new(descriptors: Vec<OwnedFd>, order: Order) -> Option<Self> {
        let Order::Spawn { has_metrics, has_leaf } = order else { return None };
        let mut next = descriptors.into_iter();
        let (input, output, error) = (next.next()?, next.next()?, next.next()?);
        let metrics = if has_metrics { Some(next.next()?) } else { None };
        let leaf = if has_leaf { Some(next.next()?) } else { None };
        debug_assert!(input.as_raw_fd() > 2, "standard streams of the zygote are open");
        Some(Self { input, output, error, metrics, leaf })
    }
}
