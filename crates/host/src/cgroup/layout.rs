use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::CgroupError;
use super::file::read_text;

/// Where the maker of a container offers groups of the host to the launcher in it: a folder for each hierarchy,
/// named after its controllers (`cpu+cpuacct`), or the version 2 one's name. What stands in `/proc` is then
/// the container's and not asked.
const OFFERED: &str = "steelyard/cgroup";
const OFFERED_UNIFIED: &str = "unified";

/// Which generations of control groups a host offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutKind {
    /// Version 2 alone.
    Unified,
    /// Controllers in version 1, and a version 2 tree beside them.
    Hybrid,
    /// Version 1 alone.
    Legacy,
    /// Nothing usable.
    None,
}

impl LayoutKind {
    /// The word used in records: `v2`, `hybrid`, `v1` or `none`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unified => "v2",
            Self::Hybrid => "hybrid",
            Self::Legacy => "v1",
            Self::None => "none",
        }
    }

    /// By the number of hierarchies of each version.
    pub(super) const fn of(v2_count: usize, v1_count: usize) -> Self {
        match (v2_count, v1_count) {
            (0, 0) => Self::None,
            (0, _) => Self::Legacy,
            (_, 0) => Self::Unified,
            (_, _) => Self::Hybrid,
        }
    }
}

impl fmt::Display for LayoutKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A controller of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Controller {
    /// CPU weight and bandwidth (version 2: also usage).
    Cpu,
    /// CPU usage (version 1).
    Cpuacct,
    /// Memory limit and peak.
    Memory,
    /// Number of tasks.
    Pids,
    /// Freezing (version 1).
    Freezer,
    /// CPUs and memory nodes.
    Cpuset,
    /// Block I/O (version 1).
    Blkio,
    /// Block I/O (version 2).
    Io,
}

impl Controller {
    /// Controllers a launcher wants from version 1 hierarchies.
    pub const V1: [Self; 7] =
        [Self::Cpu, Self::Cpuacct, Self::Memory, Self::Pids, Self::Freezer, Self::Cpuset, Self::Blkio];
    /// Controllers a launcher wants from the version 2 hierarchy.
    pub const V2: [Self; 5] = [Self::Cpu, Self::Memory, Self::Pids, Self::Cpuset, Self::Io];

    /// The kernel's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cpuacct => "cpuacct",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Freezer => "freezer",
            Self::Cpuset => "cpuset",
            Self::Blkio => "blkio",
            Self::Io => "io",
        }
    }

    pub(super) fn among(all: &[Self], words: &str) -> BTreeSet<Self> {
        let split: BTreeSet<&str> = words.split([',', ' ', '\n']).collect();
        all.iter().copied().filter(|controller| split.contains(controller.as_str())).collect()
    }
}

/// One mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Where its visible root is.
    pub mount: PathBuf,
    /// The group this process is in, as a path below [`mount`](Self::mount) (or the mount itself).
    pub group: PathBuf,
    /// Controllers of interest.
    pub controllers: BTreeSet<Controller>,
}

/// Every hierarchy of a host that this process can see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// The version 2 hierarchy.
    pub v2: Option<Hierarchy>,
    /// Version 1 hierarchies with controllers of interest.
    pub v1: Vec<Hierarchy>,
    /// The file system root everything was read under (`/` but in tests).
    pub root: PathBuf,
}

impl Layout {
    /// Reads the layout under a file system root (`/` but in tests).
    ///
    /// # Errors
    ///
    /// [`CgroupError::Read`] when procfs is not there.
    pub fn discover(root: &Path) -> Result<Self, CgroupError> {
        if let Some(offered) = Self::offered(root) {
            return Ok(offered);
        }
        let memberships = read_text(&root.join("proc/self/cgroup"))?;
        let mounts = read_text(&root.join("proc/self/mountinfo"))?;
        let mut layout = Self { root: root.to_owned(), ..Self::default() };
        for mount in mounts.lines().filter_map(Mount::parse) {
            layout.take(&mount, &memberships);
        }
        Ok(layout)
    }

    /// The groups that a container's maker offers; `None` where nobody does.
    fn offered(root: &Path) -> Option<Self> {
        let mut folders: Vec<PathBuf> =
            fs::read_dir(root.join(OFFERED)).ok()?.flatten().map(|entry| entry.path()).collect();
        folders.sort();
        let mut layout = Self { root: root.to_owned(), ..Self::default() };
        for folder in folders {
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let controllers = Controller::among(&Controller::V1, &name.replace('+', ","));
            let mut hierarchy = Hierarchy { mount: folder.clone(), group: folder, controllers };
            if name == OFFERED_UNIFIED {
                let words = read_text(&hierarchy.group.join("cgroup.controllers")).unwrap_or_default();
                hierarchy.controllers = Controller::among(&Controller::V2, &words);
                layout.v2 = Some(hierarchy);
            } else if !hierarchy.controllers.is_empty() {
                layout.v1.push(hierarchy);
            }
        }
        (layout.kind() != LayoutKind::None).then_some(layout)
    }

    fn take(&mut self, mount: &Mount<'_>, memberships: &str) {
        let is_v2 = mount.kind == "cgroup2";
        let controllers =
            if is_v2 { BTreeSet::new() } else { Controller::among(&Controller::V1, mount.options) };
        if !is_v2 && controllers.is_empty() {
            return;
        }
        let known = self.v1.iter().any(|seen| !seen.controllers.is_disjoint(&controllers));
        if (is_v2 && self.v2.is_some()) || known {
            return;
        }
        let Some(own) = membership(memberships, controllers.first().copied()) else { return };
        let Some(below) = relative_group(&mount.root, own) else { return };
        let place = self.root.join(mount.point.trim_start_matches('/'));
        let group = if below.as_os_str().is_empty() { place.clone() } else { place.join(below) };
        let mut hierarchy = Hierarchy { mount: place, group, controllers };
        if is_v2 {
            let words = read_text(&hierarchy.group.join("cgroup.controllers")).unwrap_or_default();
            hierarchy.controllers = Controller::among(&Controller::V2, &words);
            self.v2 = Some(hierarchy);
        } else {
            self.v1.push(hierarchy);
        }
    }

