//! A `sched_ext` scheduler that a policy asks for: started before the service, ended after everything.

use std::fs;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::LoadError;
use crate::clock::{now_ns, sleep_until};
use crate::part::Part;

const STATE: &str = "/sys/kernel/sched_ext/state";
/// SOURCE: own choice; attaching takes less than a second, and the check of a large program under emulation 22.
const START_LIMIT_NS: u64 = 60_000_000_000;
/// SOURCE: own choice; a scheduler that does not end by itself is killed, and the kernel detaches it.
const END_LIMIT_NS: u64 = 20_000_000_000;

/// A running scheduler; ended when this is dropped.
#[derive(Debug)]
pub(super) struct Scheduler {
    part: Part,
}

fn state() -> String {
    fs::read_to_string(STATE).map_or_else(
        |error| format!("`{STATE}` cannot be read: {error}"),
        |text| format!("`{STATE}` reads `{}`", text.trim()),
    )
}

fn is_enabled() -> bool {
    fs::read_to_string(STATE).is_ok_and(|text| text.trim() == "enabled")
}

impl Scheduler {
    /// Starts it and waits until the kernel says that it is enabled. The error is the reason why not.
    pub(super) fn start(words: &[String], counters: &Path) -> Result<Self, LoadError> {
        if is_enabled() {
            return Err(LoadError::Failed("another sched_ext scheduler is enabled".to_owned()));
        }
        let counters = counters.to_string_lossy();
        let mut filled = words.iter().map(|word| word.replace("{counters}", &counters));
        let mut command = Command::new(filled.next().unwrap_or_default());
        command.args(filled);
        // A signal that it can handle: it is to leave nothing frozen behind.
        let mut part = Part::spawn("scheduler", command, Signal::SIGTERM)?;
        let limit_ns = now_ns() + START_LIMIT_NS;
        while !is_enabled() {
            crate::signal::check()?;
            if part.ended().is_some() {
                return Err(part.lost());
            }
            if now_ns() >= limit_ns {
                return Err(LoadError::Failed(format!(
                    "the scheduler is not enabled after 60 s: {}",
                    state()
                )));
            }
            sleep_until(now_ns() + 20_000_000);
        }
        Ok(Self { part })
    }

    /// Whether it is still what the kernel uses.
    pub(super) fn is_active(&mut self) -> bool {
        self.part.ended().is_none() && is_enabled()
    }

    /// Ends it. Gives whether it ended by itself.
    pub(super) fn end(&mut self) -> bool {
        self.part.signal(Signal::SIGTERM);
        self.part.await_end(now_ns() + END_LIMIT_NS)
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.end();
    }
}
