use std::io;

/// Why nothing was watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The command line is wrong.
    #[error("{0}")]
    Usage(String),
    /// The system refused something.
    #[error("{action} failed: {source}")]
    System {
        /// What was tried.
        action: String,
        /// What the system said.
        source: io::Error,
    },
}

impl WatchError {
    pub(crate) fn system(action: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { action: action.into(), source: source.into() }
    }

    /// 2 the request is wrong, 1 the system refused.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::System { .. } => 1,
        }
    }

    /// The next step, where there is one.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Usage(_) => Some("`steelyard-watch --help` shows every option"),
            Self::System { .. } => None,
        }
    }
}
