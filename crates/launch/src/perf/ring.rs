use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::event::{
    Attributes, FLAG_COMM, FLAG_COMM_EXEC, FLAG_SAMPLE_ID_ALL, FLAG_TASK, FLAG_USE_CLOCKID, FLAG_WATERMARK,
    TYPE_SOFTWARE, open_as_allowed,
};
use crate::futex;

/// `PERF_COUNT_SW_DUMMY`: counts nothing, carries side-band records.
const DUMMY: u64 = 9;
/// `PERF_SAMPLE_TID | PERF_SAMPLE_TIME`.
const SAMPLE_TYPE: u64 = (1 << 1) | (1 << 2);
const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_EXIT: u32 = 4;
const RECORD_FORK: u32 = 7;
const MISC_COMM_EXEC: u16 = 1 << 13;
const PAGE_BYTES: usize = 4096;
const DATA_PAGES: usize = 2;
const DATA_BYTES: usize = DATA_PAGES * PAGE_BYTES;
/// Offset of `data_head` in the control page; `data_tail` follows it.
const HEAD_OFFSET: usize = 1024;

/// Kernel stamps of exec and exit of one process, on `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub(crate) struct ExecRing {
    event: File,
    pid: u32,
    pages: NonNull<u8>,
    stamps: Stamps,
}

/// What the records said so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stamps {
    /// First exec.
    pub(crate) exec_ns: Option<u64>,
    /// End of the first thread.
    pub(crate) exit_ns: Option<u64>,
    /// The first process had further threads, so its first one may have ended early.
    pub(crate) has_threads: bool,
    /// Records were lost.
    pub(crate) is_incomplete: bool,
}

impl ExecRing {
    /// Attaches to a process before its exec.
    pub(crate) fn open(pid: i32) -> io::Result<Self> {
        let attributes = Attributes {
            kind: TYPE_SOFTWARE,
            config: DUMMY,
            sample_type: SAMPLE_TYPE,
            flags: FLAG_COMM
                | FLAG_COMM_EXEC
                | FLAG_TASK
                | FLAG_SAMPLE_ID_ALL
                | FLAG_USE_CLOCKID
                | FLAG_WATERMARK,
            // Half full: a program that forks a lot wakes the keeper rarely.
            wakeup: u32::try_from(DATA_BYTES / 2).unwrap_or(u32::MAX),
            clock: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        let (event, _) = open_as_allowed(&attributes, pid)?;
        let address = futex::map_shared(PAGE_BYTES + DATA_BYTES, Some(event.as_raw_fd()))?;
        let pages = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { event, pid: pid.cast_unsigned(), pages, stamps: Stamps::default() })
    }

    /// Becomes readable when half of the ring is used.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Reads what has come since the last time.
    pub(crate) fn drain(&mut self) -> Stamps {
        // ORDERING: pairs with the kernel's barrier before it moves the head: records up to it are
        // written.
        let head = self.position(0).load(Ordering::Acquire);
        let mut tail = self.position(1).load(Ordering::Relaxed);
        while tail < head {
            let header: [u8; 8] = self.bytes(tail);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let misc = u16::from_ne_bytes([header[4], header[5]]);
            let size = u64::from(u16::from_ne_bytes([header[6], header[7]]));
            if size < 8 {
                self.stamps.is_incomplete = true;
                tail = head;
                break;
            }
            self.take(kind, misc, (tail, size));
            tail += size;
        }
        // ORDERING: the records are read before the kernel may overwrite them.
        self.position(1).store(tail, Ordering::Release);
        self.stamps
    }

    fn take(&mut self, kind: u32, misc: u16, (at, size): (u64, u64)) {
        // With SAMPLE_ID_ALL every record ends in {pid, tid, time}.
        let time = u64::from_ne_bytes(self.bytes(at + size - 8));
        match kind {
            RECORD_COMM if misc & MISC_COMM_EXEC != 0 => {
                self.stamps.exec_ns.get_or_insert(time);
            }
            RECORD_EXIT => {
                let (pid, tid) = (self.word(at + 8), self.word(at + 16));
                if pid == self.pid && tid == self.pid {
                    self.stamps.exit_ns = Some(time);
                }
            }
            RECORD_FORK => {
                let (pid, parent) = (self.word(at + 8), self.word(at + 12));
                self.stamps.has_threads |= pid == parent;
            }
            RECORD_LOST => self.stamps.is_incomplete = true,
            _ => {}
        }
    }

    fn word(&self, at: u64) -> u32 {
        u32::from_ne_bytes(self.bytes(at))
    }

    /// Bytes of the ring; a record may wrap around its end.
    fn bytes<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut out = [0; N];
        for (offset, byte) in (0_u64..).zip(out.iter_mut()) {
            let place = usize::try_from((at + offset) % DATA_BYTES as u64).unwrap_or(0);
            let address = self.pages.as_ptr().wrapping_add(PAGE_BYTES + place);
            // SAFETY: inside the mapping; the kernel wrote it before it moved the head.
            *byte = unsafe { address.read_volatile() };
        }
        out
    }

    /// `data_head` (0) or `data_tail` (1).
    fn position(&self, index: usize) -> &AtomicU64 {
        let address = self.pages.as_ptr().wrapping_add(HEAD_OFFSET + index * 8);
        // SAFETY: inside the control page, aligned to 8, valid while `self` is, shared by atomics.
        unsafe { AtomicU64::from_ptr(address.cast()) }
    }
}

impl Drop for ExecRing {
    fn drop(&mut self) {
        // SAFETY: mapped by `open` with this size; nothing refers to it any more.
        unsafe { futex::unmap(self.pages.as_ptr().cast(), PAGE_BYTES + DATA_BYTES) }
    }
}
