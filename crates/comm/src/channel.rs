//! What carries messages between the two endpoints.

mod ring;
mod shared;
mod sleep;
mod stream;

pub(crate) use shared::SharedChannel;
pub(crate) use sleep::Patience;
pub(crate) use stream::{StreamChannel, tune_tcp};

use crate::CommError;
use crate::message::Message;

/// Facts about a channel for the header of a trace.
pub(crate) type Parameters = Vec<(&'static str, u64)>;

/// Both directions between two endpoints. The receiver knows the size of each message beforehand; one that
/// differs is an error.
pub(crate) trait Channel {
    /// Sends a message; returns when the buffer may be changed.
    fn send(&mut self, message: &mut Message, size: usize) -> Result<(), CommError> {
        let done = self.begin_send(message, size)?;
        self.finish_send(message, size, done)
    }

    /// Sends what fits without waiting, and says how much that was.
    fn begin_send(&mut self, message: &mut Message, size: usize) -> Result<usize, CommError>;

    /// Sends the rest.
    fn finish_send(&mut self, message: &mut Message, size: usize, done: usize) -> Result<(), CommError>;

    /// Receives a message into the buffer.
    fn receive(&mut self, message: &mut Message, size: usize) -> Result<(), CommError>;

    /// One test: could a further message be handed over now?
    fn is_free(&mut self) -> Result<bool, CommError>;

    /// One look: has something arrived?
    fn has_arrived(&mut self) -> Result<bool, CommError>;

    /// Waits until something has arrived.
    fn wait_for_arrival(&mut self) -> Result<(), CommError>;

    /// A number that grows with what has arrived and was not received.
    fn arrived(&mut self) -> Result<u64, CommError>;

    /// What describes it.
    fn parameters(&self) -> Parameters;
}
