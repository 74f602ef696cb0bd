//! Cases, and the bench they are put on.

mod bench;
mod beside_load;
mod escapes;
mod exhaustion;
mod right_after;
mod survivors;

/// A case panics when it fails.
pub(crate) type Case = fn();

pub(crate) fn cases() -> Vec<(&'static str, Case)> {
    [exhaustion::CASES, survivors::CASES, escapes::CASES, beside_load::CASES, right_after::CASES].concat()
}

/// Cases that take too long for every day.
pub(crate) use beside_load::long_cases;

pub(crate) type LongCase = Box<dyn FnOnce() + Send>;
