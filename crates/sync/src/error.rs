use std::ffi::OsStr;
use std::io;

use steelyard_work::WorkError;

/// Why the packet program did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The command line is wrong.
    #[error("{message}")]
    Usage {
        /// What is wrong and what is allowed.
        message: String,
    },
    /// An option is wrong, or the measurements cannot be reported.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// Standard output cannot be written.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    /// The system refused something.
    #[error("{action} failed: {source}")]
    System {
        /// What was tried.
        action: String,
        /// What the system said.
        source: io::Error,
    },
}

const HELP: &str = "`steelyard-packets --help` shows every argument and an example";

impl SyncError {
    /// A wrong command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage { message: message.into() }
    }

    /// A word of the command line that is not UTF-8.
    #[must_use]
    pub fn not_text(word: &OsStr) -> Self {
        Self::usage(format!("argument {} is not UTF-8 text", word.display()))
    }

    /// 2 wrong command line, 1 the rest.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage { .. } => 2,
            Self::Work(error) => error.exit_code(),
            Self::Output(_) | Self::System { .. } => 1,
        }
    }

    /// The next step, where there is one.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Usage { .. } | Self::Work(WorkError::Usage { .. }) => Some(HELP),
            Self::Work(WorkError::Metrics { .. }) => {
                Some("start the program with that descriptor open, or unset STEELYARD_METRICS_FD")
            }
            Self::Work(_) | Self::Output(_) | Self::System { .. } => None,
        }
    }
}
