//! The open loop: one thread sends, another receives.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::LoadError;
use crate::address::Connection;
use crate::client::{Client, Incoming, Tally, lost};
use crate::clock::{now_ns, sharpen_timers, wait_until};
use crate::frame::Request;
use crate::record::RequestTable;

/// SOURCE: own choice; how often the receiver looks whether it is over.
const POLL_MS: u16 = 20;
/// Until then requests are still to be sent.
const OPEN: u64 = u64::MAX;

/// Sends every request when it is due, and receives until all are answered or the drain's limit.
pub(super) fn execute(
    client: &Client,
    table: &RequestTable,
    tally: &Tally,
    connections: &[Connection],
    end_ns: u64,
) -> Result<(), LoadError> {
    let limit_ns = AtomicU64::new(OPEN);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| receive_all(client, table, tally, connections, &limit_ns));
        let sent = send_all(client, table, tally, connections, end_ns + client.drain_ns);
        let drain_end_ns = if sent.is_ok() { end_ns + client.drain_ns } else { 0 };
        limit_ns.store(drain_end_ns, Relaxed);
        let answered = receiver.join().unwrap_or_else(|_| Err(lost("the receiver has panicked")));
        sent.and(answered)
    })
}

fn send_all(
    client: &Client,
    table: &RequestTable,
    tally: &Tally,
    connections: &[Connection],
    limit_ns: u64,
) -> Result<(), LoadError> {
    sharpen_timers();
    let mut backlogs: Vec<Vec<u8>> = connections.iter().map(|_| Vec::new()).collect();
    for index in 0..table.len() {
        wait_until(table.intended_ns(index), client.spin_ns);
        crate::signal::check()?;
        let place = index % connections.len();
        let seq = u32::try_from(index).unwrap_or(u32::MAX);
        let bytes = client.protocol.write_request(Request { seq, is_long: table.is_long(index) });
        table.set_sent(index, now_ns());
        let backlog = &mut backlogs[place];
        // What the socket did not take goes first; a frame is never split by another one.
        if flush(&connections[place], backlog)? {
            let count = connections[place].send_some(&bytes).map_err(|error| lost(&error.to_string()))?;
            backlog.extend_from_slice(&bytes[count..]);
        } else {
            backlog.extend_from_slice(&bytes);
        }
        if !backlog.is_empty() {
            tally.held_back.fetch_add(1, Relaxed);
        }
    }
    flush_all(connections, &mut backlogs, limit_ns)
}

/// Sends what was held back. Gives whether nothing is left.
fn flush(connection: &Connection, backlog: &mut Vec<u8>) -> Result<bool, LoadError> {
    if !backlog.is_empty() {
        let count = connection.send_some(backlog).map_err(|error| lost(&error.to_string()))?;
        backlog.drain(..count);
    }
    Ok(backlog.is_empty())
}

fn flush_all(connections: &[Connection], backlogs: &mut [Vec<u8>], limit_ns: u64) -> Result<(), LoadError> {
    loop {
        let mut is_empty = true;
        for (connection, backlog) in connections.iter().zip(backlogs.iter_mut()) {
            is_empty &= flush(connection, backlog)?;
        }
        let now = now_ns();
        if is_empty || now >= limit_ns {
            return Ok(());
        }
        crate::signal::check()?;
        wait_until(now + 1_000_000, 0);
    }
}

fn receive_all(
    client: &Client,
    table: &RequestTable,
    tally: &Tally,
    connections: &[Connection],
    limit_ns: &AtomicU64,
) -> Result<(), LoadError> {
    let mut incoming: Vec<Incoming> = connections.iter().map(|_| Incoming::default()).collect();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let limit = limit_ns.load(Relaxed);
        let is_over = limit != OPEN && (tally.is_all_answered(table.len()) || now_ns() >= limit);
        if is_over || crate::signal::is_asked_to_end() {
            return Ok(());
        }
        let mut waiting: Vec<PollFd<'_>> =
            connections.iter().map(|connection| PollFd::new(connection.as_fd(), PollFlags::POLLIN)).collect();
        match poll(&mut waiting, PollTimeout::from(POLL_MS)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(LoadError::system("waiting for answers", error)),
        }
        for (place, entry) in waiting.iter().enumerate() {
            if entry.any() != Some(true) {
                continue;
            }
            let count = match connections[place].receive(&mut buffer) {
                Ok(None) => continue,
                Ok(Some(0)) => return Err(lost("it has closed a connection")),
                Ok(Some(count)) => count,
                Err(error) => return Err(lost(&error.to_string())),
            };
            let received_ns = now_ns();
            let keep = |answer: &_| tally.keep(table, answer, received_ns);
            let taken = incoming[place].take(client.protocol, &buffer[..count], keep);
            taken.map_err(|wrong| lost(&format!("it has sent {}", wrong.0)))?;
        }
    }
}
