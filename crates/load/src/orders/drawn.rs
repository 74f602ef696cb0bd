//! Every value of the service's rows, a function of the seed (`Drawn.java`): so that answers can be checked.

/// Number of items in the catalogue.
const ITEMS: u64 = 1000;
const PRICE: u64 = 1;
const CUSTOMER: u64 = 2;
const LINES: u64 = 3;
const ITEM: u64 = 4;
const QUANTITY: u64 = 5;
const MOST_LINES: u64 = 4;
const MOST_QUANTITY: u64 = 9;
const MOST_CENTS: u64 = 10_000;

/// The values of one seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Drawn {
    pub(super) seed: u64,
    pub(super) rows: u64,
}

/// A line of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) item: u64,
    pub(super) quantity: u64,
}

impl Drawn {
    /// Number of customers: one for ten orders.
    pub(super) fn customers(self) -> u64 {
        (self.rows / 10).max(1)
    }

    fn price_cents(self, item: u64) -> u64 {
        1 + self.below(PRICE, item, 0, MOST_CENTS)
    }

    /// Customer of an order that was there at the begin.
    pub(super) fn customer(self, order: u64) -> u64 {
        1 + self.below(CUSTOMER, order, 0, self.customers())
    }

    /// Lines of an order: of one that was there at the begin, or of any other number.
    pub(super) fn lines(self, order: u64) -> Vec<Line> {
        let count = 1 + self.below(LINES, order, 0, MOST_LINES);
        let line = |line| Line {
            item: 1 + self.below(ITEM, order, line, ITEMS),
            quantity: 1 + self.below(QUANTITY, order, line, MOST_QUANTITY),
        };
        (0..count).map(line).collect()
    }

    /// What lines cost.
    pub(super) fn total_cents(self, lines: &[Line]) -> u64 {
        lines.iter().map(|line| self.price_cents(line.item) * line.quantity).sum()
    }

    fn below(self, kind: u64, number: u64, line: u64, bound: u64) -> u64 {
        mix(mix(mix(self.seed.wrapping_add(kind)).wrapping_add(number)).wrapping_add(line)) % bound
    }
}

/// SOURCE: Steele, Lea and Flood (2014), the output function of `SplitMix64` (doi:10.1145/2660193.2660195).
pub(super) const fn mix(state: u64) -> u64 {
    let value = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_draws_the_same_values() {
        // Answers of the service itself, started with `--steelyard.rows=2000 --steelyard.seed=7`.
        let drawn = Drawn { seed: 7, rows: 2000 };
        assert_eq!(drawn.customer(17), 93);
        assert_eq!(drawn.lines(17), [Line { item: 813, quantity: 4 }]);
        assert_eq!(drawn.total_cents(&drawn.lines(17)), 6204);
        assert_eq!(drawn.total_cents(&[Line { item: 5, quantity: 2 }]), 3992);
        assert_eq!((drawn.customer(1963), drawn.total_cents(&drawn.lines(1963))), (3, 86_469));
        assert_eq!((drawn.customer(1924), drawn.total_cents(&drawn.lines(1924))), (3, 71_637));
    }

    #[test]
    fn the_generator_is_the_published_one() {
        // First outputs of SplitMix64 from the seed 1234567, as its reference implementation prints them.
        assert_eq!(mix(1_234_567), 6_457_827_717_110_365_317);
        assert_eq!(mix(1_234_567_u64.wrapping_add(0x9E37_79B9_7F4A_7C15)), 3_203_168_211_198_807_973);
    }
}
