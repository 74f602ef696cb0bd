//! A load that is a command: it is launched again and again, and its launches are the requests.
//!
//! A launch counts from its begin until its process has ended. A command that prints lines `latency_us NUMBER`
//! says itself how long its requests took: each line is a request that was answered when the line came, and
//! such a command gets SIGTERM when the load is over.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::LoadError;
use crate::clock::{now_ns, wait_until};
use crate::record::{create_file, file_error};

/// First word of a line that says how long a request took.
const LATENCY: &str = "latency_us";
/// SOURCE: own choice; how often it is looked whether the load is over.
const PATIENCE_MS: u16 = 20;

/// The load.
#[derive(Debug)]
pub(crate) struct Launches {
    pub(crate) command: Vec<String>,
    pub(crate) duration_ns: u64,
    /// How long the last launch may take beyond that.
    pub(crate) drain_ns: u64,
    pub(crate) requests_path: PathBuf,
}

/// When a request began and was answered \[ns\]; 0: never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Request {
    sent_ns: u64,
    received_ns: u64,
}

impl Launches {
    /// Launches from a stamp on, and leaves the requests in order of their begin.
    pub(crate) fn execute(&self, start_ns: u64) -> Result<Value, LoadError> {
        let file = create_file(&self.requests_path, 0)?;
        let end_ns = start_ns + self.duration_ns;
        let (mut requests, mut launches) = (Vec::new(), 0_u64);
        wait_until(start_ns, 0);
        while now_ns() < end_ns {
            crate::signal::check()?;
            Launch::start(&self.command)?.follow(&mut requests, end_ns, end_ns + self.drain_ns)?;
            launches += 1;
        }
        let client_end_ns = now_ns();
        requests.sort_by_key(|request| request.sent_ns);
        write(file, &requests).map_err(|error| file_error(&self.requests_path, &error))?;
        Ok(json!({
            "launches": launches, "requests": requests.len(), "is_closed_loop": true,
            "start_ns": start_ns, "client_end_ns": client_end_ns,
        }))
    }
}

/// As `RequestRecord` has it: nobody knows when such a request was begun by whom it was sent to.
fn write(mut file: File, requests: &[Request]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(48 * requests.len());
    for (seq, request) in (0_u32..).zip(requests) {
        bytes.extend([seq.to_le_bytes(), 0_u32.to_le_bytes()].concat());
        let Request { sent_ns, received_ns } = *request;
        for stamp in [sent_ns, sent_ns, sent_ns, received_ns, received_ns] {
            bytes.extend(stamp.to_le_bytes());
        }
    }
    file.write_all(&bytes)
}

/// A command that runs; it and what it has started end when this is dropped.
#[derive(Debug)]
struct Launch {
    name: String,
    child: Child,
    /// Readable once the process has ended.
    process: OwnedFd,
    output: Option<ChildStdout>,
    /// What was printed of a line that is not whole yet.
    begun: Vec<u8>,
    sent_ns: u64,
}

impl Launch {
    fn start(words: &[String]) -> Result<Self, LoadError> {
        let name = words.first().cloned().unwrap_or_default();
        let mut command = Command::new(&name);
        command.args(words.get(1..).unwrap_or_default()).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let protect = || nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(io::Error::from);
        // SAFETY: between fork and exec only one system call is made, and nothing is allocated.
        unsafe { command.pre_exec(protect) };
        let failed = |error| LoadError::system(format!("starting `{name}`"), error);
        let sent_ns = now_ns();
        let mut child = command.spawn().map_err(failed)?;
        // SAFETY: the process is a child of ours that nobody has waited for; there are no flags.
        let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
        let raw = i32::try_from(raw).unwrap_or(-1);
        if raw < 0 {
            let error = LoadError::last(format!("watching `{name}`"));
            let _ = child.kill();
            let _ = child.wait();
            return Err(error);
        }
        // SAFETY: the kernel has just given this descriptor to us alone.
        let process = unsafe { OwnedFd::from_raw_fd(raw) };
        let output = child.stdout.take();
        Ok(Self { name, child, process, output, begun: Vec::new(), sent_ns })
    }

    fn signal(&self, signal: Signal) {
        // Who has ended meanwhile gets none.
        let _ = killpg(Pid::from_raw(self.child.id().cast_signed()), signal);
    }

