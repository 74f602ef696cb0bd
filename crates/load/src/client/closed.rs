//! The closed loop: clients that each wait for their answer before they send again.
//!
//! The control that shows what such a client hides: it follows the same schedule, request i belongs to client
//! i modulo their number, but a request that is due while its client still waits is sent late, and a tool
//! that counts latency from then never sees the waiting before (coordinated omission).

use crate::LoadError;
use crate::address::Connection;
use crate::client::incoming::{Incoming, lost};
use crate::client::request::Client;
use crate::client::tally::Tally;
use crate::clock::{now_ns, sharpen_timers, wait_until};
use crate::frame::Request;
use crate::record::RequestTable;

/// SOURCE: own choice; how often a waiting client looks whether it is over.
const PATIENCE_MS: u32 = 50;

/// Lets every client work through its requests; what is not sent by `end_ns` stays unsent.
pub(super) fn execute(
    client: &Client,
    table: &RequestTable,
    tally: &Tally,
    connections: &[Connection],
    end_ns: u64,
) -> Result<(), LoadError> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections.len())
            .map(|number| scope.spawn(move || converse(client, table, tally, connections, (number, end_ns))))
            .collect();
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(lost("a client has panicked"))));
        // Every client is awaited, whatever the first has met.
        ended.fold(Ok(()), Result::and)
    })
}

fn converse(
    client: &Client,
    table: &RequestTable,
    tally: &Tally,
    connections: &[Connection],
    (number, end_ns): (usize, u64),
) -> Result<(), LoadError> {
    sharpen_timers();
    let connection = &connections[number];
    connection.set_patience_ms(PATIENCE_MS)?;
    let mut incoming = Incoming::default();
    let mut buffer = vec![0; 1 << 12];
    for index in (number..table.len()).step_by(connections.len()) {
        wait_until(table.intended_ns(index), client.spin_ns);
        crate::signal::check()?;
        let sent_ns = now_ns();
        if sent_ns >= end_ns {
            return Ok(());
        }
        let seq = u32::try_from(index).unwrap_or(u32::MAX);
        let bytes = client.protocol.write_request(Request { seq, is_long: table.is_long(index) });
        table.set_sent(index, sent_ns);
        connection.send_all(&bytes).map_err(|error| lost(&error.to_string()))?;
        let mut is_answered = false;
        while !is_answered {
            let count = match connection.wait_and_receive(&mut buffer) {
                Ok(None) if now_ns() >= end_ns + client.drain_ns => return Ok(()),
                Ok(None) => 0,
                Ok(Some(0)) => return Err(lost("it has closed a connection")),
                Ok(Some(count)) => count,
                Err(error) => return Err(lost(&error.to_string())),
            };
            crate::signal::check()?;
            let received_ns = now_ns();
            let keep = |answer: &crate::frame::Answer| {
                is_answered |= answer.seq == seq;
                tally.keep(table, answer, received_ns);
            };
            let taken = incoming.take(client.protocol, &buffer[..count], keep);
            taken.map_err(|wrong| lost(&format!("it has sent {}", wrong.0)))?;
        }
    }
    Ok(())
}
