//! Generators: one stream per (seed, cell, chunk of resamples).

use rand_core::Rng;
use rand_pcg::Pcg64;

#[cfg(target_arch = "x86_64")]
use crate::lanes::{Lanes, as_words};
use crate::registers::{LANES, Registers};

/// Resamples that share one stream. A constant of the method: changing it changes every recorded number.
pub(crate) const CHUNK: usize = 250;

/// Gives the stream of a chunk. The same arguments give the same numbers on every machine and thread.
pub(crate) fn stream(seed: u64, cell: u64, chunk: usize) -> Pcg64 {
    let chunk = chunk as u64;
    // Streams of one PCG state differ only in their increment and would be correlated, so the state is hashed too.
    let low = mix(seed ^ mix(cell ^ mix(chunk.wrapping_add(0x9E37_79B9_7F4A_7C15))));
    let high = mix(low ^ seed.rotate_left(32));
    Pcg64::new((u128::from(high) << 64) | u128::from(low), (u128::from(cell) << 64) | u128::from(chunk))
}

/// SOURCE: splitmix64's output function (Steele, Lea, Flood 2014).
fn mix(value: u64) -> u64 {
    let mut x = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Uniform in (0, 1), both ends excluded, 53 bits.
pub(crate) fn open_uniform(generator: &mut Pcg64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    let bits = (generator.next_u64() >> 11) as f64;
    (bits + 0.5) * (1.0 / 9_007_199_254_740_992.0)
}

/// Random indices below a bound: eight xoshiro256++ generators side by side, so that a compiler can
/// use vector registers; each word of 64 bits gives two indices by multiply-high.
///
/// The probability of an index differs from 1/n by less than n / 2^32 relatively.
pub(crate) struct Indices {
    pub(crate) state: [[u64; LANES]; 4],
    bound: u32,
}

/// Indices produced by one step of all lanes.
pub(crate) const STEP: usize = 2 * LANES;

impl Indices {
    /// `bound` is at most 2^32 - 1.
    pub(crate) fn new(generator: &mut Pcg64, bound: u32) -> Self {
        let mut state = [[0_u64; LANES]; 4];
        for lane in 0..LANES {
            for word in &mut state {
                // `| 1` keeps the all-zero state out.
                word[lane] = generator.next_u64() | 1;
            }
        }
        Self { state, bound }
    }

    #[cfg(target_arch = "x86_64")]
    pub(crate) fn bound(&self) -> u32 {
        self.bound
    }

    /// Fills whole steps; the length must be a multiple of `STEP`.
    pub(crate) fn fill(&mut self, registers: Registers, out: &mut [u32]) {
        match registers {
            Registers::Plain => self.fill_inlined(out),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Registers` names only what the processor reports.
            Registers::Avx2 => unsafe { self.fill_avx2(out) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Registers` names only what the processor reports.
            Registers::Avx512 => unsafe { self.fill_avx512(out) },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn fill_avx2(&mut self, out: &mut [u32]) {
        self.fill_inlined(out);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn fill_avx512(&mut self, out: &mut [u32]) {
        let mut lanes = Lanes::load(&self.state);
        for block in out.chunks_exact_mut(STEP) {
            let (low, high) = block.split_at_mut(LANES);
            for (half, product) in [low, high].into_iter().zip(lanes.products(self.bound)) {
                for (slot, product) in half.iter_mut().zip(as_words(product)) {
                    *slot = (product >> 32) as u32;
                }
            }
        }
        lanes.store(&mut self.state);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
    pub(crate) fn fill_inlined(&mut self, out: &mut [u32]) {
        let bound = u64::from(self.bound);
        for block in out.chunks_exact_mut(STEP) {
            let mut words = [0_u64; LANES];
            for (lane, word) in words.iter_mut().enumerate() {
                let (s0, s1) = (self.state[0][lane], self.state[1][lane]);
                let (s2, s3) = (self.state[2][lane], self.state[3][lane]);
                *word = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
                let third = s2 ^ s0;
                let fourth = s3 ^ s1;
                self.state[0][lane] = s0 ^ fourth;
                self.state[1][lane] = s1 ^ third;
                self.state[2][lane] = third ^ (s1 << 17);
                self.state[3][lane] = fourth;
            }
            // A loop of its own: fused with the one above it is compiled lane by lane.
            for word in &mut self.state[3] {
                *word = word.rotate_left(45);
            }
            for lane in 0..LANES {
                block[lane] = (((words[lane] & 0xFFFF_FFFF) * bound) >> 32) as u32;
                block[lane + LANES] = (((words[lane] >> 32) * bound) >> 32) as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Indices, STEP, open_uniform, stream};
    use crate::registers::Registers;

    #[test]
    fn all_registers_give_the_same_indices() {
        for bound in [1, 7, 1000, u32::MAX] {
            let drawn = |registers| {
                let mut indices = Indices::new(&mut stream(1, 2, 3), bound);
                let mut out = vec![0_u32; 10 * STEP];
                indices.fill(registers, &mut out[..3 * STEP]);
                indices.fill(registers, &mut out[3 * STEP..]);
                (out, indices.state)
            };
            for registers in Registers::available() {
                assert_eq!(drawn(registers), drawn(Registers::Plain), "{registers:?}, {bound}");
            }
        }
    }

    #[test]
    fn indices_stay_below_the_bound_and_hit_every_value_evenly() {
        let mut indices = Indices::new(&mut stream(1, 2, 3), 7);
        let mut out = vec![0_u32; STEP * 7000];
        indices.fill(Registers::widest(), &mut out);
        let mut counts = [0_u32; 7];
        for index in out {
            counts[usize::try_from(index).unwrap()] += 1;
        }
        // 16000 expected each, standard deviation 117.
        assert!(counts.iter().all(|count| (15_400..16_600).contains(count)), "{counts:?}");
    }

    #[test]
    fn streams_of_neighbouring_chunks_and_cells_differ() {
        let first = |seed, cell, chunk| open_uniform(&mut stream(seed, cell, chunk)).to_bits();
        let all = [first(1, 1, 0), first(1, 1, 1), first(1, 2, 0), first(2, 1, 0), first(2, 1, 1)];
        for (index, value) in all.iter().enumerate() {
            assert!(!all[..index].contains(value));
        }
    }
}
