//! The directory `steelyard-<pid>`: created, locked, and swept when its launcher is gone.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};

use super::error::CgroupError;
use super::kill::processes;
use super::layout::Layout;
use super::removal::{children, remove_tree};

const PREFIX: &str = "steelyard-";

/// Names tried when the plain one is locked by a launcher with the same id in another namespace.
const NAME_TRIES: u32 = 16;

/// A group directory of this launcher. The lock says that the launcher is alive, to everyone who
/// shares the hierarchy, even from another pid namespace.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) path: PathBuf,
    _lock: Flock<File>,
}

impl Claim {
    /// Removes what dead launchers left in `parent` and creates the group of `owner` there.
    pub(super) fn new(parent: &Path, owner: u32) -> Result<Self, CgroupError> {
        sweep(parent, owner);
        let mut last = None;
        for attempt in 0..NAME_TRIES {
            let path = match attempt {
                0 => parent.join(format!("{PREFIX}{owner}")),
                _ => parent.join(format!("{PREFIX}{owner}.{attempt}")),
            };
            match fs::create_dir(&path) {
                Ok(()) => {
                    let lock = try_lock(&path).map_err(|source| CgroupError::read(&path, source))?;
                    return Ok(Self { path, _lock: lock });
                }
                Err(source) if source.kind() == io::ErrorKind::AlreadyExists => last = Some((path, source)),
                Err(source) => return Err(CgroupError::Create { path, source }),
            }
        }
        let (path, source) = last.unwrap_or_else(|| (parent.to_owned(), io::ErrorKind::AlreadyExists.into()));
        Err(CgroupError::Create { path, source })
    }
}

fn try_lock(path: &Path) -> io::Result<Flock<File>> {
    Flock::lock(File::open(path)?, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno.into())
}

/// So long the children of a dead launcher may take to die; a launcher of another namespace costs each start as much.
const MOST_PATIENCE: Duration = Duration::from_millis(200);

/// Largest process id there can be.
/// SOURCE: `PID_MAX_LIMIT` in the kernel's `threads.h`.
const LARGEST_ID: u32 = 4 << 20;

/// The process id in the name of a launcher's group. Other groups of the prefix (a container's, by
/// its random id) have names that are no process ids.
pub(super) fn owner_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(PREFIX)?.split('.').next()?;
    let owner: u32 = digits.parse().ok()?;
    (owner <= LARGEST_ID && owner.to_string() == digits).then_some(owner)
}

/// Groups of launchers directly below `parent`.
pub(super) fn launchers_in(parent: &Path) -> Vec<(PathBuf, u32)> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| Some((entry.path(), owner_of(entry.file_name().to_str()?)?)))
        .collect()
}

/// Removes the groups of launchers that are gone: their id is free (or it is `owner`'s own, which
/// is about to be used again) and nobody holds their lock.
fn sweep(parent: &Path, owner: u32) {
    for (path, other) in launchers_in(parent) {
        if other != owner && is_alive(other) {
            continue;
        }
        if let Ok(lock) = lock_of_dead(&path) {
            drop(lock);
            // What cannot be removed now is found again by the next launcher.
            let _ = remove_tree(&path);
        }
    }
}

/// Removes every group of the launcher `owner`, with what still lives in it. Used when the launcher
/// was killed and could not do so itself.
///
/// # Errors
///
/// The first group that could not be removed; the others are removed all the same.
pub fn remove_groups_of(layout: &Layout, owner: u32) -> Result<(), CgroupError> {
    let mut result = Ok(());
    // The version 2 tree comes first: it ends the processes that version 1 groups wait for.
    for hierarchy in layout.v2.iter().chain(&layout.v1) {
        for parent in hierarchy.group.ancestors().take_while(|path| path.starts_with(&hierarchy.mount)) {
            for (path, _) in launchers_in(parent).into_iter().filter(|(_, other)| *other == owner) {
                if !is_of_another(&path) {
                    result = result.and(remove_tree(&path));
                }
            }
        }
    }
    result
}

/// Whether a launcher with the same id in another pid namespace lives: it holds the lock, and no process of this
/// namespace is in its group.
fn is_of_another(group: &Path) -> bool {
    !has_process(group) && try_lock(group).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Whether a process of this pid namespace is in a group or below it: others are listed as 0.
fn has_process(group: &Path) -> bool {
    processes(group).iter().any(|pid| *pid != 0) || children(group).iter().any(|child| has_process(child))
}

/// Locks the group of a launcher that is gone: its children hold the lock until they are dead too, which takes
/// a moment.
fn lock_of_dead(path: &Path) -> io::Result<Flock<File>> {
    let begin = Instant::now();
    loop {
        match try_lock(path) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && begin.elapsed() < MOST_PATIENCE => {
                thread::sleep(Duration::from_millis(2));
            }
            answer => return answer,
        }
    }
}

/// Whether a process exists and is no zombie: one may wait for its parent for ever.
fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::layout::Hierarchy;
    use super::*;

    #[test]
    fn the_owner_is_read_from_the_name() {
        assert_eq!(owner_of("steelyard-12"), Some(12));
        assert_eq!(owner_of("steelyard-12.3"), Some(12));
        assert_eq!(owner_of("steelyard-x"), None);
        assert_eq!(owner_of("other-12"), None);
        assert_eq!(owner_of("steelyard-00123456"), None);
        assert_eq!(owner_of("steelyard-24870012"), None);
    }

    #[test]
    fn a_dead_launcher_is_swept_and_a_locked_one_is_not() {
        let parent = tempfile::tempdir().unwrap();
        // Ids that the kernel gives out last.
        let dead = parent.path().join("steelyard-4194304");
        let held = parent.path().join("steelyard-4194303");
        fs::create_dir(&dead).unwrap();
        fs::create_dir(&held).unwrap();
        let _lock = try_lock(&held).unwrap();
        let claim = Claim::new(parent.path(), 4_194_302).unwrap();
        assert!(claim.path.ends_with("steelyard-4194302"));
        assert!(!dead.exists());
        assert!(held.exists());
    }

    #[test]
    fn the_group_of_a_launcher_with_the_same_id_elsewhere_stays() {
        let parent = tempfile::tempdir().unwrap();
        let layout = Layout {
            v2: Some(Hierarchy {
                mount: parent.path().to_owned(),
                group: parent.path().to_owned(),
                controllers: BTreeSet::new(),
            }),
            ..Layout::default()
        };
        let group = parent.path().join("steelyard-7");
        fs::create_dir(&group).unwrap();
        let lock = try_lock(&group).unwrap();
        fs::create_dir(group.join("run-1")).unwrap();
        remove_groups_of(&layout, 7).unwrap();
        assert!(group.exists());
        drop(lock);
        remove_groups_of(&layout, 7).unwrap();
        assert!(!group.exists());
    }

    #[test]
    fn a_name_in_use_is_avoided() {
        let parent = tempfile::tempdir().unwrap();
        let first = Claim::new(parent.path(), 7).unwrap();
        let second = Claim::new(parent.path(), 7).unwrap();
        assert_ne!(first.path, second.path);
        assert_eq!(owner_of(second.path.file_name().unwrap().to_str().unwrap()), Some(7));
    }
}
