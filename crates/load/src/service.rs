//! The service: a pool of worker threads with one queue, and fixed CPU work per request.
//!
//! One thread reads all connections and fills the queue; whichever worker is free takes the oldest request,
//! stamps, executes the loop, stamps, and writes the answer itself.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::LoadError;
use crate::address::{Address, Connection, Listener};
use crate::clock::now_ns;
use crate::frame::{Answer, Malformed, Request};
use crate::protocol::Protocol;
use crate::work::work;

/// What a service does with a request.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    pub(crate) protocol: Protocol,
    pub(crate) threads: u32,
    /// Loop length of a usual request.
    pub(crate) work_iterations: u64,
    /// Loop length of a long request.
    pub(crate) long_iterations: u64,
}

/// Loop length of a long request.
pub(crate) fn lengthen(iterations: u64, factor: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "lengths of loops that end are far below 2^53"
    )]
    let long = (iterations as f64 * factor).round() as u64;
    long.max(1)
}

/// SOURCE: own choice; more than any client of ours opens.
const MOST_CONNECTIONS: usize = 4096;
/// SOURCE: own choice; a signal is noticed within this time.
const POLL_MS: u16 = 100;

/// A client's connection.
#[derive(Debug)]
struct Peer {
    connection: Connection,
    /// Answers of several workers must not mix.
    sending: Mutex<()>,
}

#[derive(Debug)]
struct Job {
    peer: Arc<Peer>,
    request: Request,
}

/// Requests that no worker has taken yet.
#[derive(Debug, Default)]
struct Queue {
    jobs: Mutex<VecDeque<Job>>,
    filled: Condvar,
}

/// A poisoned lock means that a worker has panicked, which ends the process in the released program.
fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Queue {
    fn push(&self, job: Job) {
        hold(&self.jobs).push_back(job);
        self.filled.notify_one();
    }

    fn take(&self) -> Job {
        let mut jobs = hold(&self.jobs);
        loop {
            if let Some(job) = jobs.pop_front() {
                return job;
            }
            jobs = self.filled.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A peer with what has come of its next request.
#[derive(Debug)]
struct Input {
    peer: Arc<Peer>,
    bytes: Vec<u8>,
}

impl Service {
    /// Starts the workers and serves until a signal asks to end.
    ///
    /// `on_ready` is told where the service listens.
    pub(crate) fn serve(
        &self,
        address: &Address,
        on_ready: impl FnOnce(&Address) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let listener = address.listen()?;
        let queue = Arc::new(Queue::default());
        hold(&queue.jobs).reserve(65_536);
        for number in 0..self.threads {
            let (service, queue) = (self.clone(), Arc::clone(&queue));
            std::thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || service.execute(&queue))
                .map_err(|error| LoadError::system("starting a worker", error))?;
        }
        on_ready(&listener.address(address))?;
        self.read_all(&listener, &queue)
    }

    fn execute(&self, queue: &Queue) {
        loop {
            let Job { peer, request } = queue.take();
            let started_ns = now_ns();
            let iterations = if request.is_long { self.long_iterations } else { self.work_iterations };
            let result = work(u64::from(request.is_long), iterations);
            let finished_ns = now_ns();
            let Request { seq, is_long } = request;
            let answer = Answer { seq, is_long, started_ns, finished_ns, result };
            let bytes = self.protocol.write_answer(answer);
            let guard = hold(&peer.sending);
            // A client that is gone has no use for its answer; the reader closes the connection.
            let _ = peer.connection.send_all(&bytes);
            drop(guard);
        }
    }

    fn read_all(&self, listener: &Listener, queue: &Queue) -> Result<(), LoadError> {
        let mut inputs: Vec<Input> = Vec::new();
        while !crate::signal::is_asked_to_end() {
            let ready = wait_for_any(listener, &inputs)?;
            let mut index = 0;
            inputs.retain_mut(|input| {
                index += 1;
                !ready[index] || self.read(input, queue).unwrap_or(false)
            });
            if ready[0] {
                // A client that has gone again while it waited is no failure of the service.
                if let Ok(connection) = listener.accept()
                    && inputs.len() < MOST_CONNECTIONS
                {
                    let peer = Arc::new(Peer { connection, sending: Mutex::new(()) });
                    inputs.push(Input { peer, bytes: Vec::new() });
                }
            }
        }
        Ok(())
    }

    /// Takes what has come. Gives whether the connection goes on.
    fn read(&self, input: &mut Input, queue: &Queue) -> Result<bool, Malformed> {
        let mut buffer = [0; 4096];
        let count = match input.peer.connection.receive(&mut buffer) {
            Ok(None) => return Ok(true),
            Ok(Some(0)) | Err(_) => return Ok(false),
            Ok(Some(count)) => count,
        };
        input.bytes.extend_from_slice(&buffer[..count]);
        let mut used = 0;
        while let Some((request, length)) = self.protocol.parse_request(&input.bytes[used..])? {
            used += length;
            queue.push(Job { peer: Arc::clone(&input.peer), request });
        }
        input.bytes.drain(..used);
        Ok(input.bytes.len() <= self.protocol.longest_request())
    }
}

/// Waits until somebody has something to say: the listener, then each connection.
fn wait_for_any(listener: &Listener, inputs: &[Input]) -> Result<Vec<bool>, LoadError> {
    let connections = inputs.iter().map(|input| input.peer.connection.as_fd());
    let mut waiting: Vec<PollFd<'_>> = std::iter::once(listener.as_fd())
        .chain(connections)
        .map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN))
        .collect();
    match poll(&mut waiting, PollTimeout::from(POLL_MS)) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(LoadError::system("waiting for requests", error)),
    }
    Ok(waiting.iter().map(|entry| entry.any().unwrap_or(false)).collect())
}
