//! From records of switches to the times at which watched threads did not hold their CPU.

use crate::threads::{Name, Threads, Whereabouts};

/// What the kernel recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// `thread` left the CPU to `next`.
    Out { thread: u32, next: u32, next_process: i32, is_preempted: bool },
    /// `thread` came to the CPU.
    In { thread: u32 },
    /// A thread got a name.
    Named { thread: u32, name: Name },
    /// A thread began.
    Began { thread: u32, parent: u32 },
    /// A thread ended.
    Ended { thread: u32 },
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) time_ns: u64,
    pub(crate) cpu: u32,
    pub(crate) what: What,
}

/// Time away from a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Switch {
    pub(crate) thread: Name,
    pub(crate) next_name: Name,
    pub(crate) off_ns: u64,
    pub(crate) on_ns: u64,
    pub(crate) cpu: u32,
    pub(crate) next_process: i32,
    pub(crate) is_preempted: bool,
}

/// A change of CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Migration {
    pub(crate) thread: Name,
    pub(crate) time_ns: u64,
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// Where found rows go.
pub(crate) trait Rows {
    fn switch(&mut self, switch: &Switch);
    fn migration(&mut self, migration: &Migration);
}

/// Follows the threads through the records, which come in order of time.
#[derive(Debug)]
pub(crate) struct Pairing {
    pub(crate) threads: Threads,
    /// Times away whose end, or whose begin, was not recorded.
    pub(crate) unpaired: u64,
}

impl Pairing {
    pub(crate) fn new(threads: Threads) -> Self {
        Self { threads, unpaired: 0 }
    }

    pub(crate) fn take(&mut self, event: &Event, rows: &mut dyn Rows) {
        match event.what {
            What::Out { thread, next, next_process, is_preempted } => {
                if self.threads.watched(thread).is_none() {
                    return;
                }
                let next_name = self.threads.name(next);
                let Some(known) = self.threads.watched(thread) else { return };
                self.unpaired += u64::from(matches!(known.whereabouts, Whereabouts::Off { .. }));
                known.whereabouts = Whereabouts::Off {
                    cpu: event.cpu,
                    time_ns: event.time_ns,
                    is_preempted,
                    next_name,
                    next_process,
                };
            }
            What::In { thread } => self.take_in(event, thread, rows),
            What::Named { thread, name } => self.threads.set_name(thread, name),
            What::Began { thread, parent } => self.threads.fork(thread, parent),
            What::Ended { thread } => self.threads.end(thread),
        }
    }

    fn take_in(&mut self, event: &Event, thread: u32, rows: &mut dyn Rows) {
        let Some(known) = self.threads.watched(thread) else { return };
        let from = match known.whereabouts {
            Whereabouts::Unknown => None,
            Whereabouts::On(cpu) => {
                self.unpaired += 1;
                Some(cpu)
            }
            Whereabouts::Off { cpu, time_ns, is_preempted, next_name, next_process } => {
                rows.switch(&Switch {
                    thread: known.name,
                    next_name,
                    off_ns: time_ns,
                    on_ns: event.time_ns,
                    cpu,
                    next_process,
                    is_preempted,
                });
                Some(cpu)
            }
        };
        if let Some(from) = from.filter(|from| *from != event.cpu) {
            rows.migration(&Migration { thread: known.name, time_ns: event.time_ns, from, to: event.cpu });
        }
        known.whereabouts = Whereabouts::On(event.cpu);
    }

    /// Keeps the times away that last until the end of the watch; answers how many.
    pub(crate) fn finish(&mut self, end_ns: u64, rows: &mut dyn Rows) -> u64 {
        let mut count = 0;
        for thread in self.threads.all_watched() {
            if let Whereabouts::Off { cpu, time_ns, is_preempted, next_name, next_process } =
                thread.whereabouts
            {
                count += 1;
                rows.switch(&Switch {
                    thread: thread.name,
                    next_name,
                    off_ns: time_ns,
                    on_ns: end_ns.max(time_ns),
                    cpu,
                    next_process,
                    is_preempted,
                });
            }
        }
        count
    }
}

/// Puts the records of all CPUs in order and holds back the latest: a CPU may still be writing records of
/// that time.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    pending: Vec<Event>,
}

impl Merge {
    pub(crate) fn push(&mut self, event: Event) {
        self.pending.push(event);
    }

    /// Hands over everything up to a time, oldest first.
    pub(crate) fn release(&mut self, until_ns: u64, mut take: impl FnMut(&Event)) {
        // Stable: records of one CPU with the same stamp stay in their order.
        self.pending.sort_by_key(|event| event.time_ns);
        let count = self.pending.partition_point(|event| event.time_ns <= until_ns);
        self.pending.drain(..count).for_each(|event| take(&event));
    }
}

#[cfg(test)]
#[path = "switches/tests.rs"]
mod tests;
