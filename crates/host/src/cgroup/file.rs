//! Reading and writing the small text files of a group.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::CgroupError;

/// Longest file answered by one read; longer ones take more reads.
const CHUNK_BYTES: usize = 4096;

pub(super) fn read_text(path: &Path) -> Result<String, CgroupError> {
    let failure = |source| CgroupError::read(path, source);
    let mut file = File::open(path).map_err(failure)?;
    let mut buffer = [0_u8; CHUNK_BYTES];
    let length = file.read(&mut buffer).map_err(failure)?;
    let mut bytes = buffer[..length].to_vec();
    // The kernel fills a buffer that is large enough at once; only then is there more to ask for.
    if length == CHUNK_BYTES {
        file.read_to_end(&mut bytes).map_err(failure)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn write_text(path: &Path, value: &str) -> Result<(), CgroupError> {
    let attempt =
        || -> io::Result<()> { OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes()) };
    attempt().map_err(|source| CgroupError::write(path, value, source))
}

/// A file that is read or reset before and after each run, kept open: an open and a path walk
/// cost more than the read itself.
#[derive(Debug)]
pub(super) struct KeptFile {
    path: PathBuf,
    file: File,
}

impl KeptFile {
    /// Opens for reading, and for writing where the file allows it; `None` when it does not exist.
    pub(super) fn open(path: PathBuf) -> Option<Self> {
        let file =
            OpenOptions::new().read(true).write(true).open(&path).or_else(|_| File::open(&path)).ok()?;
        Some(Self { path, file })
    }

    /// Opens for reading alone; `None` when it does not exist.
    pub(super) fn open_to_read(path: PathBuf) -> Option<Self> {
        let file = File::open(&path).ok()?;
        Some(Self { path, file })
    }

    pub(super) fn read(&self) -> Result<String, CgroupError> {
        let mut buffer = [0_u8; CHUNK_BYTES];
        let length =
            self.file.read_at(&mut buffer, 0).map_err(|source| CgroupError::read(&self.path, source))?;
        Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }

    pub(super) fn number(&self) -> Option<u64> {
        number(&self.read().ok()?)
    }

    pub(super) fn keyed(&self, key: &str) -> Option<u64> {
        keyed(&self.read().ok()?, key)
    }

    pub(super) fn write(&self, value: &str) -> Result<(), CgroupError> {
        self.file
            .write_at(value.as_bytes(), 0)
            .map(drop)
            .map_err(|source| CgroupError::write(&self.path, value, source))
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }
}

/// The number a file consists of; `max` and anything else is `None`.
pub(crate) fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// The value of `key` in lines `key value`.
pub(crate) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        if name == key { number(value) } else { None }
    })
}

/// Total of `some` in a pressure file [ns].
pub(crate) fn pressure_ns(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some"))?;
    let total = line.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?;
    number(total)?.checked_mul(1000)
}

/// Bytes read and written in `io.stat`, summed over devices.
pub(crate) fn io_bytes(text: &str) -> (u64, u64) {
    let sum = |key: &str| {
        let words = text.split_ascii_whitespace().filter_map(|word| word.strip_prefix(key));
        words.filter_map(number).fold(0, u64::saturating_add)
    };
    (sum("rbytes="), sum("wbytes="))
}

/// Bytes read and written in version 1 `blkio` lines `8:0 Read 4096`, summed over devices.
pub(crate) fn blkio_bytes(text: &str) -> (u64, u64) {
    let sum = |direction: &str| {
        text.lines()
            .filter_map(|line| {
                let mut words = line.split_ascii_whitespace().skip(1);
                if words.next()? == direction { number(words.next()?) } else { None }
            })
            .fold(0, u64::saturating_add)
    };
    (sum("Read"), sum("Write"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_matched_whole() {
        let text = "usage_usec 12\nuser_usec 5\noom 1\noom_kill 3\n";
        assert_eq!(keyed(text, "oom_kill"), Some(3));
        assert_eq!(keyed(text, "oom"), Some(1));
        assert_eq!(keyed(text, "usec"), None);
    }

    #[test]
    fn pressure_is_taken_from_the_some_line() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=85460\nfull avg10=0.00 total=7\n";
        assert_eq!(pressure_ns(text), Some(85_460_000));
        assert_eq!(pressure_ns("full total=7\n"), None);
    }

    #[test]
    fn io_is_summed_over_devices() {
        let text = "8:0 rbytes=4096 wbytes=1 rios=1 wios=1\n8:16 rbytes=1 wbytes=2 rios=1 wios=1\n";
        assert_eq!(io_bytes(text), (4097, 3));
        assert_eq!(blkio_bytes("8:0 Read 10\n8:0 Write 20\n8:16 Read 1\nTotal 31\n"), (11, 20));
    }

    /// Found by fuzzing: no kernel says so, but a damaged file may.
    #[test]
    fn counts_beyond_64_bits_do_not_overflow() {
        let most = u64::MAX;
        assert_eq!(
            io_bytes(&format!("8:0 rbytes={most} wbytes=1\n8:16 rbytes=2 wbytes={most}")),
            (most, most)
        );
        assert_eq!(blkio_bytes(&format!("8:0 Read {most}\n8:16 Read 1\n")), (most, 0));
        assert_eq!(pressure_ns(&format!("some avg10=0.00 total={most}")), None);
    }

    #[test]
    fn max_is_no_number() {
        assert_eq!(number("max\n"), None);
        assert_eq!(number(" 42\n"), Some(42));
    }
}
