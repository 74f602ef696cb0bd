use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Why a sandbox could not be made, entered or sealed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The kernel refused a step.
    #[error("sandbox: cannot {step}: {source}")]
    Step {
        /// What was tried, in words, with the path it was tried on.
        step: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A path of the specification cannot be shown inside.
    #[error("sandbox: `{field}` names `{}`: {problem}", path.display())]
    Path {
        /// Field of `SandboxSpec` or of the run.
        field: &'static str,
        /// What was there.
        path: PathBuf,
        /// What is wrong with it, and what is allowed.
        problem: String,
    },
    /// The user the program shall be is no ordinary user.
    #[error("sandbox: `user_id` is {found}; allowed: 1 to 4294967294")]
    UserId {
        /// What was there.
        found: u32,
    },
    /// The system call filter cannot be compiled for this machine.
    #[error("sandbox: cannot compile the system call filter: {reason}")]
    Filter {
        /// The compiler's words.
        reason: String,
    },
    /// The idle first process of the pool is gone, and its namespaces with it.
    #[error("sandbox: the first process of the pool ended while {during}")]
    InitEnded {
        /// What was going on.
        during: &'static str,
    },
}

impl SandboxError {
    /// The next step for whoever reads the message.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Step { source, .. } => step_hint(source.raw_os_error()).into(),
            Self::Path { field, .. } => format!("change `{field}`, or create what it names"),
            Self::UserId { .. } => "leave `user_id` out to get a user that no account has".into(),
            Self::Filter { .. } => "use another isolation on this architecture, for example `docker`".into(),
            Self::InitEnded { .. } => {
                "create the pool again; look at the kernel log if it happens again".into()
            }
        }
    }

    pub(crate) fn step(step: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Step { step: step.into(), source: source.into() }
    }

    pub(crate) fn path(field: &'static str, path: &Path, problem: impl Into<String>) -> Self {
        Self::Path { field, path: path.to_owned(), problem: problem.into() }
    }
}

fn step_hint(errno: Option<i32>) -> &'static str {
    match errno {
        Some(libc::EPERM | libc::EACCES) => {
            "run as root, or allow it: in a container add `--privileged`, on the host see \
             `sysctl kernel.unprivileged_userns_clone kernel.apparmor_restrict_unprivileged_userns`"
        }
        Some(libc::ENOSPC | libc::EUSERS) => {
            "raise the number of namespaces: `sysctl user.max_user_namespaces user.max_mnt_namespaces`"
        }
        Some(libc::ENOSYS | libc::EINVAL) => "this kernel lacks it; `steelyard doctor` lists what works here",
        Some(libc::ENOMEM | libc::EAGAIN) => "free memory, or lower the number of processes and workers",
        Some(libc::ENOENT | libc::ENOTDIR) => "create the path, or leave it out",
        _ => "`steelyard doctor` says what this host can do",
    }
}

/// A failed step on its way from the first process of the pool to the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum WireError {
    Step { step: String, errno: i32 },
    Path { read_only: bool, path: PathBuf, problem: String },
}

impl From<&SandboxError> for WireError {
    fn from(error: &SandboxError) -> Self {
        match error {
            SandboxError::Step { step, source } => {
                Self::Step { step: step.clone(), errno: source.raw_os_error().unwrap_or(libc::EIO) }
            }
            SandboxError::Path { field, path, problem } => {
                Self::Path { read_only: *field != WRITABLE, path: path.clone(), problem: problem.clone() }
            }
            other => Self::Step { step: other.to_string(), errno: libc::EIO },
        }
    }
}

impl From<WireError> for SandboxError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Step { step, errno } => Self::step(step, io::Error::from_raw_os_error(errno)),
            WireError::Path { read_only, path, problem } => {
                Self::Path { field: if read_only { READ_ONLY } else { WRITABLE }, path, problem }
            }
        }
    }
}

pub(super) const READ_ONLY: &str = "read_only";
pub(super) const WRITABLE: &str = "writable";

/// Names the step of a failed system call.
pub(super) trait Context<T> {
    /// `step` completes "cannot ...".
    fn step(self, step: impl FnOnce() -> String) -> Result<T, SandboxError>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn step(self, step: impl FnOnce() -> String) -> Result<T, SandboxError> {
        self.map_err(|error| SandboxError::step(step(), error))
    }
}
