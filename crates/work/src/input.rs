use rand_core::Rng;
use rand_pcg::Pcg32;

/// Which input of a kernel is generated; inputs of one seed do not depend on each other.
///
/// The generator is PCG32 (PCG-XSH-RR 64/32: `rand_pcg::Pcg32`, `pcg32_srandom` of the reference
/// library) with initial state `seed XOR mask` and the stream below:
///
/// | input | mask | stream |
/// |---|---|---|
/// | data | `0` | `0x5374_6565_6c79_6172` |
/// | keys | `0x9e37_79b9_7f4a_7c15` | `0x6c6f_6f6b_2d75_7073` |
///
/// Word `k` of an input is the generator's output number `k`. The programs under `workloads/`
/// follow the same table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// What a kernel works on.
    Data,
    /// What a search looks for.
    Keys,
}

impl Stream {
    const fn generator_seed(self, seed: u64) -> (u64, u64) {
        match self {
            Self::Data => (seed, 0x5374_6565_6c79_6172),
            Self::Keys => (seed ^ 0x9e37_79b9_7f4a_7c15, 0x6c6f_6f6b_2d75_7073),
        }
    }

    fn generator(self, seed: u64) -> Pcg32 {
        let (state, stream) = self.generator_seed(seed);
        Pcg32::new(state, stream)
    }
}

/// Uniform 32-bit integers, with replacement.
#[must_use]
pub fn draw_words(seed: u64, stream: Stream, count: usize) -> Vec<u32> {
    let mut generator = stream.generator(seed);
    (0..count).map(|_| generator.next_u32()).collect()
}

/// Uniform integers from 0 to `2^bits - 1`, the upper bits of [`draw_words`]; 1 to 16 bits.
#[must_use]
pub fn draw_below_power_of_two(seed: u64, bits: u32, count: usize) -> Vec<u16> {
    debug_assert!((1..=16).contains(&bits));
    let upper = |word: u32| u16::try_from(word >> (32 - bits)).unwrap_or(u16::MAX);
    draw_words(seed, Stream::Data, count).into_iter().map(upper).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SOURCE: first outputs of `pcg32_srandom_r(42, 54)` in the demo of the reference library.
    #[test]
    fn the_generator_is_the_reference_pcg32() {
        let mut generator = Pcg32::new(42, 54);
        let first: Vec<u32> = (0..6).map(|_| generator.next_u32()).collect();
        assert_eq!(first, [0xa15c_02b7, 0x7b47_f409, 0xba1d_3330, 0x83d2_f293, 0xbfa4_784b, 0xcbed_606e]);
    }

    #[test]
    fn a_longer_input_continues_a_shorter_one() {
        assert_eq!(draw_words(7, Stream::Data, 10), draw_words(7, Stream::Data, 20)[..10]);
    }

    #[test]
    fn data_and_keys_of_one_seed_differ() {
        let data = draw_words(7, Stream::Data, 1000);
        let keys = draw_words(7, Stream::Keys, 1000);
        assert!(data.iter().zip(&keys).filter(|(a, b)| a == b).count() < 3);
    }

    #[test]
    fn five_bits_give_every_integer_below_32_about_equally_often() {
        let mut counts = [0_u32; 32];
        for value in draw_below_power_of_two(1, 5, 65_536) {
            counts[usize::from(value)] += 1;
        }
        // Expected 2048 each, sd 44.5; six standard deviations.
        assert!(counts.iter().all(|&count| count.abs_diff(2048) < 267), "{counts:?}");
    }
}
