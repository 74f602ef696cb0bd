//! Parts of an experiment in processes of their own.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::LoadError;
use crate::clock::now_ns;

/// A part of a trial. It ends when this is dropped, and when the conductor dies.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: String,
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    status: Option<ExitStatus>,
}

impl Part {
    /// Starts this very program with other words. It waits for `begin`.
    pub(crate) fn start(name: &str, words: &[String]) -> Result<Self, LoadError> {
        let mut command = Command::new("/proc/self/exe");
        command.args(words).arg("--control");
        Self::spawn(name, command, Signal::SIGKILL)
    }

    /// Starts a program; it gets `on_orphaned` when the conductor has died.
    pub(crate) fn spawn(name: &str, mut command: Command, on_orphaned: Signal) -> Result<Self, LoadError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let protect = move || nix::sys::prctl::set_pdeathsig(on_orphaned).map_err(io::Error::from);
        // SAFETY: between fork and exec only one system call is made, and nothing is allocated.
        unsafe { command.pre_exec(protect) };
        let failed = |error| LoadError::system(format!("starting the {name}"), error);
        let mut child = command.spawn().map_err(failed)?;
        let orders = child.stdin.take();
        let answers = child.stdout.take().ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
        Ok(Self { name: name.to_owned(), child, orders, answers: BufReader::new(answers), status: None })
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(i32::MAX))
    }

    /// Gives an order.
    pub(crate) fn order(&mut self, line: &str) -> Result<(), LoadError> {
        let written = match &mut self.orders {
            Some(orders) => orders.write_all(format!("{line}\n").as_bytes()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        written.map_err(|_| self.lost())
    }

    /// Waits for a line that begins with `word`, at most `limit_ms`, and gives the rest of it.
    pub(crate) fn await_line(&mut self, word: &str, limit_ms: u64) -> Result<String, LoadError> {
        let give_up_ns = now_ns() + limit_ms * 1_000_000;
        while self.answers.buffer().is_empty() && !self.has_answer(100)? {
            crate::signal::check()?;
            if now_ns() >= give_up_ns {
                return Err(LoadError::Failed(format!(
                    "the {} did not say `{word}` within {limit_ms} ms",
                    self.name
                )));
            }
        }
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(1..) => {}
            _ => return Err(self.lost()),
        }
        let rest = line.trim_end().strip_prefix(word).map(|rest| rest.trim_start().to_owned());
        rest.ok_or_else(|| LoadError::Failed(format!("the {} said `{}`", self.name, line.trim_end())))
    }

    /// Whether a line can be read within `patience_ms`.
    pub(crate) fn has_answer(&self, patience_ms: u16) -> Result<bool, LoadError> {
        let output: BorrowedFd<'_> = self.answers.get_ref().as_fd();
        let mut waiting = [PollFd::new(output, PollFlags::POLLIN)];
        match poll(&mut waiting, PollTimeout::from(patience_ms)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(error) => Err(LoadError::system("waiting for a part of the trial", error)),
        }
    }

    /// How it has ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Sends a signal, if it still lives.
    pub(crate) fn signal(&mut self, signal: Signal) {
        if self.ended().is_none() {
            // It may have ended since: then there is nothing to signal, and its number is still ours.
            let _ = kill(self.pid(), signal);
        }
    }

    /// Waits for its end, at most until `limit_ns`. Gives whether it has ended.
    pub(crate) fn await_end(&mut self, limit_ns: u64) -> bool {
        while self.ended().is_none() {
            if now_ns() >= limit_ns {
                return false;
            }
            crate::clock::sleep_until(now_ns() + 2_000_000);
        }
        true
    }

    /// Why it is gone.
    pub(crate) fn lost(&mut self) -> LoadError {
        self.await_end(now_ns() + 1_000_000_000);
        let how = match self.status {
            None => "has closed its output".to_owned(),
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("has ended with exit code {code}"),
                (None, Some(signal)) => format!("was ended by signal {signal}"),
                (None, None) => "has ended".to_owned(),
            },
        };
        LoadError::Failed(format!("the {} {how}", self.name))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        // A killed process ends as soon as it gets a CPU; waiting leaves no zombie.
        if self.status.is_none() {
            let _ = self.child.wait();
        }
    }
}
