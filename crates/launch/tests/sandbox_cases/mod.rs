//! Cases, by what they show.

mod contained;
mod cost;
mod lifetime;
mod programs;
mod refusals;
mod view;

/// A case panics when it fails.
pub(crate) type Case = fn();

pub(crate) fn cases() -> Vec<(&'static str, Case)> {
    [contained::CASES, cost::CASES, lifetime::CASES, programs::CASES, refusals::CASES, view::CASES].concat()
}
