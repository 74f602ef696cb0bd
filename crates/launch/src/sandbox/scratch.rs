//! What is writable inside: one memory file system, shown at three places.
//!
//! Nothing of one run may be there for the next. Mounting it anew costs a mount table and, when
//! the last process of the run ends, a wait for all processors to notice. Most runs write nothing;
//! so the pool's first process keeps one mounted, and a child takes it if it is untouched: no
//! block in use, and no inode but those it was made with. Otherwise the child mounts its own.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, create_dir_all};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sys::stat::{Mode, umask};
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use steelyard_model::Limits;

use super::error::{Context, SandboxError};
use super::mounts::{bind_raw, mount_new};
use super::paths::{Extra, FRESH};
use super::root::{make_mount_point, waiting_place};

/// Size without `limits.disk_bytes`.
pub(super) const DEFAULT_BYTES: u64 = 64 << 20;

const PLACE: &str = "/.steelyard/scratch";

/// Directories in it, and where each is shown.
const PLACES: [(&str, &str); 3] = [("tmp", "/tmp"), ("box", "/box"), ("shm", "/dev/shm")];

/// Made last: an area without it is still being built.
const COMPLETE: &str = "complete";

const PAGE_BYTES: u64 = 4096;

/// The size a run asks for [bytes].
pub(super) fn wanted_bytes(limits: &Limits) -> u64 {
    limits.disk_bytes.unwrap_or(DEFAULT_BYTES).max(64 << 10).next_multiple_of(PAGE_BYTES)
}

/// Mounts it on `/tmp`, `/box` and `/dev/shm`, with the host paths that are shown below these.
///
/// One file system, not three: its size is what a program may write in total. It goes away with
/// the caller's mount namespace.
pub(super) fn mount_scratch(bytes: u64, extras: &[Extra]) -> Result<(), SandboxError> {
    let options = format!("mode=700,size={bytes},nr_inodes={}", inode_count(bytes));
    let place = Path::new(PLACE);
    mount_new("tmpfs", place, MsFlags::MS_NOSUID | MsFlags::MS_NODEV, &options)?;
    let outer = umask(Mode::empty());
    let shown = show_places(place);
    umask(outer);
    shown?;
    show_extras(extras)?;
    make(&place.join(COMPLETE), 0o700)
}

fn make(path: &Path, mode: u32) -> Result<(), SandboxError> {
    DirBuilder::new().mode(mode).create(path).step(|| format!("make `{}`", path.display()))
}

/// They belong to root and are open to all, so that a program cannot change them themselves.
fn show_places(place: &Path) -> Result<(), SandboxError> {
    for (name, target) in PLACES {
        let source = place.join(name);
        make(&source, 0o1777)?;
        mount(Some(&source), target, None::<&str>, MsFlags::MS_BIND, None::<&str>)
            .step(|| format!("mount `{target}`"))?;
    }
    Ok(())
}

/// Whether the file system behind `/tmp` has this size, is complete and was never written to.
pub(super) fn is_untouched(bytes: u64, extras: &[Extra]) -> bool {
    statfs("/tmp").is_ok_and(|state| {
        let inodes_in_use = state.files().saturating_sub(state.files_free());
        state.filesystem_type() == TMPFS_MAGIC
            && state.blocks() == bytes / PAGE_BYTES
            && state.blocks_free() == state.blocks()
            && inodes_in_use == made_inodes(extras)
    })
}

/// Its root, its directories, the mark, and what was made to show the extras.
fn made_inodes(extras: &[Extra]) -> u64 {
    let per_run: Vec<&Extra> = extras.iter().filter(|extra| extra.is_per_run()).collect();
    let is_inside_another = |extra: &Extra| {
        per_run.iter().any(|other| other.target != extra.target && extra.target.starts_with(&other.target))
    };
    let made: BTreeSet<PathBuf> = per_run
        .iter()
        .filter(|extra| !is_inside_another(extra))
        .flat_map(|extra| extra.target.ancestors())
        .filter(|path| FRESH.iter().any(|fresh| path.starts_with(fresh) && *path != Path::new(fresh)))
        .map(Path::to_path_buf)
        .collect();
    (2 + PLACES.len() + made.len()) as u64
}

/// Files and directories a program may make: one for each page, within bounds.
fn inode_count(bytes: u64) -> u64 {
    (bytes / PAGE_BYTES).clamp(64, 1 << 20)
}

/// Shows the paths that lie in one of the places.
fn show_extras(extras: &[Extra]) -> Result<(), SandboxError> {
    for (index, extra) in extras.iter().enumerate().filter(|(_, extra)| extra.is_per_run()) {
        if let Some(parent) = extra.target.parent() {
            create_dir_all(parent).step(|| format!("make `{}`", parent.display()))?;
        }
        make_mount_point(&extra.target, extra)?;
        bind_raw(&waiting_place(index), &extra.target)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::mounts::Access;

    #[test]
    fn inodes_follow_the_size_within_bounds() {
        assert_eq!(inode_count(0), 64);
        assert_eq!(inode_count(DEFAULT_BYTES), 16384);
        assert_eq!(inode_count(u64::MAX), 1 << 20);
    }

    #[test]
    fn paths_made_for_extras_are_counted_once() {
        let extra = |path: &str| Extra {
            source: path.into(),
            target: path.into(),
            access: Access::ReadOnly,
            is_directory: true,
        };
        assert_eq!(made_inodes(&[]), 5);
        assert_eq!(made_inodes(&[extra("/usr/x")]), 5);
        // a, a/b and a/c; what lies in a/b is made in that mount.
        assert_eq!(made_inodes(&[extra("/tmp/a/b"), extra("/tmp/a/b/d"), extra("/tmp/a/c")]), 8);
    }
}
