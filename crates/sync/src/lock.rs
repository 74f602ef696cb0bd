//! Nine mutual exclusion locks behind one trait.
//!
//! All of them wait in the same manner: spin briefly, then offer the core, then sleep in the kernel, so
//! that more threads than cores do not burn the time of whoever holds the lock.

mod anderson;
mod clh;
#[cfg(not(loom))]
mod foreign;
mod mcs;
mod node;
mod raw;
mod test_and_set;
mod ticket;

pub use anderson::Anderson;
pub use clh::Clh;
#[cfg(not(loom))]
pub use foreign::{ParkingLot, PthreadMutex, StdMutex};
pub use mcs::Mcs;
pub use raw::{Held, Lock, RawLock};
pub use test_and_set::{TestAndSet, TestTestAndSet};
pub use ticket::Ticket;

#[cfg(all(test, loom))]
pub(crate) use node::model::free_nodes;

/// Name of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// [`TestAndSet`].
    TestAndSet,
    /// [`TestTestAndSet`].
    TestTestAndSet,
    /// [`Ticket`].
    Ticket,
    /// `std::sync::Mutex`.
    Std,
    /// `pthread_mutex_t`.
    Pthread,
    /// `parking_lot::Mutex`.
    ParkingLot,
    /// [`Anderson`].
    Anderson,
    /// [`Clh`].
    Clh,
    /// [`Mcs`].
    Mcs,
}

impl LockKind {
    /// Every lock, with its letter on the command line and its name.
    pub const ALL: [(char, Self, &'static str); 9] = [
        ('t', Self::TestAndSet, "TAS"),
        ('b', Self::TestTestAndSet, "TTAS + backoff"),
        ('k', Self::Ticket, "ticket"),
        ('s', Self::Std, "std mutex"),
        ('p', Self::Pthread, "pthread mutex"),
        ('g', Self::ParkingLot, "parking_lot"),
        ('a', Self::Anderson, "Anderson array"),
        ('c', Self::Clh, "CLH"),
        ('m', Self::Mcs, "MCS"),
    ];
}

/// Evaluates an expression with a type name bound to the lock of a kind.
#[cfg(not(loom))]
macro_rules! with_lock {
    ($kind:expr, $lock:ident => $body:expr) => {
        match $kind {
            $crate::LockKind::TestAndSet => {
                type $lock = $crate::TestAndSet;
                $body
            }
            $crate::LockKind::TestTestAndSet => {
                type $lock = $crate::TestTestAndSet;
                $body
            }
            $crate::LockKind::Ticket => {
                type $lock = $crate::Ticket;
                $body
            }
            $crate::LockKind::Std => {
                type $lock = $crate::StdMutex;
                $body
            }
            $crate::LockKind::Pthread => {
                type $lock = $crate::PthreadMutex;
                $body
            }
            $crate::LockKind::ParkingLot => {
                type $lock = $crate::ParkingLot;
                $body
            }
            $crate::LockKind::Anderson => {
                type $lock = $crate::Anderson;
                $body
            }
            $crate::LockKind::Clh => {
                type $lock = $crate::Clh;
                $body
            }
            $crate::LockKind::Mcs => {
                type $lock = $crate::Mcs;
                $body
            }
        }
    };
}
#[cfg(not(loom))]
pub(crate) use with_lock;

#[cfg(all(test, not(loom)))]
mod tests;
