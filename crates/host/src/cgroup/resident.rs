use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

use nix::sys::eventfd::{EfdFlags, EventFd};
use steelyard_model::Source;

use super::claim::Claim;
use super::file::{KeptFile, blkio_bytes, keyed, number, read_text, write_text};
use super::hold::{Hold, KernelMemory, Usage, open_to_write};
use super::kill::{kill_legacy, processes};
use super::readings::{MEMORY_STEP_BYTES, Sample};
use super::removal::remove_tree;
use super::{CgroupError, Controller, GroupLimits, Hierarchy, Layout};

/// `cpu.shares` at its largest and as the kernel sets it.
/// SOURCE: `MAX_SHARES` and `NICE_0_LOAD` in the kernel's `sched.h`.
const SHARES: (&str, &str) = ("262144", "1024");
/// Real-time time per second of a group in a kernel that gives it to groups.
const REAL_TIME: &str = "cpu.rt_runtime_us";
/// What a run that is being ended gets of it [us].
const LAST_REAL_TIME_US: u32 = 100_000;
const UNLIMITED_BYTES: &str = "-1";
const UNLIMITED_TASKS: &str = "max";

/// The version 1 groups of a launcher. Its zygote lives in them; every run is cloned from it and so
/// begins in them. They are the same for all runs: values are reset or subtracted between runs.
#[derive(Debug)]
pub struct ResidentGroups {
    groups: Vec<(Claim, BTreeSet<Controller>)>,
    files: Files,
    /// What `pids.max` and `cpu.rt_runtime_us` are between two runs.
    process_limit: String,
    real_time_us: u32,
    /// What `memory.limit_in_bytes` is, with what the group holds without a run.
    memory_limit: Option<u64>,
    /// Pages of files that were in memory before the run.
    cached_bytes: u64,
}

/// Memory that files take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// What goes as soon as somebody needs its room [bytes].
    pub read_bytes: u64,
    /// What has to be stored before, or is nowhere else [bytes].
    pub written_bytes: u64,
}

/// Files touched for every run.
#[derive(Debug, Default)]
struct Files {
    usage: Option<KeptFile>,
    usage_user: Option<KeptFile>,
    usage_system: Option<KeptFile>,
    memory: Option<KeptFile>,
    kernel_memory: Option<KeptFile>,
    memory_peak: Option<KeptFile>,
    oom_control: Option<KeptFile>,
    task_events: Option<KeptFile>,
    storage: Option<KeptFile>,
}

impl ResidentGroups {
    /// Creates a group in each version 1 hierarchy, below the launcher's own group or, where that
    /// cannot be, below the root. What cannot be had is told in the second value.
    pub(super) fn claim(layout: &Layout, owner: u32) -> (Self, Vec<String>) {
        let mut groups = Vec::new();
        let mut degraded = Vec::new();
        for hierarchy in &layout.v1 {
            match claim_one(hierarchy, owner) {
                Ok(claim) => groups.push((claim, hierarchy.controllers.clone())),
                Err(error) => degraded.push(error.to_string()),
            }
        }
        let process_limit = UNLIMITED_TASKS.to_owned();
        let mut this = Self {
            groups,
            files: Files::default(),
            process_limit,
            real_time_us: 0,
            memory_limit: None,
            cached_bytes: 0,
        };
        this.files = this.open_files();
        (this, degraded)
    }

    fn open_files(&self) -> Files {
        let open = |controller, name: &str| KeptFile::open(self.group(controller)?.join(name));
        Files {
            usage: open(Controller::Cpuacct, "cpuacct.usage"),
            usage_user: open(Controller::Cpuacct, "cpuacct.usage_user"),
            usage_system: open(Controller::Cpuacct, "cpuacct.usage_sys"),
            memory: open(Controller::Memory, "memory.usage_in_bytes"),
            kernel_memory: open(Controller::Memory, "memory.kmem.usage_in_bytes"),
            memory_peak: open(Controller::Memory, "memory.max_usage_in_bytes"),
            oom_control: open(Controller::Memory, "memory.oom_control"),
            task_events: open(Controller::Pids, "pids.events"),
            storage: open(Controller::Blkio, "blkio.throttle.io_service_bytes"),
        }
    }

