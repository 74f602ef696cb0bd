//! Removing groups so that none is left behind.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::error::CgroupError;
use super::file::{read_text, write_text};
use super::kill::{kill_legacy, kill_unified, processes};

/// A group is busy for a moment after its last process is gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// Name of the sub-group that holds the launcher itself where version 2 demands empty inner groups.
pub(super) const KEEPER: &str = "keeper";

/// Removes one empty group.
pub(super) fn remove_empty(group: &Path) -> Result<(), CgroupError> {
    let begin = Instant::now();
    loop {
        match fs::remove_dir(group) {
            Ok(()) => return Ok(()),
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) if begin.elapsed() > PATIENCE || source.kind() != io::ErrorKind::ResourceBusy => {
                return Err(CgroupError::Remove { path: group.to_owned(), source });
            }
            Err(_) => sleep(Duration::from_micros(500)),
        }
    }
}

/// Ends everything in a group and below it, and removes all of it.
///
/// The caller itself may be in its `keeper`: it is moved to the parent group first.
pub(super) fn remove_tree(group: &Path) -> Result<(), CgroupError> {
    leave_keeper(group);
    let mut result = Ok(());
    for child in children(group) {
        result = result.and(remove_tree(&child));
    }
    result?;
    if processes(group).contains(&process::id()) {
        return Err(CgroupError::Remove {
            path: group.to_owned(),
            source: io::ErrorKind::ResourceBusy.into(),
        });
    }
    if group.join("cgroup.events").exists() {
        kill_unified(group)?;
    } else {
        kill_legacy(group, &[])?;
    }
    remove_empty(group)
}

pub(super) fn children(group: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(group) else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// Moves the processes of `group/keeper` back to the parent of `group`.
///
/// Version 2 refuses processes in a group that hands controllers to its children, so these are
/// taken back first, unless another child of the parent may be using them.
fn leave_keeper(group: &Path) {
    let keeper = group.join(KEEPER);
    let Some(parent) = group.parent().filter(|_| keeper.exists()) else { return };
    for inner in [group, parent] {
        if inner == parent && children(parent).iter().any(|child| child != group) {
            continue;
        }
        let file = inner.join("cgroup.subtree_control");
        for controller in read_text(&file).unwrap_or_default().split_ascii_whitespace() {
            let _ = write_text(&file, &format!("-{controller}"));
        }
    }
    for pid in processes(&keeper) {
        let _ = write_text(&parent.join("cgroup.procs"), &pid.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_group_counts_as_removed() {
        let parent = tempfile::tempdir().unwrap();
        remove_empty(&parent.path().join("none")).unwrap();
        remove_tree(&parent.path().join("none")).unwrap();
    }

    #[test]
    fn nested_groups_go_from_the_inside() {
        let parent = tempfile::tempdir().unwrap();
        let group = parent.path().join("steelyard-1");
        fs::create_dir_all(group.join("run-1")).unwrap();
        remove_tree(&group).unwrap();
        assert!(!group.exists());
    }
}
