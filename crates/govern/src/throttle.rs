use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::home::{CpuHome, Home, Version};
use crate::law::Allowance;
use crate::text_file::{keyed, look, put};

/// Time over which a quota counts [us]: the kernel's own default.
const PERIOD_US: f64 = 100_000.0;

/// Smallest quota the kernel takes [us].
/// SOURCE: `min_cfs_quota_period` in the kernel's `sched/core.c`.
const LEAST_QUOTA_US: f64 = 1000.0;

/// One file of a group, and what it said before it was touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Original {
    pub(crate) path: PathBuf,
    /// Tells a group that was removed and made again.
    pub(crate) inode: u64,
    pub(crate) value: String,
}

impl Original {
    fn read(path: PathBuf) -> Option<Self> {
        let value = look(&path)?;
        // The state of a version 1 freezer may be on its way.
        let value = if value == "FREEZING" { "THAWED".to_owned() } else { value };
        Some(Self { inode: inode(&path)?, path, value })
    }

    /// Writes it back, unless the group is another one or gone.
    pub(crate) fn restore(&self) -> io::Result<()> {
        if inode(&self.path) != Some(self.inode) || look(&self.path).as_ref() == Some(&self.value) {
            return Ok(());
        }
        put(&self.path, &self.value)
    }
}

fn inode(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path.parent()?).ok().map(|found| found.ino())
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Freezer {
    V1(PathBuf),
    V2(PathBuf),
}

/// The means to throttle the groups of best-effort commands.
#[derive(Debug)]
pub struct Throttle {
    cpu: Option<CpuHome>,
    freezer: Option<Freezer>,
    usage: Option<PathBuf>,
    originals: Vec<Original>,
    current: Allowance,
}

impl Throttle {
    /// Finds the files, and reads what they say now. Nothing is written.
    #[must_use]
    pub fn new(home: &Home) -> Self {
        let cpu = home.cpu.clone().filter(|cpu| quota_file(cpu).exists());
        let unified = home.unified.as_ref().map(|group| group.join("cgroup.freeze"));
        let legacy = home.freezer.as_ref().map(|group| group.join("freezer.state"));
        let freezer = unified
            .filter(|path| path.exists())
            .map(Freezer::V2)
            .or_else(|| legacy.filter(|path| path.exists()).map(Freezer::V1));
        let files = cpu.iter().map(quota_file).chain(freezer.iter().map(|freezer| freezer.file().to_owned()));
        let originals = files.filter_map(Original::read).collect();
        let usage = home.unified.as_ref().map(|group| group.join("cpu.stat")).filter(|path| path.exists());
        Self { cpu, freezer, usage, originals, current: Allowance::Free }
    }

    /// What the files said before.
    pub(crate) fn originals(&self) -> &[Original] {
        &self.originals
    }

    /// Whether there is a quota.
    #[must_use]
    pub const fn has_quota(&self) -> bool {
        self.cpu.is_some()
    }

    /// Whether there is a freezer, and its version.
    #[must_use]
    pub const fn freezer_version(&self) -> Option<Version> {
        match self.freezer {
            None => None,
            Some(Freezer::V1(_)) => Some(Version::V1),
            Some(Freezer::V2(_)) => Some(Version::V2),
        }
    }

    /// CPU time of everything in the groups so far [ns].
    #[must_use]
    pub fn used_ns(&self) -> Option<u64> {
        keyed(&look(self.usage.as_ref()?)?, "usage_usec")?.checked_mul(1000)
    }

    /// Makes an allowance true. Thaws last and freezes last, so that a quota is there before anything runs.
    ///
    /// # Errors
    ///
    /// What the kernel said to the first refused value.
    pub fn apply(&mut self, allowance: Allowance) -> io::Result<()> {
        if allowance == self.current {
            return Ok(());
        }
        let quota = match allowance {
            Allowance::Free => None,
            Allowance::Limited(cpus) => Some(cpus),
            Allowance::Parked if self.freezer.is_none() => Some(0.0),
            // The quota from before stays: it holds at once when the group thaws.
            Allowance::Parked => return self.freeze(true).map(|()| self.current = allowance),
        };
        self.limit(quota)?;
        self.freeze(false)?;
        self.current = allowance;
        Ok(())
    }

