//! Which CPU has most threads, one of which another CPU could take over: a tournament over all of them.

/// How many threads each CPU has, 0 where none of them can be taken over.
#[derive(Debug, Clone)]
pub(crate) struct Crowd {
    /// Node 1 is the root, leaves begin at `leaves`; each holds the largest count below it.
    nodes: Vec<u32>,
    leaves: usize,
}

impl Crowd {
    pub(crate) fn new(cpus: u32) -> Self {
        let leaves = (cpus as usize).next_power_of_two();
        Self { nodes: vec![0; 2 * leaves], leaves }
    }

    #[inline]
    pub(crate) fn set(&mut self, cpu: u32, count: u32) {
        let mut at = self.leaves + cpu as usize;
        let mut most = count;
        while self.nodes[at] != most {
            self.nodes[at] = most;
            if at == 1 {
                return;
            }
            most = most.max(self.nodes[at ^ 1]);
            at /= 2;
        }
    }

    /// Whether a thread of a CPU can be taken over.
    #[inline]
    pub(crate) fn has(&self, cpu: u32) -> bool {
        self.nodes[self.leaves + cpu as usize] > 0
    }

    /// CPU with most threads: inside a range if there is one, else anywhere; the lowest number among equals.
    #[inline]
    pub(crate) fn most(&self, (low, high): (u32, u32)) -> Option<u32> {
        if self.nodes[1] == 0 {
            return None;
        }
        let mut near = (0, low);
        for cpu in low..high {
            let count = self.nodes[self.leaves + cpu as usize];
            if count > near.0 {
                near = (count, cpu);
            }
        }
        Some(if near.0 > 0 { near.1 } else { self.most_anywhere() })
    }

    fn most_anywhere(&self) -> u32 {
        let mut at = 1;
        while at < self.leaves {
            at = if self.nodes[2 * at] == self.nodes[at] { 2 * at } else { 2 * at + 1 };
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 4096 CPUs")]
        let cpu = (at - self.leaves) as u32;
        cpu
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_fullest_is_found_near_first_and_ties_go_to_the_lower_cpu(
            changes in prop::collection::vec((0_u32..37, 0_u32..4), 1..100),
            low in 0_u32..37,
            length in 0_u32..37,
        ) {
            let high = (low + length).min(37);
            let mut crowd = Crowd::new(37);
            let mut plain = [0; 37];
            for (cpu, count) in changes {
                crowd.set(cpu, count);
                plain[cpu as usize] = count;
                let most = |range: std::ops::Range<u32>| {
                    range.filter(|&cpu| plain[cpu as usize] > 0).min_by_key(|&cpu| (u32::MAX - plain[cpu as usize], cpu))
                };
                prop_assert_eq!(crowd.most((low, high)), most(low..high).or_else(|| most(0..37)));
                prop_assert_eq!(crowd.has(cpu), count > 0);
            }
        }
    }
}