    /// What the host offers, before anything was tried.
    #[must_use]
    pub fn kind(&self) -> LayoutKind {
        LayoutKind::of(self.v2.iter().len(), self.v1.len())
    }
}

/// The parts of a `mountinfo` line that matter here.
pub(crate) struct Mount<'a> {
    root: String,
    point: String,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    pub(crate) fn parse(line: &'a str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (root, point) = (unescape(left.next()?), unescape(left.next()?));
        let mut right = right.split(' ');
        let kind = right.next().filter(|kind| matches!(*kind, "cgroup" | "cgroup2"))?;
        Some(Self { root, point, kind, options: right.nth(1)? })
    }
}

/// Undoes the octal escapes of `mountinfo` (space, tab, newline, backslash).
fn unescape(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// The path in `/proc/self/cgroup` for a version 1 controller, or of version 2.
pub(crate) fn membership(memberships: &str, controller: Option<Controller>) -> Option<&str> {
    memberships.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, names, path) = (parts.next()?, parts.next()?, parts.next()?);
        let matches = match controller {
            None => number == "0" && names.is_empty(),
            Some(controller) => names.split(',').any(|name| name == controller.as_str()),
        };
        matches.then_some(path)
    })
}

/// The group below the mounted part of the hierarchy; `None` when it is outside of it.
pub(crate) fn relative_group(mounted_root: &str, own: &str) -> Option<PathBuf> {
    let own = Path::new(own);
    if own.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    // A container without its own cgroup namespace sees the host's path, and mounts only its part.
    own.strip_prefix(mounted_root).map(Path::to_owned).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offered_groups_come_before_those_of_the_container() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Layout::offered(root.path()), None);
        for name in ["cpu+cpuacct", "memory", "unified", "unknown"] {
            fs::create_dir_all(root.path().join(OFFERED).join(name)).unwrap();
        }
        fs::write(root.path().join(OFFERED).join("unified/cgroup.controllers"), "hugetlb\n").unwrap();
        // Without any file in `/proc`.
        let layout = Layout::discover(root.path()).unwrap();
        assert_eq!(layout.kind(), LayoutKind::Hybrid);
        let found: Vec<_> = layout.v1.iter().map(|one| one.controllers.clone()).collect();
        assert_eq!(
            found,
            [BTreeSet::from([Controller::Cpu, Controller::Cpuacct]), BTreeSet::from([Controller::Memory])]
        );
        assert!(layout.v1[1].group.ends_with("steelyard/cgroup/memory"));
    }

    fn fake(cgroup: &str, mountinfo: &str) -> (tempfile::TempDir, Layout) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        fs::write(root.path().join("proc/self/cgroup"), cgroup).unwrap();
        fs::write(root.path().join("proc/self/mountinfo"), mountinfo).unwrap();
        let layout = Layout::discover(root.path()).unwrap();
        (root, layout)
    }

    #[test]
    fn a_host_with_both_versions_is_hybrid() {
        let (root, layout) = fake(
            "9:name=systemd:/\n4:memory:/a/b\n1:cpu,cpuacct:/\n0::/\n",
            "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
             35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        );
        assert_eq!(layout.kind(), LayoutKind::Hybrid);
        assert_eq!(layout.v1.len(), 2);
        let memory = layout.v1.iter().find(|one| one.controllers.contains(&Controller::Memory)).unwrap();
        assert_eq!(memory.group, root.path().join("sys/fs/cgroup/memory/a/b"));
        let cpu = layout.v1.iter().find(|one| one.controllers.contains(&Controller::Cpu)).unwrap();
        assert!(cpu.controllers.contains(&Controller::Cpuacct));
        assert_eq!(cpu.group, cpu.mount);
    }

    #[test]
    fn version_two_alone_is_unified() {
        let (_root, layout) = fake("0::/user.slice\n", "30 1 0:1 / /sys/fs/cgroup rw - cgroup2 none rw\n");
        assert_eq!(layout.kind().as_str(), "v2");
        assert!(layout.v2.unwrap().group.ends_with("sys/fs/cgroup/user.slice"));
    }

    #[test]
    fn only_a_named_hierarchy_is_none() {
        let (_root, layout) =
            fake("1:name=systemd:/\n", "30 1 0:1 / /s rw - cgroup cgroup rw,name=systemd\n");
        assert_eq!(layout.kind(), LayoutKind::None);
    }

    #[test]
    fn a_container_that_mounts_its_part_finds_its_group() {
        let (root, layout) =
            fake("0::/docker/x\n", "30 1 0:1 /docker/x /sys/fs/cgroup ro - cgroup2 none rw\n");
        assert_eq!(layout.v2.unwrap().group, root.path().join("sys/fs/cgroup"));
    }

    #[test]
    fn a_group_outside_of_the_mount_is_not_used() {
        let (_root, layout) = fake("0::/../other\n", "30 1 0:1 / /sys/fs/cgroup rw - cgroup2 none rw\n");
        assert_eq!(layout.kind(), LayoutKind::None);
    }

    #[test]
    fn escaped_mount_points_are_read() {
        let (root, layout) = fake("0::/\n", "30 1 0:1 / /a\\040b rw - cgroup2 none rw\n");
        assert_eq!(layout.v2.unwrap().mount, root.path().join("a b"));
    }
}
