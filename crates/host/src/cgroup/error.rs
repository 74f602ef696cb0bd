use std::io;
use std::path::{Path, PathBuf};

/// Why something about a control group could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CgroupError {
    /// A file could not be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A value was refused.
    #[error("cannot write `{value}` to `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What was written.
        value: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A group could not be created.
    #[error("cannot create the group `{}`: {source}", path.display())]
    Create {
        /// The group.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A group could not be removed.
    #[error("cannot remove the group `{}`: {source}", path.display())]
    Remove {
        /// The group.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Processes of a group did not end.
    #[error("processes of `{}` outlived SIGKILL for {waited_ms} ms", path.display())]
    Populated {
        /// The group.
        path: PathBuf,
        /// How long was waited.
        waited_ms: u64,
    },
    /// This host has no group for that.
    #[error("no usable {what} on this host")]
    Absent {
        /// What is missing.
        what: &'static str,
    },
}

impl CgroupError {
    pub(super) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    pub(super) fn write(path: &Path, value: &str, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), value: value.to_owned(), source }
    }

    /// The error number below, if there is one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Read { source, .. }
            | Self::Write { source, .. }
            | Self::Create { source, .. }
            | Self::Remove { source, .. } => source.raw_os_error(),
            Self::Populated { .. } | Self::Absent { .. } => None,
        }
    }
}
