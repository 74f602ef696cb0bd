use std::io;

use crate::SyncError;

/// Asks for timers of the calling thread that are not put off to save wake-ups.
pub(super) fn sharpen_timers() {
    // SAFETY: the call takes a number of nanoseconds and changes nothing else. Without it timers are up
    // to 50 us late, which costs throughput and nothing more.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000_u64) };
}

/// Attributes of a thread's scheduling, as `sched_setattr(2)` takes them in their first version.
#[repr(C)]
#[derive(Debug, Default)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Asks for short slices for the calling thread, so that it gets a core soon after waking: it works
/// for a few microseconds at a time, and workers run dry without it.
///
/// KERNEL: from 6.12 on, a thread with a shorter slice pre-empts one with a longer slice when it
/// wakes (sched/eevdf, `PREEMPT_SHORT`); earlier kernels ignore the length.
pub(super) fn shorten_slices() {
    /// SOURCE: the shortest slice that the kernel takes.
    const SLICE_NS: u64 = 100_000;
    let mut attributes = SchedulingAttributes::default();
    let size = size_of::<SchedulingAttributes>();
    // SAFETY: 0 is the calling thread; the kernel writes at most `size` bytes there.
    if unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) } != 0
        || attributes.policy != 0
    {
        // A thread under another policy was put there by somebody who knows why.
        return;
    }
    attributes.runtime_ns = SLICE_NS;
    // SAFETY: as above, and the kernel only reads. A refusal costs throughput and nothing more.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// Binds the calling thread to the CPU that its place in the list names.
pub(super) fn apply(cpus: &[usize], thread: usize) {
    if !cpus.is_empty() {
        // `require` has tried every CPU of the list; one that was taken away since is no reason to stop.
        let _ = bind(&[cpus[thread % cpus.len()]]);
    }
}

/// Tries every CPU of the list and leaves the calling thread as it was.
pub(super) fn require(cpus: &[usize]) -> Result<(), SyncError> {
    if cpus.is_empty() {
        return Ok(());
    }
    let before = allowed()?;
    for &cpu in cpus {
        if !before.contains(&cpu) {
            let list: Vec<String> = before.iter().map(usize::to_string).collect();
            return Err(SyncError::usage(format!(
                "`--pin` names CPU {cpu}; allowed: CPUs of this process, {}",
                list.join(",")
            )));
        }
    }
    Ok(())
}

/// CPUs that the calling thread may use.
fn allowed() -> Result<Vec<usize>, SyncError> {
    // SAFETY: all bits zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid for writing, its size is given; 0 is the calling thread.
    let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0;
    if failed {
        let source = io::Error::last_os_error();
        return Err(SyncError::System { action: "sched_getaffinity".to_owned(), source });
    }
    // SAFETY: the index is below the size of the set.
    Ok((0..libc::CPU_SETSIZE.unsigned_abs() as usize)
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect())
}

fn bind(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: all bits zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus {
        // SAFETY: `require` admits only numbers that are in a set of this size.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: `set` is valid, its size is given; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
