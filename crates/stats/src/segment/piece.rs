//! One piece of a model.

use crate::segment::groups::Groups;
use crate::segment::limits::Limits;
use crate::segment::moments::{Both, PieceKind};

/// A curve over a range of x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// What it is.
    pub kind: PieceKind,
    /// Smallest and largest x in it.
    pub x_range: (f64, f64),
    /// Points in it.
    pub points: usize,
    /// Level, intercept, or the natural logarithm of the factor of a power law.
    pub base: f64,
    /// Slope or exponent; 0 for a constant.
    pub slope: f64,
}

impl Piece {
    /// The value of the model at `x`.
    #[must_use]
    pub fn at(&self, x: f64) -> f64 {
        match self.kind {
            PieceKind::Constant => self.base,
            PieceKind::Line => self.base + self.slope * x,
            PieceKind::Power => libm::exp(self.base + self.slope * libm::log(x)),
        }
    }
}

/// First and last position of every piece, the last not included.
pub(super) fn ranges(breaks: &[usize], count: usize) -> Vec<(usize, usize)> {
    let starts = [0].into_iter().chain(breaks.iter().copied());
    let ends = breaks.iter().copied().chain([count]);
    starts.zip(ends).collect()
}

/// The best piece for the points of a range.
pub(super) fn piece(groups: &Groups, weighted: &[Both], range: (usize, usize), limits: &Limits) -> Piece {
    let (from, to) = range;
    let sum = weighted[from..to].iter().fold(Both::default(), |mut sum, each| {
        sum.join(each);
        sum
    });
    let points = groups.starts[to] - groups.starts[from];
    best_piece(&sum, (groups.x[from], groups.x[to - 1]), points, limits)
}

/// The kind of piece that costs least for some moments.
pub(super) fn best_piece(sum: &Both, x_range: (f64, f64), points: usize, limits: &Limits) -> Piece {
    let kind = sum.kind(&limits.prices);
    let (base, slope) = match kind {
        PieceKind::Constant => (sum.plain.y, 0.0),
        PieceKind::Line => (sum.plain.y - sum.plain.slope() * sum.plain.x, sum.plain.slope()),
        PieceKind::Power => (sum.log.y - sum.log.slope() * sum.log.x, sum.log.slope()),
    };
    Piece { kind, x_range, points, base, slope }
}
