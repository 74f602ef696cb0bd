use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::futex;

const PAGE_BYTES: usize = 4096;
const DATA_PAGES: usize = 2;
/// Size of the data part of a ring.
pub(super) const DATA_BYTES: usize = DATA_PAGES * PAGE_BYTES;
/// Offset of `data_head` in the control page; `data_tail` follows it.
const HEAD_OFFSET: usize = 1024;
/// `struct perf_event_header`: kind, misc, size.
const HEADER_BYTES: u64 = 8;

/// The pages in which the kernel leaves the records of an event.
#[derive(Debug)]
pub(super) struct RingPages(NonNull<u8>);

/// One record in its ring. Offsets count from its header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) kind: u32,
    pub(super) misc: u16,
    pages: &'a RingPages,
    at: u64,
    size: u64,
}

impl RingPages {
    pub(super) fn map(event: &File) -> io::Result<Self> {
        let address = futex::map_shared(PAGE_BYTES + DATA_BYTES, Some(event.as_raw_fd()))?;
        NonNull::new(address.cast()).map(Self).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// Hands over what has come since the last time, oldest first. Answers whether all of it could be
    /// read.
    pub(super) fn drain(&self, take: &mut dyn FnMut(Record<'_>)) -> bool {
        // ORDERING: pairs with the kernel's barrier before it moves the head: records up to it are
        // written.
        let head = self.position(0).load(Ordering::Acquire);
        let mut tail = self.position(1).load(Ordering::Relaxed);
        let mut is_sound = true;
        while tail < head && is_sound {
            let header: [u8; 8] = self.bytes(tail);
            let size = u64::from(u16::from_ne_bytes([header[6], header[7]]));
            is_sound = size >= HEADER_BYTES;
            if is_sound {
                let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
                let misc = u16::from_ne_bytes([header[4], header[5]]);
                take(Record { kind, misc, pages: self, at: tail, size });
                tail += size;
            }
        }
        // ORDERING: the records are read before the kernel may overwrite them.
        self.position(1).store(head, Ordering::Release);
        is_sound
    }

    /// Bytes of the ring; a record may wrap around its end.
    fn bytes<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut out = [0; N];
        for (offset, byte) in (0_u64..).zip(out.iter_mut()) {
            let place = usize::try_from((at + offset) % DATA_BYTES as u64).unwrap_or(0);
            let address = self.0.as_ptr().wrapping_add(PAGE_BYTES + place);
            // SAFETY: inside the mapping; the kernel wrote it before it moved the head.
            *byte = unsafe { address.read_volatile() };
        }
        out
    }

    /// `data_head` (0) or `data_tail` (1).
    fn position(&self, index: usize) -> &AtomicU64 {
        let address = self.0.as_ptr().wrapping_add(HEAD_OFFSET + index * 8);
        // SAFETY: inside the control page, aligned to 8, valid while `self` is, shared by atomics.
        unsafe { AtomicU64::from_ptr(address.cast()) }
    }
}

impl Record<'_> {
    pub(super) fn short(&self, offset: u64) -> u16 {
        u16::from_ne_bytes(self.pages.bytes(self.at + offset))
    }

    pub(super) fn word(&self, offset: u64) -> u32 {
        u32::from_ne_bytes(self.pages.bytes(self.at + offset))
    }

    pub(super) fn long(&self, offset: u64) -> u64 {
        u64::from_ne_bytes(self.pages.bytes(self.at + offset))
    }

    pub(super) fn byte(&self, offset: u64) -> u8 {
        self.pages.bytes::<1>(self.at + offset)[0]
    }

    /// The time of a record beside the samples: with `SAMPLE_ID_ALL` each ends in `{pid, tid, time}`.
    pub(super) fn trailing_time_ns(&self) -> u64 {
        self.long(self.size.saturating_sub(8))
    }

    pub(super) fn holds(&self, end: u64) -> bool {
        end <= self.size
    }
}

impl Drop for RingPages {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this size; nothing refers to it any more.
        unsafe { futex::unmap(self.0.as_ptr().cast(), PAGE_BYTES + DATA_BYTES) }
    }
}
