//! How a process is scheduled: class, nice, CPUs. Set from outside, and read back.

use std::io;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::LoadError;

/// A scheduling class of Linux (`sched(7)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// `SCHED_OTHER`.
    Other,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
    /// `SCHED_FIFO`.
    Fifo,
}

impl Class {
    /// Every class with its name.
    pub const ALL: [(Self, &'static str); 4] =
        [(Self::Other, "other"), (Self::Batch, "batch"), (Self::Idle, "idle"), (Self::Fifo, "fifo")];

    /// As in a plan.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(class, _)| *class == self).map_or("", |(_, name)| name)
    }

    const fn number(self) -> libc::c_int {
        match self {
            Self::Other => libc::SCHED_OTHER,
            Self::Batch => libc::SCHED_BATCH,
            Self::Idle => libc::SCHED_IDLE,
            Self::Fifo => libc::SCHED_FIFO,
        }
    }
}

/// Sets the class of a thread, and reads it back. Threads and processes that it starts inherit it.
pub(crate) fn set_class(thread: Pid, class: Class, priority: i32) -> io::Result<(Class, i32)> {
    let parameter = libc::sched_param { sched_priority: if class == Class::Fifo { priority } else { 0 } };
    // SAFETY: the parameter is valid for reading.
    let answer = unsafe { libc::sched_setscheduler(thread.as_raw(), class.number(), &raw const parameter) };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    class_of(thread)
}

/// Class and priority of a thread.
pub(crate) fn class_of(thread: Pid) -> io::Result<(Class, i32)> {
    // SAFETY: the call takes a number and touches no memory.
    let number = unsafe { libc::sched_getscheduler(thread.as_raw()) };
    let mut parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter is valid for writing.
    let answer = unsafe { libc::sched_getparam(thread.as_raw(), &raw mut parameter) };
    if number < 0 || answer != 0 {
        return Err(io::Error::last_os_error());
    }
    let known = Class::ALL.iter().find(|(class, _)| class.number() == number & !libc::SCHED_RESET_ON_FORK);
    known.map(|(class, _)| (*class, parameter.sched_priority)).ok_or_else(|| {
        io::Error::other(format!("the scheduling class {number} is none of other, batch, idle, fifo"))
    })
}

/// Sets the nice value of a thread, and reads it back.
pub(crate) fn set_nice(thread: Pid, nice: i32) -> io::Result<i32> {
    let id = u32::try_from(thread.as_raw()).unwrap_or(0);
    // SAFETY: the call takes numbers and touches no memory.
    if unsafe { libc::setpriority(libc::PRIO_PROCESS, id, nice) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above. The thread is alive and ours: -1 is a value here, not a failure.
    Ok(unsafe { libc::getpriority(libc::PRIO_PROCESS, id) })
}

/// Sets the CPUs of a thread, and reads them back.
pub(crate) fn set_cpus(thread: Pid, cpus: &[usize]) -> io::Result<Vec<usize>> {
    let mut wanted = CpuSet::new();
    for cpu in cpus {
        wanted.set(*cpu)?;
    }
    sched_setaffinity(thread, &wanted)?;
    Ok(listed(&sched_getaffinity(thread)?))
}

/// CPUs that this process may use.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    sched_getaffinity(Pid::from_raw(0)).map(|cpus| listed(&cpus)).unwrap_or_default()
}

fn listed(cpus: &CpuSet) -> Vec<usize> {
    (0..CpuSet::count()).filter(|cpu| cpus.is_set(*cpu).unwrap_or(false)).collect()
}

/// Refuses CPUs that this process may not use, and a list without any.
pub(crate) fn check_cpus(name: &str, cpus: &[usize]) -> Result<(), LoadError> {
    let allowed = allowed_cpus();
    let allowed_text = allowed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) => Err(LoadError::usage(format!("`{name}` names CPU {cpu}; allowed here: {allowed_text}"))),
        None if cpus.is_empty() => {
            Err(LoadError::usage(format!("`{name}` names no CPU; allowed here: {allowed_text}")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_back() {
        // A thread of its own: its class and CPUs must not reach other tests.
        let found = std::thread::spawn(|| {
            let me = nix::unistd::gettid();
            let cpu = allowed_cpus()[0];
            let cpus = set_cpus(me, &[cpu]).unwrap();
            let nice = set_nice(me, 5).unwrap();
            let batch = set_class(me, Class::Batch, 7).unwrap();
            (cpus == [cpu], nice, batch, set_class(me, Class::Idle, 0).unwrap())
        });
        assert_eq!(found.join().unwrap(), (true, 5, (Class::Batch, 0), (Class::Idle, 0)));
    }

    #[test]
    fn cpus_that_are_not_there_are_named() {
        let problem = |cpus: &[usize]| check_cpus("cpus", cpus).unwrap_err().to_string();
        assert!(problem(&[0, 999]).contains("`cpus` names CPU 999; allowed here: "));
        assert!(problem(&[]).contains("`cpus` names no CPU"));
    }
}
