//! Connections of an open loop.
//!
//! Frames share a given number of connections. Answers in order would hold each other up: there a request
//! takes a connection that is free, and where none is, a new one is made, as web clients do; only when there
//! are too many, a request follows another one on its connection.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::fcntl::OFlag;

use crate::LoadError;
use crate::address::{Address, Connection};

/// SOURCE: own choice; far more than a service answers at a time, and within the usual limit of descriptors.
const MOST_CONNECTIONS: usize = 512;

/// Connections that grow in number; shared by sender and receiver.
#[derive(Debug)]
pub(super) struct Pool {
    address: Address,
    is_ordered: bool,
    connections: Mutex<Vec<Arc<Connection>>>,
    load: Mutex<Load>,
    count: AtomicUsize,
    /// Wakes the receiver when there is a new connection.
    bell: (OwnedFd, OwnedFd),
}

/// How many answers are awaited on each connection, and on which none.
#[derive(Debug)]
struct Load {
    awaited: Vec<u32>,
    free: Vec<usize>,
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    pub(super) fn new(
        address: &Address,
        is_ordered: bool,
        connections: Vec<Connection>,
    ) -> Result<Self, LoadError> {
        let bell = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)
            .map_err(|error| LoadError::system("making a pipe", error))?;
        let count = connections.len();
        Ok(Self {
            address: address.clone(),
            is_ordered,
            connections: Mutex::new(connections.into_iter().map(Arc::new).collect()),
            load: Mutex::new(Load { awaited: vec![0; count], free: (0..count).rev().collect() }),
            count: AtomicUsize::new(count),
            bell,
        })
    }

    /// Number of connections.
    pub(super) fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// The connection of the next request, and its number.
    pub(super) fn choose(&self, index: usize) -> Result<usize, LoadError> {
        if !self.is_ordered {
            return Ok(index % self.count());
        }
        let mut load = hold(&self.load);
        let place = self.count();
        let chosen = match load.free.pop() {
            Some(free) => free,
            None if place >= MOST_CONNECTIONS => index % place,
            None => {
                load.awaited.push(0);
                place
            }
        };
        load.awaited[chosen] += 1;
        drop(load);
        if chosen < place {
            return Ok(chosen);
        }
        let connection = Arc::new(self.address.connect()?);
        hold(&self.connections).push(connection);
        self.count.store(place + 1, Relaxed);
        // A full pipe rings already.
        let _ = nix::unistd::write(&self.bell.1, &[0]);
        Ok(place)
    }

    /// Tells that an answer has come.
    pub(super) fn release(&self, place: usize) {
        if !self.is_ordered {
            return;
        }
        let mut load = hold(&self.load);
        load.awaited[place] = load.awaited[place].saturating_sub(1);
        if load.awaited[place] == 0 {
            load.free.push(place);
        }
    }

    /// Connections from the `known`-th on.
    pub(super) fn newer(&self, known: usize) -> Vec<Arc<Connection>> {
        hold(&self.connections).get(known..).unwrap_or_default().to_vec()
    }

    /// What becomes readable when there is a new connection.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.0.as_fd()
    }

    pub(super) fn silence(&self) {
        let mut buffer = [0; 64];
        // Nothing is left when the call is refused.
        while nix::unistd::read(&self.bell.0, &mut buffer).is_ok_and(|count| count > 0) {}
    }
}
