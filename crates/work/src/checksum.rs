/// Checksum of a result: FNV-1a taken over 64-bit words instead of bytes, so that every language
/// computes it with one multiplication per word.
///
/// Steps: `state = (state ^ word) * 0x100000001b3 mod 2^64`, from `0xcbf29ce484222325`.
/// SOURCE: constants of 64-bit FNV-1a (Fowler, Noll, Vo).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    /// Takes in one word.
    pub const fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3);
    }

    /// Checksum of a list of words.
    pub fn of(words: impl IntoIterator<Item = u64>) -> Self {
        let mut sum = Self::default();
        words.into_iter().for_each(|word| sum.add(word));
        sum
    }
}

impl std::fmt::Display for Checksum {
    /// Sixteen hexadecimal digits.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_words_give_the_offset_basis() {
        assert_eq!(Checksum::of([]).to_string(), "cbf29ce484222325");
    }

    #[test]
    fn one_letter_gives_the_published_value_of_fnv_1a() {
        // SOURCE: FNV test vectors, 64-bit FNV-1a of "a"; one byte is one word.
        assert_eq!(Checksum::of([u64::from(b'a')]).to_string(), "af63dc4c8601ec8c");
    }

    #[test]
    fn order_counts() {
        assert_ne!(Checksum::of([1, 2]), Checksum::of([2, 1]));
    }
}
