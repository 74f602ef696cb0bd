//! `/dev`: the harmless devices alone.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};

use super::error::{Context, SandboxError};
use super::mounts::{bind_raw, make_directory, mount_new};

/// Name, major and minor number. SOURCE: devices.txt of the Linux kernel.
const DEVICES: [(&str, u64, u64); 5] =
    [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9)];

/// `/dev/tty` is left out: it would lead to the terminal of whoever started Steelyard.
const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Makes `/dev` from new nodes, or from the host's at `old` where nodes may not be made.
pub(super) fn make(old: &Path) -> Result<(), SandboxError> {
    let dev = Path::new("/dev");
    mount_new("tmpfs", dev, MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC, "mode=755,size=64k,nr_inodes=64")?;
    for (name, major, minor) in DEVICES {
        let node = dev.join(name);
        if make_node(&node, major, minor).is_err() {
            fs::File::create(&node).step(|| format!("make `{}`", node.display()))?;
            bind_raw(&old.join("dev").join(name), &node)?;
        }
    }
    for (name, to) in LINKS {
        symlink(to, dev.join(name)).step(|| format!("make the link `/dev/{name}`"))?;
    }
    make_directory(&dev.join("shm"))?;
    let flags =
        MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    mount(None::<&str>, dev, None::<&str>, flags, None::<&str>).step(|| "make `/dev` read-only".into())
}

fn make_node(node: &Path, major: u64, minor: u64) -> std::io::Result<()> {
    let everyone = Mode::from_bits_truncate(0o666);
    mknod(node, SFlag::S_IFCHR, everyone, makedev(major, minor))?;
    // The umask of the caller must not decide who may use `/dev/null`; and a node that exists may
    // still be one that a device cgroup forbids to open.
    let opened = fs::set_permissions(node, std::os::unix::fs::PermissionsExt::from_mode(0o666))
        .and_then(|()| fs::File::open(node).map(drop));
    if opened.is_err() {
        fs::remove_file(node)?;
    }
    opened
}
