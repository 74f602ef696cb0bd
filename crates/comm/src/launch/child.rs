//! The process of endpoint 1.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use crate::CommError;
use crate::options::Options;

/// Time a child has for ending by itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// A child that never outlives this value.
#[derive(Debug)]
pub(super) struct Child {
    process: std::process::Child,
}

impl Child {
    /// Starts this program again as endpoint 1 and hands it its descriptors.
    pub(super) fn start(options: &Options, descriptors: &[OwnedFd]) -> Result<Self, CommError> {
        for descriptor in descriptors {
            fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::empty()))
                .map_err(|error| CommError::system("handing over a descriptor", error))?;
        }
        let mut command = Command::new("/proc/self/exe");
        command.arg0("steelyard-comm").args(["--role", "child"]);
        command.args(["--transport", options.transport.name()]);
        command.arg("--descriptors").arg(numbers(descriptors));
        command.arg("--out").arg(&options.out);
        if let Some([first, second]) = options.cpus {
            command.arg("--cpus").arg(format!("{first},{second}"));
        }
        if let Some(path) = &options.canary {
            command.arg("--canary").arg(path);
        }
        for (name, text) in [("--plant-switch", &options.switch_text), ("--plant-noise", &options.noise_text)]
        {
            if let Some(text) = text {
                command.arg(name).arg(text);
            }
        }
        command.args(["--plant-seed", &options.seed.to_string()]);
        command.args(["--gap-us", &options.gap_us.to_string()]);
        if let Some(budget_ms) = options.budget_ms {
            command.args(["--budget-ms", &budget_ms.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.spawn().map_err(|error| CommError::system("starting endpoint 1", error))?;
        Ok(Self { process })
    }

    /// Waits for its end, and says how it ended unless that was well.
    pub(super) fn wait(mut self) -> Option<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => return describe(status),
                Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(1)),
                Ok(None) | Err(_) => return Some("it did not end by itself".to_owned()),
            }
        }
    }

    /// Asks it to end, and waits.
    pub(super) fn end(self) -> Option<String> {
        if let Ok(id) = i32::try_from(self.process.id()) {
            // SAFETY: the child was not waited for, so its number is not another process's.
            unsafe { libc::kill(id, libc::SIGTERM) };
        }
        self.wait()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both do nothing to a child that was waited for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn describe(status: ExitStatus) -> Option<String> {
    match (status.success(), status.signal(), status.code()) {
        (true, ..) => None,
        (_, Some(signal), _) => Some(format!("it was ended by signal {signal}")),
        (_, None, code) => Some(format!("it ended with status {}", code.unwrap_or(-1))),
    }
}

/// Numbers of descriptors as the child's command line names them.
fn numbers(descriptors: &[OwnedFd]) -> String {
    let numbers: Vec<String> = descriptors.iter().map(|fd| fd.as_raw_fd().to_string()).collect();
    numbers.join(",")
}
