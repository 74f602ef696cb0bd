use super::crc;

/// A stream of numbers: the CRC-32 of a fixed text, updated with the same byte at each draw.
///
/// ```
/// use steelyard_sync::Draws;
///
/// let mut first = Draws::new(1);
/// let mut again = Draws::new(1);
/// again.advance(1);
/// first.next_below(10);
/// assert_eq!(first.next_below(1000), again.next_below(1000));
/// ```
#[derive(Debug, Clone)]
pub struct Draws {
    crc: u32,
    byte: u8,
}

/// State of every stream before its first draw.
const START: u32 = crc::checksum(b"This is going to be my randomization string");

impl Draws {
    /// The stream of a seed byte.
    #[must_use]
    pub const fn new(byte: u8) -> Self {
        Self { crc: START, byte }
    }

    #[inline]
    fn next(&mut self) -> u32 {
        self.crc = crc::update(self.crc, self.byte);
        self.crc
    }

    /// Leaves out `count` draws.
    pub fn advance(&mut self, count: u64) {
        for _ in 0..count {
            self.next();
        }
    }

    /// The next number modulo `bound`.
    #[inline]
    pub fn next_below(&mut self, bound: u32) -> u32 {
        self.next() % bound.max(1)
    }

    /// The next number of an exponential distribution, rounded up: `ceil(-mean ln(1 - u))`.
    ///
    /// A draw of `u = 1` has no logarithm; it gives the same as the largest `u` below 1. A mean
    /// that is not positive gives 0.
    #[inline]
    pub fn next_exponential(&mut self, mean: f64) -> u32 {
        let draw = self.next().min(u32::MAX - 1);
        let share = f64::from(draw) / f64::from(u32::MAX);
        let size = (-mean * (1.0 - share).ln()).ceil();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates, and a negative size is none"
        )]
        let whole = size as u32;
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_repeats_and_differs_by_its_byte() {
        let draw = |byte| Draws::new(byte).next_below(u32::MAX);
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_eq!(Draws::new(3).next_below(0), 0);
    }

    #[test]
    fn exponential_draws_have_their_mean_and_no_endless_value() {
        let mut draws = Draws::new(5);
        let count = 100_000;
        let sum: f64 = (0..count).map(|_| f64::from(draws.next_exponential(1000.0))).sum();
        let mean = sum / f64::from(count);
        assert!((990.0..1010.0).contains(&mean), "{mean}");
        assert_eq!(Draws::new(5).next_exponential(-3.0), 0);
        assert_eq!(Draws::new(5).next_exponential(0.0), 0);
        // ln 2^32 = 22.18: no draw is longer than that many means.
        assert!((0..count).all(|_| draws.next_exponential(1.0) <= 23));
    }
}
