//! A process of its own for the governor: started from a terminal, it outlives it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

use nix::sys::wait::WaitStatus;

use crate::error::GovernError;

const LOG: &str = "governor.log";
const HINT: &str = "\n\nhint: ";

/// Lets a process of its own do the work, and waits until it is ready. Answers what to tell the user.
pub(crate) fn detach(
    state: &Path,
    work: impl FnOnce(&mut dyn Write) -> Result<u8, GovernError>,
) -> Result<&'static str, GovernError> {
    let failure = |error: nix::Error| GovernError::system("cannot start the governor", error);
    let (reader, writer) = nix::unistd::pipe().map_err(failure)?;
    // SAFETY: this process has one thread, so the child may do everything.
    match unsafe { nix::unistd::fork() }.map_err(failure)? {
        nix::unistd::ForkResult::Parent { child } => {
            drop(writer);
            let mut said = String::new();
            // Until the child closes its end, ready or ended.
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
            let done = become_daemon(state)
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
        self.pipe = None;
        Ok(())
    }
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
