//! Control groups as the file system shows them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::SchedulerError;

/// A group with a limit of CPU time, which the class does not keep.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Quota {
    /// The file that says it.
    file: PathBuf,
    /// What it says.
    text: String,
}

impl Quota {
    fn refusal(&self) -> SchedulerError {
        let message = format!(
            "cannot keep the quota `{}` of `{}`: a sched_ext scheduler replaces the class of the kernel that does",
            self.text,
            self.file.display()
        );
        let hint =
            format!("`echo {} > {}` lifts it; or do without the class", self.none(), self.file.display());
        SchedulerError::Quota { message, hint }
    }

    /// What the file says where there is no quota.
    fn none(&self) -> &'static str {
        if self.file.ends_with("cpu.max") { "max" } else { "-1" }
    }
}

/// The class replaces that of the kernel which keeps quotas, and keeps none: beside one it stands back.
///
/// # Errors
///
/// [`SchedulerError::Quota`] naming the first group that has one.
pub(crate) fn refuse_quotas(root: &Path) -> Result<(), SchedulerError> {
    find_quota(root).map_or(Ok(()), |quota| Err(quota.refusal()))
}

/// The first group that has a quota of CPU time, of either version; `root` is the root of `/proc`.
fn find_quota(root: &Path) -> Option<Quota> {
    let mounts = fs::read_to_string(root.join("proc/mounts")).unwrap_or_default();
    let mut waiting: Vec<PathBuf> = cpu_mounts(&mounts).map(|mount| below(root, mount)).collect();
    while let Some(group) = waiting.pop() {
        for (name, none) in [("cpu.max", "max"), ("cpu.cfs_quota_us", "-1")] {
            let file = group.join(name);
            let Ok(text) = fs::read_to_string(&file) else { continue };
            if !text.starts_with(none) {
                return Some(Quota { file, text: text.trim().to_owned() });
            }
        }
        waiting.extend(subgroups(&group));
    }
    None
}

/// Marks each group directly below one with `cpu.idle`, as it appears.
///
/// The group itself stays as it is: the kernel refuses a weight where `cpu.idle` is 1, and kubelet, whose groups
/// these are, writes the weight of each class of pods every minute and does not start where it cannot.
#[derive(Debug)]
pub(crate) struct Marker {
    parent: Option<PathBuf>,
    marked: BTreeSet<PathBuf>,
}

impl Marker {
    /// # Errors
    ///
    /// [`SchedulerError::Usage`] where no group of version 2 is.
    pub(crate) fn new(parent: Option<&Path>) -> Result<Self, SchedulerError> {
        match parent {
            Some(parent) if !parent.join("cgroup.freeze").exists() => {
                let path = parent.display();
                let why = "no control group of version 2 is there";
                Err(SchedulerError::usage(format!("`--best-effort-below {path}`: {why}")))
            }
            _ => Ok(Self { parent: parent.map(Path::to_owned), marked: BTreeSet::new() }),
        }
    }

    /// Mark what is not marked, and give how many were.
    pub(crate) fn mark(&mut self) -> usize {
        self.marked.retain(|group| group.exists());
        let before = self.marked.len();
        for group in self.parent.iter().flat_map(|parent| subgroups(parent)) {
            let file = group.join("cpu.idle");
            if fs::read_to_string(&file).is_ok_and(|text| text.trim() == "0") && fs::write(&file, "1").is_ok()
            {
                self.marked.insert(group);
            }
        }
        self.marked.len() - before
    }

    /// Take back the marks that were set here.
    pub(crate) fn unmark(&mut self) {
        for group in std::mem::take(&mut self.marked) {
            // A group that was removed meanwhile needs nothing.
            let _ = fs::write(group.join("cpu.idle"), "0");
        }
    }
}

pub(crate) fn below(root: &Path, mount: &str) -> PathBuf {
    root.join(mount.trim_start_matches('/'))
}

pub(crate) fn subgroups(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// Place, kind and options of each file system of control groups.
fn group_mounts(mounts: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?, words.next()?))
    })
}

pub(crate) fn cgroup2_mount(mounts: &str) -> Option<&str> {
    group_mounts(mounts).find_map(|(place, kind, _)| (kind == "cgroup2").then_some(place))
}

/// Where groups with the cpu controller may be, of either version.
fn cpu_mounts(mounts: &str) -> impl Iterator<Item = &str> {
    group_mounts(mounts).filter_map(|(place, kind, options)| {
        let has_cpu = kind == "cgroup2" || (kind == "cgroup" && options.split(',').any(|word| word == "cpu"));
        has_cpu.then_some(place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host with groups of both versions; `cpu.max` of one of them says `text`.
    fn host(text: &str, text_of_1: &str) -> tempfile::TempDir {
        let host = tempfile::tempdir().unwrap();
        let place = |name: &str, text: &str| {
            let path = host.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        place(
            "proc/mounts",
            "none /cg cgroup2 rw 0 0\nnone /v1 cgroup rw,cpu,cpuacct 0 0\nnone /m cgroup rw,memory 0 0\n",
        );
        place("cg/web/cpu.max", "max 100000\n");
        place("cg/jobs/batch/cpu.max", text);
        place("v1/old/cpu.cfs_quota_us", text_of_1);
        place("m/other/cpu.max", "20000 100000\n");
        host
    }

    #[test]
    fn groups_without_a_quota_are_nothing_to_refuse() {
        assert_eq!(find_quota(host("max 100000\n", "-1\n").path()), None);
    }

    #[test]
    fn a_quota_below_other_groups_is_named() {
        let host = host("20000 100000\n", "-1\n");
        let file = host.path().join("cg/jobs/batch/cpu.max");
        let error = find_quota(host.path()).unwrap().refusal();
        let start = format!("cannot keep the quota `20000 100000` of `{}`: ", file.display());
        assert!(error.to_string().starts_with(&start), "{error}");
        assert_eq!(error.exit_code(), 3);
        assert!(error.hint().unwrap().starts_with(&format!("`echo max > {}`", file.display())));
    }

    #[test]
    fn groups_below_are_marked_as_they_appear_and_only_those_are_unmarked() {
        let folder = tempfile::tempdir().unwrap();
        let pods = folder.path().join("kubepods-besteffort.slice");
        let idle = |name: &str| pods.join(name).join("cpu.idle");
        let appear = |name: &str, text: &str| {
            fs::create_dir_all(pods.join(name)).unwrap();
            fs::write(idle(name), text).unwrap();
        };
        appear("", "0\n");
        assert_eq!(Marker::new(Some(&pods)).unwrap_err().exit_code(), 2, "no group");
        fs::write(pods.join("cgroup.freeze"), "0\n").unwrap();
        appear("a", "0\n");
        appear("by-hand", "1\n");
        let mut marker = Marker::new(Some(&pods)).unwrap();
        assert_eq!(marker.mark(), 1);
        appear("b", "0\n");
        fs::remove_dir_all(pods.join("a")).unwrap();
        assert_eq!((marker.mark(), marker.mark()), (1, 0));
        let read = |name: &str| fs::read_to_string(idle(name)).unwrap().trim().to_owned();
        assert_eq!([read("b"), read("by-hand"), read("")], ["1", "1", "0"]);
        marker.unmark();
        assert_eq!([read("b"), read("by-hand"), read("")], ["0", "1", "0"]);
        assert!(!pods.join("a").exists());
    }

    #[test]
    fn a_quota_of_version_1_is_found_too() {
        let host = host("max 100000\n", "50000\n");
        let quota = find_quota(host.path()).unwrap();
        assert_eq!((quota.text.as_str(), quota.none()), ("50000", "-1"));
    }
}
