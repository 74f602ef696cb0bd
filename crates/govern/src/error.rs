use std::io;
use std::path::Path;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GovernError {
    /// The command line is wrong.
    #[error("{0}")]
    Usage(String),
    /// This host, or this user, cannot do it.
    #[error("{message}")]
    Capability {
        /// What is missing.
        message: String,
        /// The next step.
        hint: String,
    },
    /// The command cannot be executed.
    #[error("{message}")]
    Command {
        /// Which, and why.
        message: String,
        /// 126 or 127, as shells have it.
        exit_code: u8,
    },
    /// The system refused something.
    #[error("{action}: {source}")]
    System {
        /// What was tried.
        action: String,
        /// What the system said.
        source: io::Error,
    },
}

impl GovernError {
    /// A wrong request.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// Something the host or the user lacks.
    pub fn capability(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Capability { message: message.into(), hint: hint.into() }
    }

    /// A system call that failed.
    pub fn system(action: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { action: action.into(), source: source.into() }
    }

    /// A file that could not be written.
    pub(crate) fn writing(path: &Path, source: io::Error) -> Self {
        Self::system(format!("cannot write `{}`", path.display()), source)
    }

    /// 2 the request is wrong, 3 this host cannot do it, 126 and 127 about the command.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Capability { .. } | Self::System { .. } => 3,
            Self::Command { exit_code, .. } => *exit_code,
        }
    }

    /// The next step.
    #[must_use]
    pub fn hint(&self) -> &str {
        match self {
            Self::Usage(_) => "`steelyard-govern --help` shows every option and examples",
            Self::Capability { hint, .. } => hint,
            Self::Command { .. } => "give a program on the PATH, or the path of one",
            Self::System { .. } => "`steelyard doctor` says what this user may do here",
        }
    }
}
