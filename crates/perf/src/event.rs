use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;

/// Counted by the processor.
pub const TYPE_HARDWARE: u32 = 0;
/// Counted by the kernel.
pub const TYPE_SOFTWARE: u32 = 1;
/// A tracepoint of the kernel.
pub const TYPE_TRACEPOINT: u32 = 2;
/// Caches, counted by the processor.
pub const TYPE_CACHE: u32 = 3;

/// Does not count yet.
pub const FLAG_DISABLED: u64 = 1;
/// Counts for children, too.
pub const FLAG_INHERIT: u64 = 1 << 1;
/// Leaves the kernel out.
pub const FLAG_EXCLUDE_KERNEL: u64 = 1 << 5;
/// Leaves the hypervisor out.
pub const FLAG_EXCLUDE_HYPERVISOR: u64 = 1 << 6;
/// Records names of threads.
pub const FLAG_COMM: u64 = 1 << 9;
/// Counts from the next exec on.
pub const FLAG_ENABLE_ON_EXEC: u64 = 1 << 12;
/// Records fork and exit.
pub const FLAG_TASK: u64 = 1 << 13;
/// `wakeup` is in bytes.
pub const FLAG_WATERMARK: u64 = 1 << 14;
/// Every record ends in what `sample_type` asks for.
pub const FLAG_SAMPLE_ID_ALL: u64 = 1 << 18;
/// Says whether a name comes from an exec.
pub const FLAG_COMM_EXEC: u64 = 1 << 24;
/// Stamps are of `clock`.
pub const FLAG_USE_CLOCKID: u64 = 1 << 25;
/// Records who leaves a CPU and who comes.
pub const FLAG_CONTEXT_SWITCH: u64 = 1 << 26;

/// `PERF_SAMPLE_TID | PERF_SAMPLE_TIME`.
pub const SAMPLE_TID_TIME: u64 = (1 << 1) | (1 << 2);

/// `struct perf_event_attr` up to its fifth extension.
/// SOURCE: `include/uapi/linux/perf_event.h`, `PERF_ATTR_SIZE_VER5`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Attributes {
    /// `type`: one of the types above.
    pub kind: u32,
    /// Set by the functions that open.
    pub size: u32,
    /// Number of the event.
    pub config: u64,
    /// Occurrences per sample.
    pub sample_period: u64,
    /// What a sample holds.
    pub sample_type: u64,
    /// What reading gives.
    pub read_format: u64,
    /// The bits above.
    pub flags: u64,
    /// `wakeup_events`, or bytes with [`FLAG_WATERMARK`].
    pub wakeup: u32,
    /// `bp_type`.
    pub breakpoint_kind: u32,
    /// `config1`.
    pub config1: u64,
    /// `config2`.
    pub config2: u64,
    /// `branch_sample_type`.
    pub branch_sample_type: u64,
    /// `sample_regs_user`.
    pub sample_regs_user: u64,
    /// `sample_stack_user`.
    pub sample_stack_user: u32,
    /// `clockid`, with [`FLAG_USE_CLOCKID`].
    pub clock: i32,
    /// `sample_regs_intr`.
    pub sample_regs_intr: u64,
    /// `aux_watermark`.
    pub aux_watermark: u32,
    /// `sample_max_stack`.
    pub sample_max_stack: u16,
    /// Zero.
    pub reserved: u16,
}

/// `PERF_FLAG_FD_CLOEXEC`.
const FLAG_FD_CLOEXEC: libc::c_ulong = 8;
const ATTRIBUTES_SIZE: u32 = 112;
const _: () = assert!(size_of::<Attributes>() == ATTRIBUTES_SIZE as usize);

/// Opens an event of one process on whatever CPU it is.
///
/// # Errors
///
/// What the kernel answers: no right to it, no such event.
pub fn open(attributes: &Attributes, pid: i32) -> io::Result<File> {
    open_for(attributes, pid, -1)
}

/// Opens an event of whatever process is on one CPU.
///
/// # Errors
///
/// What the kernel answers: no right to it, no such event.
pub fn open_on(attributes: &Attributes, cpu: i32) -> io::Result<File> {
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
///
/// # Errors
///
/// What the kernel answers: no right to it, no such event.
pub fn open_as_allowed(attributes: &Attributes, pid: i32) -> io::Result<(File, bool)> {
    match open(attributes, pid) {
        Ok(file) => Ok((file, true)),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM)) => {
            let flags = attributes.flags | FLAG_EXCLUDE_KERNEL | FLAG_EXCLUDE_HYPERVISOR;
            open(&Attributes { flags, ..*attributes }, pid).map(|file| (file, false))
        }
        Err(error) => Err(error),
    }
}
