//! Normal variates by a table of layers: one word of random bits and one multiplication in 98 of 100 cases.

use std::sync::OnceLock;

use rand_core::Rng;
use rand_pcg::Pcg64;

use crate::stream::open_uniform;

const LAYERS: usize = 128;
/// Begin of the tail, and area of a layer. SOURCE: Doornik 2005, table 1.
const TAIL: f64 = 3.442_619_855_899;
const AREA: f64 = 9.912_563_035_262_17e-3;

/// Edges of the layers, widest first, and the share of each layer that lies inside the next one.
struct Layers {
    edges: [f64; LAYERS + 1],
    inside: [f64; LAYERS],
}

fn layers() -> &'static Layers {
    static MADE: OnceLock<Layers> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut edges = [0.0; LAYERS + 1];
        let mut density = libm::exp(-0.5 * TAIL * TAIL);
        edges[0] = AREA / density;
        edges[1] = TAIL;
        for place in 2..LAYERS {
            edges[place] = (-2.0 * libm::log(AREA / edges[place - 1] + density)).sqrt();
            density = libm::exp(-0.5 * edges[place] * edges[place]);
        }
        let mut inside = [0.0; LAYERS];
        for (place, share) in inside.iter_mut().enumerate() {
            *share = edges[place + 1] / edges[place];
        }
        Layers { edges, inside }
    })
}

/// A stream of standard normal variates.
///
/// Source: G. Marsaglia and W. W. Tsang, "The ziggurat method", J. Stat. Software 5, 2000, in the form of J. A. Doornik, "An
/// improved ziggurat method to generate normal random samples", 2005, which takes layer and place from different bits.
pub(crate) struct Normal {
    generator: Pcg64,
    layers: &'static Layers,
}

impl Normal {
    pub(crate) fn new(generator: Pcg64) -> Self {
        Self { generator, layers: layers() }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> f64 {
        loop {
            let word = self.generator.next_u64();
            let layer = (word & 127) as usize;
            #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
            let uniform = ((word >> 11) as f64 + 0.5) * (2.0 / 9_007_199_254_740_992.0) - 1.0;
            let value = uniform * self.layers.edges[layer];
            if uniform.abs() < self.layers.inside[layer] {
                return value;
            }
            if layer == 0 {
                return self.tail().copysign(uniform);
            }
            let (outer, inner) = (self.layers.edges[layer], self.layers.edges[layer + 1]);
            let above = libm::exp(-0.5 * (outer * outer - value * value));
            let below = libm::exp(-0.5 * (inner * inner - value * value));
            if below + open_uniform(&mut self.generator) * (above - below) < 1.0 {
                return value;
            }
        }
    }

    /// Uniform in (0, 1), from the same generator.
    #[inline]
    pub(crate) fn uniform(&mut self) -> f64 {
        open_uniform(&mut self.generator)
    }

    /// SOURCE: G. Marsaglia 1964 (tail of the normal distribution).
    fn tail(&mut self) -> f64 {
        loop {
            let beyond = -libm::log(open_uniform(&mut self.generator)) / TAIL;
            if -2.0 * libm::log(open_uniform(&mut self.generator)) >= beyond * beyond {
                return TAIL + beyond;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Normal, TAIL};
    use crate::special::normal_cdf;
    use crate::stream::stream;

    #[test]
    fn the_variates_have_the_normal_distribution() {
        let mut source = Normal::new(stream(5, 6, 7));
        let mut values: Vec<f64> = (0..400_000).map(|_| source.next()).collect();
        values.sort_by(f64::total_cmp);
        let mut farthest: f64 = 0.0;
        for (place, value) in values.iter().enumerate() {
            let share = (f64::from(u32::try_from(place).unwrap()) + 0.5) / 400_000.0;
            farthest = farthest.max((normal_cdf(*value) - share).abs());
        }
        // Kolmogorov's distance of 1 in 1000 at this size.
        assert!(farthest < 1.95 / 400_000_f64.sqrt(), "{farthest}");
        let beyond = values.iter().filter(|value| value.abs() > TAIL).count();
        // 2 (1 - Phi(3.4426)) = 5.76e-4: 230 expected, standard deviation 15.
        assert!((180..285).contains(&beyond), "{beyond}");
    }
}
