//! The open loop: one thread sends, another receives.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::LoadError;
use crate::address::Connection;
use crate::client::incoming::{Incoming, lost};
use crate::client::pool::Pool;
use crate::client::request::Client;
use crate::client::tally::Tally;
use crate::clock::{now_ns, sharpen_timers, wait_until};
use crate::frame::{Answer, Request};
use crate::readiness::Readiness;
use crate::record::RequestTable;

/// SOURCE: own choice; how often the receiver looks whether it is over.
const PATIENCE_MS: u16 = 20;
/// Key of the pool's bell; connections have their places.
const BELL: u64 = u64::MAX;
/// Until then requests are still to be sent.
const OPEN: u64 = u64::MAX;

/// What both threads share.
#[derive(Debug)]
struct Loop<'client> {
    client: &'client Client,
    table: &'client RequestTable,
    tally: &'client Tally,
    pool: Pool,
    /// When the receiver gives up.
    limit_ns: AtomicU64,
}

/// Sends every request when it is due, and receives until all are answered or the drain's limit.
pub(super) fn execute(
    client: &Client,
    table: &RequestTable,
    tally: &Tally,
    connections: Vec<Connection>,
    end_ns: u64,
) -> Result<(), LoadError> {
    let pool = Pool::new(&client.address, client.protocol.is_ordered(), connections)?;
    let open = Loop { client, table, tally, pool, limit_ns: AtomicU64::new(OPEN) };
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| open.receive_all());
        let sent = open.send_all(end_ns + client.drain_ns);
        let drain_end_ns = if sent.is_ok() { end_ns + client.drain_ns } else { 0 };
        open.limit_ns.store(drain_end_ns, Relaxed);
        let answered = receiver.join().unwrap_or_else(|_| Err(lost("the receiver has panicked")));
        tally.connections.store(open.pool.count() as u64, Relaxed);
        sent.and(answered)
    })
}

/// A connection as the sender sees it: with what its socket did not take yet.
#[derive(Debug)]
struct Outgoing {
    connection: Arc<Connection>,
    backlog: Vec<u8>,
}

impl Outgoing {
    fn new(connection: Arc<Connection>) -> Self {
        Self { connection, backlog: Vec::new() }
    }

    /// Sends what was held back and then `bytes`. Gives whether nothing is left.
    fn send(&mut self, bytes: &[u8]) -> Result<bool, LoadError> {
        let failed = |error: std::io::Error| lost(&error.to_string());
        if !self.backlog.is_empty() {
            let count = self.connection.send_some(&self.backlog).map_err(failed)?;
            self.backlog.drain(..count);
        }
        let count =
            if self.backlog.is_empty() { self.connection.send_some(bytes).map_err(failed)? } else { 0 };
        self.backlog.extend_from_slice(&bytes[count..]);
        Ok(self.backlog.is_empty())
    }
}

impl Loop<'_> {
    fn send_all(&self, limit_ns: u64) -> Result<(), LoadError> {
        sharpen_timers();
        let mut outgoing: Vec<Outgoing> = self.pool.newer(0).into_iter().map(Outgoing::new).collect();
        for index in 0..self.table.len() {
            wait_until(self.table.intended_ns(index), self.client.spin_ns);
            crate::signal::check()?;
            let place = self.pool.choose(index)?;
            if place >= outgoing.len() {
                outgoing.extend(self.pool.newer(outgoing.len()).into_iter().map(Outgoing::new));
            }
            let seq = u32::try_from(index).unwrap_or(u32::MAX);
            let request = Request { seq, is_long: self.table.is_long(index) };
            let bytes = self.client.protocol.write_request(request);
            self.table.set_sent(index, now_ns());
            if !outgoing[place].send(&bytes)? {
                self.tally.held_back.fetch_add(1, Relaxed);
            }
        }
        flush_all(&mut outgoing, limit_ns)
    }

    fn receive_all(&self) -> Result<(), LoadError> {
        let mut incoming: Vec<(Arc<Connection>, Incoming)> = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        let readiness = Readiness::new()?;
        readiness.watch(self.pool.bell(), BELL)?;
        loop {
            let limit_ns = self.limit_ns.load(Relaxed);
            let is_over =
                limit_ns != OPEN && (self.tally.is_all_answered(self.table.len()) || now_ns() >= limit_ns);
            if is_over || crate::signal::is_asked_to_end() {
                return Ok(());
            }
            for connection in self.pool.newer(incoming.len()) {
                readiness.watch(connection.as_fd(), incoming.len() as u64)?;
                incoming.push((connection, Incoming::default()));
            }
            for key in readiness.wait(PATIENCE_MS)? {
                if key == BELL {
                    self.pool.silence();
                } else if let Some((place, entry)) = place_of(key, &mut incoming) {
                    self.receive(place, entry, &mut buffer)?;
                }
            }
        }
    }

    fn receive(
        &self,
        place: usize,
        (connection, incoming): &mut (Arc<Connection>, Incoming),
        buffer: &mut [u8],
    ) -> Result<(), LoadError> {
        let count = match connection.receive(buffer) {
            Ok(None) => return Ok(()),
            Ok(Some(0)) => return Err(lost("it has closed a connection")),
            Ok(Some(count)) => count,
            Err(error) => return Err(lost(&error.to_string())),
        };
        let received_ns = now_ns();
        let keep = |answer: &Answer| {
            self.tally.keep(self.table, answer, received_ns);
            self.pool.release(place);
        };
        let taken = incoming.take(self.client.protocol, &buffer[..count], keep);
        taken.map_err(|wrong| lost(&format!("it has sent {}", wrong.0)))
    }
}

/// A connection by its key.
fn place_of<T>(key: u64, all: &mut [T]) -> Option<(usize, &mut T)> {
    let place = usize::try_from(key).ok()?;
    Some((place, all.get_mut(place)?))
}

fn flush_all(outgoing: &mut [Outgoing], limit_ns: u64) -> Result<(), LoadError> {
    loop {
        let mut is_empty = true;
        for connection in outgoing.iter_mut() {
            is_empty &= connection.send(&[])?;
        }
        let now = now_ns();
        if is_empty || now >= limit_ns {
            return Ok(());
        }
        crate::signal::check()?;
        wait_until(now + 1_000_000, 0);
    }
}
