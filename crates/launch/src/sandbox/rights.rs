//! Giving up every right, for good.

use std::io;

use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};

use super::error::{Context, SandboxError};

/// SOURCE: linux/securebits.h. No rights by being root, no fix-up at changes of user, no kept
/// capabilities, no ambient ones; each locked.
const SECUREBITS: libc::c_ulong = 0b1110_1111;

/// Gives up what a process does not need to set others up: supplementary groups, and the ways to gain
/// rights that it does not have. Its children inherit the lack.
///
/// `keep_user` is for a user namespace that knows one user, who may not change his groups.
pub(super) fn drop_spare(keep_user: bool) -> Result<(), SandboxError> {
    if !keep_user {
        setgroups(&[]).step(|| "drop the supplementary groups".into())?;
    }
    drop_bounding().step(|| "drop the bounding capabilities".into())?;
    prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong)
        .step(|| "drop the ambient capabilities".into())?;
    prctl(libc::PR_SET_SECUREBITS, SECUREBITS).step(|| "lock the secure bits".into())?;
    nix::sys::prctl::set_no_new_privs().step(|| "forbid new privileges".into())
}

/// Becomes `user_id` without capabilities, after [`drop_spare`] took every way to gain any.
///
/// `keep_user` as there: the caller is that user already.
pub(super) fn drop_rest(user_id: u32, keep_user: bool) -> Result<(), SandboxError> {
    if !keep_user {
        let (user, group) = (Uid::from_raw(user_id), Gid::from_raw(user_id));
        setresgid(group, group, group).step(|| format!("become group {user_id}"))?;
        setresuid(user, user, user).step(|| format!("become user {user_id}"))?;
    }
    // The locked bits keep the change of user from doing this, so it is done here.
    drop_capabilities().step(|| "drop the capabilities".into())?;
    if keep_user {
        // Joining the user namespace took it away, and without it the launcher may not measure.
        nix::sys::prctl::set_dumpable(true).step(|| "let the launcher measure".into())?;
    }
    Ok(())
}

/// Empties the effective, permitted and inheritable sets at once.
fn drop_capabilities() -> io::Result<()> {
    // SOURCE: linux/capability.h: `_LINUX_CAPABILITY_VERSION_3` and the caller; two words of each set.
    let header = [0x2008_0522_u32, 0];
    let nothing = [0_u32; 6];
    // SAFETY: both have the size that this version has.
    let answer = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), nothing.as_ptr()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn drop_bounding() -> io::Result<()> {
    for capability in 0..=63 {
        match prctl(libc::PR_CAPBSET_DROP, capability) {
            Ok(_) => {}
            // Past the last capability of this kernel.
            Err(error) if capability > 0 && error.raw_os_error() == Some(libc::EINVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn prctl(option: libc::c_int, argument: libc::c_ulong) -> io::Result<libc::c_int> {
    // SAFETY: none of the options used here takes a pointer.
    let answer = unsafe { libc::prctl(option, argument, 0, 0, 0) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
