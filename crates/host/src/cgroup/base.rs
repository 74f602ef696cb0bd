use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::claim::Claim;
use super::file::{read_text, write_text};
use super::hold::{Hold, open_to_write};
use super::kill::processes;
use super::leaf::WEIGHTS;
use super::removal::{KEEPER, remove_tree};
use super::{CgroupError, Controller, Hierarchy};

/// The version 2 group below which a launcher creates one leaf per run.
///
/// Controllers reach a leaf only if every group above hands them down, and a group that does so may
/// hold no processes (the root excepted). So the launcher moves itself into a `keeper` sub-group
/// where it is alone in its group, or uses the nearest ancestor that already hands them down.
#[derive(Debug)]
pub struct UnifiedBase {
    claim: Claim,
    controllers: BTreeSet<Controller>,
}

impl UnifiedBase {
    /// Creates `steelyard-<owner>`. `family` are the processes of this launcher, which alone may be
    /// moved.
    ///
    /// # Errors
    ///
    /// [`CgroupError`] when no group can be created at all.
    pub fn claim(hierarchy: &Hierarchy, owner: u32, family: &[u32]) -> Result<Self, CgroupError> {
        let wanted = offered(&hierarchy.group);
        let own = Self::below(&hierarchy.group, owner, family);
        let best = own.as_ref().map_or(0, |base| base.controllers.len());
        if own.is_ok() && best == wanted.len() {
            return own;
        }
        // Unsorted by depth on purpose: `ancestors` goes upwards, so the nearest wins a draw.
        let mut candidates: Vec<(usize, &Path)> = ancestors(hierarchy)
            .map(|parent| (controllers_in(&parent.join("cgroup.subtree_control")).len(), parent))
            .filter(|(count, _)| *count > best || own.is_err())
            .collect();
        candidates.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        for (_, parent) in candidates {
            if let Ok(base) = Self::below(parent, owner, &[]) {
                return Ok(base);
            }
        }
        own
    }

    fn below(parent: &Path, owner: u32, family: &[u32]) -> Result<Self, CgroupError> {
        let claim = Claim::new(parent, owner)?;
        let wanted = offered(parent);
        if enable(parent, &wanted) == Enabled::Busy && is_own(parent, family) {
            move_family(&claim.path, family);
            enable(parent, &wanted);
        }
        enable(&claim.path, &offered(&claim.path));
        let controllers = controllers_in(&claim.path.join("cgroup.subtree_control"));
        Ok(Self { claim, controllers })
    }

    /// Sets what the group gets of the CPU against its neighbours. The weight of a leaf counts among
    /// the leaves alone: a competitor elsewhere meets this one.
    ///
    /// # Errors
    ///
    /// [`CgroupError::Write`] when the value is refused.
    pub(super) fn set_weight(&self, is_maximal: bool) -> Result<(), CgroupError> {
        let file = self.claim.path.join("cpu.weight");
        if !file.exists() {
            // The group above does not hand the controller down.
            return Ok(());
        }
        write_text(&file, if is_maximal { WEIGHTS.0 } else { WEIGHTS.1 })
    }

    pub(super) fn add_to(&self, hold: &mut Hold) {
        let weight = open_to_write(&self.claim.path.join("cpu.weight"));
        hold.shares.extend(weight.map(|file| (file, WEIGHTS.0.to_owned())));
    }

    /// The group `steelyard-<owner>`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.claim.path
    }

    /// Controllers that leaves have.
    #[must_use]
    pub fn controllers(&self) -> &BTreeSet<Controller> {
        &self.controllers
    }
}

impl Drop for UnifiedBase {
    fn drop(&mut self) {
        let _ = remove_tree(&self.claim.path);
    }
}

#[derive(PartialEq, Eq)]
enum Enabled {
    AsAllowed,
    /// The group holds processes.
    Busy,
}

fn ancestors(hierarchy: &Hierarchy) -> impl Iterator<Item = &Path> {
    hierarchy.group.ancestors().skip(1).take_while(|path| path.starts_with(&hierarchy.mount))
}

fn controllers_in(file: &Path) -> BTreeSet<Controller> {
    Controller::among(&Controller::V2, &read_text(file).unwrap_or_default())
}

fn offered(group: &Path) -> BTreeSet<Controller> {
    controllers_in(&group.join("cgroup.controllers"))
}

/// Hands controllers down to the children of a group, one by one: one that is refused (a real-time
/// task, a missing right) must not take the others with it.
fn enable(group: &Path, wanted: &BTreeSet<Controller>) -> Enabled {
    let file = group.join("cgroup.subtree_control");
    let present = controllers_in(&file);
    let mut result = Enabled::AsAllowed;
    for controller in wanted.difference(&present) {
        if let Err(error) = write_text(&file, &format!("+{}", controller.as_str()))
            && error.errno() == Some(Errno::EBUSY as i32)
        {
            result = Enabled::Busy;
        }
    }
    result
}

fn is_own(group: &Path, family: &[u32]) -> bool {
    !family.is_empty() && processes(group).iter().all(|pid| family.contains(pid))
}

fn move_family(group: &Path, family: &[u32]) {
    let keeper: PathBuf = group.join(KEEPER);
    if fs::create_dir(&keeper).is_ok() {
        for pid in family {
            let _ = write_text(&keeper.join("cgroup.procs"), &pid.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(path: &Path, controllers: &str, subtree: &str) {
        fs::create_dir_all(path).unwrap();
        fs::write(path.join("cgroup.controllers"), controllers).unwrap();
        fs::write(path.join("cgroup.subtree_control"), subtree).unwrap();
        fs::write(path.join("cgroup.procs"), "").unwrap();
    }

    #[test]
    fn a_tree_without_controllers_is_used_as_found() {
        let mount = tempfile::tempdir().unwrap();
        group(mount.path(), "hugetlb\n", "");
        let hierarchy = Hierarchy {
            mount: mount.path().to_owned(),
            group: mount.path().to_owned(),
            controllers: BTreeSet::new(),
        };
        let base = UnifiedBase::claim(&hierarchy, 77, &[]).unwrap();
        assert!(base.path().ends_with("steelyard-77"));
        assert!(base.controllers().is_empty());
    }

    #[test]
    fn the_weight_is_set_where_the_controller_is() {
        let mount = tempfile::tempdir().unwrap();
        group(mount.path(), "cpu\n", "cpu\n");
        let hierarchy = Hierarchy {
            mount: mount.path().to_owned(),
            group: mount.path().to_owned(),
            controllers: BTreeSet::from([Controller::Cpu]),
        };
        let base = UnifiedBase::claim(&hierarchy, 77, &[]).unwrap();
        base.set_weight(true).unwrap();
        let file = base.path().join("cpu.weight");
        assert!(!file.exists(), "nothing is made up where the kernel has no such file");
        fs::write(&file, "100").unwrap();
        base.set_weight(true).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "10000");
        fs::remove_file(file).unwrap();
    }

    #[test]
    fn a_group_that_cannot_be_created_is_an_error_with_its_path() {
        let mount = tempfile::tempdir().unwrap();
        let absent = mount.path().join("absent");
        let hierarchy =
            Hierarchy { mount: absent.clone(), group: absent.clone(), controllers: BTreeSet::new() };
        let error = UnifiedBase::claim(&hierarchy, 77, &[]).unwrap_err();
        assert!(error.to_string().contains("absent/steelyard-77"));
    }
}
