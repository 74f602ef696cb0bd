//! Requests that wait for a worker, and the connections that they came on.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::address::Connection;
use crate::frame::Request;

/// A poisoned lock means that a worker has panicked, which ends the process in the released program.
pub(super) fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What has come of the next requests of a connection.
#[derive(Debug, Default)]
pub(super) struct Input {
    pub(super) bytes: Vec<u8>,
    /// Whether a request is handled that must be answered before the next.
    pub(super) is_busy: bool,
}

/// A client's connection.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) connection: Connection,
    /// Answers of several workers must not mix.
    pub(super) sending: Mutex<()>,
    pub(super) input: Mutex<Input>,
}

impl Peer {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection, sending: Mutex::default(), input: Mutex::default() }
    }

    /// Ends the connection; the reader notices and forgets it.
    pub(super) fn close(&self) {
        self.connection.close();
    }
}

/// A request that waits.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) peer: Arc<Peer>,
    pub(super) request: Request,
}

/// Requests that no worker has taken yet, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    jobs: Mutex<VecDeque<Job>>,
    filled: Condvar,
}

impl Queue {
    /// Makes room before the first request.
    pub(super) fn reserve(&self, count: usize) {
        hold(&self.jobs).reserve(count);
    }

    pub(super) fn push(&self, job: Job) {
        hold(&self.jobs).push_back(job);
        self.filled.notify_one();
    }

    /// Waits for the oldest request.
    pub(super) fn take(&self) -> Job {
        let mut jobs = hold(&self.jobs);
        loop {
            if let Some(job) = jobs.pop_front() {
                return job;
            }
            jobs = self.filled.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