    /// Waits for its end and keeps its requests; after `limit_ns` it is killed, and was not answered.
    fn follow(mut self, requests: &mut Vec<Request>, end_ns: u64, limit_ns: u64) -> Result<(), LoadError> {
        let before = requests.len();
        let mut is_asked = false;
        loop {
            crate::signal::check()?;
            let now = now_ns();
            let says = requests.len() > before;
            if now >= limit_ns {
                if !says {
                    requests.push(Request { sent_ns: self.sent_ns, received_ns: 0 });
                }
                return Ok(());
            }
            if says && !is_asked && now >= end_ns {
                self.signal(Signal::SIGTERM);
                is_asked = true;
            }
            if self.await_anything()? {
                self.read(requests)?;
                continue;
            }
            let received_ns = now_ns();
            if let Some(status) = self.ended()? {
                if !status.success() && !is_asked {
                    return Err(LoadError::Failed(format!("`{}` has ended with {status}", self.name)));
                }
                if requests.len() == before {
                    requests.push(Request { sent_ns: self.sent_ns, received_ns });
                }
                return Ok(());
            }
        }
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, LoadError> {
        let ended = self.child.try_wait();
        ended.map_err(|error| LoadError::system(format!("waiting for `{}`", self.name), error))
    }

    /// Waits for output, the end, or a moment. Gives whether there is output.
    fn await_anything(&self) -> Result<bool, LoadError> {
        let mut waiting = vec![PollFd::new(self.process.as_fd(), PollFlags::POLLIN)];
        waiting.extend(self.output.as_ref().map(|output| PollFd::new(output.as_fd(), PollFlags::POLLIN)));
        match poll(&mut waiting, PollTimeout::from(PATIENCE_MS)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(LoadError::system("waiting for a command", error)),
        }
        Ok(waiting.get(1).is_some_and(|output| output.any() == Some(true)))
    }

    /// Reads what is there, and takes the lines that are whole.
    fn read(&mut self, requests: &mut Vec<Request>) -> Result<(), LoadError> {
        let mut bytes = [0; 1 << 12];
        let count = self.output.as_mut().map_or(Ok(0), |output| output.read(&mut bytes));
        let count = count.map_err(|error| LoadError::system("reading what a command prints", error))?;
        let received_ns = now_ns();
        if count == 0 {
            self.output = None;
        }
        self.begun.extend_from_slice(&bytes[..count]);
        while let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.begun.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            if let Some(latency_ns) = self.latency_ns(line.trim_end())? {
                let sent_ns = received_ns.saturating_sub(latency_ns);
                requests.push(Request { sent_ns, received_ns });
            }
        }
        Ok(())
    }

    /// How long a request took by a line about it; nothing for any other line.
    fn latency_ns(&self, line: &str) -> Result<Option<u64>, LoadError> {
        let mut words = line.split_ascii_whitespace();
        if words.next() != Some(LATENCY) {
            return Ok(None);
        }
        let latency_us: Option<f64> = words.next().and_then(|word| word.parse().ok());
        match latency_us {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 10^15")]
            Some(time) if (0.0..=1e12).contains(&time) => Ok(Some((time * 1e3) as u64)),
            _ => Err(LoadError::Failed(format!(
                "`{}` has printed `{line}`; allowed: `{LATENCY}` and a number of microseconds",
                self.name
            ))),
        }
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(script: &str, duration_ms: u64, drain_ms: u64) -> Result<(Vec<[u64; 6]>, Value), LoadError> {
        let folder = tempfile::tempdir().unwrap();
        let requests_path = folder.path().join("requests.bin");
        let launches = Launches {
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            duration_ns: duration_ms * 1_000_000,
            drain_ns: drain_ms * 1_000_000,
            requests_path: requests_path.clone(),
        };
        let summary = launches.execute(now_ns())?;
        let bytes = std::fs::read(requests_path).unwrap();
        assert_eq!(bytes.len() % 48, 0);
        let record = |record: &[u8]| {
            let mut words = record.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
            std::array::from_fn(|_| words.next().unwrap())
        };
        Ok((bytes.chunks_exact(48).map(record).collect(), summary))
    }

    #[test]
    fn a_launch_takes_until_its_end() {
        let (found, summary) = requests("sleep 0.05", 120, 5000).unwrap();
        assert_eq!(summary["launches"], found.len());
        assert!((1..=3).contains(&found.len()), "{found:?}");
        for [seq, intended_ns, sent_ns, _, _, received_ns] in &found {
            assert!(*seq < found.len() as u64);
            assert_eq!(intended_ns, sent_ns);
            assert!(received_ns - sent_ns >= 50_000_000);
        }
        assert!(found.is_sorted_by_key(|record| record[1]));
    }

    #[test]
    fn lines_about_latencies_stand_for_the_launch() {
        // The second request began before the first; the command would never end by itself.
        let script = "echo hello; echo latency_us 1000; echo latency_us 2500.5 and more; sleep 100";
        let (found, summary) = requests(script, 100, 5000).unwrap();
        assert_eq!((summary["launches"].as_u64(), summary["requests"].as_u64()), (Some(1), Some(2)));
        let latencies: Vec<u64> = found.iter().map(|record| record[5] - record[1]).collect();
        assert_eq!(latencies, [2_500_500, 1_000_000]);
    }

    #[test]
    fn what_does_not_end_is_not_answered() {
        let (found, _) = requests("sleep 100", 20, 50).unwrap();
        assert_eq!((found.len(), found[0][5]), (1, 0));
    }

    #[test]
    fn what_the_command_started_does_not_hold_up_its_end() {
        let began_ns = now_ns();
        let (found, _) = requests("sleep 100 &", 1, 50_000).unwrap();
        assert_eq!(found.len(), 1);
        assert!(now_ns() - began_ns < 20_000_000_000);
    }

    #[test]
    fn failures_name_the_command_and_what_is_allowed() {
        let problem = |script: &str| requests(script, 50, 1000).unwrap_err().to_string();
        assert!(problem("exit 7").contains("`sh` has ended with exit status: 7"));
        assert!(problem("echo latency_us soon").contains("allowed: `latency_us` and a number"));
        let none = Launch::start(&["/nowhere/client".to_owned()]).unwrap_err();
        assert!(none.to_string().contains("starting `/nowhere/client`"));
    }
}
