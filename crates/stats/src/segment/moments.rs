//! Weighted sums of products around their own mean, merged without cancellation.

/// Weight, means and centred sums of one set of points.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Moments {
    pub(super) weight: f64,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) xx: f64,
    pub(super) xy: f64,
    pub(super) yy: f64,
}

impl Moments {
    /// Source: T. F. Chan, G. H. Golub, R. J. `LeVeque`, "Updating Formulae and a Pairwise Algorithm for Computing Sample
    /// Variances", 1979, eq. 2.1, extended to products.
    fn join(&mut self, other: &Self) {
        let weight = self.weight + other.weight;
        if weight <= 0.0 {
            return;
        }
        let share = other.weight / weight;
        let (dx, dy) = (other.x - self.x, other.y - self.y);
        let between = self.weight * share;
        self.xx += other.xx + dx * dx * between;
        self.xy += other.xy + dx * dy * between;
        self.yy += other.yy + dy * dy * between;
        self.x += dx * share;
        self.y += dy * share;
        self.weight = weight;
    }

    /// Smallest weighted sum of squares around a line.
    fn line(&self) -> f64 {
        if self.xx > 0.0 { (self.yy - self.xy / self.xx * self.xy).max(0.0) } else { self.yy }
    }

    pub(super) fn slope(&self) -> f64 {
        if self.xx > 0.0 { self.xy / self.xx } else { 0.0 }
    }
}

/// What one piece may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PieceKind {
    /// One level.
    Constant,
    /// Intercept and slope.
    Line,
    /// Factor times a power of x.
    Power,
}

/// Prices of the kinds, infinite where a kind is not allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Prices {
    pub(super) constant: f64,
    pub(super) line: f64,
    pub(super) power: f64,
    /// Whether factors of power laws must be numbers; what only bounds a cost from below need not mind.
    pub(super) is_limited: bool,
}

impl Prices {
    /// What bounds a piece from below by the cost of a part of it.
    pub(super) fn of_parts(self) -> Self {
        Self { is_limited: false, ..self }
    }

    /// The same kinds free of charge: what is left bounds any part of a piece from below.
    pub(super) fn free(self) -> Self {
        let none = |price: f64| if price.is_finite() { 0.0 } else { f64::INFINITY };
        Self {
            constant: none(self.constant),
            line: none(self.line),
            power: none(self.power),
            is_limited: false,
        }
    }
}

/// Moments on the plain and on the logarithmic scale.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Both {
    pub(super) plain: Moments,
    pub(super) log: Moments,
}

impl Both {
    pub(super) fn join(&mut self, other: &Self) {
        self.plain.join(&other.plain);
        if other.log.weight > 0.0 {
            self.log.join(&other.log);
        }
    }

    /// Smallest priced cost over the kinds.
    #[inline]
    pub(super) fn cost(&self, prices: &Prices) -> f64 {
        let mut least = self.plain.yy + prices.constant;
        if prices.line.is_finite() {
            least = least.min(self.plain.line() + prices.line);
        }
        if prices.power.is_finite() {
            let cost = self.log.line() + prices.power;
            if cost < least && !(prices.is_limited && self.is_factor_beyond()) {
                least = cost;
            }
        }
        least
    }

    /// Whether the factor of the power law through these points is too large or too small for a number.
    fn is_factor_beyond(&self) -> bool {
        const LARGEST: f64 = 700.0;
        (self.log.y - self.log.slope() * self.log.x).abs() > LARGEST
    }

    /// The kind that gives the smallest priced cost; the simpler one at a tie.
    pub(super) fn kind(&self, prices: &Prices) -> PieceKind {
        let options = [
            (PieceKind::Constant, self.plain.yy + prices.constant),
            (PieceKind::Line, self.plain.line() + prices.line),
            (PieceKind::Power, self.log.line() + prices.power),
        ];
        let mut best = options[0];
        for option in &options[1..] {
            let is_beyond = option.0 == PieceKind::Power && prices.is_limited && self.is_factor_beyond();
            if option.1 < best.1 && !is_beyond {
                best = *option;
            }
        }
        best.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::real;

    fn steep(exponent: f64) -> Both {
        let mut sum = Both::default();
        for step in 0..3 {
            let x = 4000.0 + 30.0 * real(step);
            let y = libm::pow(x / 4000.0, exponent);
            let at = |x, y| Moments { weight: 1.0, x, y, ..Moments::default() };
            sum.join(&Both { plain: at(x, y), log: at(libm::log(x), libm::log(y)) });
        }
        sum
    }

    #[test]
    fn a_power_law_whose_factor_is_no_number_is_no_piece() {
        let prices = Prices { constant: 0.0, line: f64::INFINITY, power: 0.0, is_limited: true };
        for (exponent, kind) in [(-80.0, PieceKind::Power), (-90.0, PieceKind::Constant)] {
            let sum = steep(exponent);
            assert_eq!(sum.kind(&prices), kind);
            assert!((sum.cost(&prices) > 1e-6) == (kind == PieceKind::Constant));
            assert_eq!(sum.kind(&prices.free()), PieceKind::Power, "a bound from below minds no factor");
        }
    }
}
