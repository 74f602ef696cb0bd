//! Waiting: spin while the other side is likely to answer at once, then offer the core, then sleep.

mod doorbell;
pub(crate) mod fence;
mod futex;
mod moment;
mod patience;
mod sleepers;

pub(crate) use doorbell::Doorbell;
pub(crate) use futex::Futex;
pub(crate) use moment::Moment;
pub(crate) use patience::{Habit, Patience};
pub(crate) use sleepers::Sleepers;
