//! Random numbers that are the same on every machine.

use std::sync::LazyLock;

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
    #[inline]
    pub(crate) fn uniform(&mut self) -> f64 {
        unit(self.0.next_u64())
    }

    /// Exponential of mean 1, with the same bits everywhere: what is not exact comes from `libm`.
    ///
    /// SOURCE: Marsaglia and Tsang 2000, "The ziggurat method for generating random variables": the area below the density in
    /// 256 layers of the same size; nearly always a point of a layer is one of the area at once.
    #[inline]
    pub(crate) fn exponential(&mut self) -> f64 {
        loop {
            let bits = self.0.next_u64();
            let layer = (bits & 0xFF) as usize;
            let x = unit(bits) * LAYERS.edges[layer];
            if x < LAYERS.edges[layer + 1] {
                return x;
            }
            if layer == 0 {
                return LAST_EDGE - libm::log(self.uniform());
            }
            let (low, high) = (LAYERS.heights[layer], LAYERS.heights[layer + 1]);
            if low + (high - low) * self.uniform() < libm::exp(-x) {
                return x;
            }
        }
    }
}

/// Where the last layer ends and the tail begins.
/// SOURCE: Marsaglia and Tsang 2000, section 4, as `r`.
const LAST_EDGE: f64 = 7.697_117_470_131_487;
/// Size of each layer.
/// SOURCE: the same, as `v`.
const LAYER_AREA: f64 = 0.003_949_659_822_581_572;

/// Right edges of the layers, the lowest first, and the density there.
struct Layers {
    edges: [f64; 257],
    heights: [f64; 257],
}

static LAYERS: LazyLock<Layers> = LazyLock::new(|| {
    let mut edges = [0.0; 257];
    // The lowest layer holds the tail: as wide as a rectangle of its size.
    (edges[0], edges[1]) = (LAYER_AREA * libm::exp(LAST_EDGE), LAST_EDGE);
    for layer in 2..256 {
        let below = edges[layer - 1];
        edges[layer] = -libm::log(libm::exp(-below) + LAYER_AREA / below);
    }
    Layers { edges, heights: edges.map(|edge| libm::exp(-edge)) }
});

/// Uniform in (0, 1) from the upper bits of a word.
#[inline]
fn unit(bits: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    let upper = (bits >> 11) as f64;
    (upper + 0.5) * (1.0 / 9_007_199_254_740_992.0)
}

/// SOURCE: splitmix64's output function (Steele, Lea, Flood 2014).
fn mix(value: u64) -> u64 {
    let mut x = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_numbers_have_the_distribution_of_their_name() {
        const COUNT: u32 = 4_000_000;
        let mut random = Random::new(3, 1);
        let drawn: Vec<f64> = (0..COUNT).map(|_| random.exponential()).collect();
        let mean = drawn.iter().sum::<f64>() / f64::from(COUNT);
        assert!((mean - 1.0).abs() < 4.0 / f64::from(COUNT).sqrt(), "{mean}");
        // In the tail, at edges of layers and inside of them.
        for time in [0.001, 0.06, 0.5, 1.0, 2.3, 5.0, 7.0, 7.7, 8.0, 10.0] {
            let expected = f64::from(COUNT) * libm::exp(-time);
            #[expect(clippy::cast_precision_loss, reason = "some millions")]
            let found = drawn.iter().filter(|each| **each > time).count() as f64;
            let error = (expected * (1.0 - libm::exp(-time))).sqrt();
            assert!((found - expected).abs() < 4.0 * error, "{found} beyond {time}, expected {expected}");
        }
    }
}
