//! What can go wrong, in words for the person at the terminal.

/// An error of the scheduler program; the exit code follows from the variant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchedulerError {
    /// The words of the command line are not understood.
    #[error("{message}")]
    Usage {
        /// What is wrong, with the allowed values.
        message: String,
    },
    /// This machine cannot do it.
    #[error("{message}")]
    Capability {
        /// What is missing.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// A control group has a quota, which the class does not keep.
    #[error("{message}")]
    Quota {
        /// Which group.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The scheduler stopped and could not be started again.
    #[error("{message}")]
    Failed {
        /// What happened.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// A file could not be read or written.
    #[error("`{path}`: {source}")]
    File {
        /// Which file.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
}

impl SchedulerError {
    /// A misunderstanding on the command line.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage { message: message.into() }
    }

    /// A file that could not be read or written.
    #[must_use]
    pub fn file(path: &std::path::Path, source: std::io::Error) -> Self {
        Self::File { path: path.display().to_string(), source }
    }

    /// Steelyard's exit codes: 2 the request is wrong, 3 this machine cannot, 4 it failed while at work.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage { .. } => 2,
            Self::Capability { .. } | Self::Quota { .. } => 3,
            Self::Failed { .. } | Self::File { .. } => 4,
        }
    }

    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Usage { .. } => Some("`steelyard-scheduler --help` lists the commands and their options"),
            Self::Capability { hint, .. } | Self::Quota { hint, .. } | Self::Failed { hint, .. } => {
                Some(hint)
            }
            Self::File { .. } => None,
        }
    }
}
