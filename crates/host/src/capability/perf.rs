use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;

use super::statement::Capability;
use crate::HostRoot;

/// Size of `perf_event_attr` up to and including `sample_max_stack`, accepted since Linux 4.8.
const ATTRIBUTE_BYTES: u32 = 112;
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const CPU_CYCLES: u64 = 0;
const TASK_CLOCK: u64 = 1;
const DUMMY: u64 = 9;

// SOURCE: bit positions of the flag word of `perf_event_attr`, include/uapi/linux/perf_event.h.
const DISABLED: u64 = 1 << 0;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const COMM: u64 = 1 << 9;
const TASK: u64 = 1 << 13;
const COMM_EXEC: u64 = 1 << 24;
const USE_CLOCK_ID: u64 = 1 << 25;

/// `perf_event_attr` as far as it is used here.
#[repr(C)]
#[derive(Default)]
struct Attribute {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_registers_user: u64,
    sample_stack_user: u32,
    clock_id: i32,
    sample_registers_interrupt: u64,
    auxiliary_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

pub(super) fn probe(root: &HostRoot) -> Vec<Capability> {
    let paranoid = root.text("/proc/sys/kernel/perf_event_paranoid").unwrap_or_else(|| "unknown".to_owned());
    vec![
        tracepoints(root, &paranoid),
        exec_records(&paranoid),
        counter("perf.task-clock", "exact CPU time of a run", (SOFTWARE, TASK_CLOCK), &paranoid),
        counter("perf.hardware", "cycles, instructions, cache misses", (HARDWARE, CPU_CYCLES), &paranoid),
    ]
}

fn tracepoints(root: &HostRoot, paranoid: &str) -> Capability {
    let look = Capability::new(
        "perf.tracepoints",
        "stamps right before the first and right after the last instruction of a program",
        "tracefs in /proc/filesystems, perf_event_open of a dummy event on a whole CPU",
    );
    let file_systems = root.text("/proc/filesystems").unwrap_or_default();
    if !file_systems.lines().any(|line| line.split_whitespace().last() == Some("tracefs")) {
        return look.absent("the kernel was built without tracefs", None);
    }
    let attribute = Attribute { kind: SOFTWARE, config: DUMMY, flags: DISABLED, ..Attribute::default() };
    match open_for(attribute, -1, 0) {
        Ok(_) => {
            look.present(format!("perf_event_paranoid is {paranoid}; reading tracefs takes the superuser"))
        }
        Err(error) => look.absent(describe(error, paranoid), Some("run as root")),
    }
}

fn exec_records(paranoid: &str) -> Capability {
    let look = Capability::new(
        "perf.exec-records",
        "kernel stamps of exec and exit",
        "perf_event_open of a dummy event with comm_exec, and its ring buffer",
    );
    let flags = DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | COMM | TASK | COMM_EXEC | USE_CLOCK_ID;
    let attribute = Attribute {
        kind: SOFTWARE,
        config: DUMMY,
        flags,
        clock_id: libc::CLOCK_MONOTONIC,
        ..Attribute::default()
    };
    match open(attribute).and_then(|event| map_ring(&event)) {
        Ok(()) => look.present(format!("perf_event_paranoid is {paranoid}")),
        Err(error) => look.absent(describe(error, paranoid), Some("sysctl kernel.perf_event_paranoid=1")),
    }
}

fn counter(name: &str, purpose: &str, event: (u32, u64), paranoid: &str) -> Capability {
    let look = Capability::new(name, purpose, "perf_event_open on this process");
    let (kind, config) = event;
    let attribute = |flags: u64| Attribute { kind, config, flags: DISABLED | flags, ..Attribute::default() };
    if open(attribute(0)).is_ok() {
        return look.present(format!("user and kernel part; perf_event_paranoid is {paranoid}"));
    }
    match open(attribute(EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR)) {
        Ok(_) => look.present(format!("user part only; perf_event_paranoid is {paranoid}")),
        Err(error @ (Errno::ENOENT | Errno::ENODEV | Errno::EOPNOTSUPP)) if kind == HARDWARE => look.absent(
            format!("the processor's counters are not offered to this system ({})", error.desc()),
            None,
        ),
        Err(error) => look.absent(describe(error, paranoid), Some("sysctl kernel.perf_event_paranoid=1")),
    }
}

fn describe(error: Errno, paranoid: &str) -> String {
    match error {
        Errno::ENOSYS => "the kernel was built without perf events".to_owned(),
        Errno::EACCES | Errno::EPERM => format!("refused; perf_event_paranoid is {paranoid}"),
        other => format!("{} ({other:?})", other.desc()),
    }
}

/// On this process, on whatever CPU.
fn open(attribute: Attribute) -> Result<OwnedFd, Errno> {
    open_for(attribute, 0, -1)
}

fn open_for(mut attribute: Attribute, process: libc::pid_t, cpu: libc::c_int) -> Result<OwnedFd, Errno> {
    attribute.size = ATTRIBUTE_BYTES;
    let no_group: libc::c_int = -1;
    let close_on_exec: libc::c_ulong = 1 << 3;
    // SAFETY: the attribute outlives the call and is as large as its `size` says.
    let answer = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attribute, process, cpu, no_group, close_on_exec)
    };
    let descriptor = i32::try_from(Errno::result(answer)?).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel just made this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Opening may be allowed while locking memory for the ring is not.
fn map_ring(event: &OwnedFd) -> Result<(), Errno> {
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)?.unwrap_or(4096);
    let bytes = usize::try_from(page).map_err(|_| Errno::EINVAL)? * 2;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh mapping at a place the kernel chooses.
    let place = unsafe {
        libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, event.as_raw_fd(), 0)
    };
    if place == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    // SAFETY: exactly the mapping made above; nothing refers to it.
    Errno::result(unsafe { libc::munmap(place, bytes) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attribute_has_the_size_the_kernel_documents() {
        assert_eq!(size_of::<Attribute>(), ATTRIBUTE_BYTES as usize);
        assert_eq!(std::mem::offset_of!(Attribute, clock_id), 92);
    }

    #[test]
    fn every_answer_has_a_reason() {
        for capability in probe(&HostRoot::system()) {
            assert!(!capability.reason.is_empty(), "{}", capability.name);
        }
    }
}
