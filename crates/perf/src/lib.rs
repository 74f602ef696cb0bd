//! Perf events of Linux: opening them, and reading the records that the kernel leaves in their rings.
//!
//! The launcher stamps the beginning and the end of programs with it, the watcher records who took a CPU
//! from whom.

mod event;
mod pages;

pub use event::{
    Attributes, FLAG_COMM, FLAG_COMM_EXEC, FLAG_CONTEXT_SWITCH, FLAG_DISABLED, FLAG_ENABLE_ON_EXEC,
    FLAG_EXCLUDE_HYPERVISOR, FLAG_EXCLUDE_KERNEL, FLAG_INHERIT, FLAG_SAMPLE_ID_ALL, FLAG_TASK,
    FLAG_USE_CLOCKID, FLAG_WATERMARK, SAMPLE_TID_TIME, TYPE_CACHE, TYPE_HARDWARE, TYPE_SOFTWARE,
    TYPE_TRACEPOINT, open, open_as_allowed, open_on,
};
pub use pages::{Record, RingPages};
