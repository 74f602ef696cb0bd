//! Namespaces: making them, keeping them, entering them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use nix::sched::{CloneFlags, setns};
use nix::unistd::Pid;

use super::error::{Context, SandboxError};

/// Open handles of the namespaces of a pool. `None`: this kind was not made, the host's is used.
#[derive(Debug)]
pub(super) struct Handles {
    user: Option<File>,
    pid: File,
    mount: File,
    network: Option<File>,
    uts: Option<File>,
}

impl Handles {
    /// Opens the namespaces of the first process of a pool; `made` are the optional ones.
    pub(super) fn open(init: Pid, made: CloneFlags, own_user: bool) -> Result<Self, SandboxError> {
        let open = |kind: &str| {
            let path = format!("/proc/{init}/ns/{kind}");
            File::open(&path).step(|| format!("open `{path}`"))
        };
        Ok(Self {
            user: own_user.then(|| open("user")).transpose()?,
            pid: open("pid")?,
            mount: open("mnt")?,
            network: made.contains(CloneFlags::CLONE_NEWNET).then(|| open("net")).transpose()?,
            uts: made.contains(CloneFlags::CLONE_NEWUTS).then(|| open("uts")).transpose()?,
        })
    }

    /// Makes the caller's next child a member of the pid namespace.
    ///
    /// An ordinary user must become a member of the user namespace himself: joining a pid
    /// namespace needs `CAP_SYS_ADMIN` in the caller's own user namespace.
    pub(super) fn enter_pid(&self) -> Result<(), SandboxError> {
        if let Some(user) = &self.user
            && !is_own_user_namespace(user)
        {
            setns(user, CloneFlags::CLONE_NEWUSER).step(|| "enter the user namespace of the pool".into())?;
        }
        setns(&self.pid, CloneFlags::CLONE_NEWPID).step(|| "enter the pid namespace of the pool".into())
    }

    /// Enters network and uts namespaces.
    pub(super) fn enter_rest(&self) -> Result<(), SandboxError> {
        if let Some(network) = &self.network {
            setns(network, CloneFlags::CLONE_NEWNET)
                .step(|| "enter the network namespace of the pool".into())?;
        }
        if let Some(uts) = &self.uts {
            setns(uts, CloneFlags::CLONE_NEWUTS).step(|| "enter the uts namespace of the pool".into())?;
        }
        Ok(())
    }

    /// Enters the mount namespace without a writable area; `/` becomes the root of the sandbox.
    pub(super) fn enter_mount(&self) -> Result<(), SandboxError> {
        setns(&self.mount, CloneFlags::CLONE_NEWNS).step(|| "enter the mount namespace of the pool".into())
    }
}

fn is_own_user_namespace(other: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (other.metadata(), std::fs::metadata("/proc/self/ns/user")) {
        (Ok(other), Ok(own)) => (other.dev(), other.ino()) == (own.dev(), own.ino()),
        _ => false,
    }
}

/// Lets the caller's next children be born in its own pid namespace again.
pub(super) fn leave_pid() -> io::Result<()> {
    let own = File::open("/proc/self/ns/pid")?;
    Ok(setns(own.as_fd(), CloneFlags::CLONE_NEWPID)?)
}

/// Which side of a clone this is.
pub(super) enum Side {
    Parent(Pid),
    Child,
}

/// `fork` into new namespaces, without the C library's locks and handlers.
///
/// KERNEL: `clone` instead of `clone3`, because container filters answer `clone3` with `ENOSYS`.
///
/// # Safety
///
/// The caller has one thread. The child must end by `_exit`.
pub(super) unsafe fn clone_into(flags: CloneFlags) -> io::Result<Side> {
    let flags = libc::c_long::from(flags.bits()) | libc::c_long::from(libc::SIGCHLD);
    // SAFETY: no CLONE_VM, so the child owns a copy of the address space and of this stack; all
    // pointer arguments are null, whatever their order on this architecture.
    let answer = unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize) };
    match answer {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Side::Child),
        pid => i32::try_from(pid).map(|pid| Side::Parent(Pid::from_raw(pid))).map_err(io::Error::other),
    }
}

/// A descriptor that stays valid when the number of the process is used again.
pub(super) fn pidfd_open(process: Pid) -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let answer = unsafe { libc::syscall(libc::SYS_pidfd_open, process.as_raw(), 0) };
    let fd = i32::try_from(answer).map_err(io::Error::other)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us; it is close-on-exec.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// SIGKILL by descriptor.
pub(super) fn kill_by(pidfd: &OwnedFd) -> io::Result<()> {
    // SAFETY: a null `siginfo` asks for the same as `kill`.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            libc::SIGKILL,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
