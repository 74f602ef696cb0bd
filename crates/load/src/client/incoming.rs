//! Answers in a stream of bytes.

use crate::LoadError;
use crate::frame::{Answer, Malformed};
use crate::protocol::Protocol;

/// Bytes of a connection that are no whole answer yet.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
}

impl Incoming {
    /// Takes every whole answer out.
    pub(super) fn take(
        &mut self,
        protocol: Protocol,
        received: &[u8],
        mut keep: impl FnMut(&Answer),
    ) -> Result<(), Malformed> {
        self.bytes.extend_from_slice(received);
        let mut used = 0;
        while let Some((answer, length)) = protocol.parse_answer(&self.bytes[used..])? {
            used += length;
            keep(&answer);
        }
        self.bytes.drain(..used);
        Ok(())
    }
}

pub(super) fn lost(reason: &str) -> LoadError {
    LoadError::Failed(format!("the service was lost: {reason}"))
}
