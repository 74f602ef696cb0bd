//! Random numbers that are the same on every machine.

use rand_core::Rng;
use rand_pcg::Pcg64;

/// Arrivals and kinds of requests.
#[derive(Debug, Clone)]
pub(crate) struct Random(Pcg64);

impl Random {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let low = mix(seed ^ mix(stream));
        let high = mix(low ^ seed.rotate_left(32));
        Self(Pcg64::new((u128::from(high) << 64) | u128::from(low), u128::from(stream)))
    }

    /// Uniform in (0, 1), both ends excluded.
    pub(crate) fn uniform(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
        let bits = (self.0.next_u64() >> 11) as f64;
        (bits + 0.5) * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Exponential of mean 1, by inversion; `libm` gives the same bits everywhere.
    pub(crate) fn exponential(&mut self) -> f64 {
        -libm::log(self.uniform())
    }
}

/// SOURCE: splitmix64's output function (Steele, Lea, Flood 2014).
fn mix(value: u64) -> u64 {
    let mut x = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
