//! Mapped memory: records that outlive the process that writes them, message buffers, shared memory.
//!
//! ```
//! use steelyard_memory::Mapping;
//!
//! let mut memory = Mapping::anonymous(100)?;
//! memory.touch();
//! memory.bytes_mut()[99] = 7;
//! assert_eq!(memory.bytes_mut().len(), 100);
//! # Ok::<(), steelyard_memory::MappingFailure>(())
//! ```

use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

/// SOURCE: the smallest page of Linux. Touching more often than needed does no harm.
const PAGE_BYTES: usize = 4096;

/// The kernel did not map memory.
#[derive(Debug, thiserror::Error)]
#[error("mapping {length} bytes: {source}")]
pub struct MappingFailure {
    /// Bytes that were asked for.
    pub length: usize,
    /// What the kernel said.
    pub source: io::Error,
}

/// Memory that is mapped until this is dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory belongs to no thread, and access through `&self` is up to the user of the pointer.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Private memory of `length` bytes, zero; at least one byte.
    ///
    /// # Errors
    ///
    /// [`MappingFailure`] if there is not as much address space.
    pub fn anonymous(length: usize) -> Result<Self, MappingFailure> {
        Self::map(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, (-1, 0))
    }

    /// The first `length` bytes of a file, shared with everybody who maps it.
    ///
    /// # Errors
    ///
    /// [`MappingFailure`] if the file is not open for reading and writing, or cannot be mapped.
    pub fn of_file(file: &impl AsRawFd, length: usize) -> Result<Self, MappingFailure> {
        Self::of_part(file, 0, length)
    }

    /// `length` bytes of a file from `offset` on, a multiple of the size of a page, shared as above.
    ///
    /// # Errors
    ///
    /// As [`Mapping::of_file`], and if the offset lies within a page.
    pub fn of_part(file: &impl AsRawFd, offset: usize, length: usize) -> Result<Self, MappingFailure> {
        Self::map(length, libc::MAP_SHARED, (file.as_raw_fd(), offset))
    }

    fn map(
        length: usize,
        flags: libc::c_int,
        (fd, offset): (libc::c_int, usize),
    ) -> Result<Self, MappingFailure> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let length = length.max(1);
        let offset = libc::off_t::try_from(offset).unwrap_or(libc::off_t::MAX);
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, rights, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(MappingFailure { length, source: io::Error::last_os_error() });
        }
        let at_zero = || MappingFailure { length, source: io::Error::other("it was mapped at address 0") };
        let start = NonNull::new(start.cast::<u8>()).ok_or_else(at_zero)?;
        Ok(Self { start, length })
    }

    /// First byte; all bytes that were asked for are valid while this lives.
    #[inline]
    #[must_use]
    pub const fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// First record, for records that are aligned as a page is.
    #[inline]
    #[must_use]
    pub const fn records<T>(&self) -> *mut T {
        self.start.as_ptr().cast()
    }

    /// Writes to every page, so that no later access has to wait for memory. Contents stay.
    pub fn touch(&mut self) {
        for offset in (0..self.length).step_by(PAGE_BYTES) {
            // SAFETY: the offset is below the length.
            let byte = unsafe { self.start().add(offset) };
            // SAFETY: the byte is mapped and readable.
            let value = unsafe { byte.read_volatile() };
            // SAFETY: the byte is mapped and writable, and nobody else writes here yet.
            unsafe { byte.write_volatile(value) };
        }
    }

    /// The bytes, for memory that nobody else has.
    pub const fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped for reading and writing as long as `self` lives; private mappings only.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this address and length and is used by nobody any more.
        unsafe { libc::munmap(self.start().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::fs;

    use super::*;

    #[test]
    fn what_is_written_into_a_part_stands_in_the_file_when_the_mapping_is_gone() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(2 * PAGE_BYTES as u64).unwrap();
        let mut part = Mapping::of_part(file.as_file(), PAGE_BYTES, PAGE_BYTES).unwrap();
        part.touch();
        // SAFETY: the first byte of a mapping of one page.
        unsafe { part.start().write(7) };
        drop(part);
        let content = fs::read(file.path()).unwrap();
        assert_eq!((content[PAGE_BYTES - 1], content[PAGE_BYTES]), (0, 7));
    }

    #[test]
    fn what_cannot_be_mapped_is_said_with_its_length() {
        let said = Mapping::anonymous(usize::MAX / 2).unwrap_err().to_string();
        assert!(said.contains(&(usize::MAX / 2).to_string()), "{said}");
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Mapping::of_part(file.as_file(), 1, 1).is_err(), "an offset within a page");
    }
}
