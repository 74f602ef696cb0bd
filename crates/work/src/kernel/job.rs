use std::fmt::Debug;

use crate::Checksum;

/// One kernel with one input: reset, execute, check, as often as wanted.
pub trait Job: Debug {
    /// Puts a fresh copy of the input in place and touches all memory the timed section uses.
    fn reset(&mut self);

    /// The timed section.
    fn execute(&mut self);

    /// Checks the result by another way than the one that computed it.
    ///
    /// # Errors
    ///
    /// What is wrong, in words.
    fn check(&self) -> Result<Checksum, String>;
}

/// Lengths of the passes over an input of `size` numbers that make up `operations` in total.
///
/// Operation `k` works on number `k mod size`: the input is walked through from its start as often
/// as needed, and the last pass may be shorter.
pub(super) fn passes(size: usize, operations: usize) -> impl Iterator<Item = usize> {
    let mut left = operations;
    std::iter::from_fn(move || {
        let length = left.min(size);
        left -= length;
        (length > 0).then_some(length)
    })
}
