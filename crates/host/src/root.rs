use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::HostError;

/// No file read here is legitimately larger; `/proc/interrupts` of a 512-CPU host has about 1 MiB.
const READ_LIMIT_BYTES: u64 = 16 << 20;

/// Place under which `/proc`, `/sys`, `/dev` and `/etc` are looked up.
///
/// Everything in this crate reads through it, so that a recorded or invented host can be examined.
#[derive(Debug, Clone)]
pub struct HostRoot {
    path: PathBuf,
}

/// What a look at one file gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// Its content without surrounding white space.
    Value(String),
    /// There is no such file.
    Absent,
    /// It exists and cannot be read; the reason.
    Refused(String),
}

impl Reading {
    /// The content, if there is one.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        match self {
            Self::Value(text) => Some(text),
            Self::Absent | Self::Refused(_) => None,
        }
    }
}

impl HostRoot {
    /// The running system.
    #[must_use]
    pub fn system() -> Self {
        Self { path: PathBuf::from("/") }
    }

    /// A tree that looks like a system.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Whether this is the running system, so that probing by system call says something about it.
    #[must_use]
    pub fn is_system(&self) -> bool {
        self.path == Path::new("/")
    }

    /// Where an absolute path lies.
    #[must_use]
    pub fn resolve(&self, absolute: &str) -> PathBuf {
        self.path.join(absolute.trim_start_matches('/'))
    }

    /// Whether the path exists.
    #[must_use]
    pub fn exists(&self, absolute: &str) -> bool {
        self.resolve(absolute).exists()
    }

    /// Content of a file that must exist; bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    ///
    /// [`HostError::Read`] with the path.
    pub fn read(&self, absolute: &str) -> Result<String, HostError> {
        let path = self.resolve(absolute);
        read_bytes(&path)
            .map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
            .map_err(|source| HostError::Read { path, source })
    }

    /// Bytes of a file that may be absent.
    #[must_use]
    pub fn bytes(&self, absolute: &str) -> Option<Vec<u8>> {
        read_bytes(&self.resolve(absolute)).ok()
    }

    /// Content of a file that may be absent or refused.
    #[must_use]
    pub fn look(&self, absolute: &str) -> Reading {
        match self.read(absolute) {
            Ok(text) => Reading::Value(text),
            Err(HostError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => Reading::Absent,
            Err(error) => Reading::Refused(error.to_string()),
        }
    }

    /// Content of a file, or nothing for whatever reason.
    #[must_use]
    pub fn text(&self, absolute: &str) -> Option<String> {
        self.read(absolute).ok()
    }

    /// A number that stands alone in a file.
    #[must_use]
    pub fn number<T: std::str::FromStr>(&self, absolute: &str) -> Option<T> {
        self.text(absolute)?.parse().ok()
    }

    /// Names in a folder, sorted; empty when it cannot be listed.
    #[must_use]
    pub fn names(&self, absolute: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.resolve(absolute)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// Names of the form `prefix` + number in a folder, as numbers in order.
    #[must_use]
    pub fn numbered(&self, absolute: &str, prefix: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> =
            self.names(absolute).iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }
}

fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(READ_LIMIT_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}
