//! Timer ticks: all CPUs that execute something tick at the same time.

use crate::cpu_set::CpuSet;
use crate::timeline::NEVER;

/// The next round of ticks, in which CPUs tick in the order of their numbers.
///
/// Apart from the [timeline](crate::timeline), since every other event would have to be compared with each tick there.
#[derive(Debug)]
pub(crate) struct Ticks {
    cpus: CpuSet,
    period_ns: u64,
    /// When the round is.
    round_ns: u64,
    /// The first CPU that has not ticked in it.
    next: u32,
    ticking: u32,
}

impl Ticks {
    pub(crate) fn new(cpus: u32, period_ns: u64) -> Self {
        Self { cpus: CpuSet::new(cpus), period_ns, round_ns: period_ns, next: 0, ticking: 0 }
    }

    /// Lets a CPU tick from now on.
    #[inline]
    pub(crate) fn start(&mut self, cpu: u32, now_ns: u64) {
        if self.cpus.has(cpu) {
            return;
        }
        if self.ticking == 0 {
            (self.round_ns, self.next) = ((now_ns / self.period_ns + 1) * self.period_ns, 0);
        }
        self.cpus.put(cpu, true);
        self.ticking += 1;
    }

    /// Lets a CPU tick no longer.
    #[inline]
    pub(crate) fn stop(&mut self, cpu: u32) {
        self.ticking -= u32::from(self.cpus.has(cpu));
        self.cpus.put(cpu, false);
    }

    /// When a CPU ticks next; [`NEVER`]: none does.
    #[inline]
    pub(crate) const fn next_ns(&self) -> u64 {
        if self.ticking == 0 { NEVER } else { self.round_ns }
    }

    /// Gives the CPU that ticks now; `None` once the round is over.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        let found = self.cpus.first_in(self.next, u32::MAX);
        if let Some(cpu) = found {
            self.next = cpu + 1;
        } else {
            (self.round_ns, self.next) = (self.round_ns + self.period_ns, 0);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_tick_together_from_the_next_multiple_of_the_period_on() {
        let mut ticks = Ticks::new(100, 4);
        assert_eq!(ticks.next_ns(), NEVER);
        for (cpu, now_ns) in [(70, 8), (3, 9), (70, 9)] {
            ticks.start(cpu, now_ns);
        }
        let round: Vec<_> = std::iter::from_fn(|| (ticks.next_ns() == 12).then(|| ticks.pop())).collect();
        assert_eq!(round, [Some(3), Some(70), None]);
        ticks.stop(3);
        assert_eq!((ticks.next_ns(), ticks.pop()), (16, Some(70)));
        ticks.stop(70);
        assert_eq!(ticks.next_ns(), NEVER);
    }
}
