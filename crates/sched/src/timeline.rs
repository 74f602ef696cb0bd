//! When each CPU wants attention next: a tournament over all of them.

/// The earliest time of many; ties go to the lower number.
///
/// Changing one time costs one comparison per level, looking at the earliest none; nothing is allocated.
#[derive(Debug, Clone)]
pub(crate) struct Timeline {
    /// Node 1 is the root, leaves begin at `leaves`; each holds a time above the number of its CPU.
    nodes: Vec<u64>,
    leaves: usize,
}

/// Bits for the number of a CPU.
pub(crate) const CPU_BITS: u32 = 12;

/// Latest time that can be told from never: 2^52 ns are 52 days.
pub(crate) const NEVER: u64 = u64::MAX >> CPU_BITS;

impl Timeline {
    pub(crate) fn new(cpus: u32) -> Self {
        let leaves = (cpus as usize).next_power_of_two();
        Self { nodes: vec![u64::MAX; 2 * leaves], leaves }
    }

    /// Says when a CPU wants attention; [`NEVER`] or later: not at all.
    #[inline]
    pub(crate) fn set(&mut self, cpu: u32, time_ns: u64) {
        let mut at = self.leaves + cpu as usize;
        let mut key = if time_ns >= NEVER { u64::MAX } else { time_ns << CPU_BITS | u64::from(cpu) };
        if self.nodes[at] == key {
            return;
        }
        self.nodes[at] = key;
        while at > 1 {
            key = key.min(self.nodes[at ^ 1]);
            at /= 2;
            if self.nodes[at] == key {
                return;
            }
            self.nodes[at] = key;
        }
    }

    /// Gives the earliest time and its CPU.
    #[inline]
    pub(crate) fn first(&self) -> (u64, u32) {
        let key = self.nodes[1];
        let cpu = (key & ((1 << CPU_BITS) - 1)) as u32;
        (key >> CPU_BITS, cpu)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_earliest_is_first_and_ties_go_to_the_lower_cpu(
            changes in prop::collection::vec((0_u32..37, 0_u64..50), 1..200)
        ) {
            let mut timeline = Timeline::new(37);
            let mut plain = [NEVER; 37];
            for (cpu, time) in changes {
                timeline.set(cpu, time);
                plain[cpu as usize] = time;
                let expected = (0_u32..).zip(plain).map(|(cpu, time)| (time, cpu)).min();
                prop_assert_eq!(Some(timeline.first()), expected);
            }
        }
    }
}
