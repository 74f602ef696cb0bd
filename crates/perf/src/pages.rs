use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE_BYTES: usize = 4096;
/// Offset of `data_head` in the control page; `data_tail` follows it.
const HEAD_OFFSET: usize = 1024;
/// `struct perf_event_header`: kind, misc, size.
const HEADER_BYTES: u64 = 8;

/// The pages in which the kernel leaves the records of an event.
#[derive(Debug)]
pub struct RingPages {
    address: NonNull<u8>,
    data_bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, and no address of it depends on the thread.
unsafe impl Send for RingPages {}

/// One record in its ring. Offsets count from its header.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// `PERF_RECORD_...`.
    pub kind: u32,
    /// `PERF_RECORD_MISC_...`.
    pub misc: u16,
    pages: &'a RingPages,
    at: u64,
    size: u64,
}

impl RingPages {
    /// Maps the ring of an event: a control page, and pages of data.
    ///
    /// # Errors
    ///
    /// What the kernel answers; it wants a power of two of pages, and no more than
    /// `kernel.perf_event_mlock_kb` allows.
    pub fn map(event: &File, data_pages: usize) -> io::Result<Self> {
        let data_bytes = data_pages * PAGE_BYTES;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                PAGE_BYTES + data_bytes,
                protection,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let address = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { address, data_bytes })
    }

    /// Size of the data part [B].
    #[must_use]
    pub fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    /// Hands over what has come since the last time, oldest first. Answers whether all of it could be
    /// read.
    pub fn drain(&self, take: &mut dyn FnMut(Record<'_>)) -> bool {
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

    /// Bytes of the ring; a record may wrap around its end. Its size is a power of two: the kernel maps no other.
    fn bytes<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut out = [0; N];
        for (offset, byte) in (0_u64..).zip(out.iter_mut()) {
            let place = usize::try_from((at + offset) & (self.data_bytes as u64 - 1)).unwrap_or(0);
            let address = self.address.as_ptr().wrapping_add(PAGE_BYTES + place);
            // SAFETY: inside the mapping; the kernel wrote it before it moved the head.
            *byte = unsafe { address.read_volatile() };
        }
        out
    }

    /// `data_head` (0) or `data_tail` (1).
    fn position(&self, index: usize) -> &AtomicU64 {
        let address = self.address.as_ptr().wrapping_add(HEAD_OFFSET + index * 8);
        // SAFETY: inside the control page, aligned to 8, valid while `self` is, shared by atomics.
        unsafe { AtomicU64::from_ptr(address.cast()) }
    }
}

impl Record<'_> {
    /// Two bytes at an offset.
    #[must_use]
    pub fn short(&self, offset: u64) -> u16 {
        u16::from_ne_bytes(self.pages.bytes(self.at + offset))
    }

    /// Four bytes at an offset.
    #[must_use]
    pub fn word(&self, offset: u64) -> u32 {
        u32::from_ne_bytes(self.pages.bytes(self.at + offset))
    }

    /// Eight bytes at an offset.
    #[must_use]
    pub fn long(&self, offset: u64) -> u64 {
        u64::from_ne_bytes(self.pages.bytes(self.at + offset))
    }

    /// One byte at an offset.
    #[must_use]
    pub fn byte(&self, offset: u64) -> u8 {
        self.pages.bytes::<1>(self.at + offset)[0]
    }

    /// The time of a record beside the samples: with `SAMPLE_ID_ALL` each ends in `{pid, tid, time}`.
    #[must_use]
    pub fn trailing_time_ns(&self) -> u64 {
        self.long(self.size.saturating_sub(8))
    }

    /// Whether the record is at least so long.
    #[must_use]
    pub fn holds(&self, end: u64) -> bool {
        end <= self.size
    }
}

impl Drop for RingPages {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this size; nothing refers to it any more.
        unsafe {
            libc::munmap(self.address.as_ptr().cast(), PAGE_BYTES + self.data_bytes);
        }
    }
}
