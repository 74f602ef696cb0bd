//! Identity of processes: an id alone is used again.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::text_file::look;

/// One process of one boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) process_id: i32,
    /// Ticks since boot.
    pub(crate) start_ticks: u64,
    pub(crate) boot_id: String,
}

impl Identity {
    pub(crate) fn own() -> Self {
        let process_id = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
        Self { process_id, start_ticks: start_ticks(process_id).unwrap_or(0), boot_id: boot_id() }
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.boot_id == boot_id() && start_ticks(self.process_id) == Some(self.start_ticks)
    }

    /// A handle on the living process that no later process of the same id can take over.
    pub(crate) fn handle(&self) -> Option<Handle> {
        let descriptor = open_descriptor(self.process_id)?;
        // Looked at after the handle was taken: what it names is what has this start.
        self.is_alive().then_some(Handle { descriptor })
    }
}

fn open_descriptor(process_id: i32) -> Option<OwnedFd> {
    // SAFETY: takes an id and flags, gives a new descriptor or -1.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, process_id, 0) };
    let raw = i32::try_from(raw).ok().filter(|raw| *raw >= 0)?;
    // SAFETY: the call above has just made it, and nobody else knows it.
    Some(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// A process that was alive when this was made.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) descriptor: OwnedFd,
}

impl Handle {
    pub(crate) fn signal(&self, signal: i32) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let no_info: *const libc::siginfo_t = std::ptr::null();
        let raw = self.descriptor.as_raw_fd();
        // SAFETY: the descriptor is open, and no further information is given.
        let answer = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, raw, signal, no_info, 0) };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Start of a process in ticks since boot; nothing if there is none.
pub(crate) fn start_ticks(process_id: i32) -> Option<u64> {
    let stat = look(Path::new(&format!("/proc/{process_id}/stat")))?;
    // The name may hold blanks and parentheses: it ends at the last one.
    let (_, tail) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    // SOURCE: proc_pid_stat(5): state is field 3, starttime field 22. A zombie runs no more.
    if matches!(fields.first(), Some(&"Z" | &"X")) {
        return None;
    }
    fields.get(19)?.parse().ok()
}

fn boot_id() -> String {
    look(Path::new("/proc/sys/kernel/random/boot_id")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_one_with_another_start_is_not() {
        let own = Identity::own();
        assert!(own.is_alive() && own.handle().is_some());
        let other = Identity { start_ticks: own.start_ticks + 1, ..own.clone() };
        assert!(!other.is_alive() && other.handle().is_none());
        let earlier = Identity { boot_id: "another".to_owned(), ..own };
        assert!(!earlier.is_alive());
    }
}
