use std::path::PathBuf;

/// Why something about the host could not be established.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A file that must exist could not be read.
    #[error("cannot read `{path}`: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file holds something else than the kernel documents.
    #[error("`{path}` holds `{found}`; expected {expected}")]
    Content {
        /// The file.
        path: PathBuf,
        /// The offending part, at most 80 characters.
        found: String,
        /// What would have been right.
        expected: &'static str,
    },
    /// A text is not a list of CPUs.
    #[error(transparent)]
    CpuList(#[from] crate::CpuListError),
}

impl HostError {
    pub(crate) fn content(path: PathBuf, found: &str, expected: &'static str) -> Self {
        Self::Content { path, found: found.trim().chars().take(80).collect(), expected }
    }
}