    /// Number of groups.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Controllers these groups have.
    #[must_use]
    pub fn controllers(&self) -> BTreeSet<Controller> {
        self.groups.iter().flat_map(|(_, controllers)| controllers.iter().copied()).collect()
    }

    fn group(&self, controller: Controller) -> Option<PathBuf> {
        let found = self.groups.iter().find(|(_, controllers)| controllers.contains(&controller));
        found.map(|(claim, _)| claim.path.clone())
    }

    /// Moves the calling process into every group. Costs a grace period each, so once.
    ///
    /// # Errors
    ///
    /// [`CgroupError::Write`] for the first group that does not take it.
    pub fn enter(&self) -> Result<(), CgroupError> {
        self.groups.iter().try_for_each(|(claim, _)| write_text(&claim.path.join("cgroup.procs"), "0"))
    }

    /// Sets limits for the runs to come, on top of what the residents themselves are; that of memory comes
    /// before each run.
    pub(super) fn apply(&mut self, limits: &GroupLimits) -> Result<(), CgroupError> {
        if let Some(group) = self.group(Controller::Pids) {
            let residents = read_text(&group.join("pids.current")).ok().as_deref().and_then(number);
            let value = limits.process_count.map(|count| (count + residents.unwrap_or(1)).to_string());
            self.process_limit = value.unwrap_or_else(|| UNLIMITED_TASKS.to_owned());
        }
        self.relax(limits.is_maximal_weight)?;
        if let Some(group) = self.group(Controller::Cpuset) {
            set_or_inherit(&group, "cpuset.cpus", limits.cpus.as_deref())?;
            set_or_inherit(&group, "cpuset.mems", limits.memory_nodes.as_deref())?;
        }
        Ok(())
    }

    /// Sets what [`Grip::end`](super::Grip::end) changes to what it is between two runs.
    pub(super) fn relax(&self, is_maximal_weight: bool) -> Result<(), CgroupError> {
        if let Some(group) = self.group(Controller::Pids) {
            write_text(&group.join("pids.max"), &self.process_limit)?;
        }
        if let Some(group) = self.group(Controller::Cpu) {
            write_text(&group.join("cpu.shares"), if is_maximal_weight { SHARES.0 } else { SHARES.1 })?;
            // Refused where the groups above have none to give: then there is nothing to undo.
            let _ = write_text(&group.join(REAL_TIME), &self.real_time_us.to_string());
        }
        Ok(())
    }

    pub(super) fn add_to(&self, hold: &mut Hold, residents: &[u32]) {
        let open = |controller, name: &str| open_to_write(&self.group(controller)?.join(name));
        let read = |controller, name: &str| KeptFile::open_to_read(self.group(controller)?.join(name));
        hold.usage = read(Controller::Cpuacct, "cpuacct.usage").map(Usage::Number);
        hold.oom_control = read(Controller::Memory, "memory.oom_control");
        hold.memory = read(Controller::Memory, "memory.usage_in_bytes");
        hold.kernel_memory = read(Controller::Memory, "memory.kmem.usage_in_bytes").map(KernelMemory::Number);
        hold.process_limits.extend(open(Controller::Pids, "pids.max"));
        hold.freezer = open(Controller::Freezer, "freezer.state").map(|file| (file, "FROZEN", "THAWED"));
        hold.members = self.tree_group().map(|group| (group, residents.to_vec()));
        hold.shares.extend(open(Controller::Cpu, "cpu.shares").map(|file| (file, SHARES.0.to_owned())));
        let runtime_us = self.real_time_us.max(LAST_REAL_TIME_US).to_string();
        hold.shares.extend(open(Controller::Cpu, REAL_TIME).map(|file| (file, runtime_us)));
    }

