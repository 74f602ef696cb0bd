//! Which of many descriptors have something to read, at a cost that does not grow with their number.
//!
//! A service that looks at all its connections for each request spends more per request the more of them there
//! are, and more if it is prompt than if it is late and finds several at once: a policy would be measured by that.

use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use crate::LoadError;

/// SOURCE: own choice; who is not told of this time is told the next time.
const MOST_AT_ONCE: usize = 64;

/// The descriptors that are watched, each by a key.
#[derive(Debug)]
pub(crate) struct Readiness {
    epoll: Epoll,
}

impl Readiness {
    pub(crate) fn new() -> Result<Self, LoadError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC);
        Ok(Self { epoll: epoll.map_err(|error| LoadError::system("watching connections", error))? })
    }

    /// Watches a descriptor from now on.
    pub(crate) fn watch(&self, descriptor: impl AsFd, key: u64) -> Result<(), LoadError> {
        let added = self.epoll.add(descriptor, EpollEvent::new(EpollFlags::EPOLLIN, key));
        added.map_err(|error| LoadError::system("watching a connection", error))
    }

    /// Watches a descriptor no more, though somebody may still have it open.
    pub(crate) fn forget(&self, descriptor: impl AsFd) {
        // One that is not watched needs nothing.
        let _ = self.epoll.delete(descriptor);
    }

    /// Waits until one of them has something to read or has ended; gives the keys of those, none after
    /// `patience_ms` or a signal.
    pub(crate) fn wait(&self, patience_ms: u16) -> Result<impl Iterator<Item = u64> + use<>, LoadError> {
        let mut events = [EpollEvent::empty(); MOST_AT_ONCE];
        let count = match self.epoll.wait(&mut events, EpollTimeout::from(patience_ms)) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(LoadError::system("waiting for connections", error)),
        };
        Ok(events.into_iter().take(count).map(|event| event.data()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn keys(readiness: &Readiness) -> Vec<u64> {
        let mut keys: Vec<u64> = readiness.wait(0).unwrap().collect();
        keys.sort_unstable();
        keys
    }

    /// Pairs of which the second ends are watched, by keys from `first` on.
    fn watched_pairs(readiness: &Readiness, count: usize, first: u64) -> Vec<(UnixStream, UnixStream)> {
        let pairs: Vec<_> = (0..count).map(|_| UnixStream::pair().unwrap()).collect();
        for ((_, end), key) in pairs.iter().zip(first..) {
            readiness.watch(end, key).unwrap();
        }
        pairs
    }

    #[test]
    fn those_with_something_to_read_are_given_until_it_is_read() {
        let readiness = Readiness::new().unwrap();
        let pairs = watched_pairs(&readiness, 3, 10);
        assert!(keys(&readiness).is_empty());
        (&pairs[0].0).write_all(b"a").unwrap();
        (&pairs[2].0).write_all(b"b").unwrap();
        assert_eq!(keys(&readiness), [10, 12]);
        assert_eq!(keys(&readiness), [10, 12]);
        std::io::Read::read_exact(&mut &pairs[2].1, &mut [0]).unwrap();
        assert_eq!(keys(&readiness), [10]);
    }

    #[test]
    fn one_that_has_ended_is_given_until_it_is_forgotten() {
        let readiness = Readiness::new().unwrap();
        let (other, end) = UnixStream::pair().unwrap();
        readiness.watch(&end, 7).unwrap();
        drop(other);
        assert_eq!(keys(&readiness), [7]);
        readiness.forget(&end);
        assert!(keys(&readiness).is_empty());
        readiness.forget(&end);
    }

    #[test]
    fn all_of_many_come_in_turn() {
        let readiness = Readiness::new().unwrap();
        let pairs = watched_pairs(&readiness, 200, 0);
        for (other, _) in &pairs {
            (&*other).write_all(b"a").unwrap();
        }
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..=200 / MOST_AT_ONCE {
            seen.extend(readiness.wait(0).unwrap());
        }
        assert_eq!(seen.len(), 200);
    }
}
