//! `serve`: the line protocol.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use steelyard_launch::guard::{Role, stand_guard};
use steelyard_launch::{Control, LaunchError, Launcher, LauncherOptions, monotonic_ns, utc_ns};
use steelyard_model::{Hello, PROTOCOL_VERSION, Reply, Request};

/// Longest request [bytes]: larger than any command line the kernel takes.
const LONGEST_LINE_BYTES: usize = 8 << 20;

/// Serves standard input and output.
pub(crate) fn execute(options: LauncherOptions) -> anyhow::Result<i32> {
    if let Role::Guard { exit_code } = stand_guard()? {
        return Ok(exit_code);
    }
    let input = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    serve(LauncherOptions { is_guarded: true, ..options }, input, &output)?;
    Ok(0)
}

/// Serves any pair of descriptors until quit, end of input or a signal.
pub(crate) fn serve(options: LauncherOptions, input: File, output: &File) -> anyhow::Result<()> {
    let mut launcher = Launcher::start(&options)?;
    let mut caller = Caller { input: Lines::new(input), output, is_leaving: false };
    caller.send(&Reply::Hello(Hello {
        protocol: PROTOCOL_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        process_id: std::process::id(),
        cgroup: launcher.cgroup().to_owned(),
        kernel: nix::sys::utsname::uname()
            .map(|name| name.release().to_string_lossy().into_owned())
            .unwrap_or_default(),
    }));
    while !caller.is_leaving && !launcher.is_stopping() {
        match caller.input.next_line() {
            Line::Complete(line) => answer(&mut launcher, &mut caller, &line),
            Line::Incomplete => wait(&mut launcher, &mut caller),
            Line::End => break,
        }
    }
    Ok(())
}

fn wait(launcher: &mut Launcher, caller: &mut Caller<'_>) {
    let mut polled = [
        PollFd::new(caller.input.file.as_fd(), PollFlags::POLLIN),
        PollFd::new(launcher.signal_descriptor(), PollFlags::POLLIN),
    ];
    match poll(&mut polled, PollTimeout::NONE) {
        Err(Errno::EINTR) | Ok(0) => return,
        Err(_) => return caller.is_leaving = true,
        Ok(_) => {}
    }
    let [input, signals] = polled.map(|fd| fd.revents().is_some_and(|events| !events.is_empty()));
    if signals {
        launcher.take_idle_signals();
    }
    if input {
        caller.input.fill();
    }
}

fn answer(launcher: &mut Launcher, caller: &mut Caller<'_>, line: &str) {
    let request = match parse(line) {
        Ok(request) => request,
        Err(error) => return caller.send_error(&error),
    };
    match request {
        Request::Prepare { spec } => match launcher.prepare(&spec) {
            Ok(()) => caller.send(&Reply::Ready { id: spec.id.clone() }),
            Err(error) => caller.send_error(&error),
        },
        Request::Go => go(launcher, caller),
        Request::Cancel => match launcher.give_up() {
            Some(id) => caller.send(&Reply::Done { id, iterations: 0 }),
            None => caller.send_error(&LaunchError::Request {
                what: "cancel",
                reason: "no batch is prepared or in flight".into(),
            }),
        },
        Request::Ping => caller.pong(),
        Request::Quit => caller.is_leaving = true,
        _ => caller
            .send_error(&LaunchError::Request { what: "request", reason: "unknown to this version".into() }),
    }
}

fn go(launcher: &mut Launcher, caller: &mut Caller<'_>) {
    let id = launcher.prepared_id().unwrap_or_default().to_owned();
    if caller.has_been_interrupted() {
        launcher.give_up();
        return caller.send(&Reply::Done { id, iterations: 0 });
    }
    let output = caller.output;
    let result = launcher.execute(caller, &mut |report| {
        // A caller that is gone shows as the end of its input.
        let _ = write_line(output, &Reply::Outcome { outcome: Box::new(report.outcome) });
    });
    match result {
        Ok(iterations) => caller.send(&Reply::Done { id, iterations }),
        Err(error) => caller.send_error(&error),
    }
}

fn parse(line: &str) -> Result<Request, LaunchError> {
    serde_json::from_str(line)
        .map_err(|error| LaunchError::Request { what: "request line", reason: error.to_string() })
}

fn write_line(mut output: &File, reply: &Reply) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    output.write_all(&line)
}

/// The other end of the protocol.
struct Caller<'a> {
    input: Lines,
    output: &'a File,
    is_leaving: bool,
}

impl Caller<'_> {
    fn send(&mut self, reply: &Reply) {
        self.is_leaving |= write_line(self.output, reply).is_err();
    }

    fn send_error(&mut self, error: &LaunchError) {
        self.send(&Reply::Error {
            code: error.code().to_owned(),
            message: error.to_string(),
            hint: error.hint(),
        });
    }

    fn pong(&mut self) {
        self.send(&Reply::Pong { monotonic_ns: monotonic_ns(), utc_ns: utc_ns() });
    }

    /// Serves the lines that were read already. Says whether one ends the batch.
    fn has_been_interrupted(&mut self) -> bool {
        loop {
            match self.input.next_line() {
                Line::Complete(line) => {
                    if self.interrupts(&line) {
                        return true;
                    }
                }
                Line::Incomplete => return false,
                Line::End => {
                    self.is_leaving = true;
                    return true;
                }
            }
        }
    }

    /// A line that came while a batch is in flight. Says whether it ends the batch.
    fn interrupts(&mut self, line: &str) -> bool {
        match parse(line) {
            Ok(Request::Cancel) => return true,
            Ok(Request::Quit) => {
                self.is_leaving = true;
                return true;
            }
            Ok(Request::Ping) => self.pong(),
            Ok(_) => self.send_error(&LaunchError::Request {
                what: "request",
                reason: "a batch is in flight; `cancel`, `ping` and `quit` are served now".into(),
            }),
            Err(error) => self.send_error(&error),
        }
        false
    }
}

impl Control for Caller<'_> {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.input.file.as_fd())
    }

    fn is_cancelled(&mut self) -> bool {
        self.input.fill();
        self.has_been_interrupted()
    }
}

enum Line {
    Complete(String),
    Incomplete,
    End,
}

/// Lines of a descriptor that is waited for elsewhere.
struct Lines {
    file: File,
    pending: Vec<u8>,
    has_ended: bool,
}

impl Lines {
    fn new(file: File) -> Self {
        Self { file, pending: Vec::new(), has_ended: false }
    }

    /// Reads what is there; call it when the descriptor is readable.
    fn fill(&mut self) {
        let mut chunk = [0_u8; 16 << 10];
        match self.file.read(&mut chunk) {
            Ok(0) => self.has_ended = true,
            Ok(length) => self.pending.extend_from_slice(&chunk[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => self.has_ended = true,
        }
        self.has_ended |= self.pending.len() > LONGEST_LINE_BYTES;
    }

    fn next_line(&mut self) -> Line {
        while let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            if !text.is_empty() {
                return Line::Complete(text);
            }
        }
        if self.has_ended { Line::End } else { Line::Incomplete }
    }
}
