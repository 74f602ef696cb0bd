use std::io;

use steelyard_memory::MappingFailure;

/// Why an endpoint did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommError {
    /// The command line is wrong.
    #[error("{message}")]
    Usage {
        /// What is wrong and what is allowed.
        message: String,
    },
    /// A file, a folder or the memory cannot be used; the text says what to do.
    #[error("{0}")]
    Unusable(String),
    /// The other endpoint has refused, and said why.
    #[error("{0}")]
    Refused(String),
    /// This endpoint has refused, and the other one tells the user.
    #[error("told by the other endpoint")]
    Told {
        /// Exit code of this one.
        exit_code: u8,
    },
    /// The other endpoint was lost.
    #[error("the other endpoint was lost after {operations} of {planned} operations: {reason}")]
    PeerLost {
        /// Operations that were finished before.
        operations: u64,
        /// Operations of the plan.
        planned: u64,
        /// How it was noticed.
        reason: String,
    },
    /// A signal asked this endpoint to end.
    #[error("interrupted; what was stamped so far is kept")]
    Interrupted {
        /// The signal's number.
        signal: i32,
    },
    /// The endpoints do not agree on what they do.
    #[error("the endpoints disagree: {0}")]
    Disagreement(String),
    /// The system refused something.
    #[error("{action} failed: {source}")]
    System {
        /// What was tried.
        action: String,
        /// What the system said.
        source: io::Error,
    },
}

impl From<MappingFailure> for CommError {
    fn from(failure: MappingFailure) -> Self {
        Self::system(format!("mapping {} bytes", failure.length), failure.source)
    }
}

impl CommError {
    /// A wrong request.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage { message: message.into() }
    }

    /// A system call that failed.
    pub fn system(action: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { action: action.into(), source: source.into() }
    }

    /// The other endpoint is gone; how far this one was is added by whoever knows it.
    pub(crate) fn lost(reason: impl Into<String>) -> Self {
        Self::PeerLost { operations: 0, planned: 0, reason: reason.into() }
    }

    /// Adds how far this endpoint was.
    pub(crate) fn after(self, operations: u64, planned: u64) -> Self {
        match self {
            Self::PeerLost { reason, .. } => Self::PeerLost { operations, planned, reason },
            other => other,
        }
    }

    /// 2 the request is wrong, 3 the other endpoint was lost, 128 + n ended by signal n, 1 the rest.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage { .. } | Self::Unusable(_) | Self::Refused(_) => 2,
            Self::Told { exit_code } => *exit_code,
            Self::PeerLost { .. } => 3,
            Self::Interrupted { signal } => u8::try_from(128 + signal).unwrap_or(1),
            Self::Disagreement(_) | Self::System { .. } => 1,
        }
    }

    /// The next step, where there is one.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Usage { .. } => Some("`steelyard-comm --help` shows every option and an example"),
            Self::PeerLost { operations: 0, .. } => {
                Some("look why the other endpoint ended or did not come, then repeat the run")
            }
            Self::PeerLost { .. } => {
                Some("what was stamped so far is kept and can be read; look why the other endpoint ended")
            }
            _ => None,
        }
    }

    /// A word for the header of a trace.
    pub(crate) const fn end(&self) -> &'static str {
        match self {
            Self::PeerLost { .. } => "peer lost",
            Self::Interrupted { .. } => "signal",
            _ => "error",
        }
    }
}
