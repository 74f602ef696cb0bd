//! Policy and CPUs of the calling thread.

use std::io;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

/// Puts the calling thread under a policy of the kernel's; `priority` is 0 but for the real-time ones.
///
/// # Errors
///
/// The kernel's refusal: a policy that it does not know, or that this user may not choose.
pub(crate) fn set_policy(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameter is valid for the call.
    if unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The CPUs that the calling thread may use; none if the kernel does not say.
pub(crate) fn allowed_cpus() -> Vec<u32> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count())
        .filter(|cpu| set.is_set(*cpu).unwrap_or(false))
        .filter_map(|cpu| u32::try_from(cpu).ok())
        .collect()
}
