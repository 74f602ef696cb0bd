//! The other side of the launcher.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::fd::AsFd;
use steelyard_model::{Hello, OutputStream, Reply, Request, RunOutcome, RunSpec};

use super::layout::Layout;
use super::programs;

/// Nothing here takes that long.
const PATIENCE: Duration = Duration::from_secs(40);

/// A specification of a test program whose output is captured.
pub(crate) fn spec(words: &[&str]) -> RunSpec {
    let mut spec = RunSpec::of("case", programs::command(words));
    spec.standard_output = OutputStream::Capture { limit_bytes: 1 << 16 };
    // A launcher that fails to end a run must not stop the whole.
    spec.limits.wall_time_ns = Some(20_000_000_000);
    spec
}

/// Nowhere but on a slow machine does starting a test program take that long.
const USUAL_START: Duration = Duration::from_millis(3);

/// How many times longer than usual things may take here: a machine that is emulated or has little of
/// a CPU needs more time for the same instructions. `STEELYARD_TIME_SCALE`, otherwise what the fastest
/// of some starts of a program takes, without any launcher.
pub(crate) fn time_scale() -> u32 {
    static SCALE: OnceLock<u32> = OnceLock::new();
    *SCALE.get_or_init(|| {
        if let Ok(text) = std::env::var("STEELYARD_TIME_SCALE") {
            return text.parse().unwrap();
        }
        let fastest = (0..16).map(|_| start_time()).min().unwrap();
        u32::try_from(fastest.as_nanos().div_ceil(USUAL_START.as_nanos())).unwrap()
    })
}

fn start_time() -> Duration {
    let command = programs::command(&["exit", "0"]);
    let begin = Instant::now();
    assert!(Command::new(&command[0]).args(&command[1..]).status().unwrap().success());
    begin.elapsed()
}

/// The captured output of a run.
pub(crate) fn text(outcome: &RunOutcome) -> &str {
    &outcome.standard_output.as_ref().unwrap().text
}

/// Executes a specification by a launcher of its own.
pub(crate) fn execute(layout: Layout, spec: &RunSpec) -> RunOutcome {
    let mut outcomes = Serve::start(layout).batch(spec);
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0)
}

pub(crate) fn launcher(layout: Layout, command: &str) -> Command {
    let mut launcher = Command::new(std::env::current_exe().unwrap());
    let (name, value) = layout.role();
    launcher.arg(command).env(name, value).stdin(Stdio::piped()).stdout(Stdio::piped());
    launcher
}

/// The `once` command with a document on its standard input.
pub(crate) fn once(layout: Layout, document: &str) -> Output {
    let mut child = launcher(layout, "once").stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(document.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// A resident launcher.
pub(crate) struct Serve {
    pub(crate) child: Child,
    pub(crate) hello: Hello,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Serve {
    pub(crate) fn start(layout: Layout) -> Self {
        Self::from(launcher(layout, "serve"))
    }

    pub(crate) fn from(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let Reply::Hello(hello) = read_reply(&mut output) else { panic!("no hello") };
        Self { child, hello, input, output }
    }

    pub(crate) fn send(&mut self, request: &Request) {
        let mut line = serde_json::to_string(request).unwrap();
        line.push('\n');
        self.send_raw(&line);
    }

    pub(crate) fn send_raw(&mut self, text: &str) {
        self.input.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn read(&mut self) -> Reply {
        read_reply(&mut self.output)
    }

    pub(crate) fn prepare(&mut self, spec: &RunSpec) {
        self.send(&Request::Prepare { spec: Box::new(spec.clone()) });
        match self.read() {
            Reply::Ready { id } => assert_eq!(id, spec.id),
            other => panic!("not ready: {other:?}"),
        }
    }

    /// The rest of a batch: its outcomes up to `done`.
    pub(crate) fn outcomes(&mut self) -> Vec<RunOutcome> {
        let mut found = Vec::new();
        loop {
            match self.read() {
                Reply::Outcome { outcome } => found.push(*outcome),
                Reply::Done { iterations, .. } => {
                    assert_eq!(iterations as usize, found.len());
                    return found;
                }
                other => panic!("neither outcome nor done: {other:?}"),
            }
        }
    }

    pub(crate) fn batch(&mut self, spec: &RunSpec) -> Vec<RunOutcome> {
        self.prepare(spec);
        self.send(&Request::Go);
        self.outcomes()
    }

    pub(crate) fn run(&mut self, spec: &RunSpec) -> RunOutcome {
        let mut outcomes = self.batch(spec);
        assert_eq!(outcomes.len(), 1);
        outcomes.remove(0)
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    pub(crate) fn signal(pid: u32, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal).unwrap();
    }

    /// Waits until the launcher closed its output, which it does last.
    pub(crate) fn wait(&mut self) {
        let mut rest = Vec::new();
        assert!(is_readable(&self.output), "the launcher does not end");
        self.output.read_to_end(&mut rest).unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        self.input = None;
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
    }
}

fn is_readable(output: &BufReader<ChildStdout>) -> bool {
    let mut polled = [PollFd::new(output.get_ref().as_fd(), PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(PATIENCE).unwrap();
    poll(&mut polled, timeout).unwrap() > 0
}

fn read_reply(output: &mut BufReader<ChildStdout>) -> Reply {
    assert!(!output.buffer().is_empty() || is_readable(output), "the launcher is silent");
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("`{line}` is no reply: {error}"))
}

/// Whether a process exists and is no zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
}

/// Waits for something that happens soon.
pub(crate) fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(10), "not within 10 s: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Control groups of a launcher that exist.
pub(crate) fn groups_of(owner: u32) -> Vec<String> {
    let name = format!("steelyard-{owner}");
    let mut found = Vec::new();
    let mut open = vec![Path::new("/sys/fs/cgroup").to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            if entry.file_name().to_string_lossy() == name {
                found.push(entry.path().to_string_lossy().into_owned());
            }
            open.push(entry.path());
        }
    }
    found
}
