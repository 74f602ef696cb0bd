//! Control groups of a trial: one for the service and its client, one for the jobs.
//!
//! They are made only where the policy sets a weight or `cpu.idle`: in groups of their own, service and jobs
//! would share the CPU as groups do, and nice values would count within each group only.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::Pid;
use serde_json::json;

use crate::LoadError;
use crate::trial::applied::Settings;
use crate::trial::plan::{Plan, Side};

const PREFIX: &str = "steelyard-trial-";

/// The groups of one trial; removed when this is dropped.
#[derive(Debug)]
pub(super) struct Groups {
    service: PathBuf,
    best_effort: PathBuf,
}

/// `cpu.shares` (version 1) of a weight (version 2): the kernel itself counts a weight of 100 as 1024 shares
/// (`cgroup.h`, `sched_weight_from_cgroup`); fewer than 2 shares do not exist.
pub(super) fn shares_of(weight: u32) -> u32 {
    ((weight * 1024 + 50) / 100).max(2)
}

/// When a process was started [clock ticks after the boot]: with its number it names one process for ever.
fn start_time(process: Pid) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program stands in brackets and may contain anything.
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Removes groups of trials whose conductor is gone. What still has processes stays for the next trial.
pub(super) fn remove_leftovers(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let is_left = |name: &str| {
        let mut words = name.strip_prefix(PREFIX)?.split('-');
        let process = Pid::from_raw(words.next()?.parse().ok()?);
        let started: u64 = words.next()?.parse().ok()?;
        Some(start_time(process) != Some(started))
    };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().and_then(is_left) == Some(true))
        .filter(|entry| fs::remove_dir(entry.path()).is_ok())
        .count()
}

impl Groups {
    /// Makes the groups a policy needs and sets them; `None` where it needs none or the host refuses.
    pub(super) fn create(plan: &Plan, settings: &mut Settings) -> Option<Self> {
        let policy = &plan.policy;
        if !policy.service.is_grouped() && !policy.best_effort.is_grouped() {
            return None;
        }
        let made = match &plan.groups {
            None => Err(io::Error::other("`groups` is null: the plan names no folder for control groups")),
            Some(folder) => Self::make(folder, plan.groups_version),
        };
        let groups = match made {
            Ok(groups) => groups,
            Err(error) => {
                for (part, side) in [("service", &policy.service), ("best_effort", &policy.best_effort)] {
                    miss_all(part, side, &error.to_string(), settings);
                }
                return None;
            }
        };
        for (part, side, folder) in [
            ("service", &policy.service, &groups.service),
            ("best_effort", &policy.best_effort, &groups.best_effort),
        ] {
            set(part, side, folder, plan.groups_version, settings);
        }
        Some(groups)
    }

    fn make(folder: &Path, version: u32) -> io::Result<Self> {
        let fail =
            |path: &Path, error: &io::Error| io::Error::other(format!("`{}`: {error}", path.display()));
        if version == 2 {
            let path = folder.join("cgroup.subtree_control");
            fs::write(&path, "+cpu").map_err(|error| fail(&path, &error))?;
        }
        let me = nix::unistd::getpid();
        let name = format!("{PREFIX}{me}-{}", start_time(me).unwrap_or(0));
        let groups = Self {
            service: folder.join(format!("{name}-service")),
            best_effort: folder.join(format!("{name}-jobs")),
        };
        for path in [&groups.service, &groups.best_effort] {
            fs::create_dir(path).map_err(|error| fail(path, &error))?;
        }
        Ok(groups)
    }

    /// Moves a process into the group of the service or of the jobs.
    pub(super) fn add(&self, part: &str, process: Pid, is_best_effort: bool, settings: &mut Settings) {
        let folder = if is_best_effort { &self.best_effort } else { &self.service };
        let path = folder.join("cgroup.procs");
        let found = fs::write(&path, process.to_string()).and_then(|()| fs::read_to_string(&path));
        let found = found.map(|text| {
            let is_in = text.lines().any(|line| line == process.to_string());
            json!(if is_in { process.as_raw() } else { 0 })
        });
        settings.keep(&format!("{part}_group"), &json!(process.as_raw()), &path.to_string_lossy(), found);
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for path in [&self.service, &self.best_effort] {
            // What cannot be removed, the next trial removes.
            let _ = fs::remove_dir(path);
        }
    }
}

