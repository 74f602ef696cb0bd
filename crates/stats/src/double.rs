//! Numbers of about 106 bits: the unevaluated sum of two doubles.

/// A value `high + low` with `|low| <= ulp(high) / 2`.
///
/// Source: T. J. Dekker, "A floating-point technique for extending the available precision", 1971; D. E. Knuth,
/// "The Art of Computer Programming" 2, 4.2.2, theorem B, for the sum without a branch.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Double {
    high: f64,
    low: f64,
}

impl Double {
    pub(crate) const ZERO: Self = Self { high: 0.0, low: 0.0 };

    pub(crate) const fn of(value: f64) -> Self {
        Self { high: value, low: 0.0 }
    }

    /// The nearest double.
    pub(crate) fn rounded(self) -> f64 {
        self.high + self.low
    }

    fn sum_of(a: f64, b: f64) -> Self {
        let high = a + b;
        let part = high - a;
        Self { high, low: (a - (high - part)) + (b - part) }
    }

    fn ordered_sum_of(large: f64, small: f64) -> Self {
        let high = large + small;
        Self { high, low: small - (high - large) }
    }

    /// The product of two doubles without any error, barring overflow beyond 1e290 and underflow.
    pub(crate) fn product_of(a: f64, b: f64) -> Self {
        let high = a * b;
        let (a_high, a_low) = halves(a);
        let (b_high, b_low) = halves(b);
        let low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low;
        Self { high, low }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let sum = Self::sum_of(self.high, other.high);
        Self::ordered_sum_of(sum.high, sum.low + self.low + other.low)
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        self.plus(Self { high: -other.high, low: -other.low })
    }

    pub(crate) fn times(self, other: Self) -> Self {
        let product = Self::product_of(self.high, other.high);
        Self::ordered_sum_of(product.high, product.low + self.high * other.low + self.low * other.high)
    }

    pub(crate) fn over(self, other: Self) -> Self {
        let first = self.high / other.high;
        let rest = self.minus(other.times(Self::of(first)));
        let second = rest.high / other.high;
        let last = rest.minus(other.times(Self::of(second))).high / other.high;
        Self::ordered_sum_of(first, second).plus(Self::of(last))
    }

    pub(crate) fn root(self) -> Self {
        if self.high <= 0.0 {
            return Self::ZERO;
        }
        let near = self.high.sqrt();
        let rest = self.minus(Self::product_of(near, near));
        Self::ordered_sum_of(near, rest.rounded() / (2.0 * near))
    }
}

fn halves(value: f64) -> (f64, f64) {
    // 2^27 + 1 cuts 53 bits into 26 and 26.
    let scaled = 134_217_729.0 * value;
    let high = scaled - (scaled - value);
    (high, value - high)
}

#[cfg(test)]
mod tests {
    use super::Double;

    #[test]
    fn products_and_quotients_keep_what_a_double_loses() {
        let third = Double::of(1.0).over(Double::of(3.0));
        assert!(third.times(Double::of(3.0)).minus(Double::of(1.0)).rounded().abs() < 1e-31);
        let root = Double::of(2.0).root();
        assert!(root.times(root).minus(Double::of(2.0)).rounded().abs() < 1e-31);
        let tiny = Double::of(1e16).plus(Double::of(1.0)).minus(Double::of(1e16));
        assert!((tiny.rounded() - 1.0).abs() < 1e-30);
    }
}
