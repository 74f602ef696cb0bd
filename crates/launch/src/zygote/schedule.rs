//! Limits, CPUs and scheduling of the calling process, as far as the kernel has them per process.

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;
use steelyard_model::{Limits, Placement, SchedulingPolicy};

use crate::scheduling::set_policy;

/// What failed: the kernel's answer and the words for it.
pub(super) type Failure = (Errno, String);

const NS_PER_S: u64 = 1_000_000_000;

/// Sets the limits the kernel enforces per process.
pub(super) fn limit(limits: &Limits) -> Result<(), Failure> {
    // KERNEL: 0 forbids a core file, but not a handler that `core_pattern` pipes it to; 1 forbids both.
    set("core file size", Resource::RLIMIT_CORE, Some(1))?;
    set("open_file_count", Resource::RLIMIT_NOFILE, limits.open_file_count)?;
    set("file_size_bytes", Resource::RLIMIT_FSIZE, limits.file_size_bytes)?;
    set("stack_bytes", Resource::RLIMIT_STACK, limits.stack_bytes)?;
    // A backstop one second late: the launcher's own timer is exact and counts the whole tree.
    let seconds = limits.cpu_time_ns.map(|limit_ns| limit_ns.div_ceil(NS_PER_S) + 1);
    set("cpu_time_ns", Resource::RLIMIT_CPU, seconds)
}

/// Bounds memory and processes on hosts where no control group does.
pub(super) fn limit_without_groups(limits: &Limits, unlimited: Ungrouped) -> Result<(), Failure> {
    if unlimited.memory {
        set("memory_bytes", Resource::RLIMIT_DATA, limits.memory_bytes)?;
    }
    if unlimited.processes {
        set("process_count", Resource::RLIMIT_NPROC, limits.process_count)?;
    }
    Ok(())
}

/// What no control group limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ungrouped {
    pub(super) memory: bool,
    pub(super) processes: bool,
}

fn set(name: &str, resource: Resource, value: Option<u64>) -> Result<(), Failure> {
    let Some(value) = value else { return Ok(()) };
    setrlimit(resource, value, value).map_err(|errno| {
        let hard = getrlimit(resource).map_or(0, |(_, hard)| hard);
        (errno, format!("cannot set `{name}` to {value}; allowed here: up to {hard}"))
    })
}

/// Puts the process where the specification wants it.
pub(super) fn place(placement: &Placement) -> Result<(), Failure> {
    if let Some(cpus) = &placement.cpus {
        pin(cpus)?;
    }
    if let Some(nodes) = &placement.memory_nodes {
        bind_memory(nodes)?;
    }
    if let Some(randomise) = placement.randomise_addresses {
        set_randomisation(randomise)?;
    }
    schedule(placement.policy)
}

fn pin(cpus: &[u32]) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu as usize).map_err(|errno| (errno, format!("`placement.cpus` has CPU {cpu}")))?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)
        .map_err(|errno| (errno, format!("cannot use the CPUs {cpus:?} of `placement.cpus`")))
}

fn bind_memory(nodes: &[u32]) -> Result<(), Failure> {
    let failure =
        |errno| (errno, format!("cannot use the memory nodes {nodes:?} of `placement.memory_nodes`"));
    let mut mask = 0_u64;
    for node in nodes {
        mask |= 1_u64.checked_shl(*node).ok_or_else(|| failure(Errno::EINVAL))?;
    }
    // SAFETY: the mask is valid for the call and has as many bits as announced.
    let result =
        unsafe { libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_BIND, &raw const mask, u64::BITS + 1) };
    match Errno::result(result) {
        Ok(_) => Ok(()),
        // A kernel without memory policies has one node, which is then what was asked for.
        Err(Errno::ENOSYS) if mask == 1 => Ok(()),
        Err(errno) => Err(failure(errno)),
    }
}

fn set_randomisation(randomise: bool) -> Result<(), Failure> {
    const QUERY: libc::c_ulong = 0xffff_ffff;
    let flag = libc::c_ulong::try_from(libc::ADDR_NO_RANDOMIZE).unwrap_or(0);
    // SAFETY: asks only.
    let now = unsafe { libc::personality(QUERY) };
    let now = libc::c_ulong::try_from(now).unwrap_or(0);
    let wanted = if randomise { now & !flag } else { now | flag };
    // SAFETY: changes how the next exec lays out its addresses, nothing else.
    Errno::result(unsafe { libc::personality(wanted) })
        .map(drop)
        .map_err(|errno| (errno, "cannot set `placement.randomise_addresses`".to_owned()))
}

fn schedule(policy: SchedulingPolicy) -> Result<(), Failure> {
    let (class, priority) = match policy {
        SchedulingPolicy::Batch => (libc::SCHED_BATCH, 0),
        SchedulingPolicy::Idle => (libc::SCHED_IDLE, 0),
        SchedulingPolicy::Fifo { priority } => (libc::SCHED_FIFO, i32::from(priority)),
        _ => return Ok(()),
    };
    set_policy(class, priority).map_err(|error| {
        let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
        (errno, format!("cannot set `placement.policy` {policy:?}"))
    })
}
