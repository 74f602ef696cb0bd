use std::fs::File;
use std::io::{self, Read};

use steelyard_model::{Quantity, Source};
use steelyard_perf::{Attributes, FLAG_DISABLED, FLAG_ENABLE_ON_EXEC, FLAG_INHERIT, open_as_allowed};

use super::names::Event;

/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`.
const READ_FORMAT: u64 = 1 | 2;

/// Whether an event also counts what the kernel does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// User and kernel.
    Full,
    /// User only: more is not allowed to this user.
    UserOnly,
}

/// A counter of a process and everything it forks, from its exec on.
///
/// KERNEL: one counter on the zygote that all runs inherit would be cheaper and is wrong. When the
/// scheduler switches between a zygote and its fresh clone it may swap their event contexts instead
/// of switching them, and then the exec enables the zygote's own events.
#[derive(Debug)]
pub(crate) struct Counter {
    state: Result<(File, Scope), String>,
    event: Event,
}

impl Counter {
    /// Opens the counter on a process before its exec. A refusal becomes the reason of the missing
    /// value.
    pub(crate) fn open(event: Event, pid: i32) -> Self {
        let attributes = Attributes {
            kind: event.kind,
            config: event.config,
            read_format: READ_FORMAT,
            flags: FLAG_DISABLED | FLAG_INHERIT | FLAG_ENABLE_ON_EXEC,
            ..Attributes::default()
        };
        let state = match open_as_allowed(&attributes, pid) {
            Ok((_, false)) if event.is_kernel_only() => {
                Err("counted in the kernel only, which `kernel.perf_event_paranoid` denies this user"
                    .to_owned())
            }
            Ok((file, is_full)) => Ok((file, if is_full { Scope::Full } else { Scope::UserOnly })),
            Err(error) => Err(refusal(event, &error)),
        };
        Self { state, event }
    }

    /// Opens the counter on this process without ever counting.
    ///
    /// KERNEL: the first software event of its kind patches the kernel's code on every CPU, and closing
    /// the last one patches it back (`perf_swevent_enabled` is a static key). While one is held, opening
    /// and closing others costs a tenth.
    pub(crate) fn hold(event: Event) -> Self {
        let attributes = Attributes {
            kind: event.kind,
            config: event.config,
            flags: FLAG_DISABLED,
            ..Attributes::default()
        };
        let state = match open_as_allowed(&attributes, 0) {
            Ok((file, is_full)) => Ok((file, if is_full { Scope::Full } else { Scope::UserOnly })),
            Err(error) => Err(refusal(event, &error)),
        };
        Self { state, event }
    }

    /// The count so far, living descendants included.
    pub(crate) fn read(&self) -> Option<u64> {
        self.times().map(|(value, _, _)| value)
    }

    /// What is counted, or why it is not.
    pub(crate) fn scope(&self) -> Result<Scope, &str> {
        self.state.as_ref().map(|(_, scope)| *scope).map_err(String::as_str)
    }

    fn times(&self) -> Option<(u64, u64, u64)> {
        let (file, _) = self.state.as_ref().ok()?;
        let mut words = [0_u8; 24];
        let mut file: &File = file;
        file.read_exact(&mut words).ok()?;
        let word = |at: usize| words[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
        Some((word(0), word(8), word(16)))
    }

    /// The final value. One that was scaled for sharing the hardware is missing, not guessed.
    pub(crate) fn quantity(&self) -> Quantity {
        let missing = |reason: &str| Quantity::missing(Source::PerfCounter, reason);
        if let Err(reason) = &self.state {
            return missing(reason);
        }
        match self.times() {
            None => missing("the counter could not be read"),
            Some((_, _, 0)) if self.event.needs_hardware() => {
                missing("never counted: the hardware had no free counter")
            }
            Some((_, enabled, running)) if self.event.needs_hardware() && running < enabled => missing(
                "counted for a part of the time only, because events share the hardware; ask for fewer",
            ),
            Some((value, _, _)) => Quantity::measured(value, Source::PerfCounter, 1),
        }
    }
}

fn refusal(event: Event, error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) if event.needs_hardware() => {
            "no hardware performance counters on this host".to_owned()
        }
        Some(libc::EACCES | libc::EPERM) => {
            "`kernel.perf_event_paranoid` or a container denies perf events".to_owned()
        }
        Some(libc::ENOSYS) => "this kernel has no perf events".to_owned(),
        _ => format!("perf event refused: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_a_process_that_is_gone_has_a_reason() {
        let counter = Counter::open(Event::TASK_CLOCK, i32::MAX - 1);
        assert!(counter.read().is_none());
        assert!(counter.quantity().missing.is_some());
        assert!(counter.scope().is_err());
    }
}
