//! The least that can use a pool: clone, prepare, seal, exec, wait.

use std::ffi::CString;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pipe};
use steelyard_launch::sandbox::{ChildView, Pool, SandboxError};
use steelyard_model::{Limits, SandboxSpec};

use crate::attack::MARK;

/// No run of a test lasts longer.
const DEADLINE: Duration = Duration::from_secs(20);

/// A pool that this process has entered.
pub(crate) struct Jail {
    pub(crate) pool: Pool,
    pub(crate) limits: Limits,
    pub(crate) processes: u64,
}

/// How a run ended, and what it printed.
pub(crate) struct Ended {
    pub(crate) status: WaitStatus,
    pub(crate) output: String,
}

impl Jail {
    pub(crate) fn new(spec: &SandboxSpec) -> Result<Self, SandboxError> {
        Self::of_worker(spec, 7)
    }

    pub(crate) fn of_worker(spec: &SandboxSpec, worker: u32) -> Result<Self, SandboxError> {
        let mut spec = spec.clone();
        spec.read_only.push(std::env::current_exe().expect("an executable has a path"));
        let pool = Pool::create(&spec, worker)?;
        pool.enter_pid_namespace()?;
        Ok(Self { pool, limits: Limits::default(), processes: 64 })
    }

    /// Executes a command and waits for it.
    pub(crate) fn execute(&self, command: &[&str]) -> Ended {
        let (process, reader) = self.start(command, None);
        wait_for(process, reader)
    }

    /// Executes one of the attacks.
    pub(crate) fn attack(&self, name: &str, arguments: &[&str]) -> Ended {
        let own = std::env::current_exe().expect("an executable has a path");
        let own = own.to_str().expect("a build directory is UTF-8").to_owned();
        self.execute(&[&[own.as_str(), MARK, name], arguments].concat())
    }

    /// Starts one of the attacks.
    pub(crate) fn start_attack(&self, name: &str, arguments: &[&str]) -> (Pid, OwnedFd) {
        let own = std::env::current_exe().expect("an executable has a path");
        let own = own.to_str().expect("a build directory is UTF-8").to_owned();
        self.start(&[&[own.as_str(), MARK, name], arguments].concat(), None)
    }

    pub(crate) fn start(&self, command: &[&str], directory: Option<&Path>) -> (Pid, OwnedFd) {
        let (reader, writer) = pipe().expect("a pipe can be made");
        // SAFETY: this process has one thread.
        match unsafe { fork() }.expect("a process can be forked") {
            ForkResult::Parent { child } => (child, reader),
            ForkResult::Child => {
                let error = self.become_program(command, directory, &writer);
                // SAFETY: plain writes and the end.
                unsafe {
                    libc::write(1, error.as_ptr().cast(), error.len());
                    libc::_exit(125)
                }
            }
        }
    }

    fn become_program(&self, command: &[&str], directory: Option<&Path>, writer: &OwnedFd) -> String {
        for fd in [1, 2] {
            // SAFETY: both are descriptors of this process.
            unsafe { libc::dup2(writer.as_raw_fd(), fd) };
        }
        let null = File::open("/dev/null").expect("the null device is there");
        // SAFETY: both are descriptors of this process.
        unsafe { libc::dup2(null.as_raw_fd(), 0) };
        let view = ChildView { limits: &self.limits, working_directory: directory };
        if let Err(error) = self.pool.prepare_child(&view) {
            return error.to_string();
        }
        setrlimit(Resource::RLIMIT_NPROC, self.processes, self.processes).expect("a limit can be lowered");
        setrlimit(Resource::RLIMIT_NOFILE, 1000, 1000).expect("a limit can be lowered");
        setrlimit(Resource::RLIMIT_CORE, 0, 0).expect("a limit can be lowered");
        if let Err(error) = self.pool.seal_child() {
            return error.to_string();
        }
        let words: Vec<_> =
            command.iter().map(|word| CString::new(*word).expect("no NUL in a test")).collect();
        let environment =
            [c"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", c"HOME=/box", c"LANG=C.UTF-8"];
        let Err(error) = nix::unistd::execvpe(&words[0], &words, &environment);
        format!("exec: {error}")
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        let own = File::open("/proc/self/ns/pid").expect("own namespaces can be opened");
        // Fails in a user namespace only, where the process ends anyway.
        let _ = nix::sched::setns(own.as_fd(), nix::sched::CloneFlags::CLONE_NEWPID);
    }
}

/// Reads to the end and waits; kills what takes too long.
pub(crate) fn wait_for(process: Pid, reader: OwnedFd) -> Ended {
    let end = Instant::now() + DEADLINE;
    let mut reader = File::from(reader);
    let mut output = Vec::new();
    let mut block = vec![0; 1 << 16];
    while Instant::now() < end {
        let mut watched = [PollFd::new(reader.as_fd(), PollFlags::POLLIN)];
        if poll(&mut watched, PollTimeout::from(100_u8)).unwrap_or(0) == 0 {
            if let Some(status) = try_wait(process) {
                return Ended { status, output: text(&output) };
            }
            continue;
        }
        match reader.read(&mut block) {
            Ok(0) | Err(_) => break,
            Ok(length) => output.extend_from_slice(&block[..length]),
        }
    }
    while Instant::now() < end {
        if let Some(status) = try_wait(process) {
            return Ended { status, output: text(&output) };
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = kill(process, Signal::SIGKILL);
    let status = waitpid(process, None).expect("a child can be waited for");
    Ended { status, output: format!("{}\nkilled by the test after {DEADLINE:?}", text(&output)) }
}

fn try_wait(process: Pid) -> Option<WaitStatus> {
    match waitpid(process, Some(WaitPidFlag::WNOHANG)) {
        Ok(WaitStatus::StillAlive) => None,
        Ok(status) => Some(status),
        Err(error) => panic!("cannot wait for {process}: {error}"),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Ended {
    /// The attack found no way out.
    #[track_caller]
    pub(crate) fn must_be_contained(&self) {
        let ended = matches!(self.status, WaitStatus::Exited(_, 0));
        assert!(ended && !self.output.contains("ESCAPED"), "{:?}\n{}", self.status, self.output);
    }

    /// The program said this and ended well.
    #[track_caller]
    pub(crate) fn must_say(&self, wanted: &str) {
        let ended = matches!(self.status, WaitStatus::Exited(_, 0));
        assert!(ended && self.output.contains(wanted), "{:?}\n{}", self.status, self.output);
    }
}
