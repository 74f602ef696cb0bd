use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use steelyard_model::Source;

use super::file::KeptFile;
use super::hold::Hold;
use super::readings::Sample;
use super::{
    CgroupError, Controller, Grip, GroupLimits, Hierarchy, Layout, LayoutKind, Leaf, ResidentGroups,
    UnifiedBase,
};

/// Memory in the version 1 groups before a run.
///
/// The kernel takes back what belongs to a process (stacks, page tables) a grace period after its
/// end. What earlier runs left therefore goes while the next one executes, nobody knows when: the
/// run's peak lies between the peak seen minus all, and the peak seen minus the residents alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleMemory {
    /// The residents' own [bytes].
    pub resident_bytes: u64,
    /// What earlier runs left [bytes].
    pub left_bytes: u64,
}

/// Every group of one launcher. Dropping it ends what lives in them and removes them all.
#[derive(Debug)]
pub struct Groups {
    // Fields drop in this order: the spare before its parent.
    spare: Option<Leaf>,
    resident: ResidentGroups,
    base: Option<UnifiedBase>,
    limits: GroupLimits,
    bandwidth: Bandwidth,
    degraded: Vec<String>,
    next_leaf: AtomicU64,
}

impl Groups {
    /// Creates the groups of the launcher `owner`. `family` are its processes so far, which alone
    /// may be moved. Never fails: what cannot be had is in [`degraded`](Self::degraded).
    #[must_use]
    pub fn claim(layout: &Layout, owner: u32, family: &[u32]) -> Self {
        let (resident, mut degraded) = ResidentGroups::claim(layout, owner);
        let base = layout.v2.as_ref().and_then(|hierarchy| {
            UnifiedBase::claim(hierarchy, owner, family)
                .map_err(|error| degraded.push(error.to_string()))
                .ok()
        });
        if layout.kind() == LayoutKind::None {
            degraded.push("no control group hierarchy is mounted".to_owned());
        }
        Self {
            spare: None,
            resident,
            base,
            limits: GroupLimits::default(),
            bandwidth: Bandwidth::above(layout),
            degraded,
            next_leaf: AtomicU64::new(1),
        }
    }

    /// Groups of a host that has none.
    #[must_use]
    pub fn none() -> Self {
        Self::claim(&Layout::default(), 0, &[])
    }

    /// What is really used.
    #[must_use]
    pub fn kind(&self) -> LayoutKind {
        LayoutKind::of(self.base.iter().len(), self.resident.len())
    }

    /// What could not be had, with reasons.
    #[must_use]
    pub fn degraded(&self) -> &[String] {
        &self.degraded
    }

    /// The version 1 groups.
    #[must_use]
    pub const fn resident(&self) -> &ResidentGroups {
        &self.resident
    }

    /// The same, to be changed.
    pub const fn resident_mut(&mut self) -> &mut ResidentGroups {
        &mut self.resident
    }

    /// Whether a controller acts on runs, in either version.
    #[must_use]
    pub fn has(&self, controller: Controller) -> bool {
        self.base.as_ref().is_some_and(|base| base.controllers().contains(&controller))
            || self.resident.controllers().contains(&controller)
    }

    /// Sets the limits of the runs to come.
    ///
    /// # Errors
    ///
    /// [`CgroupError::Write`] with the value that was refused.
    pub fn apply(&mut self, limits: &GroupLimits) -> Result<(), CgroupError> {
        self.resident.apply(limits)?;
        if let Some(base) = &self.base {
            base.set_weight(limits.is_maximal_weight)?;
        }
        if self.limits != *limits {
            self.limits = limits.clone();
            self.spare = None;
        }
        self.provide_spare()
    }

    /// Creates the next run's leaf ahead of time: a clone right after the creation of its group can
    /// take milliseconds.
    ///
    /// # Errors
    ///
    /// [`CgroupError`] when the leaf cannot be created or a limit is refused.
    pub fn provide_spare(&mut self) -> Result<(), CgroupError> {
        if self.spare.is_none() {
            self.spare = self.create_leaf()?;
        }
        Ok(())
    }

    /// The leaf for the next run; `None` where there is no version 2.
    ///
    /// # Errors
    ///
    /// [`CgroupError`] when the leaf cannot be created or a limit is refused.
    pub fn take_leaf(&mut self) -> Result<Option<Leaf>, CgroupError> {
        match self.spare.take() {
            Some(leaf) => Ok(Some(leaf)),
            None => self.create_leaf(),
        }
    }

    /// Takes the leaf of a run that is over back: as the spare, if the next run can tell no difference, which
    /// spares the removal of a group and the making of another; otherwise it is removed.
    ///
    /// # Errors
    ///
    /// [`CgroupError::Remove`] when something still lives in it.
    pub fn give_back(&mut self, leaf: Leaf) -> Result<(), CgroupError> {
        if self.spare.is_none() && leaf.is_as_new() {
            self.spare = Some(leaf);
            return Ok(());
        }
        leaf.remove()
    }

    fn create_leaf(&self) -> Result<Option<Leaf>, CgroupError> {
        let Some(base) = &self.base else { return Ok(None) };
        // ORDERING: a plain counter in one process.
        let number = self.next_leaf.fetch_add(1, Ordering::Relaxed);
        let leaf = Leaf::create(base.path().join(format!("run-{number}")), base.controllers())?;
        leaf.apply(&self.limits)?;
        Ok(Some(leaf))
    }