fn miss_all(part: &str, side: &Side, reason: &str, settings: &mut Settings) {
    if let Some(weight) = side.weight {
        settings.miss(&format!("{part}_weight"), &json!(weight), reason);
    }
    if let Some(is_idle) = side.cpu_idle {
        settings.miss(&format!("{part}_cpu_idle"), &json!(is_idle), reason);
    }
}

fn set(part: &str, side: &Side, folder: &Path, version: u32, settings: &mut Settings) {
    // The weight first: a group with `cpu.idle` takes none.
    if let Some(weight) = side.weight {
        let (file, number) =
            if version == 2 { ("cpu.weight", weight) } else { ("cpu.shares", shares_of(weight)) };
        let path = folder.join(file);
        let known = settings.applied.len();
        settings.keep(
            &format!("{part}_weight"),
            &json!(number),
            &path.to_string_lossy(),
            write_number(&path, number),
        );
        // In version 1 what is written is another number than what was asked for.
        if let Some(entry) = settings.applied.get_mut(known) {
            entry["weight"] = json!(weight);
        }
    }
    if let Some(is_idle) = side.cpu_idle {
        let path = folder.join("cpu.idle");
        let number = u32::from(is_idle);
        settings.keep(
            &format!("{part}_cpu_idle"),
            &json!(number),
            &path.to_string_lossy(),
            write_number(&path, number),
        );
    }
}

/// Writes a number and reads it back.
fn write_number(path: &Path, number: u32) -> io::Result<serde_json::Value> {
    fs::write(path, number.to_string())?;
    let text = fs::read_to_string(path)?;
    text.trim().parse::<u32>().map(|found| json!(found)).map_err(io::Error::other)
}

/// Refuses real-time trials on a host that does not keep time for the others.
pub(super) fn check_throttling(root: &Path) -> Result<(), LoadError> {
    let read = |path: &Path| fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<i64>().ok());
    let sysctl = root.join("proc/sys/kernel/sched_rt_runtime_us");
    // KERNEL: since 6.12 a deadline server per CPU keeps the time (`Documentation/scheduler/sched-deadline`).
    let servers = fs::read_dir(root.join("sys/kernel/debug/sched/fair_server")).into_iter().flatten();
    let is_served = |entry: fs::DirEntry| read(&entry.path().join("runtime")) != Some(0);
    if read(&sysctl) != Some(-1) && servers.flatten().all(is_served) {
        return Ok(());
    }
    Err(LoadError::capability(
        "this host does not throttle real-time tasks: a service of the class `fifo` could stop it",
        "write 950000 to /proc/sys/kernel/sched_rt_runtime_us, or give `--allow-unthrottled`",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_kernels_own_scale() {
        assert_eq!([1, 100, 10_000].map(shares_of), [10, 1024, 102_400]);
    }

    #[test]
    fn only_groups_of_dead_conductors_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let me = nix::unistd::getpid();
        let started = start_time(me).unwrap();
        let mine = format!("{PREFIX}{me}-{started}-jobs");
        let other = format!("{PREFIX}{me}-{}-jobs", started + 1);
        let gone = format!("{PREFIX}{}-7-service", i32::MAX);
        for name in [mine.as_str(), &other, &gone, "steelyard-trial-x-1", "unrelated"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        assert_eq!(remove_leftovers(folder.path()), 2);
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [mine.as_str(), "steelyard-trial-x-1", "unrelated"]);
    }

    #[test]
    fn a_host_without_throttling_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let sysctl = root.path().join("proc/sys/kernel");
        fs::create_dir_all(&sysctl).unwrap();
        let write = |text: &str| fs::write(sysctl.join("sched_rt_runtime_us"), text).unwrap();
        write("950000\n");
        check_throttling(root.path()).unwrap();
        let server = root.path().join("sys/kernel/debug/sched/fair_server/cpu0");
        fs::create_dir_all(&server).unwrap();
        fs::write(server.join("runtime"), "50000000\n").unwrap();
        check_throttling(root.path()).unwrap();
        fs::write(server.join("runtime"), "0\n").unwrap();
        assert_eq!(check_throttling(root.path()).unwrap_err().exit_code(), 3);
        fs::write(server.join("runtime"), "50000000\n").unwrap();
        write("-1\n");
        assert_eq!(check_throttling(root.path()).unwrap_err().exit_code(), 3);
    }
}
