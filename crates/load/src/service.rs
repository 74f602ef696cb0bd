//! The service: a pool of worker threads with one queue, and fixed CPU work per request.
//!
//! One thread reads all connections and fills the queue; whichever worker is free takes the oldest request,
//! stamps, executes the loop, stamps, and writes the answer itself. With a second tier, the moderation, the
//! worker asks it between its stamps for what a long request has beyond a usual one, and waits for the answer.

mod queue;

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::Arc;

use crate::LoadError;
use crate::address::{Address, Listener};
use crate::client::Caller;
use crate::clock::now_ns;
use crate::frame::{Answer, Request};
use crate::protocol::Protocol;
use crate::readiness::Readiness;
use crate::service::queue::{Job, Peer, Queue, hold};
use crate::work::work;

/// What a service does with a request.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    pub(crate) protocol: Protocol,
    pub(crate) threads: u32,
    /// Loop length of a usual request.
    pub(crate) work_iterations: u64,
    /// Loop length of a long request; with a second tier, that tier does what it has beyond a usual one.
    pub(crate) long_iterations: u64,
    /// The second tier.
    pub(crate) moderation: Option<Address>,
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

/// What a long request has beyond a usual one.
fn rest_of(iterations: u64, factor: f64) -> u64 {
    lengthen(iterations, factor).saturating_sub(iterations).max(1)
}

/// The command of the second tier: it does what a long request has beyond a usual one.
pub(crate) fn moderation_words(threads: u32, work_iterations: u64, long_factor: f64) -> [String; 5] {
    [
        "serve".to_owned(),
        "--listen=tcp:127.0.0.1:0".to_owned(),
        format!("--protocol={}", Protocol::Http.name()),
        format!("--threads={threads}"),
        format!("--work-iterations={}", rest_of(work_iterations, long_factor)),
    ]
}

/// SOURCE: own choice; more than any client of ours opens.
const MOST_CONNECTIONS: usize = 4096;
/// SOURCE: own choice; a signal is noticed within this time.
const PATIENCE_MS: u16 = 100;
/// Key of the listener; connections are numbered from the next one on.
const LISTENER: u64 = 0;

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
        queue.reserve(65_536);
        for number in 0..self.threads {
            let caller =
                self.moderation.as_ref().map(|place| Caller::connect(place, self.protocol)).transpose()?;
            let (service, queue) = (self.clone(), Arc::clone(&queue));
            std::thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || service.execute(&queue, caller))
                .map_err(|error| LoadError::system("starting a worker", error))?;
        }
        on_ready(&listener.address(address))?;
        self.read_all(&listener, &queue)
    }

    fn execute(&self, queue: &Queue, mut caller: Option<Caller>) {
        loop {
            let Job { peer, request } = queue.take();
            let Request { seq, is_long } = request;
            let started_ns = now_ns();
            let Some(result) = self.handle(request, caller.as_mut()) else {
                // Without its second tier the service has no answer.
                peer.close();
                continue;
            };
            let finished_ns = now_ns();
            let answer = Answer { seq, is_long, started_ns, finished_ns, result };
            let bytes = self.protocol.write_answer(answer);
            let guard = hold(&peer.sending);
            // A client that is gone has no use for its answer; the reader closes the connection.
            let _ = peer.connection.send_all(&bytes);
            drop(guard);
            if self.protocol.is_ordered() {
                hold(&peer.input).is_busy = false;
                self.advance(&peer, queue);
            }
        }
    }

    fn handle(&self, request: Request, caller: Option<&mut Caller>) -> Option<u64> {
        let start = u64::from(request.is_long);
        match caller {
            Some(caller) if request.is_long => {
                let own = work(start, self.work_iterations);
                // The second tier is asked for its usual work.
                let answer = caller.call(Request { is_long: false, ..request }).ok()?;
                Some(own ^ answer.result)
            }
            _ if request.is_long => Some(work(start, self.long_iterations)),
            _ => Some(work(start, self.work_iterations)),
        }
    }

    fn read_all(&self, listener: &Listener, queue: &Queue) -> Result<(), LoadError> {
        let mut peers: HashMap<u64, Arc<Peer>> = HashMap::new();
        let readiness = Readiness::new()?;
        readiness.watch(listener.as_fd(), LISTENER)?;
        let mut newest = LISTENER;
        while !crate::signal::is_asked_to_end() {
            for key in readiness.wait(PATIENCE_MS)? {
                if key == LISTENER {
                    // A client that has gone again while it waited is no failure of the service.
                    if let Ok(connection) = listener.accept()
                        && peers.len() < MOST_CONNECTIONS
                    {
                        newest += 1;
                        readiness.watch(connection.as_fd(), newest)?;
                        peers.insert(newest, Arc::new(Peer::new(connection)));
                    }
                } else if let Some(peer) = peers.get(&key)
                    && !self.read(peer, queue)
                {
                    // A worker may have it still.
                    readiness.forget(peer.connection.as_fd());
                    peers.remove(&key);
                }
            }
        }
        Ok(())
    }

    /// Takes what has come. Gives whether the connection goes on.
    fn read(&self, peer: &Arc<Peer>, queue: &Queue) -> bool {
        let mut buffer = [0; 4096];
        match peer.connection.receive(&mut buffer) {
            Ok(None) => true,
            Ok(Some(0)) | Err(_) => false,
            Ok(Some(count)) => {
                hold(&peer.input).bytes.extend_from_slice(&buffer[..count]);
                self.advance(peer, queue)
            }
        }
    }

    /// Puts whole requests into the queue; of an ordered connection one at a time. Gives whether the
    /// connection goes on; if not, nothing can come of it any more.
    fn advance(&self, peer: &Arc<Peer>, queue: &Queue) -> bool {
        let mut input = hold(&peer.input);
        let mut used = 0;
        let ended = loop {
            if input.is_busy {
                break Ok(());
            }
            match self.protocol.parse_request(&input.bytes[used..]) {
                Ok(None) => break Ok(()),
                Err(wrong) => break Err(wrong),
                Ok(Some((request, length))) => {
                    used += length;
                    input.is_busy = self.protocol.is_ordered();
                    queue.push(Job { peer: Arc::clone(peer), request });
                }
            }
        };
        input.bytes.drain(..used);
        let is_too_much = input.bytes.len() > 2 * self.protocol.longest_request();
        drop(input);
        if let Err(wrong) = ended {
            // Without waiting: who sends such bytes may not read either.
            let _ = peer.connection.send_some(&self.protocol.write_refusal(wrong));
        }
        if ended.is_err() || is_too_much {
            peer.close();
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests;
