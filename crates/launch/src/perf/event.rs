use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;

pub(super) const TYPE_HARDWARE: u32 = 0;
pub(super) const TYPE_SOFTWARE: u32 = 1;
pub(super) const TYPE_TRACEPOINT: u32 = 2;
pub(super) const TYPE_CACHE: u32 = 3;

pub(super) const FLAG_DISABLED: u64 = 1;
pub(super) const FLAG_INHERIT: u64 = 1 << 1;
pub(super) const FLAG_EXCLUDE_KERNEL: u64 = 1 << 5;
pub(super) const FLAG_EXCLUDE_HYPERVISOR: u64 = 1 << 6;
pub(super) const FLAG_COMM: u64 = 1 << 9;
pub(super) const FLAG_ENABLE_ON_EXEC: u64 = 1 << 12;
pub(super) const FLAG_TASK: u64 = 1 << 13;
pub(super) const FLAG_WATERMARK: u64 = 1 << 14;
pub(super) const FLAG_SAMPLE_ID_ALL: u64 = 1 << 18;
pub(super) const FLAG_COMM_EXEC: u64 = 1 << 24;
pub(super) const FLAG_USE_CLOCKID: u64 = 1 << 25;

/// `struct perf_event_attr` up to its fifth extension.
/// SOURCE: `include/uapi/linux/perf_event.h`, `PERF_ATTR_SIZE_VER5`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Attributes {
    pub(super) kind: u32,
    pub(super) size: u32,
    pub(super) config: u64,
    pub(super) sample_period: u64,
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    pub(super) flags: u64,
    pub(super) wakeup: u32,
    pub(super) breakpoint_kind: u32,
    pub(super) config1: u64,
    pub(super) config2: u64,
    pub(super) branch_sample_type: u64,
    pub(super) sample_regs_user: u64,
    pub(super) sample_stack_user: u32,
    pub(super) clock: i32,
    pub(super) sample_regs_intr: u64,
    pub(super) aux_watermark: u32,
    pub(super) sample_max_stack: u16,
    pub(super) reserved: u16,
}

/// `PERF_FLAG_FD_CLOEXEC`.
const FLAG_FD_CLOEXEC: libc::c_ulong = 8;
const ATTRIBUTES_SIZE: u32 = 112;
const _: () = assert!(size_of::<Attributes>() == ATTRIBUTES_SIZE as usize);

/// Opens an event of one process on whatever CPU it is.
pub(super) fn open(attributes: &Attributes, pid: i32) -> io::Result<File> {
    open_for(attributes, pid, -1)
}

/// Opens an event of whatever process is on one CPU.
pub(super) fn open_on(attributes: &Attributes, cpu: i32) -> io::Result<File> {
    open_for(attributes, -1, cpu)
}

fn open_for(attributes: &Attributes, pid: i32, cpu: i32) -> io::Result<File> {
    let attributes = Attributes { size: ATTRIBUTES_SIZE, ..*attributes };
    // SAFETY: the attributes are valid for the call and carry their size.
    let descriptor = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, pid, cpu, -1, FLAG_FD_CLOEXEC)
    };
    match i32::try_from(descriptor) {
        // SAFETY: the kernel just gave this descriptor to us alone.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { File::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Opens an event, without its kernel part where only that is allowed. The second value says
/// whether the kernel part is in.
pub(super) fn open_as_allowed(attributes: &Attributes, pid: i32) -> io::Result<(File, bool)> {
    match open(attributes, pid) {
        Ok(file) => Ok((file, true)),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM)) => {
            let flags = attributes.flags | FLAG_EXCLUDE_KERNEL | FLAG_EXCLUDE_HYPERVISOR;
            open(&Attributes { flags, ..*attributes }, pid).map(|file| (file, false))
        }
        Err(error) => Err(error),
    }
}
