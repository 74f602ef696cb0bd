//! One call at a time: asks, and waits for the answer.

use crate::LoadError;
use crate::address::{Address, Connection};
use crate::client::incoming::{Incoming, lost};
use crate::frame::{Answer, Request};
use crate::protocol::Protocol;

/// A connection on which one request at a time is sent.
#[derive(Debug)]
pub(crate) struct Caller {
    connection: Connection,
    protocol: Protocol,
    incoming: Incoming,
}

impl Caller {
    pub(crate) fn connect(address: &Address, protocol: Protocol) -> Result<Self, LoadError> {
        Ok(Self { connection: address.connect()?, protocol, incoming: Incoming::default() })
    }

    /// Sends a request and waits for its answer, however long that takes.
    pub(crate) fn call(&mut self, request: Request) -> Result<Answer, LoadError> {
        let failed = |error: std::io::Error| lost(&error.to_string());
        self.connection.send_all(&self.protocol.write_request(request)).map_err(failed)?;
        let mut buffer = [0; 4096];
        let mut found = None;
        while found.is_none() {
            crate::signal::check()?;
            let count = match self.connection.wait_and_receive(&mut buffer).map_err(failed)? {
                None => continue,
                Some(0) => return Err(lost("it has closed a connection")),
                Some(count) => count,
            };
            let keep = |answer: &Answer| found = Some(*answer);
            let taken = self.incoming.take(self.protocol, &buffer[..count], keep);
            taken.map_err(|wrong| lost(&format!("it has sent {}", wrong.0)))?;
        }
        found.filter(|answer| answer.seq == request.seq).ok_or_else(|| lost("it has sent another answer"))
    }
}