    /// Limits the memory of the run to come, on top of the `held_bytes` that are there without it.
    ///
    /// # Errors
    ///
    /// [`CgroupError::Write`] with the value that was refused: more is in use and does not go.
    pub fn limit_memory(&mut self, memory_bytes: Option<u64>, held_bytes: u64) -> Result<(), CgroupError> {
        let limit = memory_bytes.map(|bytes| bytes.saturating_add(held_bytes));
        let Some(group) = self.group(Controller::Memory).filter(|_| limit != self.memory_limit) else {
            return Ok(());
        };
        let (plain, with_swap) =
            (group.join("memory.limit_in_bytes"), group.join("memory.memsw.limit_in_bytes"));
        let value = limit.map_or_else(|| UNLIMITED_BYTES.to_owned(), |bytes| bytes.to_string());
        // Memory alone may never exceed memory with swap, so the order depends on the direction.
        let _ = write_text(&with_swap, UNLIMITED_BYTES);
        write_text(&plain, &value)?;
        if write_text(&with_swap, &value).is_err() {
            // Without swap accounting, keep the group's pages in memory instead.
            let _ = write_text(&group.join("memory.swappiness"), "0");
        }
        self.memory_limit = limit;
        Ok(())
    }

    /// Lets real-time tasks into the cpu group, where the kernel gives them time per group.
    ///
    /// # Errors
    ///
    /// [`CgroupError::Write`] when the groups above have none to give.
    pub fn allow_real_time(&mut self, runtime_us: u32) -> Result<(), CgroupError> {
        self.real_time_us = runtime_us;
        match self.group(Controller::Cpu).map(|group| group.join(REAL_TIME)) {
            Some(file) if file.exists() => write_text(&file, &runtime_us.to_string()),
            _ => Ok(()),
        }
    }