    /// What the groups say with the child set up and waiting. `idle` is the memory that was in use
    /// before the clone.
    #[must_use]
    pub fn sample_before(&self, leaf: Option<&Leaf>, idle: Option<IdleMemory>) -> Sample {
        let mut sample = leaf.map(Leaf::sample_before).unwrap_or_default().or(&self.resident.sample());
        if !leaf.is_some_and(|_| self.is_memory_unified()) {
            sample.memory_bytes = idle.map(|idle| (idle.resident_bytes, Source::Cgroup1));
            sample.memory_slack_bytes = idle.map_or(0, |idle| idle.left_bytes);
        }
        self.bandwidth.add(&mut sample);
        sample
    }

    /// What the version 1 groups say once nothing of the run lives any more. The next run begins
    /// there too, so this has to be taken before it.
    #[must_use]
    pub fn sample_residents(&self) -> Sample {
        let mut sample = self.resident.sample();
        sample.memory_bytes = self.resident.peak_bytes();
        sample
    }

    /// The same with what the run's own leaf says.
    #[must_use]
    pub fn sample_after(&self, leaf: Option<&Leaf>, residents: &Sample) -> Sample {
        let mut sample = leaf.map(Leaf::sample_after).unwrap_or_default().or(residents);
        self.bandwidth.add(&mut sample);
        sample
    }

    /// A hold on the runs of a batch, but for their leaves. The `residents` are no part of it. Empty on a host
    /// without groups.
    #[must_use]
    pub fn grip(&self, residents: &[u32]) -> Grip {
        let mut hold = Hold::default();
        self.resident.add_to(&mut hold, residents);
        if let Some(base) = &self.base {
            base.add_to(&mut hold);
        }
        Grip { residents: Arc::new(hold), leaf: None }
    }

    /// Lets the next run fork, and gives it the share of the CPU that it is to have, after a run was ended by its
    /// [`Grip`].
    ///
    /// # Errors
    ///
    /// [`CgroupError::Write`] with the value that was refused.
    pub fn relax(&self) -> Result<(), CgroupError> {
        if let Some(base) = &self.base {
            base.set_weight(self.limits.is_maximal_weight)?;
        }
        self.resident.relax(self.limits.is_maximal_weight)
    }

    fn is_memory_unified(&self) -> bool {
        self.base.as_ref().is_some_and(|base| base.controllers().contains(&Controller::Memory))
    }
}

/// Bandwidth limits of the groups above: a run has none of its own, but feels theirs.
#[derive(Debug, Default)]
struct Bandwidth {
    is_visible: bool,
    limited: Vec<(KeptFile, &'static str, u64)>,
}

impl Bandwidth {
    fn above(layout: &Layout) -> Self {
        let mut this = Self::default();
        if let Some(hierarchy) = &layout.v2 {
            this.is_visible |= hierarchy.controllers.contains(&Controller::Cpu);
            this.collect(hierarchy, "cpu.max", ("throttled_usec", 1000));
        }
        for hierarchy in layout.v1.iter().filter(|one| one.controllers.contains(&Controller::Cpu)) {
            this.is_visible = true;
            this.collect(hierarchy, "cpu.cfs_quota_us", ("throttled_time", 1));
        }
        this
    }

    fn collect(&mut self, hierarchy: &Hierarchy, limit: &str, (key, unit_ns): (&'static str, u64)) {
        let groups = hierarchy.group.ancestors().take_while(|path| path.starts_with(&hierarchy.mount));
        for group in groups.filter(|group| is_limited(&group.join(limit))) {
            self.limited.extend(KeptFile::open(group.join("cpu.stat")).map(|file| (file, key, unit_ns)));
        }
    }

    fn add(&self, sample: &mut Sample) {
        if self.is_visible {
            let total =
                self.limited.iter().filter_map(|(file, key, unit)| Some(file.keyed(key)? * unit)).sum();
            sample.throttled_ns = Some((total, Source::Launcher));
        }
    }
}

/// Whether a bandwidth file (`max 100000`, `-1`, `50000 100000`) sets a limit.
fn is_limited(file: &Path) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_ascii_whitespace().next().is_some_and(|word| word.parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_host_without_groups_is_none_and_says_so() {
        let mut groups = Groups::none();
        assert_eq!(groups.kind(), LayoutKind::None);
        assert!(groups.take_leaf().unwrap().is_none());
        assert!(groups.degraded()[0].contains("no control group"));
        assert!(groups.sample_after(None, &groups.sample_residents()).memory_bytes().is_none());
    }

    #[test]
    fn throttling_of_the_groups_above_is_summed() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("box");
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("cpu.max"), "50000 100000\n").unwrap();
        fs::write(group.join("cpu.stat"), "usage_usec 1\nthrottled_usec 40\n").unwrap();
        let v2 = Hierarchy {
            mount: root.path().to_owned(),
            group,
            controllers: BTreeSet::from([Controller::Cpu]),
        };
        let layout = Layout { v2: Some(v2), ..Layout::default() };
        let mut sample = Sample::default();
        Bandwidth::above(&layout).add(&mut sample);
        assert_eq!(sample.throttled_ns, Some((40_000, Source::Launcher)));
    }

    #[test]
    fn a_group_without_quota_is_not_limited() {
        let root = tempfile::tempdir().unwrap();
        for (text, expected) in [("max 100000\n", false), ("-1\n", false), ("5000\n", true)] {
            fs::write(root.path().join("limit"), text).unwrap();
            assert_eq!(is_limited(&root.path().join("limit")), expected);
        }
    }
}
