//! Policy and CPUs of the calling thread.

use std::io;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::resource::{Resource, getrlimit};
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

/// Gives the calling thread the highest priority that it may have. Answers whether that is one of real time,
/// before which no load of other programs comes.
pub(crate) fn take_precedence() -> bool {
    // SAFETY: asks only.
    let highest = unsafe { libc::sched_get_priority_max(libc::SCHED_FIFO) };
    if set_policy(libc::SCHED_FIFO, highest).is_ok() {
        return true;
    }
    let allowed = getrlimit(Resource::RLIMIT_NICE).map_or(0, |(soft, _)| soft);
    let lowest = 20 - i32::try_from(allowed.min(40)).unwrap_or(0);
    // What is refused is asked for again with less; with no more than the thread has it is refused to nobody.
    let _ = [-20, lowest.min(0), 0].into_iter().find(|nice| set_usual(*nice).is_ok());
    false
}

/// How a process that is about to end comes before others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precedence {
    /// At once, but the kernel may give its group no more of such time in this second.
    RealTime,
    /// Soon.
    Nice,
}

/// Gives a process that is about to end the CPU before others, with all of its threads, as far as this user may.
pub(crate) fn give_precedence(pid: libc::pid_t, how: Precedence) {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let numbers = threads.filter_map(|thread| thread.file_name().to_str()?.parse::<libc::pid_t>().ok());
    // SAFETY: asks only.
    let lowest = unsafe { libc::sched_get_priority_min(libc::SCHED_FIFO) };
    let set = |thread, policy, priority| {
        let parameter = libc::sched_param { sched_priority: priority };
        // SAFETY: the parameter is valid for the call.
        unsafe { libc::sched_setscheduler(thread, policy, &raw const parameter) >= 0 }
    };
    for thread in numbers.take(MOST_THREADS) {
        if how == Precedence::RealTime && set(thread, libc::SCHED_FIFO, lowest) {
            continue;
        }
        set(thread, libc::SCHED_OTHER, 0);
        // SAFETY: no pointers are passed.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, thread.cast_unsigned(), -20) };
    }
}

/// So many are served within a millisecond.
const MOST_THREADS: usize = 512;

/// The usual policy with this niceness, and a short slice: a thread that wants little gets it soon.
fn set_usual(nice: i32) -> io::Result<()> {
    let attributes = Attributes {
        size: u32::try_from(size_of::<Attributes>()).unwrap_or(0),
        nice,
        // KERNEL: the length of a slice since 6.12, ignored before.
        runtime: SHORTEST_SLICE_NS,
        ..Attributes::default()
    };
    // SAFETY: the attributes are valid for the call and carry their size.
    if unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// SOURCE: `sched_setattr` in the kernel's `syscalls.c` takes no shorter one.
const SHORTEST_SLICE_NS: u64 = 100_000;

/// `struct sched_attr` in its first version; all zero is the usual policy.
/// SOURCE: `include/uapi/linux/sched/types.h`, `SCHED_ATTR_SIZE_VER0`.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The CPUs that the calling thread may use; none if the kernel does not say.
pub(crate) fn allowed_cpus() -> Vec<u32> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count())
        .filter(|cpu| set.is_set(*cpu).unwrap_or(false))
        .filter_map(|cpu| u32::try_from(cpu).ok())
        .collect()
}
