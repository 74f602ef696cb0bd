//! Packets: how much work each one is, and where they come from.

mod crc;
mod draw;
mod source;

pub use draw::Draws;
pub use source::{Distribution, Sources, source_means};

/// One unit of work: a fingerprint to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Packet {
    /// Rounds of the generator.
    pub iterations: u32,
    /// First state, 0 to 100000000.
    pub seed: u32,
}

impl Packet {
    /// The packet's fingerprint.
    #[must_use]
    #[inline]
    pub fn fingerprint(self) -> u64 {
        fingerprint(self.iterations, u64::from(self.seed))
    }
}

/// Advances a 48-bit linear congruential generator and gives the upper 36 bits of its state.
///
/// The rounds are a chain in which each waits for the one before: the work of a packet cannot be
/// spread over the units of one core.
#[must_use]
#[inline]
pub fn fingerprint(iterations: u32, seed: u64) -> u64 {
    // SOURCE: multiplier, increment and modulus of POSIX `drand48`, as the source's program uses them.
    const MULTIPLIER: u64 = 25_214_903_917;
    const INCREMENT: u64 = 11;
    const MASK: u64 = (1 << 48) - 1;
    let mut state = seed;
    for _ in 0..iterations {
        state = opaque(state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK);
    }
    state >> 12
}

/// The same number, of which the compiler knows nothing. Otherwise it merges several rounds into one
/// multiplication, and the work of a packet depends on how well that went at each place of use.
#[inline]
fn opaque(number: u64) -> u64 {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    {
        let mut number = number;
        // SAFETY: there is no instruction; the number stays in its register.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) number, options(pure, nomem, nostack, preserves_flags));
        }
        number
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    std::hint::black_box(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_golden_fingerprint_is_met() {
        let table = include_str!("../tests/golden/fingerprints.csv");
        let mut rows = 0;
        for line in table.lines().skip(1) {
            let fields: Vec<u64> = line.trim().split(',').map(|field| field.parse().unwrap()).collect();
            let iterations = u32::try_from(fields[0]).unwrap();
            assert_eq!(fingerprint(iterations, fields[1]), fields[2], "{line}");
            rows += 1;
        }
        assert_eq!(rows, 8);
    }

    #[test]
    fn no_round_leaves_only_the_shift() {
        assert_eq!(fingerprint(0, 1 << 40), 1 << 28);
        assert_eq!(Packet { iterations: 0, seed: 4096 }.fingerprint(), 1);
    }
}
