//! `/proc` of the pool's own pid namespace, and the little of `/sys` that programs ask for.

use std::fs;
use std::path::Path;

use nix::mount::{MsFlags, mount};

use super::error::SandboxError;
use super::mounts::{Access, bind, bind_raw, make_directory};
use super::paths::HIDDEN;

/// Host-wide entries that tell about the host or act on it. `/proc` as a whole is read-only, and
/// the program's user could open few of them; covering them is the second wall.
const MASKED: [&str; 21] = [
    "acpi",
    "asound",
    "bus",
    "iomem",
    "ioports",
    "kallsyms",
    "kcore",
    "keys",
    "key-users",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "pagetypeinfo",
    "sched_debug",
    "scsi",
    "slabinfo",
    "sysrq-trigger",
    "timer_list",
    "vmallocinfo",
];

/// Topology and page sizes: what thread libraries, allocators and virtual machines of languages read.
const HARDWARE: [&str; 3] =
    ["sys/devices/system/cpu", "sys/devices/system/node", "sys/kernel/mm/transparent_hugepage"];

/// Mounts `/proc`: read-only, other users' processes invisible.
///
/// Must happen while the host's own `/proc` is still mounted somewhere, or a user namespace is
/// refused.
pub(super) fn mount_proc() -> Result<Vec<String>, SandboxError> {
    make_directory(Path::new("/proc"))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY;
    let attempts = [("hidepid=2", None), ("", Some("`/proc` cannot hide processes of other users"))];
    let mut reason = String::new();
    for (options, remark) in attempts {
        match mount(Some("proc"), "/proc", Some("proc"), flags, Some(options)) {
            Ok(()) => return Ok(remark.map(|text| format!("{text}: {reason}")).into_iter().collect()),
            Err(error) => reason = error.to_string(),
        }
    }
    Ok(vec![format!("no `/proc` inside: cannot mount it: {reason}")])
}

/// Shows the allowed parts of the host's `/sys`, read-only.
pub(super) fn show_hardware(old: &Path) -> Result<(), SandboxError> {
    for entry in HARDWARE {
        let source = old.join(entry);
        if source.is_dir() {
            let target = Path::new("/").join(entry);
            make_directory(&target)?;
            bind(&source, &target, Access::ReadOnly)?;
        }
    }
    Ok(())
}

/// Covers the [`MASKED`] entries that exist.
pub(super) fn mask() -> Result<Vec<String>, SandboxError> {
    let empty = Path::new(HIDDEN).join("empty");
    for entry in MASKED {
        let target = Path::new("/proc").join(entry);
        match fs::symlink_metadata(&target) {
            Ok(kind) if kind.is_dir() => bind(&empty, &target, Access::ReadOnly)?,
            Ok(_) => bind_raw(Path::new("/dev/null"), &target)?,
            Err(_) => {}
        }
    }
    Ok(Vec::new())
}
