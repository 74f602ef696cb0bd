//! Where an endpoint executes, and how long it waited for a CPU.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::CommError;

/// CPUs that the calling thread may use.
pub(crate) fn allowed() -> Result<Vec<usize>, CommError> {
    // SAFETY: all bits zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid for writing, its size is given; 0 is the calling thread.
    let failed = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0;
    if failed {
        return Err(CommError::system("asking for the allowed CPUs", io::Error::last_os_error()));
    }
    let count = libc::CPU_SETSIZE.unsigned_abs() as usize;
    // SAFETY: the index is below the size of the set.
    Ok((0..count).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect())
}

/// Refuses a CPU that is not among the allowed ones.
pub(crate) fn require(cpu: usize, usable: &[usize]) -> Result<(), CommError> {
    if usable.contains(&cpu) {
        return Ok(());
    }
    let list: Vec<String> = usable.iter().map(usize::to_string).collect();
    Err(CommError::usage(format!(
        "`--cpus` names CPU {cpu}; allowed: CPUs of this process, {}",
        list.join(",")
    )))
}

/// Binds the calling thread to one CPU, which must be in the set of the process.
pub(crate) fn pin(cpu: usize) -> Result<(), CommError> {
    // SAFETY: all bits zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if cpu >= libc::CPU_SETSIZE.unsigned_abs() as usize {
        return require(cpu, &allowed()?);
    }
    // SAFETY: the number is below the size of the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: `set` is valid, its size is given; 0 is the calling thread.
    let failed = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) } != 0;
    if failed {
        let error = io::Error::last_os_error();
        require(cpu, &allowed()?)?;
        return Err(CommError::system(format!("binding to CPU {cpu}"), error));
    }
    Ok(())
}

/// CPU of the calling thread.
pub(crate) fn current() -> u32 {
    // SAFETY: the call has no arguments and touches no memory.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).unwrap_or(u32::MAX)
}

/// Time the calling thread waited for a CPU although it could have run.
#[derive(Debug)]
pub(crate) struct RunDelay {
    file: Option<File>,
}

impl RunDelay {
    /// Of the thread that calls this.
    pub(crate) fn of_this_thread() -> Self {
        Self { file: File::open("/proc/thread-self/schedstat").ok() }
    }

    /// Since the thread's start [ns]; 0 where the kernel does not count it.
    pub(crate) fn read_ns(&self) -> u64 {
        let mut text = [0; 96];
        let Some(Ok(length)) = self.file.as_ref().map(|file| file.read_at(&mut text, 0)) else { return 0 };
        second_number(&text[..length]).unwrap_or(0)
    }
}

/// KERNEL: `schedstat` of a thread is "time on CPU, time waiting, time slices" (Documentation/scheduler/
/// sched-stats.rst).
fn second_number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_waiting() {
        assert_eq!(second_number(b"12 345 6\n"), Some(345));
        assert_eq!(second_number(b""), None);
        assert_eq!(second_number(b"1 x 3"), None);
    }

    #[test]
    fn a_cpu_that_is_not_allowed_is_refused_by_name() {
        let error = require(100_000, &allowed().unwrap()).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("names CPU 100000; allowed: CPUs of this process, "));
    }

    #[test]
    fn a_pinned_thread_is_where_it_was_pinned() {
        let cpu = *allowed().unwrap().last().unwrap();
        std::thread::spawn(move || {
            pin(cpu).unwrap();
            assert_eq!(current() as usize, cpu);
        })
        .join()
        .unwrap();
    }
}
