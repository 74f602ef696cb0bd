//! Locks, queues and balancing strategies, and the packet pipeline that measures them.
//!
//! | part | what it gives |
//! |---|---|
//! | [`Sources`], [`Packet`] | packets of known work, the same on every host |
//! | [`serial`] | the pipeline on one thread |

mod arguments;
mod command;
mod error;
mod load;
mod outcome;
mod packet;
mod serial;
mod timer;

#[cfg(test)]
mod golden;

pub use command::{USAGE, execute};
pub use error::SyncError;
pub use load::{End, Load};
pub use outcome::{Outcome, Share};
pub use packet::{Distribution, Draws, Packet, Sources, fingerprint, source_means};
pub use serial::serial;
