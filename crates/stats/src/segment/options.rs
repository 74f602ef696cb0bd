//! What a search for breaks may assume and find.

/// How the size of the noise depends on the level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoiseScale {
    /// A share of the level; everything must be positive.
    Proportional,
    /// The same everywhere.
    Constant,
}

/// How a piecewise model is searched.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "three kinds of piece are allowed or not, independently")]
pub struct SegmentOptions {
    /// Price of a break in units of ln(points).
    pub break_penalty: f64,
    /// Price of a slope in the same units.
    pub slope_penalty: f64,
    /// Fewest distinct x in a piece.
    pub shortest: usize,
    /// How noise grows.
    pub noise: NoiseScale,
    /// Smallest noise that matters in practice, as `noise` counts it; joins the estimated one in quadrature.
    pub floor: f64,
    /// Whether residuals beyond 3 sigma are cut.
    pub robust: bool,
    /// Whether a piece may be a line.
    pub line: bool,
    /// Whether a piece may be a power law; everything must be positive, and noise proportional.
    pub power: bool,
    /// Costs that may be evaluated before the search ends with a gap.
    pub budget: usize,
}
