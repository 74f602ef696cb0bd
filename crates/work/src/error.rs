use std::ffi::OsStr;
use std::io;

/// Why the workload program did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkError {
    /// The command line is wrong.
    #[error("{message}")]
    Usage {
        /// What is wrong and what is allowed.
        message: String,
    },
    /// A kernel computed something false: broken hardware, compiler or memory.
    #[error("kernel `{kernel}` gave a wrong result: {reason}")]
    WrongResult {
        /// Name of the kernel.
        kernel: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The descriptor in `STEELYARD_METRICS_FD` cannot be used.
    #[error("cannot write measurements to descriptor {descriptor}: {source}")]
    Metrics {
        /// Its number.
        descriptor: i32,
        /// What the system said.
        source: io::Error,
    },
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

impl WorkError {
    /// A wrong command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage { message: message.into() }
    }

    /// A word of the command line that is not UTF-8.
    #[must_use]
    pub fn not_text(word: &OsStr) -> Self {
        Self::usage(format!("argument {} is not UTF-8 text", word.display()))
    }

    /// A system call that failed just now.
    pub(crate) fn system(action: impl Into<String>) -> Self {
        Self::System { action: action.into(), source: io::Error::last_os_error() }
    }

    /// 2 wrong command line, 3 wrong result, 1 the rest.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage { .. } => 2,
            Self::WrongResult { .. } => 3,
            Self::Metrics { .. } | Self::Output(_) | Self::System { .. } => 1,
        }
    }

    /// The next step, where there is one.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Usage { .. } => Some("`steelyard-work --help` lists the commands"),
            Self::WrongResult { .. } => {
                Some("do not trust measurements of this host; test its memory and CPU")
            }
            Self::Metrics { .. } => Some(
                "start the program with that descriptor open, unset STEELYARD_METRICS_FD, or give `--metrics-stdout`",
            ),
            Self::Output(_) | Self::System { .. } => None,
        }
    }
}
