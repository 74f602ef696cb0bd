//! A process of its own for the governor: started from a terminal, it outlives it.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use nix::unistd::{Pid, getpid, getppid};

use crate::error::GovernError;

/// How long it may take until the governor is at work \[ms\].
const START_MS: u16 = 10_000;
const LOG: &str = "governor.log";
const HINT: &str = "\n\nhint: ";

/// Lets a process of its own do the work, and waits until it is ready. Answers what to tell the user.
pub(crate) fn detach(
    state: &Path,
    work: impl FnOnce(&mut dyn Write) -> Result<u8, GovernError>,
) -> Result<&'static str, GovernError> {
    let failure = |error: nix::Error| GovernError::system("cannot start the governor", error);
    let (reader, writer) = nix::unistd::pipe().map_err(failure)?;
    let starter = getpid();
    // SAFETY: this process has one thread, so the child may do everything.
    match unsafe { nix::unistd::fork() }.map_err(failure)? {
        nix::unistd::ForkResult::Parent { child } => {
            drop(writer);
            let mut said = String::new();
            // The child says what there is to say at once, and closes its end.
            if poll(&mut [PollFd::new(reader.as_fd(), PollFlags::POLLIN)], PollTimeout::from(START_MS))
                == Ok(0)
            {
                end(child);
                let message = format!("the governor was not at work within {START_MS} ms; it was ended");
                let hint = format!("the log is `{}`", state.join(LOG).display());
                return Err(GovernError::capability(message, hint));
            }
            let _ = File::from(reader).read_to_string(&mut said);
            if let Some(text) = said.strip_suffix('\n') {
                return Ok(if text == "ready" { "started\n" } else { "already started\n" });
            }
            let ended = nix::sys::wait::waitpid(child, None).map_err(failure)?;
            let (message, hint) = said.split_once(HINT).unwrap_or(("", ""));
            Err(match (message, ended) {
                ("", _) => {
                    let hint = format!("the log is `{}`", state.join(LOG).display());
                    GovernError::capability("the governor ended without a word", hint)
                }
                (_, WaitStatus::Exited(_, 2)) => GovernError::usage(message),
                _ => GovernError::capability(message, hint),
            })
        }
        nix::unistd::ForkResult::Child => {
            drop(reader);
            let mut ready = Ready { pipe: Some(File::from(writer)) };
            let done = end_with(starter)
                .and_then(|()| become_daemon(state))
                .map_err(|source| GovernError::system("cannot leave the terminal", source))
                .and_then(|()| work(&mut ready));
            let code = done.unwrap_or_else(|error| {
                let text = format!("{error}{HINT}{}", error.hint());
                // To the starter while it waits, else to the log.
                let _ = match &mut ready.pipe {
                    Some(pipe) => pipe.write_all(text.as_bytes()),
                    None => io::stderr().write_all(format!("{text}\n").as_bytes()),
                };
                error.exit_code()
            });
            std::process::exit(i32::from(code));
        }
    }
}

/// Closes the pipe behind its only line: the starter waits for the end.
struct Ready {
    pipe: Option<File>,
}

impl Write for Ready {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.pipe.as_mut().map_or(Ok(buffer.len()), |pipe| pipe.write(buffer))
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = nix::sys::prctl::set_pdeathsig(None);
        self.pipe = None;
        Ok(())
    }
}

fn end(child: Pid) {
    let _ = nix::sys::signal::kill(child, Signal::SIGKILL);
    let _ = nix::sys::wait::waitpid(child, None);
}

/// Until the governor is at work it ends with who waits for it.
fn end_with(starter: Pid) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    // It may have ended before that.
    if getppid() == starter { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
}

/// Say to the service manager that the governor is at work, where one asks for it: `sd_notify(3)`.
pub(crate) fn tell_service_manager() {
    if let Some(name) = std::env::var_os("NOTIFY_SOCKET") {
        // A manager that does not listen ends this process when its time is over.
        let _ = tell(&name);
    }
}

fn tell(name: &OsStr) -> io::Result<()> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(b"READY=1", &address).map(|_| ())
}

fn become_daemon(state: &Path) -> io::Result<()> {
    nix::unistd::setsid()?;
    nix::unistd::chdir("/")?;
    let log = OpenOptions::new().create(true).append(true).open(state.join(LOG))?;
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    for (file, number) in [(&null, 0), (&null, 1), (&log, 2)] {
        // SAFETY: both descriptors are open, and the standard streams of this process are its own.
        if unsafe { libc::dup2(file.as_raw_fd(), number) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_manager_is_told_at_a_path_and_at_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("steelyard-govern-test-{}", std::process::id());
        let by_path = UnixDatagram::bind(&path).unwrap();
        let by_name = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        tell(path.as_os_str()).unwrap();
        tell(OsStr::new(&format!("@{name}"))).unwrap();
        for socket in [by_path, by_name] {
            let mut buffer = [0; 16];
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"READY=1");
        }
        assert!(tell(OsStr::new("/nowhere/notify")).is_err());
    }
}
