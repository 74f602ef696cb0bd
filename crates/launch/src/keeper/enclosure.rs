//! Where runs live: the control groups, and the zygotes that clone runs into them.

use std::path::Path;
use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, getppid};
use steelyard_host::cgroup::{
    Controller, Grip, GroupLimits, Groups, IdleMemory, Layout, Leaf, descendants, kill_descendants,
    own_children,
};
use steelyard_model::{Limits, Placement, RunSpec, SchedulingPolicy};

use super::armed::Armed;
use crate::error::{During, LaunchError};
use crate::shared_page::SharedPage;
use crate::zygote::{ChildDescriptors, Zygote};

/// Real-time time that a FIFO run gets out of each period of one second [us].
/// SOURCE: the kernel's default for the root group, `sched_rt_runtime_us`.
const REAL_TIME_RUNTIME_US: u32 = 940_000;
/// So long the memory of a run that is over may take to be freed; what has not become less for a while stays.
const BURIAL_PATIENCE: Duration = Duration::from_secs(2);
const BURIAL_STANDSTILL: Duration = Duration::from_millis(250);
const BURIAL_LOOK: Duration = Duration::from_millis(1);
/// So much of earlier runs may be there when one begins [bytes].
const MOST_LEFT_BYTES: u64 = 512 << 10;
/// So many zygotes may end one after the other while they set up one run.
pub(super) const MOST_ZYGOTES: u32 = 3;

/// The groups of a launcher with their residents, which are no part of a run.
#[derive(Debug)]
pub(super) struct Enclosure {
    // Fields drop in this order: the zygote, then the groups it lives in.
    zygote: Zygote,
    groups: Groups,
    page: Arc<SharedPage>,
    /// Processes in the groups that are not the run's.
    residents: Vec<u32>,
    /// What the runs of this batch are ended by.
    grip: Grip,
    idle: Option<Idle>,
    /// Limit of memory of the last run.
    last_limit_bytes: Option<u64>,
    worker: u32,
}

/// Memory of the version 1 groups without a run.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "names have units")]
struct Idle {
    /// What these residents hold: the least that was seen, because what was left for a while is in every other
    /// reading.
    all_bytes: u64,
    pageable_bytes: u64,
    /// What the runs of this batch left that does not go, as files in memory.
    kept_bytes: u64,
    /// Files that they have read: the next ones find them in memory, as programs mostly do.
    cached_bytes: u64,
}

impl Enclosure {
    /// Claims groups and starts the zygote. The caller must have one thread.
    pub(super) fn start(worker: u32, is_guarded: bool) -> Result<Self, LaunchError> {
        let layout = Layout::discover(Path::new("/")).unwrap_or_default();
        let mut family = vec![process::id()];
        if is_guarded {
            family.push(getppid().as_raw().cast_unsigned());
        }
        let groups = Groups::claim(&layout, process::id(), &family);
        let page = Arc::new(SharedPage::new().during("map shared memory")?);
        let zygote = Zygote::start(&groups, &page)?;
        let residents = zygote.pids().collect();
        Ok(Self {
            zygote,
            groups,
            page,
            residents,
            grip: Grip::default(),
            idle: None,
            last_limit_bytes: None,
            worker,
        })
    }

    pub(super) const fn groups(&self) -> &Groups {
        &self.groups
    }

    pub(super) const fn groups_mut(&mut self) -> &mut Groups {
        &mut self.groups
    }

    pub(super) const fn page(&self) -> &Arc<SharedPage> {
        &self.page
    }

