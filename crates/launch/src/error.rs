use std::io;
use std::path::PathBuf;

use steelyard_host::cgroup::CgroupError;
use steelyard_model::SpecError;

/// Why the launcher could not do what was asked. What a program does is never an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The specification cannot be executed as written.
    #[error("{0}")]
    Spec(#[from] SpecError),
    /// The specification asks for something by a name that does not exist.
    #[error("`{field}` names `{found}`; allowed: {allowed}")]
    Name {
        /// Path of the field.
        field: &'static str,
        /// What was there.
        found: String,
        /// The names that exist.
        allowed: String,
    },
    /// A file of the specification cannot be opened.
    #[error("`{field}`: cannot open `{}`: {source}", path.display())]
    File {
        /// Path of the field.
        field: &'static str,
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// This host cannot do it.
    #[error("{what}: {reason}")]
    Capability {
        /// What was asked for.
        what: String,
        /// Why not.
        reason: String,
        /// The next step.
        hint: Option<String>,
    },
    /// A control group refused.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// A system call failed that should not.
    #[error("cannot {step}: {source}")]
    System {
        /// What was attempted.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The zygote, from which every run is cloned, is gone or answers nonsense.
    #[error("the zygote {what}")]
    Zygote {
        /// What was noticed.
        what: String,
    },
    /// Parallel launchers did not meet.
    #[error("the barrier `{}` was not reached by all {parties} parties within {timeout_ms} ms: {arrived} arrived", path.display())]
    Barrier {
        /// The shared file.
        path: PathBuf,
        /// How many should meet.
        parties: u32,
        /// How many came.
        arrived: u32,
        /// How long was waited.
        timeout_ms: u64,
    },
    /// A line or document that is not what the protocol says.
    #[error("{what}: {reason}")]
    Request {
        /// Which input.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl LaunchError {
    /// Stable code of the line protocol.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Spec(_) | Self::Name { .. } | Self::File { .. } | Self::Request { .. } => "bad_request",
            Self::Capability { .. } => "capability",
            _ => "launcher",
        }
    }

    /// The next step, where there is one.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Capability { hint, .. } => return hint.clone(),
            Self::Spec(_) | Self::Request { .. } => "`steelyard measure` writes a valid specification",
            Self::Name { .. } => "use one of the allowed names",
            Self::File { .. } => "check the path and its permissions, as the launcher sees them",
            Self::Cgroup(_) => "`steelyard-launch probe` says which control groups this process may use",
            Self::Barrier { .. } => {
                "check that every launcher got the same file and the same number of parties"
            }
            Self::System { .. } => "`steelyard-launch probe` says what this host can do",
            Self::Zygote { .. } => "start the launcher again",
        };
        Some(text.to_owned())
    }
}

/// Names the step in which a system call failed.
pub(crate) trait During<T> {
    fn during(self, step: &'static str) -> Result<T, LaunchError>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, step: &'static str) -> Result<T, LaunchError> {
        self.map_err(|source| LaunchError::System { step, source: source.into() })
    }
}
