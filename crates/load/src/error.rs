use std::io;

use steelyard_memory::MappingFailure;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The command line or the plan is wrong.
    #[error("{message}")]
    Usage {
        /// What is wrong and what is allowed.
        message: String,
    },
    /// The machine lacks something that was asked for.
    #[error("{message}")]
    Capability {
        /// What is missing.
        message: String,
        /// The next step.
        hint: String,
    },
    /// A part of a trial ended before its time, or answered wrongly.
    #[error("{0}")]
    Failed(String),
    /// A signal asked this process to end.
    #[error("interrupted; what was recorded so far is kept")]
    Interrupted {
        /// The signal's number.
        signal: i32,
    },
    /// The system refused something.
    #[error("{action} failed: {source}")]
    System {
        /// What was tried.
        action: String,
        /// What the system said.
        source: io::Error,
    },
}

impl From<MappingFailure> for LoadError {
    fn from(failure: MappingFailure) -> Self {
        Self::system(format!("mapping {} bytes", failure.length), failure.source)
    }
}

impl LoadError {
    /// A wrong request.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage { message: message.into() }
    }

    /// Something that this machine cannot do.
    pub fn capability(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Capability { message: message.into(), hint: hint.into() }
    }

    /// A system call that failed.
    pub fn system(action: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { action: action.into(), source: source.into() }
    }

    /// The system call that has just failed.
    pub(crate) fn last(action: impl Into<String>) -> Self {
        Self::System { action: action.into(), source: io::Error::last_os_error() }
    }

    /// 2 the request is wrong, 3 this machine cannot do it, 4 a part failed, 128 + n ended by signal n,
    /// 1 the system refused.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage { .. } => 2,
            Self::Capability { .. } => 3,
            Self::Failed(_) => 4,
            Self::Interrupted { signal } => u8::try_from(128 + signal).unwrap_or(1),
            Self::System { .. } => 1,
        }
    }

    /// The next step, where there is one.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Usage { .. } => Some("`steelyard-load --help` shows every command with its options"),
            Self::Capability { hint, .. } => Some(hint),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_exit_code() {
        let refused = io::Error::from(io::ErrorKind::PermissionDenied);
        let errors = [
            (LoadError::usage("x"), 2),
            (LoadError::capability("x", "y"), 3),
            (LoadError::Failed("x".to_owned()), 4),
            (LoadError::Interrupted { signal: 15 }, 143),
            (LoadError::system("x", refused), 1),
        ];
        for (error, code) in errors {
            assert_eq!(error.exit_code(), code, "{error}");
        }
        assert_eq!(LoadError::capability("x", "do y").hint(), Some("do y"));
    }
}
