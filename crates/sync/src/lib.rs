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

#![cfg_attr(
    loom,
    allow(dead_code, unused_imports, missing_docs, reason = "a model uses locks and queues only")
)]

mod atomic;
mod lock;
mod packet;
mod padded;
mod queue;
mod wait;

#[cfg(not(loom))]
mod arguments;
#[cfg(not(loom))]
mod command;
#[cfg(not(loom))]
mod contest;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod join;
#[cfg(not(loom))]
mod load;
#[cfg(not(loom))]
mod outcome;
#[cfg(not(loom))]
mod pipeline;
#[cfg(not(loom))]
mod serial;
#[cfg(not(loom))]
mod strategy;
#[cfg(not(loom))]
mod timer;

#[cfg(test)]
#[cfg(not(loom))]
mod golden;
#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod thread_bounds;

#[cfg(not(loom))]
pub use command::{USAGE, execute};
#[cfg(not(loom))]
pub use contest::{Contest, SLEEP, Section, contest, count_alone, independent, uncontended_ns};
#[cfg(not(loom))]
pub use error::SyncError;
#[cfg(not(loom))]
pub use load::{End, Load};
pub use lock::{Anderson, Clh, Held, Lock, LockKind, Mcs, RawLock, TestAndSet, TestTestAndSet, Ticket};
#[cfg(not(loom))]
pub use lock::{ParkingLot, PthreadMutex, StdMutex};
#[cfg(not(loom))]
pub use outcome::{Outcome, Share};
pub use packet::{Distribution, Draws, Packet, Sources, fingerprint, source_means};
pub use padded::Padded;
#[cfg(not(loom))]
pub use pipeline::{Settings, parallel};
pub use queue::{Consumer, Deque, DequeOwner, Full, Mpmc, Producer, Ring, Stolen, Thief, Word};
#[cfg(not(loom))]
pub use serial::serial;
#[cfg(not(loom))]
pub use strategy::Strategy;
