//! A set of CPUs as bits.

/// CPUs from 0 to a fixed number, 4096 at most.
#[derive(Debug, Clone)]
pub(crate) struct CpuSet {
    words: Vec<u64>,
    /// A bit for each word that has any.
    filled: u64,
    cpus: u32,
}

impl CpuSet {
    pub(crate) fn new(cpus: u32) -> Self {
        Self { words: vec![0; cpus.div_ceil(64) as usize], filled: 0, cpus }
    }

    #[inline]
    pub(crate) fn put(&mut self, cpu: u32, is_in: bool) {
        let word = &mut self.words[(cpu / 64) as usize];
        let bit = 1_u64 << (cpu % 64);
        *word = if is_in { *word | bit } else { *word & !bit };
        let place = 1_u64 << (cpu / 64);
        self.filled = if *word == 0 { self.filled & !place } else { self.filled | place };
    }

    #[inline]
    pub(crate) fn has(&self, cpu: u32) -> bool {
        self.words[(cpu / 64) as usize] >> (cpu % 64) & 1 == 1
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0_u32..).zip(&self.words).flat_map(|(place, &word)| Bits(word).map(move |bit| place * 64 + bit))
    }

    /// Gives the first member at or behind `from` inside `low..high`, and wraps around there.
    #[inline]
    pub(crate) fn next_from(&self, from: u32, (low, high): (u32, u32)) -> Option<u32> {
        self.first_in(from, high).or_else(|| self.first_in(low, from))
    }

    /// Gives the first member of `low..high`.
    #[inline]
    pub(crate) fn first_in(&self, low: u32, high: u32) -> Option<u32> {
        let high = high.min(self.cpus);
        if low >= high {
            return None;
        }
        let place = low / 64;
        let rest = self.words[place as usize] >> (low % 64);
        if rest != 0 {
            let found = low + rest.trailing_zeros();
            return (found < high).then_some(found);
        }
        // All words above: none of them if this is the last that there can be.
        let above = self.filled & (u64::MAX << place << 1);
        if above == 0 {
            return None;
        }
        let place = above.trailing_zeros();
        let found = place * 64 + self.words[place as usize].trailing_zeros();
        (found < high).then_some(found)
    }
}

struct Bits(u64);

impl Iterator for Bits {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_member_of_a_range_is_found(
            changes in prop::collection::vec((0_u32..4096, any::<bool>()), 1..60),
            (low, high) in (0_u32..4100, 0_u32..4200),
        ) {
            let mut set = CpuSet::new(4096);
            let mut plain = std::collections::BTreeSet::new();
            for (cpu, is_in) in changes {
                set.put(cpu, is_in);
                if is_in { plain.insert(cpu); } else { plain.remove(&cpu); }
                prop_assert_eq!(set.first_in(low, high), plain.iter().copied().find(|cpu| (low..high).contains(cpu)));
            }
        }
    }

    #[test]
    fn search_wraps_around_inside_its_range() {
        let mut set = CpuSet::new(200);
        for cpu in [3, 64, 130, 199] {
            set.put(cpu, true);
        }
        assert_eq!(set.next_from(65, (0, 200)), Some(130));
        assert_eq!(set.next_from(131, (0, 150)), Some(3));
        assert_eq!(set.next_from(10, (8, 60)), None);
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 64, 130, 199]);
        set.put(64, false);
        assert!(!set.has(64) && set.has(3));
    }
}
