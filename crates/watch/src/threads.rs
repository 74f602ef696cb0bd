//! Names of all threads, as the kernel tells them.

use std::collections::{BTreeSet, HashMap};
use std::fs;

/// A thread's name, filled with zeros.
pub(crate) type Name = [u8; 16];

/// The name of whoever is not known: it began and ended between two looks.
pub(crate) const UNKNOWN: Name = *b"unknown\0\0\0\0\0\0\0\0\0";
/// The name of nobody: the CPU had nothing to do.
pub(crate) const SWAPPER: Name = *b"swapper\0\0\0\0\0\0\0\0\0";

/// Where a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Whereabouts {
    /// Not seen yet.
    #[default]
    Unknown,
    /// Holds this CPU.
    On(u32),
    /// Left its CPU.
    Off { cpu: u32, time_ns: u64, is_preempted: bool, next_name: Name, next_process: i32 },
}

/// What is known of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Thread {
    pub(crate) name: Name,
    pub(crate) is_watched: bool,
    pub(crate) whereabouts: Whereabouts,
}

/// All threads by their id. Ended ones are forgotten, so there are never more than the host has.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    known: HashMap<u32, Thread>,
    prefixes: Vec<Vec<u8>>,
}

impl Threads {
    pub(crate) fn new(prefixes: &[String]) -> Self {
        Self {
            known: HashMap::new(),
            prefixes: prefixes.iter().map(|name| name.clone().into_bytes()).collect(),
        }
    }

    /// Takes the names of the threads that are there already.
    pub(crate) fn read_existing(&mut self) {
        for process in numbers_in("/proc") {
            for thread in numbers_in(&format!("/proc/{process}/task")) {
                if let Some(name) = read_name(thread) {
                    self.set_name(thread, name);
                }
            }
        }
    }

    pub(crate) fn set_name(&mut self, thread: u32, name: Name) {
        let is_watched = self.is_watched(&name);
        let entry = self.known.entry(thread).or_insert(Thread {
            name,
            is_watched,
            whereabouts: Whereabouts::default(),
        });
        *entry = Thread { name, is_watched, whereabouts: entry.whereabouts };
    }

    /// A new thread has the name of the one that made it.
    pub(crate) fn fork(&mut self, thread: u32, parent: u32) {
        let name = self.known.get(&parent).map(|parent| parent.name);
        if let Some(name) = name.or_else(|| read_name(thread)) {
            self.set_name(thread, name);
        }
    }

    pub(crate) fn end(&mut self, thread: u32) {
        self.known.remove(&thread);
    }

    /// Gives the name of whoever came next.
    pub(crate) fn name(&mut self, thread: u32) -> Name {
        if thread == 0 {
            return SWAPPER;
        }
        if let Some(known) = self.known.get(&thread) {
            return known.name;
        }
        let found = read_name(thread);
        if let Some(name) = found {
            self.set_name(thread, name);
        }
        found.unwrap_or(UNKNOWN)
    }

    /// Gives a thread if it is watched.
    pub(crate) fn watched(&mut self, thread: u32) -> Option<&mut Thread> {
        self.known.get_mut(&thread).filter(|thread| thread.is_watched)
    }

    /// Gives all threads that are watched.
    pub(crate) fn all_watched(&self) -> impl Iterator<Item = &Thread> {
        self.known.values().filter(|thread| thread.is_watched)
    }

    /// CPUs on which the watched threads were last.
    pub(crate) fn busy_cpus(&self) -> BTreeSet<u32> {
        let places = self.all_watched().filter_map(|thread| match thread.whereabouts {
            Whereabouts::Unknown => None,
            Whereabouts::On(cpu) | Whereabouts::Off { cpu, .. } => Some(cpu),
        });
        places.collect()
    }

    fn is_watched(&self, name: &Name) -> bool {
        self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }
}

/// Cuts a text to a name.
pub(crate) fn to_name(text: &[u8]) -> Name {
    let mut name = [0; 16];
    let text = text.split(|byte| *byte == 0 || *byte == b'\n').next().unwrap_or_default();
    // One byte stays zero, as in the kernel.
    for (to, from) in name[..15].iter_mut().zip(text) {
        *to = *from;
    }
    name
}

fn read_name(thread: u32) -> Option<Name> {
    fs::read(format!("/proc/{thread}/comm")).ok().map(|text| to_name(&text))
}

fn numbers_in(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_inherits_its_name_and_is_watched_by_its_beginning() {
        let mut threads = Threads::new(&["steel".to_owned()]);
        threads.set_name(7, to_name(b"java"));
        assert!(threads.watched(7).is_none());
        threads.fork(8, 7);
        assert_eq!(threads.name(8), to_name(b"java"));
        threads.set_name(8, to_name(b"steelyard-calls"));
        assert!(threads.watched(8).is_some());
        assert_eq!(threads.all_watched().count(), 1);
        threads.end(8);
        assert!(threads.watched(8).is_none());
        assert_eq!(threads.name(0), SWAPPER);
        assert_eq!(threads.name(u32::MAX), UNKNOWN);
    }

    #[test]
    fn names_are_cut_and_end_at_the_first_zero() {
        assert_eq!(to_name(b"kworker/0:1\n"), *b"kworker/0:1\0\0\0\0\0");
        assert_eq!(to_name(b"abcdefghijklmnopqrst"), *b"abcdefghijklmno\0");
        assert_eq!(to_name(b"a\0bc"), to_name(b"a"));
    }

    #[test]
    fn the_threads_of_this_process_are_found() {
        let mut threads = Threads::new(&["names-of-thread".to_owned()]);
        let seen = std::thread::Builder::new().name("names-of-threads".to_owned()).spawn(move || {
            threads.read_existing();
            threads.all_watched().map(|thread| thread.name).collect::<Vec<_>>()
        });
        assert_eq!(seen.unwrap().join().unwrap(), [to_name(b"names-of-thread")]);
    }
}