    fn limit(&self, cpus: Option<f64>) -> io::Result<()> {
        let Some(cpu) = &self.cpu else { return Ok(()) };
        let path = quota_file(cpu);
        let quota = cpus.map(|cpus| (cpus * PERIOD_US).max(LEAST_QUOTA_US));
        match (quota, cpu.version) {
            (Some(quota), Version::V1) => put(&path, &format!("{quota:.0}")),
            (Some(quota), Version::V2) => put(&path, &format!("{quota:.0} {PERIOD_US:.0}")),
            (None, _) => match self.originals.iter().find(|original| original.path == path) {
                Some(original) => original.restore(),
                None => Ok(()),
            },
        }
    }

    fn freeze(&self, is_frozen: bool) -> io::Result<()> {
        match &self.freezer {
            None => Ok(()),
            Some(Freezer::V1(path)) => put(path, if is_frozen { "FROZEN" } else { "THAWED" }),
            Some(Freezer::V2(path)) => put(path, if is_frozen { "1" } else { "0" }),
        }
    }

    /// Writes back what was there before; gives the first refusal.
    ///
    /// # Errors
    ///
    /// What the kernel said.
    pub fn restore(&mut self) -> io::Result<()> {
        self.current = Allowance::Free;
        self.originals.iter().map(Original::restore).fold(Ok(()), io::Result::and)
    }
}

impl Freezer {
    fn file(&self) -> &Path {
        match self {
            Self::V1(path) | Self::V2(path) => path,
        }
    }
}

fn quota_file(cpu: &CpuHome) -> PathBuf {
    cpu.path.join(match cpu.version {
        Version::V1 => "cpu.cfs_quota_us",
        Version::V2 => "cpu.max",
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn group(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, value) in files {
            fs::write(folder.path().join(name), value).unwrap();
        }
        folder
    }

    fn text(folder: &tempfile::TempDir, name: &str) -> String {
        fs::read_to_string(folder.path().join(name)).unwrap()
    }

    #[test]
    fn version_2_is_limited_frozen_and_restored() {
        let folder =
            group(&[("cpu.max", "max 100000\n"), ("cgroup.freeze", "0\n"), ("cpu.stat", "usage_usec 7\n")]);
        let mut throttle = Throttle::new(&Home::of_unified(folder.path().to_owned()));
        assert_eq!(throttle.used_ns(), Some(7000));
        throttle.apply(Allowance::Limited(1.5)).unwrap();
        // A plain file is overwritten from its start, a file of the kernel replaced.
        assert!(text(&folder, "cpu.max").starts_with("150000 100000"));
        throttle.apply(Allowance::Parked).unwrap();
        assert!(text(&folder, "cgroup.freeze").starts_with('1'));
        assert!(text(&folder, "cpu.max").starts_with("150000 100000"));
        throttle.restore().unwrap();
        assert!(text(&folder, "cpu.max").starts_with("max 100000"));
        assert!(text(&folder, "cgroup.freeze").starts_with('0'));
    }

    #[test]
    fn version_1_is_limited_frozen_and_released() {
        let folder = group(&[("cpu.cfs_quota_us", "-1\n"), ("freezer.state", "THAWED\n")]);
        let path = folder.path().to_owned();
        let cpu = Some(CpuHome { path: path.clone(), version: Version::V1 });
        let mut throttle = Throttle::new(&Home { cpu, unified: None, freezer: Some(path) });
        assert_eq!(throttle.freezer_version(), Some(Version::V1));
        throttle.apply(Allowance::Limited(0.001)).unwrap();
        assert!(text(&folder, "cpu.cfs_quota_us").starts_with("1000"));
        throttle.apply(Allowance::Parked).unwrap();
        assert!(text(&folder, "freezer.state").starts_with("FROZEN"));
        throttle.apply(Allowance::Free).unwrap();
        assert!(text(&folder, "freezer.state").starts_with("THAWED"));
        assert!(text(&folder, "cpu.cfs_quota_us").starts_with("-1"));
    }

    #[test]
    fn a_group_that_was_made_again_is_left_alone() {
        let folder = group(&[("cgroup.freeze", "0\n")]);
        let original = Original::read(folder.path().join("cgroup.freeze")).unwrap();
        fs::write(folder.path().join("cgroup.freeze"), "1").unwrap();
        let other = Original { inode: original.inode + 1, ..original.clone() };
        other.restore().unwrap();
        assert_eq!(text(&folder, "cgroup.freeze"), "1");
        original.restore().unwrap();
        assert_eq!(text(&folder, "cgroup.freeze"), "0");
    }
}
