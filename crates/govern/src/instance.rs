//! One governor per state folder: found, started and ended without taking another process for it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::GovernError;
use crate::process::Identity;
use crate::text_file::replace;

const SYSTEM_STATE: &str = "/run/steelyard-scheduler";
const LOCK: &str = "governor.lock";
const IDENTITY: &str = "governor-process.json";
/// Time a governor has to restore and end [ms].
const END_MS: u16 = 10_000;

/// Where state is kept: root's place is one for all, anybody else uses their own.
///
/// # Errors
///
/// [`GovernError::Capability`] for a user without `XDG_RUNTIME_DIR`.
pub(crate) fn default_state() -> Result<PathBuf, GovernError> {
    if nix::unistd::geteuid().is_root() {
        return Ok(PathBuf::from(SYSTEM_STATE));
    }
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(folder) if folder.is_absolute() => Ok(folder.join("steelyard-scheduler")),
        _ => Err(GovernError::capability(
            "there is no place for state: XDG_RUNTIME_DIR is not set and this user is not root",
            "give one: `--state DIR`",
        )),
    }
}

/// Where a governor may be that concerns this user: their own, or the system's.
pub(crate) fn visible_states() -> Vec<PathBuf> {
    let mut states: Vec<PathBuf> = default_state().into_iter().collect();
    if states.iter().all(|state| state != Path::new(SYSTEM_STATE)) {
        states.push(PathBuf::from(SYSTEM_STATE));
    }
    states
}

/// The right to be the governor of a state folder; lost with the process, however it ends.
#[derive(Debug)]
pub(crate) struct Instance {
    state: PathBuf,
    _lock: Flock<File>,
}

impl Instance {
    /// Takes the right; nothing if a living governor has it.
    pub(crate) fn take(state: &Path) -> Result<Option<Self>, GovernError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(state)
            .map_err(|source| GovernError::writing(state, source))?;
        let Some(lock) = lock(state)? else { return Ok(None) };
        let text = serde_json::to_string(&Identity::own())
            .map_err(|error| GovernError::system("cannot write the process id", error))?;
        replace(&state.join(IDENTITY), &format!("{text}\n"))?;
        Ok(Some(Self { state: state.to_owned(), _lock: lock }))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.state.join(IDENTITY));
    }
}

fn lock(state: &Path) -> Result<Option<Flock<File>>, GovernError> {
    let path = state.join(LOCK);
    let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = opened.map_err(|source| GovernError::writing(&path, source))?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Some(lock)),
        Err((_, Errno::EWOULDBLOCK)) => Ok(None),
        Err((_, error)) => Err(GovernError::writing(&path, error.into())),
    }
}

/// The living governor of a state folder.
pub(crate) fn living(state: &Path) -> Option<Identity> {
    let text = fs::read_to_string(state.join(IDENTITY)).ok()?;
    let identity: Identity = serde_json::from_str(&text).ok()?;
    identity.is_alive().then_some(identity)
}

/// Ends the governor and waits until it has restored everything; says whether there was one.
pub(crate) fn end(state: &Path) -> Result<bool, GovernError> {
    let Some(handle) = living(state).and_then(|identity| identity.handle()) else { return Ok(false) };
    handle.signal(libc::SIGTERM).map_err(|source| GovernError::system("cannot end the governor", source))?;
    let mut ended = [PollFd::new(handle.descriptor.as_fd(), PollFlags::POLLIN)];
    match poll(&mut ended, PollTimeout::from(END_MS)) {
        Ok(0) => Err(GovernError::system(
            format!("the governor did not end within {END_MS} ms"),
            std::io::Error::from(std::io::ErrorKind::TimedOut),
        )),
        Ok(_) => Ok(true),
        Err(error) => Err(GovernError::system("cannot wait for the governor", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_governor_at_a_time() {
        let state = tempfile::tempdir().unwrap();
        assert!(living(state.path()).is_none());
        let first = Instance::take(state.path()).unwrap().unwrap();
        assert!(Instance::take(state.path()).unwrap().is_none());
        assert_eq!(living(state.path()), Some(Identity::own()));
        drop(first);
        assert!(living(state.path()).is_none());
        assert!(Instance::take(state.path()).unwrap().is_some());
    }

    #[test]
    fn an_id_that_is_used_again_is_not_ended() {
        let state = tempfile::tempdir().unwrap();
        let other = Identity { start_ticks: 1, ..Identity::own() };
        fs::write(state.path().join(IDENTITY), serde_json::to_string(&other).unwrap()).unwrap();
        assert!(!end(state.path()).unwrap());
    }
}
