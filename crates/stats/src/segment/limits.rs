//! What a search for breaks is given.

use crate::segment::moments::Prices;

/// What a partition is charged and how much work may be spent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) penalty: f64,
    pub(super) prices: Prices,
    pub(super) free: Prices,
    pub(super) shortest: usize,
    pub(super) budget: usize,
}