    /// Memory in use [bytes].
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        self.files.memory.as_ref().and_then(KeptFile::number)
    }

    /// Forces page cache out.
    pub fn empty_cache(&self) {
        if let Some(group) = self.group(Controller::Memory) {
            let _ = write_text(&group.join("memory.force_empty"), "0");
        }
    }

    /// Pages of files.
    #[must_use]
    pub fn cache(&self) -> Option<Cache> {
        let text = read_text(&self.group(Controller::Memory)?.join("memory.stat")).ok()?;
        let of = |key| keyed(&text, key).unwrap_or(0);
        let written_bytes = of("shmem") + of("dirty") + of("writeback");
        Some(Cache { read_bytes: keyed(&text, "cache")?.saturating_sub(written_bytes), written_bytes })
    }

    /// Lets the peak begin anew, of a run before which `cached_bytes` of files were in memory.
    pub fn reset_peak(&mut self, cached_bytes: u64) {
        self.cached_bytes = cached_bytes;
        if let Some(peak) = &self.files.memory_peak {
            let _ = peak.write("0");
        }
    }

    /// Memory in use without the kernel's own, which goes by itself a grace period after its run and
    /// which nothing can force out [bytes].
    #[must_use]
    pub fn pageable_bytes(&self) -> Option<u64> {
        let kernel_bytes = self.files.kernel_memory.as_ref().and_then(KeptFile::number).unwrap_or(0);
        self.memory_bytes().map(|bytes| bytes.saturating_sub(kernel_bytes))
    }

    pub(super) fn sample(&self) -> Sample {
        let v1 = |file: &Option<KeptFile>| {
            file.as_ref().and_then(KeptFile::number).map(|value| (value, Source::Cgroup1))
        };
        let storage = self.files.storage.as_ref().and_then(|file| file.read().ok());
        Sample {
            usage_ns: v1(&self.files.usage),
            user_ns: v1(&self.files.usage_user),
            system_ns: v1(&self.files.usage_system),
            // Buffered writes are charged to the root group in version 1: only reads are told.
            read_bytes: storage.map(|text| (blkio_bytes(&text).0, Source::Cgroup1)),
            oom_kills: self.oom_kills(),
            refused_processes: self.files.task_events.as_ref().and_then(|file| file.keyed("max")),
            ..Sample::default()
        }
    }

    fn peak_of_group_bytes(&self) -> Option<u64> {
        self.files.memory_peak.as_ref().and_then(KeptFile::number)
    }

    /// Whether the last run came so near to its limit that files had to make room.
    #[must_use]
    pub fn is_at_limit(&self) -> bool {
        let peak_bytes = self.peak_of_group_bytes().unwrap_or(0);
        self.memory_limit.is_some_and(|limit| peak_bytes + MEMORY_STEP_BYTES >= limit)
    }

    /// The peak; with what files held before, if they had to make room.
    pub(super) fn peak_bytes(&self) -> Option<(u64, Source)> {
        let cached_bytes = if self.is_at_limit() { self.cached_bytes } else { 0 };
        Some((self.peak_of_group_bytes()? + cached_bytes, Source::Cgroup1))
    }

    /// CPU time used so far, residents included [ns].
    #[must_use]
    pub fn usage_ns(&self) -> Option<u64> {
        self.files.usage.as_ref().and_then(KeptFile::number)
    }

    /// Kills for want of memory so far.
    #[must_use]
    pub fn oom_kills(&self) -> Option<u64> {
        self.files.oom_control.as_ref().and_then(|file| file.keyed("oom_kill"))
    }

    /// A descriptor that becomes readable when the memory limit is hit.
    ///
    /// # Errors
    ///
    /// [`CgroupError`] when there is no memory group or it refuses.
    pub fn watch_memory(&self) -> Result<OwnedFd, CgroupError> {
        let absent = || CgroupError::Absent { what: "version 1 memory group" };
        let group = self.group(Controller::Memory).ok_or_else(absent)?;
        let control: &File = self.files.oom_control.as_ref().ok_or_else(absent)?.file();
        let path = group.join("cgroup.event_control");
        let event = EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .map_err(|errno| CgroupError::read(&path, errno.into()))?;
        write_text(&path, &format!("{} {}", event.as_fd().as_raw_fd(), control.as_raw_fd()))?;
        Ok(event.into())
    }

    /// Living processes in the groups, residents included. They are in all groups alike, so one
    /// answers for all.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.tree_group().map(|group| processes(&group)).unwrap_or_default()
    }

    /// Ends all processes but the residents.
    ///
    /// # Errors
    ///
    /// [`CgroupError::Populated`] when some outlive SIGKILL.
    pub fn kill(&self, residents: &[u32]) -> Result<(), CgroupError> {
        let Some(group) = self.tree_group() else { return Ok(()) };
        let tasks = self.group(Controller::Pids).map(|group| group.join("pids.max"));
        if let Some(file) = &tasks {
            // What is listed below is then all there is.
            let _ = write_text(file, "0");
        }
        let ended = kill_legacy(&group, residents);
        tasks.map_or(Ok(()), |file| write_text(&file, &self.process_limit)).and(ended)
    }

    fn tree_group(&self) -> Option<PathBuf> {
        self.group(Controller::Freezer).or_else(|| self.groups.first().map(|(claim, _)| claim.path.clone()))
    }
}

impl Drop for ResidentGroups {
    fn drop(&mut self) {
        for (claim, _) in &self.groups {
            let _ = remove_tree(&claim.path);
        }
    }
}

fn claim_one(hierarchy: &Hierarchy, owner: u32) -> Result<Claim, CgroupError> {
    let claim = Claim::new(&hierarchy.group, owner).or_else(|error| {
        if hierarchy.group == hierarchy.mount { Err(error) } else { Claim::new(&hierarchy.mount, owner) }
    })?;
    if hierarchy.controllers.contains(&Controller::Cpuset) {
        // A new version 1 cpuset is empty and takes no process before it is filled.
        set_or_inherit(&claim.path, "cpuset.cpus", None)?;
        set_or_inherit(&claim.path, "cpuset.mems", None)?;
    }
    Ok(claim)
}

fn set_or_inherit(group: &std::path::Path, name: &str, value: Option<&str>) -> Result<(), CgroupError> {
    let file = group.join(name);
    if let Some(value) = value {
        return write_text(&file, value);
    }
    let Some(parent) = group.parent() else { return Ok(()) };
    let inherited = read_text(&parent.join(name))?;
    write_text(&file, inherited.trim())
}

#[cfg(test)]
mod tests;
