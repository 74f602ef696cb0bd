//! Mounts: binding, restricting, making private.

use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sys::statvfs::{FsFlags, statvfs};

use super::error::{Context, SandboxError};

/// What a program may do on a mount beyond reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Nothing is writable.
    ReadOnly,
    /// Writable, as far as the owner and mode of the files allow.
    Writable,
}

/// A new file system of the given type.
pub(super) fn mount_new(
    kind: &str,
    target: &Path,
    flags: MsFlags,
    options: &str,
) -> Result<(), SandboxError> {
    mount(Some(kind), target, Some(kind), flags, Some(options))
        .step(|| format!("mount a {kind} on `{}`", target.display()))
}

/// Shows `source` with everything mounted below it at `target`, without set-user-id and devices.
pub(super) fn bind(source: &Path, target: &Path, access: Access) -> Result<(), SandboxError> {
    bind_raw(source, target)?;
    restrict(target, access)
}

/// Shows one entry read-only; a symbolic link becomes the same link, what is missing stays missing.
pub(super) fn show_entry(source: &Path, target: &Path) -> Result<(), SandboxError> {
    let Ok(kind) = fs::symlink_metadata(source) else { return Ok(()) };
    if kind.is_symlink() {
        let to = fs::read_link(source).step(|| format!("read the link `{}`", target.display()))?;
        return symlink(to, target).step(|| format!("make the link `{}`", target.display()));
    }
    if kind.is_dir() {
        make_directory(target)?;
    } else if kind.is_file() {
        fs::File::create(target).step(|| format!("make the file `{}`", target.display()))?;
    } else {
        return Ok(());
    }
    bind(source, target, Access::ReadOnly)
}

pub(super) fn make_directory(path: &Path) -> Result<(), SandboxError> {
    fs::create_dir_all(path).step(|| format!("make the directory `{}`", path.display()))
}

/// Shows `source` at `target` with the flags it has.
pub(super) fn bind_raw(source: &Path, target: &Path) -> Result<(), SandboxError> {
    mount(Some(source), target, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
        .step(|| format!("bind `{}` to `{}`", source.display(), target.display()))
}

/// Cuts every tie of mount events between this namespace and the host's.
pub(super) fn make_private() -> Result<(), SandboxError> {
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .step(|| "make all mounts private".into())
}

/// Restricts a mount and all below it: `nosuid`, `nodev`, and `ro` if asked.
pub(super) fn restrict(target: &Path, access: Access) -> Result<(), SandboxError> {
    match restrict_at_once(target, access) {
        // KERNEL: mount_setattr came with 5.12; filters of containers may refuse it too.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
            restrict_one_by_one(target, access)
        }
        other => other.step(|| format!("restrict the mount `{}`", target.display())),
    }
}

fn restrict_at_once(target: &Path, access: Access) -> io::Result<()> {
    let path = CString::new(target.as_os_str().as_bytes())?;
    let read_only = if access == Access::ReadOnly { libc::MOUNT_ATTR_RDONLY } else { 0 };
    let attributes = libc::mount_attr {
        attr_set: read_only | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: both pointers outlive the call, and the size is that of the structure.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of_val(&attributes),
        )
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The same by one remount for each mount at or below `target`; needs `/proc`.
pub(super) fn restrict_one_by_one(target: &Path, access: Access) -> Result<(), SandboxError> {
    const TABLE: &str = "/proc/thread-self/mountinfo";
    let table = std::fs::read(TABLE).step(|| format!("read `{TABLE}`"))?;
    let target = target.canonicalize().step(|| format!("resolve `{}`", target.display()))?;
    let points: Vec<_> =
        mount_points(&table).into_iter().filter(|point| point.starts_with(&target)).collect();
    if points.is_empty() {
        // A mount that is not restricted must not go unnoticed.
        let missing = io::Error::from_raw_os_error(libc::ENOENT);
        return Err(SandboxError::step(
            format!("find the mount `{}` in `{TABLE}`", target.display()),
            missing,
        ));
    }
    for point in points {
        let mut flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | kept_flags(&point);
        flags |= MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        if access == Access::ReadOnly {
            flags |= MsFlags::MS_RDONLY;
        }
        mount(None::<&str>, &point, None::<&str>, flags, None::<&str>)
            .step(|| format!("restrict the mount `{}`", point.display()))?;
    }
    Ok(())
}

/// Flags a remount must repeat: leaving a locked one out is refused in a user namespace.
fn kept_flags(point: &Path) -> MsFlags {
    let Ok(state) = statvfs(point) else { return MsFlags::empty() };
    let pairs = [
        (FsFlags::ST_RDONLY, MsFlags::MS_RDONLY),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_NODIRATIME, MsFlags::MS_NODIRATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ];
    pairs.into_iter().filter(|(have, _)| state.flags().contains(*have)).map(|(_, keep)| keep).collect()
}

/// Mount points of a `mountinfo` table: field 5, octal escapes undone.
fn mount_points(table: &[u8]) -> Vec<PathBuf> {
    table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(|field| PathBuf::from(OsString::from_vec(unescape(field))))
        .collect()
}

fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        if let (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) = (first, tail) {
            plain.push(((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'));
            rest = after;
        } else {
            plain.push(first);
            rest = tail;
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_point_with_a_space_is_read_back() {
        let table = b"36 35 98:0 / /mnt/a\\040b\\134c rw,noatime shared:1 - ext4 /dev/root rw\n";
        assert_eq!(mount_points(table), [PathBuf::from("/mnt/a b\\c")]);
    }

    #[test]
    fn an_incomplete_escape_stays_as_it_is() {
        assert_eq!(unescape(b"a\\04"), b"a\\04");
    }

    /// In a mount namespace of a thread of its own, which ends with it.
    fn in_own_namespace(case: impl FnOnce() + Send + 'static) {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        std::thread::spawn(|| {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).unwrap();
            make_private().unwrap();
            case();
        })
        .join()
        .unwrap();
    }

    fn both_ways_restrict(way: fn(&Path, Access) -> io::Result<()>) {
        in_own_namespace(move || {
            let folder = tempfile::tempdir().unwrap();
            let (outer, inner) = (folder.path().join("a b"), folder.path().join("a b/inner"));
            std::fs::create_dir(&outer).unwrap();
            mount_new("tmpfs", &outer, MsFlags::MS_NOEXEC, "").unwrap();
            std::fs::create_dir(&inner).unwrap();
            mount_new("tmpfs", &inner, MsFlags::empty(), "").unwrap();
            way(&outer, Access::Writable).unwrap();
            std::fs::write(inner.join("x"), "x").unwrap();
            way(&outer, Access::ReadOnly).unwrap();
            for place in [&outer, &inner] {
                let flags = statvfs(place).unwrap().flags();
                assert!(
                    flags.contains(FsFlags::ST_RDONLY | FsFlags::ST_NOSUID | FsFlags::ST_NODEV),
                    "{flags:?}"
                );
                assert!(std::fs::write(place.join("y"), "y").is_err());
            }
            assert!(statvfs(&outer).unwrap().flags().contains(FsFlags::ST_NOEXEC), "flags are kept");
            for place in [&inner, &outer] {
                nix::mount::umount2(place, nix::mount::MntFlags::MNT_DETACH).unwrap();
            }
        });
    }

    #[test]
    fn a_mount_tree_is_restricted_at_once() {
        both_ways_restrict(restrict_at_once);
    }

    #[test]
    fn a_mount_tree_is_restricted_one_by_one() {
        both_ways_restrict(|target, access| {
            restrict_one_by_one(target, access).map_err(|error| io::Error::other(error.to_string()))
        });
    }
}