    /// `v2`, `hybrid`, `v1` or `none`: what is really used.
    pub(super) fn cgroup(&self) -> &'static str {
        self.groups.kind().as_str()
    }

    /// What ends the run in a leaf.
    pub(super) fn grip_on(&self, leaf: Option<&Leaf>) -> Grip {
        self.grip.on(leaf)
    }

    /// Whether the zygote that clones the runs of this batch has ended.
    pub(super) fn has_lost_zygote(&self) -> bool {
        self.zygote.has_ended()
    }

    /// Whether the pool of this batch's runs is gone, or about to go.
    pub(super) fn has_lost_pool(&self) -> bool {
        self.zygote.has_lost_pool()
    }

    /// Makes groups and zygote ready for a batch. Answers what this host could not give.
    pub(super) fn prepare(&mut self, spec: &RunSpec) -> Result<Vec<String>, LaunchError> {
        let mut degraded = self.groups.degraded().to_vec();
        self.empty_cache(spec.limits.memory_bytes);
        self.await_burials(MOST_LEFT_BYTES);
        // What runs before this batch left for good is no part of its runs.
        self.idle = self.idle.filter(|idle| idle.kept_bytes == 0);
        degraded.extend(self.zygote.prepare(spec, self.worker)?);
        self.meet_residents();
        if matches!(spec.placement.policy, SchedulingPolicy::Fifo { .. }) {
            self.groups.resident_mut().allow_real_time(REAL_TIME_RUNTIME_US)?;
        }
        self.groups.apply(&group_limits(&spec.limits, &spec.placement))?;
        degraded.extend(self.unenforced(&spec.limits));
        Ok(degraded)
    }

    /// Has another zygote take the place of one that has ended. The runs after it are as those before it.
    pub(super) fn replace_zygote(&mut self, spec: &RunSpec) -> Result<(), LaunchError> {
        let mut outcome = self.try_to_replace_zygote(spec);
        for _ in 1..MOST_ZYGOTES {
            if outcome.is_ok() || !self.zygote.has_ended() {
                break;
            }
            outcome = self.try_to_replace_zygote(spec);
        }
        outcome
    }

    fn try_to_replace_zygote(&mut self, spec: &RunSpec) -> Result<(), LaunchError> {
        self.zygote.replace()?;
        self.zygote.prepare(spec, self.worker)?;
        self.meet_residents();
        Ok(())
    }

    /// Learns who lives in the groups beside the runs. What others held there says nothing of them.
    fn meet_residents(&mut self) {
        let residents = self.find_residents();
        if self.residents != residents {
            self.residents = residents;
            self.idle = None;
        }
        self.grip = self.groups.grip(&self.residents);
    }

    fn find_residents(&self) -> Vec<u32> {
        let mut found: Vec<u32> = self.zygote.pids().collect();
        if self.groups.resident().is_empty() {
            found.extend(self.zygote.pids().flat_map(descendants));
        } else {
            found.extend(self.groups.resident().processes());
        }
        found
    }

    /// Limits that no mechanism of this host enforces, or only in part.
    fn unenforced(&self, limits: &Limits) -> Vec<String> {
        let mut found = Vec::new();
        if limits.memory_bytes.is_some() && !self.groups.has(Controller::Memory) {
            found.push(
                "memory_bytes: no memory controller; each process is bounded by RLIMIT_DATA instead"
                    .to_owned(),
            );
        }
        if limits.process_count.is_some() && !self.groups.has(Controller::Pids) {
            found.push(
                "process_count: no pids controller; only a sandbox enforces it, by RLIMIT_NPROC".to_owned(),
            );
        }
        found
    }

    /// Frees what earlier runs left in the version 1 groups, limits the memory of the next one, and tells what is in
    /// use.
    pub(super) fn make_room(&mut self, limit_bytes: Option<u64>) -> Result<Option<IdleMemory>, LaunchError> {
        self.empty_cache(limit_bytes);
        self.last_limit_bytes = limit_bytes;
        if let Some(limit_bytes) = limit_bytes {
            // What is left of a tree is missing from the room of the next, and its lack would end the zygote.
            self.await_burials(MOST_LEFT_BYTES.min(limit_bytes / 2));
        }
        let Some(&mut Idle { all_bytes, cached_bytes, .. }) = self.see_idle() else { return Ok(None) };
        let resident = self.groups.resident_mut();
        resident.limit_memory(limit_bytes, all_bytes)?;
        resident.reset_peak(cached_bytes);
        let resident_bytes = all_bytes + cached_bytes;
        let left_bytes = resident.memory_bytes().map_or(0, |now| now.saturating_sub(resident_bytes));
        Ok(Some(IdleMemory { resident_bytes, left_bytes }))
    }

    /// What the groups hold without a run, by this look and those before; `None` where no group accounts memory.
    fn see_idle(&mut self) -> Option<&mut Idle> {
        let resident = self.groups.resident();
        let (all_bytes, pageable_bytes) = (resident.memory_bytes()?, resident.pageable_bytes()?);
        let idle =
            self.idle.get_or_insert(Idle { all_bytes, pageable_bytes, kept_bytes: 0, cached_bytes: 0 });
        idle.all_bytes = idle.all_bytes.min(all_bytes);
        idle.pageable_bytes = idle.pageable_bytes.min(pageable_bytes);
        Some(idle)
    }

    /// Looks after the files that earlier runs left in memory. What they have written is forced out: it would hide as
    /// much of the next one's peak. What they have only read stays, unless it may have to make room: then nobody
    /// knows when, and how much of the peak was the run's.
    fn empty_cache(&mut self, limit_bytes: Option<u64>) {
        let resident = self.groups.resident();
        let has_room =
            limit_bytes.is_none() || (limit_bytes == self.last_limit_bytes && !resident.is_at_limit());
        let Some(idle) = &mut self.idle else { return };
        let left_bytes = || resident.pageable_bytes().unwrap_or(0).saturating_sub(idle.pageable_bytes);
        idle.cached_bytes = 0;
        let left_before_bytes = left_bytes();
        if left_before_bytes <= idle.kept_bytes + MOST_LEFT_BYTES {
            return;
        }
        if let Some(cache) = resident.cache()
            && has_room
            && cache.written_bytes <= idle.kept_bytes + MOST_LEFT_BYTES
        {
            idle.cached_bytes = cache.read_bytes.min(left_before_bytes);
            return;
        }
        resident.empty_cache();
        let left_bytes = left_bytes();
        if left_bytes > MOST_LEFT_BYTES {
            idle.kept_bytes = idle.kept_bytes.max(left_bytes);
        }
    }

    /// Waits until the kernel has taken back what belonged to the processes of earlier runs, all but this.
    fn await_burials(&mut self, most_left_bytes: u64) {
        let Some(&mut Idle { all_bytes, kept_bytes, cached_bytes, .. }) = self.see_idle() else { return };
        let begin = Instant::now();
        let (mut least_bytes, mut lessened) = (u64::MAX, begin);
        while let Some(now_bytes) = self.groups.resident().memory_bytes()
            && now_bytes > all_bytes + kept_bytes + cached_bytes + most_left_bytes
        {
            if now_bytes < least_bytes {
                (least_bytes, lessened) = (now_bytes, Instant::now());
            }
            if lessened.elapsed() > BURIAL_STANDSTILL || begin.elapsed() > BURIAL_PATIENCE {
                self.idle =
                    self.idle.map(|idle| Idle { kept_bytes: now_bytes - all_bytes - cached_bytes, ..idle });
                return;
            }
            std::thread::sleep(BURIAL_LOOK);
        }
    }

    /// Has the zygote clone a child, which reports on the page. Whatever the page says of the run before has to
    /// be read by now.
    pub(super) fn clone_child(&self, descriptors: &ChildDescriptors<'_>) -> Result<(), LaunchError> {
        self.page.clear();
        match self.zygote.spawn(descriptors) {
            // That it has ended is seen, and made good, by who waits for the child.
            Err(error) if !self.zygote.has_ended() => Err(error),
            _ => Ok(()),
        }
    }

    /// Ends every process of the run. The first one stays a zombie for its readings.
    pub(super) fn kill_tree(&self, armed: &mut Armed) -> Result<(), LaunchError> {
        if let (Some(pid), Some(attached)) = (armed.pid, &mut armed.attached) {
            attached.stamper.let_die(pid);
        }
        if let Some(leaf) = &armed.leaf {
            return Ok(leaf.kill()?);
        }
        if !self.groups.resident().is_empty() {
            return Ok(self.groups.resident().kill(&self.residents)?);
        }
        self.kill_without_groups(armed.pid)
    }

    fn kill_without_groups(&self, first: Option<Pid>) -> Result<(), LaunchError> {
        if let Some(first) = first {
            // Its children become ours, or of the pool's first process, when it is gone.
            let _ = kill(first, Signal::SIGKILL);
            let _ = waitid(Id::Pid(first), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
        }
        self.zygote.sweep()?;
        let mut spare = self.residents.clone();
        spare.extend(first.map(|pid| pid.as_raw().cast_unsigned()));
        Ok(kill_descendants(process::id(), &spare, |pid| {
            let _ = waitpid(Pid::from_raw(pid.cast_signed()), Some(WaitPidFlag::WNOHANG));
        })?)
    }

    /// Ends what the first process left behind when it ended. Answers whether there was anything.
    pub(super) fn end_left_processes(&self, armed: &mut Armed) -> Result<bool, LaunchError> {
        let first = armed.pid.map(|pid| pid.as_raw().cast_unsigned());
        let is_other = |pid: &u32| Some(*pid) != first && !self.residents.contains(pid);
        if let Some(leaf) = &armed.leaf {
            if !leaf.is_populated() {
                return Ok(false);
            }
            let was_left = leaf.processes().iter().any(is_other);
            leaf.kill()?;
            return Ok(was_left);
        }
        if !self.groups.resident().is_empty() {
            let was_left = self.groups.resident().processes().iter().any(is_other);
            if was_left {
                self.kill_tree(armed)?;
            }
            return Ok(was_left);
        }
        let swept = self.zygote.sweep()?;
        let was_left = own_children().iter().any(is_other);
        if was_left {
            self.kill_without_groups(armed.pid)?;
        }
        Ok(was_left || swept > 0)
    }

    /// Waits for orphans of the run that became our children.
    pub(super) fn reap_orphans(&mut self) {
        let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        loop {
            match waitid(Id::All, peek) {
                Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, _, _)) => {
                    if !self.zygote.bury(pid) {
                        let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
                    }
                }
                Err(Errno::EINTR) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Ends and forgets a run that is not wanted any more.
    pub(super) fn abandon(&mut self, mut armed: Armed) {
        let _ = self.kill_tree(&mut armed);
        if let Some(pid) = armed.pid {
            let _ = waitpid(pid, None);
        }
        self.reap_orphans();
    }
}

fn group_limits(limits: &Limits, placement: &Placement) -> GroupLimits {
    GroupLimits {
        memory_bytes: limits.memory_bytes,
        process_count: limits.process_count,
        cpus: placement.cpus.as_deref().map(GroupLimits::list),
        memory_nodes: placement.memory_nodes.as_deref().map(GroupLimits::list),
        is_maximal_weight: placement.maximal_weight,
    }
}
