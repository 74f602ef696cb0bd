//! What a thread reads and writes of one kind of groups, with the files open.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::file::{KeptFile, read_text};

/// What one kind of groups does of it. Opened once, and used by run after run.
#[derive(Debug, Default)]
pub(super) struct Hold {
    pub(super) usage: Option<Usage>,
    pub(super) oom_control: Option<KeptFile>,
    pub(super) memory: Option<KeptFile>,
    pub(super) kernel_memory: Option<KernelMemory>,
    /// `cgroup.kill`, which ends a group with what is forked meanwhile.
    pub(super) kill: Option<File>,
    /// `pids.max`: at 0 nothing is forked any more.
    pub(super) process_limits: Vec<File>,
    /// What stops a group meanwhile, with the words for stopping it and letting it go, where nothing else
    /// keeps it from forking.
    pub(super) freezer: Option<(File, &'static str, &'static str)>,
    /// The group whose processes are the run's, but for these residents.
    pub(super) members: Option<(PathBuf, Vec<u32>)>,
    /// What a group gets of the CPU, and the most of it; last the real-time runtime of version 1, without
    /// which none of its processes may have a priority of real time.
    pub(super) shares: Vec<(File, String)>,
    /// Whether what is there was ended once.
    pub(super) is_ended: AtomicBool,
}

/// A file that says the CPU time used so far.
#[derive(Debug)]
pub(super) enum Usage {
    /// Nanoseconds.
    Number(KeptFile),
    /// Microseconds, in the line of this name.
    Keyed(KeptFile, &'static str),
}

/// A file that says how much memory the kernel needs for a group [bytes].
#[derive(Debug)]
pub(super) enum KernelMemory {
    Number(KeptFile),
    Keyed(KeptFile, &'static str),
}

impl Hold {
    pub(super) fn usage_ns(&self) -> Option<u64> {
        match self.usage.as_ref()? {
            Usage::Number(file) => file.number(),
            Usage::Keyed(file, key) => file.keyed(key)?.checked_mul(1000),
        }
    }

    pub(super) fn kernel_memory_bytes(&self) -> Option<u64> {
        match self.kernel_memory.as_ref()? {
            KernelMemory::Number(file) => file.number(),
            KernelMemory::Keyed(file, key) => file.keyed(key),
        }
    }

    pub(super) fn take_shares(&self) {
        for (share, most) in &self.shares {
            put(share, most);
        }
    }

    /// Ends what is there. Answers whether there was anything.
    pub(super) fn end(&self) -> bool {
        // ORDERING: read when the run was handed over.
        self.is_ended.store(true, Ordering::Relaxed);
        for limit in &self.process_limits {
            put(limit, "0");
        }
        if let Some(file) = &self.kill {
            put(file, "1");
        }
        let Some((group, spare)) = &self.members else { return false };
        let freezer = self.freezer.as_ref().filter(|_| self.process_limits.is_empty() && self.kill.is_none());
        if let Some((state, stopped, _)) = freezer {
            put(state, stopped);
        }
        let mut any = false;
        for pid in processes_of(group).filter(|pid| !spare.contains(pid)) {
            any = true;
            if self.kill.is_none() {
                let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
            }
        }
        if let Some((state, _, going)) = freezer {
            put(state, going);
        }
        any
    }
}

/// Living processes of a group. 0 is one outside of this pid namespace, which `kill` would read as "my own group".
fn processes_of(group: &Path) -> impl Iterator<Item = u32> {
    let text = read_text(&group.join("cgroup.procs")).unwrap_or_default();
    let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    pids.into_iter().filter(|pid| *pid != 0)
}

/// A refusal has nobody to be told to: the next round tries again.
fn put(mut file: &File, value: &str) {
    let _ = file.write_all(value.as_bytes());
}

/// Opens a file of a group for writing; `None` where there is none.
pub(super) fn open_to_write(path: &Path) -> Option<File> {
    OpenOptions::new().write(true).open(path).ok()
}
