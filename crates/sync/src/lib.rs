//! Locks, queues and balancing strategies, and the packet pipeline that measures them.
//!
//! | part | what it gives |
//! |---|---|
//! | [`Sources`], [`Packet`] | packets of known work, the same on every host |
//! | [`serial`] | the pipeline on one thread |
//! | [`parallel`] | the pipeline with a dispatcher, queues and workers |
//! | [`Lock`] | nine locks behind one trait |
//! | [`contest`] | threads that contend for one lock |
//! | [`Ring`], [`Mpmc`], [`Deque`] | bounded queues: one to one, many to many, one owner and many thieves |

mod arguments;
mod atomic;
mod command;
mod contest;
mod error;
mod load;
mod lock;
mod outcome;
mod packet;
mod padded;
mod pipeline;
mod queue;
mod serial;
mod strategy;
mod timer;
mod wait;

#[cfg(test)]
mod golden;

pub use command::{USAGE, execute};
pub use contest::{Contest, SLEEP, Section, contest, count_alone, uncontended_ns};
pub use error::SyncError;
pub use load::{End, Load};
pub use lock::{
    Anderson, Clh, Held, Lock, LockKind, Mcs, ParkingLot, PthreadMutex, RawLock, StdMutex, TestAndSet,
    TestTestAndSet, Ticket,
};
pub use outcome::{Outcome, Share};
pub use packet::{Distribution, Draws, Packet, Sources, fingerprint, source_means};
pub use padded::Padded;
pub use pipeline::{Settings, parallel};
pub use queue::{Consumer, Deque, DequeOwner, Full, Mpmc, Producer, Ring, Stolen, Thief, Word};
pub use serial::serial;
pub use strategy::Strategy;
