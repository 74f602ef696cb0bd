//! What a search for breaks is given.

use crate::sample::real;
use crate::segment::moments::Prices;
use crate::segment::options::SegmentOptions;

/// Most rounds of search and new weights; the breaks usually stay after the third.
pub(super) const PASSES: usize = 8;

/// What a partition is charged and how much work may be spent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) penalty: f64,
    pub(super) prices: Prices,
    pub(super) free: Prices,
    pub(super) shortest: usize,
    pub(super) budget: usize,
}

/// Limits of a search among so many points.
pub(super) fn limits(points: usize, options: &SegmentOptions) -> Limits {
    let unit = libm::log(real(points));
    let price = |allowed: bool| if allowed { options.slope_penalty * unit } else { f64::INFINITY };
    let prices =
        Prices { constant: 0.0, line: price(options.line), power: price(options.power), is_limited: true };
    Limits {
        penalty: options.break_penalty * unit,
        prices,
        free: prices.free(),
        shortest: options.shortest.max(1),
        budget: options.budget,
    }
}
