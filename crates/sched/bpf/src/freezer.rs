//! The long park: control groups whose best-effort tasks starve for long are frozen, and thawed on capacity.
//!
//! A frozen task is not runnable: it costs no moments, no queue and no watchdog. Only groups of nothing but
//! best-effort tasks are frozen.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::counters::write_json;
use crate::groups::{below, cgroup2_mount, subgroups};

/// `SCHED_IDLE`, user interface of the kernel.
const POLICY_IDLE: &str = "5";
/// Position of the policy in `/proc/PID/stat` after the name's closing bracket: field 41 of proc(5).
const POLICY_FIELD: usize = 41 - 3;

/// The groups that were frozen here.
#[derive(Debug)]
pub(crate) struct Freezer {
    root: PathBuf,
    mount: Option<PathBuf>,
    state: PathBuf,
    frozen: BTreeSet<PathBuf>,
    guard: Option<Child>,
}

impl Freezer {
    /// `root` is the root of `/proc`; `state` is the folder that names the frozen groups to whoever thaws them
    /// when this process is killed.
    pub(crate) fn new(root: &Path, state: &Path) -> Self {
        let mounts = fs::read_to_string(root.join("proc/mounts")).unwrap_or_default();
        let mount = cgroup2_mount(&mounts).map(|mount| below(root, mount));
        let (root, state) = (root.to_owned(), state.to_owned());
        Self { root, mount, state, frozen: BTreeSet::new(), guard: None }
    }

    pub(crate) fn has_frozen(&self) -> bool {
        !self.frozen.is_empty()
    }

    /// Freeze the group of a process if all its tasks are best-effort; gives the group if it is newly frozen.
    pub(crate) fn freeze_group_of(&mut self, tgid: i32) -> Option<PathBuf> {
        let text = fs::read_to_string(self.root.join(format!("proc/{tgid}/cgroup"))).ok()?;
        let name = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let group = self.mount.as_ref()?.join(name);
        (!name.is_empty() && self.freeze(&group)).then_some(group)
    }

    /// Freeze all groups of nothing but best-effort tasks: what there is to do while the class is out.
    pub(crate) fn freeze_all(&mut self) -> usize {
        let Some(mount) = self.mount.clone() else { return 0 };
        let mut waiting = subgroups(&mount);
        let mut count = 0;
        while let Some(group) = waiting.pop() {
            if self.freeze(&group) {
                count += 1;
            } else {
                waiting.extend(subgroups(&group));
            }
        }
        count
    }

    /// Thaw what was frozen here.
    pub(crate) fn thaw_all(&mut self) {
        for group in std::mem::take(&mut self.frozen) {
            // A group that was removed meanwhile needs nothing.
            let _ = fs::write(group.join("cgroup.freeze"), "0");
        }
        let _ = fs::remove_file(list_path(&self.state));
    }

    fn freeze(&mut self, group: &Path) -> bool {
        let is_free = fs::read_to_string(group.join("cgroup.freeze")).is_ok_and(|text| text.trim() == "0");
        if !is_free || !self.is_best_effort(group) {
            return false;
        }
        self.frozen.insert(group.to_owned());
        let names: Vec<String> = self.frozen.iter().map(|group| group.display().to_string()).collect();
        // Without the list nobody could thaw them after this process was killed: then they are not frozen.
        let is_listed = fs::create_dir_all(&self.state).is_ok()
            && write_json(&list_path(&self.state), &json!(names)).is_ok()
            && self.is_guarded();
        if is_listed && fs::write(group.join("cgroup.freeze"), "1").is_ok() {
            return true;
        }
        self.frozen.remove(group);
        false
    }

    /// A process that thaws the groups when this one ends, however it ends.
    fn is_guarded(&mut self) -> bool {
        if self.guard.is_none() {
            let Ok(program) = std::env::current_exe() else { return false };
            let mut command = Command::new(program);
            command.arg("thaw").arg("--when-closed").arg("--state").arg(&self.state);
            command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
            self.guard = command.spawn().ok();
        }
        self.guard.is_some()
    }

    fn is_best_effort(&self, group: &Path) -> bool {
        let Some(mount) = &self.mount else { return false };
        let is_idle =
            |folder: &&Path| fs::read_to_string(folder.join("cpu.idle")).is_ok_and(|text| text.trim() == "1");
        if group.ancestors().take_while(|folder| *folder != mount).any(|folder| is_idle(&folder)) {
            return true;
        }
        let (mut waiting, mut count) = (vec![group.to_owned()], 0);
        while let Some(folder) = waiting.pop() {
            for tid in fs::read_to_string(folder.join("cgroup.threads")).unwrap_or_default().lines() {
                count += 1;
                let stat = fs::read_to_string(self.root.join(format!("proc/{tid}/stat")));
                if stat.ok().as_deref().and_then(policy_of) != Some(POLICY_IDLE) {
                    return false;
                }
            }
            waiting.extend(subgroups(&folder));
        }
        count > 0
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        self.thaw_all();
        if let Some(mut guard) = self.guard.take() {
            drop(guard.stdin.take());
            let _ = guard.wait();
        }
    }
}

/// Thaw the groups that a scheduler left frozen; gives how many. With `when_closed`: after standard input ends.
pub(crate) fn thaw_left(state: &Path, when_closed: bool) -> usize {
    if when_closed {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
    }
    let text = fs::read_to_string(list_path(state)).unwrap_or_default();
    let names: Vec<String> = serde_json::from_str(&text).unwrap_or_default();
    let _ = fs::remove_file(list_path(state));
    names.iter().filter(|name| fs::write(Path::new(name).join("cgroup.freeze"), "0").is_ok()).count()
}

fn list_path(state: &Path) -> PathBuf {
    state.join("frozen.json")
}

fn policy_of(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(POLICY_FIELD)
}

#[cfg(test)]
mod tests;
