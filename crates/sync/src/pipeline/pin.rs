use std::io;

use crate::SyncError;

/// Asks for timers of the calling thread that are not put off to save wake-ups.
pub(super) fn sharpen_timers() {
    // SAFETY: the call takes a number of nanoseconds and changes nothing else. Without it timers are up
    // to 50 us late, which costs throughput and nothing more.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000_u64) };
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
