//! Cases, and the bench they are put on.

mod bench;
mod escapes;
mod exhaustion;
mod survivors;

/// A case panics when it fails.
pub(crate) type Case = fn();

pub(crate) fn cases() -> Vec<(&'static str, Case)> {
    [exhaustion::CASES, survivors::CASES, escapes::CASES].concat()
}
