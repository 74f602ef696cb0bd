//! The root file system: an empty one in memory, on which an allow-list of the host is shown.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, chroot, pivot_root};
use steelyard_model::NetworkView;

use super::error::{Context, SandboxError};
use super::mounts::{bind, make_directory, make_private, mount_new, show_entry};
use super::paths::{Extra, HIDDEN, Tree};
use super::{devices, etc, proc};

/// Everything the root is made of, resolved on the host.
#[derive(Debug)]
pub(super) struct Plan {
    pub tree: Tree,
    pub extras: Vec<Extra>,
    pub network: NetworkView,
    pub user_id: u32,
}

/// Directories of the host that hold programs and libraries.
const HOST_TREES: [&str; 10] =
    ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "opt", "nix/store", "gnu/store"];

/// Entries of a root tree that the sandbox makes itself.
const OWN_ENTRIES: [&str; 6] = ["proc", "sys", "dev", "tmp", "box", ".steelyard"];

/// Builds the root in the caller's new mount namespace and makes it `/`.
///
/// Afterwards nothing of the host is reachable but what is shown. Returns what this host could
/// not give.
pub(super) fn build(plan: &Plan) -> Result<Vec<String>, SandboxError> {
    make_private()?;
    let old = replace_root()?;
    let mut degraded = proc::mount_proc()?;
    make_places()?;
    match &plan.tree {
        Tree::Host => show_host(&old, plan)?,
        Tree::Directory(path) => show_directory(&below(&old, path))?,
    }
    devices::make(&old)?;
    proc::show_hardware(&old)?;
    for (index, extra) in plan.extras.iter().enumerate() {
        show_extra(&old, index, extra)?;
    }
    degraded.extend(proc::mask()?);
    umount2(&old, MntFlags::MNT_DETACH).step(|| "detach the host's root".into())?;
    fs::remove_dir(&old).step(|| "remove the place of the host's root".into())?;
    seal_root()?;
    Ok(degraded)
}

/// Makes an empty memory file system `/`, and answers where the host's root is for now.
///
/// That place has a name nobody can guess, so that no symbolic link in a tree can point there.
fn replace_root() -> Result<PathBuf, SandboxError> {
    let staging = ["/tmp", "/mnt", "/usr", "/proc", "/dev"]
        .into_iter()
        .map(Path::new)
        .find(|place| place.is_dir())
        .ok_or_else(|| SandboxError::step("find a directory to mount the root on", not_found()))?;
    mount_new("tmpfs", staging, MsFlags::MS_NOSUID | MsFlags::MS_NODEV, "mode=755,size=16m,nr_inodes=8192")?;
    let name = format!(".host-{:032x}", random()?);
    chdir(staging).step(|| "enter the new root".into())?;
    fs::create_dir(&name).step(|| "make a place for the host's root".into())?;
    let old = Path::new("/").join(&name);
    match pivot_root(".", name.as_str()) {
        Ok(()) => {}
        // The root of an initial RAM disk cannot be pivoted away; the new root goes on top of it.
        Err(nix::errno::Errno::EINVAL) => move_root(staging, &name)?,
        Err(error) => return Err(SandboxError::step("exchange the root", error)),
    }
    chdir("/").step(|| "enter the new root".into())?;
    Ok(old)
}

fn move_root(staging: &Path, name: &str) -> Result<(), SandboxError> {
    let old = staging.join(name);
    mount(Some("/"), &old, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
        .step(|| "keep the host's root at hand".into())?;
    // The copy holds a second mount of the staging area, which would cover the host's own directory.
    let covering = below(&old, staging);
    let _ = umount2(&covering, MntFlags::MNT_DETACH);
    mount(Some("."), "/", None::<&str>, MsFlags::MS_MOVE, None::<&str>)
        .step(|| "move the new root".into())?;
    chroot(".").step(|| "enter the new root".into())
}

fn not_found() -> std::io::Error {
    std::io::Error::from_raw_os_error(libc::ENOENT)
}

fn random() -> Result<u128, SandboxError> {
    let mut bytes = [0_u8; 16];
    fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .step(|| "read `/dev/urandom`".into())?;
    Ok(u128::from_ne_bytes(bytes))
}

/// A host path as it is reachable below `old`.
pub(super) fn below(old: &Path, path: &Path) -> PathBuf {
    old.join(path.strip_prefix("/").unwrap_or(path))
}

fn make_places() -> Result<(), SandboxError> {
    for place in ["tmp", "box", "sys", "dev", ".steelyard/scratch", ".steelyard/extra", ".steelyard/empty"] {
        make_directory(&Path::new("/").join(place))?;
    }
    let hidden: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(HIDDEN, hidden).step(|| format!("hide `{HIDDEN}`"))
}

fn show_host(old: &Path, plan: &Plan) -> Result<(), SandboxError> {
    for name in HOST_TREES {
        show_entry(&old.join(name), &Path::new("/").join(name))?;
    }
    etc::make(old, plan.user_id, plan.network)
}

fn show_directory(tree: &Path) -> Result<(), SandboxError> {
    let entries = fs::read_dir(tree).step(|| "list the directory given as root".into())?;
    for entry in entries {
        let name = entry.step(|| "list the directory given as root".into())?.file_name();
        if OWN_ENTRIES.iter().all(|own| name != *own) {
            show_entry(&tree.join(&name), &Path::new("/").join(&name))?;
        }
    }
    Ok(())
}

fn show_extra(old: &Path, index: usize, extra: &Extra) -> Result<(), SandboxError> {
    let target = if extra.is_per_run() { waiting_place(index) } else { extra.target.clone() };
    make_mount_point(&target, extra)?;
    bind(&below(old, &extra.source), &target, extra.access)
}

/// Where the mount of an extra waits that each run binds anew.
pub(super) fn waiting_place(index: usize) -> PathBuf {
    Path::new(HIDDEN).join("extra").join(index.to_string())
}

/// Makes the file or directory an extra is mounted on, unless it is there.
pub(super) fn make_mount_point(target: &Path, extra: &Extra) -> Result<(), SandboxError> {
    let made = if extra.is_directory {
        fs::create_dir_all(target)
    } else if target.exists() {
        Ok(())
    } else {
        let parent = target.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(parent).and_then(|()| fs::File::create(target).map(drop))
    };
    made.map_err(|error| {
        let problem = format!("no place for it in the root shown ({error}); the root must contain that path");
        SandboxError::path(extra.field(), &extra.target, problem)
    })
}

fn seal_root() -> Result<(), SandboxError> {
    let flags =
        MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>).step(|| "make the new root read-only".into())
}
