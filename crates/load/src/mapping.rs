//! Mapped memory: records that outlive the process that writes them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

use crate::LoadError;

/// SOURCE: the smallest page of Linux. Touching more often than needed does no harm.
const PAGE_BYTES: usize = 4096;

/// Memory that is mapped until this is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory belongs to no thread, and access through `&self` is up to the user of the pointer.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Private memory of `length` bytes, zero.
    pub(crate) fn anonymous(length: usize) -> Result<Self, LoadError> {
        Self::map(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, (-1, 0))
    }

    /// The first `length` bytes of a file, shared with everybody who maps it.
    pub(crate) fn of_file(file: &File, length: usize) -> Result<Self, LoadError> {
        Self::of_part(file, 0, length)
    }

    /// `length` bytes of a file from `offset` on, a multiple of the size of a page.
    pub(crate) fn of_part(file: &impl AsRawFd, offset: usize, length: usize) -> Result<Self, LoadError> {
        Self::map(length, libc::MAP_SHARED, (file.as_raw_fd(), offset))
    }

    fn map(length: usize, flags: libc::c_int, (fd, offset): (libc::c_int, usize)) -> Result<Self, LoadError> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let offset = libc::off_t::try_from(offset).unwrap_or(libc::off_t::MAX);
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), length.max(1), rights, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(LoadError::system(format!("mapping {length} bytes"), io::Error::last_os_error()));
        }
        match NonNull::new(start.cast::<u8>()) {
            Some(start) => Ok(Self { start, length: length.max(1) }),
            None => Err(LoadError::system("mapping memory", io::Error::other("it was mapped at address 0"))),
        }
    }

    /// First byte; all `length` bytes given at creation are valid while this lives.
    #[inline]
    pub(crate) const fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// First record, for records that are aligned as a page is.
    #[inline]
    pub(crate) const fn records<T>(&self) -> *mut T {
        self.start.as_ptr().cast()
    }

    /// Writes to every page, so that no later access has to wait for memory. Contents stay.
    pub(crate) fn touch(&mut self) {
        for offset in (0..self.length).step_by(PAGE_BYTES) {
            // SAFETY: the offset is below the length.
            let byte = unsafe { self.start().add(offset) };
            // SAFETY: the byte is mapped and readable.
            let value = unsafe { byte.read_volatile() };
            // SAFETY: the byte is mapped and writable, and nobody else writes here yet.
            unsafe { byte.write_volatile(value) };
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this address and length and is used by nobody any more.
        unsafe { libc::munmap(self.start().cast(), self.length) };
    }
}
