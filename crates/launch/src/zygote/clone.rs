//! Cloning a child of the keeper.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// `struct clone_args` up to the `cgroup` field.
/// SOURCE: `include/uapi/linux/sched.h`, `CLONE_ARGS_SIZE_VER2`.
#[repr(C, align(8))]
#[derive(Debug, Default)]
pub(super) struct CloneArguments {
    pub(super) flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    pub(super) stack: u64,
    pub(super) stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
/// A child of the caller's parent.
const FLAGS: u64 = (libc::CLONE_PARENT | libc::CLONE_PARENT_SETTID) as u64;
/// Answers that send the caller to an older way.
///
/// KERNEL: clone3 came with 5.3, its cgroup with 5.7; container engines answer ENOSYS on purpose.
pub(super) const UNSUPPORTED: [i32; 4] = [libc::ENOSYS, libc::E2BIG, libc::EINVAL, libc::EPERM];

impl CloneArguments {
    /// A child of the caller's parent, born into `leaf`.
    pub(super) fn of_child(leaf: Option<&OwnedFd>, pid: *mut i32) -> Self {
        let cgroup = leaf.and_then(|leaf| u64::try_from(leaf.as_raw_fd()).ok());
        Self {
            flags: FLAGS | if cgroup.is_some() { CLONE_INTO_CGROUP } else { 0 },
            parent_tid: pid as u64,
            cgroup: cgroup.unwrap_or(0),
            ..Self::default()
        }
    }
}

/// Which process returned.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Side {
    Zygote,
    /// The child; whether it is in its leaf already.
    Child {
        is_in_leaf: bool,
    },
}

/// Clones the calling process, with a copy of its memory, as a child of its parent. The kernel writes the child's id to `pid`
/// before the child runs.
///
/// # Safety
///
/// The caller has one thread, and the child must end without returning to the caller's caller.
pub(super) unsafe fn clone_copy(leaf: Option<&OwnedFd>, pid: *mut i32) -> io::Result<Side> {
    let arguments = CloneArguments::of_child(leaf, pid);
    // SAFETY: the arguments are valid; without CLONE_VM the child has its own copy of everything.
    let result =
        unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<CloneArguments>()) };
    match result {
        0 => return Ok(Side::Child { is_in_leaf: true }),
        1.. => return Ok(Side::Zygote),
        _ => {}
    }
    let error = io::Error::last_os_error();
    if !error.raw_os_error().is_some_and(|code| UNSUPPORTED.contains(&code)) {
        return Err(error);
    }
    let flags = FLAGS | u64::try_from(libc::SIGCHLD).unwrap_or(0);
    // SAFETY: as above, by the older call: no stack of its own, as in fork.
    match unsafe { libc::syscall(libc::SYS_clone, flags, 0, pid, 0, 0) } {
        0 => Ok(Side::Child { is_in_leaf: leaf.is_none() }),
        1.. => Ok(Side::Zygote),
        _ => Err(io::Error::last_os_error()),
    }
}
