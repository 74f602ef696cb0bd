//! Ending every process of a run.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::CgroupError;
use super::file::{keyed, read_text, write_text};

/// How long SIGKILL may take; a process in uninterruptible sleep can outlast it.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_micros(200);

/// Ends all processes of a version 2 group and its descendants, and waits until none is left.
pub(super) fn kill_unified(group: &Path) -> Result<(), CgroupError> {
    let has_kill = write_text(&group.join("cgroup.kill"), "1").is_ok();
    if !has_kill {
        // KERNEL: `cgroup.kill` came with 5.14; a frozen group cannot fork away from the loop.
        let _ = write_text(&group.join("cgroup.freeze"), "1");
    }
    let result = until_empty(group, || {
        if !has_kill {
            for_each_process(group, &[], |pid| {
                let _ = kill(pid, Signal::SIGKILL);
            });
        }
        !is_populated(group)
    });
    if !has_kill {
        let _ = write_text(&group.join("cgroup.freeze"), "0");
    }
    result
}

/// Whether a version 2 group or one below it has a living process.
pub(super) fn is_populated(group: &Path) -> bool {
    read_text(&group.join("cgroup.events")).is_ok_and(|text| keyed(&text, "populated") == Some(1))
}

/// Ends all processes of a version 1 group but `spare`, freezing it meanwhile where it can be.
pub(super) fn kill_legacy(group: &Path, spare: &[u32]) -> Result<(), CgroupError> {
    let state = group.join("freezer.state");
    until_empty(group, || {
        let mut any = false;
        // Signals are sent while nobody can fork, and delivered by the thaw.
        let _ = write_text(&state, "FROZEN");
        for_each_process(group, spare, |pid| {
            any = true;
            let _ = kill(pid, Signal::SIGKILL);
        });
        let _ = write_text(&state, "THAWED");
        !any
    })
}

fn until_empty(group: &Path, mut is_done: impl FnMut() -> bool) -> Result<(), CgroupError> {
    let begin = Instant::now();
    while !is_done() {
        if begin.elapsed() > PATIENCE {
            let waited_ms = u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX);
            return Err(CgroupError::Populated { path: group.to_owned(), waited_ms });
        }
        sleep(PAUSE);
    }
    Ok(())
}

/// Living processes of one group, without its descendants.
pub(super) fn processes(group: &Path) -> Vec<u32> {
    read_text(&group.join("cgroup.procs"))
        .map(|text| text.lines().filter_map(|line| line.parse().ok()).collect())
        .unwrap_or_default()
}

fn for_each_process(group: &Path, spare: &[u32], mut act: impl FnMut(Pid)) {
    for pid in processes(group) {
        // 0 is a process outside of this pid namespace, which `kill` would read as "my own group".
        if pid != 0 && !spare.contains(&pid) {
            act(Pid::from_raw(pid.cast_signed()));
        }
    }
}

/// Every descendant of a process, found in procfs.
#[must_use]
pub fn descendants(ancestor: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (pid, parent) in parents() {
        children.entry(parent).or_default().push(pid);
    }
    let mut found = Vec::new();
    let mut open = vec![ancestor];
    while let Some(pid) = open.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            found.push(child);
            open.push(child);
        }
    }
    found
}

/// Ends every descendant of a process but `spare`, for hosts without control groups.
///
/// `reap` is called with each: a zombie counts as living here until its parent waited for it.
///
/// # Errors
///
/// [`CgroupError::Populated`] when some outlive SIGKILL.
pub fn kill_descendants(ancestor: u32, spare: &[u32], mut reap: impl FnMut(u32)) -> Result<(), CgroupError> {
    until_empty(Path::new("/proc"), || {
        let mut any = false;
        for pid in descendants(ancestor) {
            if !spare.contains(&pid) {
                any |= kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL) != Err(Errno::ESRCH);
                reap(pid);
            }
        }
        !any
    })
}

/// Children of the calling thread, zombies included. Orphans of a run become children of a launcher
/// that is their subreaper.
#[must_use]
pub fn own_children() -> Vec<u32> {
    // KERNEL: the file exists with CONFIG_PROC_CHILDREN; a walk through procfs answers the same.
    if let Ok(text) = fs::read_to_string("/proc/thread-self/children") {
        return text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    }
    let own = std::process::id();
    parents().into_iter().filter(|(_, parent)| *parent == own).map(|(pid, _)| pid).collect()
}

/// Process and parent of every process.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            Some((pid, parent_in(&stat)?))
        })
        .collect()
}

/// The parent in a `stat` line; the command may contain spaces and parentheses.
fn parent_in(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, id};

    #[test]
    fn the_parent_is_found_behind_an_evil_command() {
        assert_eq!(parent_in("12 (a) 1 (b) S 34 12 12 0"), Some(34));
    }

    #[test]
    fn a_grandchild_is_a_descendant_and_dies() {
        let mut shell = Command::new("/bin/sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let begin = Instant::now();
        while descendants(shell.id()).is_empty() && begin.elapsed() < PATIENCE {
            sleep(PAUSE);
        }
        assert!(descendants(id()).contains(&shell.id()));
        let sleeper = descendants(shell.id());
        assert_eq!(sleeper.len(), 1);
        kill_descendants(shell.id(), &[], |_| {}).unwrap();
        assert!(shell.wait().is_ok());
    }

    #[test]
    fn a_fake_group_without_processes_is_empty_at_once() {
        let group = tempfile::tempdir().unwrap();
        fs::write(group.path().join("cgroup.procs"), "").unwrap();
        fs::write(group.path().join("cgroup.events"), "populated 0\nfrozen 0\n").unwrap();
        kill_unified(group.path()).unwrap();
        kill_legacy(group.path(), &[]).unwrap();
        assert!(!is_populated(group.path()));
    }
}
