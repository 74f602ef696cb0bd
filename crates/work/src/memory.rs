use crate::WorkError;

/// Makes a number of bytes resident, page by page, and gives the number of bytes made resident:
/// `bytes` rounded up to whole pages.
///
/// The mapping is anonymous, private and without huge pages, so that the kernel charges these
/// pages and no others.
///
/// # Errors
///
/// [`WorkError::System`] if the memory cannot be mapped.
pub fn touch(bytes: u64) -> Result<u64, WorkError> {
    if bytes == 0 {
        return Ok(0);
    }
    // SAFETY: `sysconf` has no preconditions.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let action = || format!("mapping {bytes} bytes");
    let length =
        usize::try_from(bytes).ok().and_then(|length| length.checked_next_multiple_of(page)).ok_or_else(
            || WorkError::usage(format!("`--bytes` is `{bytes}`; allowed: the size of an address space")),
        )?;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no other memory.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(WorkError::system(action()));
    }
    // A kernel without huge pages answers EINVAL, which is as good.
    // SAFETY: the range is the mapping made above.
    unsafe { libc::madvise(start, length, libc::MADV_NOHUGEPAGE) };
    // SAFETY: the mapping is `length` bytes long, zeroed, writable and referred to by nothing else;
    // it is never unmapped, so that it stays resident until the end of the process.
    let memory: &mut [u8] = unsafe { std::slice::from_raw_parts_mut(start.cast(), length) };
    for first in memory.iter_mut().step_by(page) {
        *first = 1;
    }
    std::hint::black_box(memory);
    Ok(u64::try_from(length).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest resident part of one mapping; the sum over all is approximate in `status`, and others allocate.
    fn largest_resident_bytes() -> u64 {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix("Rss:"));
        lines.map(|line| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10).max().unwrap()
    }

    #[test]
    fn touched_memory_is_resident_and_rounded_to_pages() {
        let touched = touch((32 << 20) + 1).unwrap();
        assert!(touched > 32 << 20 && touched.is_multiple_of(4096));
        // The kernel may join neighbours to the mapping, hence the loose upper bound.
        let resident = largest_resident_bytes();
        assert!((touched..256 << 20).contains(&resident), "{resident}");
    }

    #[test]
    fn more_than_the_address_space_is_an_error() {
        assert_eq!(touch(u64::MAX).unwrap_err().exit_code(), 2);
        assert_eq!(touch(1 << 60).unwrap_err().exit_code(), 1);
    }

    #[test]
    fn no_bytes_are_no_error() {
        assert_eq!(touch(0).unwrap(), 0);
    }
}
