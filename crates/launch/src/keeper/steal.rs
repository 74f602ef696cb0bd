//! Time the hypervisor took from CPUs.

use std::fs::File;
use std::os::unix::fs::FileExt;

use nix::unistd::{SysconfVar, sysconf};

use crate::clock::monotonic_ns;

/// A reading this young also serves as the next run's first: the file costs more than the gap.
const FRESH_NS: u64 = 5_000_000;
const BUFFER_BYTES: usize = 16 << 10;

/// Reads `/proc/stat`.
#[derive(Debug)]
pub(super) struct StealMeter {
    file: Option<File>,
    tick_ns: u64,
    last: Option<(u64, u64)>,
    cpus: Vec<u32>,
}

impl StealMeter {
    pub(super) fn new() -> Self {
        let per_second =
            sysconf(SysconfVar::CLK_TCK).ok().flatten().and_then(|value| u64::try_from(value).ok());
        let tick_ns = 1_000_000_000 / per_second.unwrap_or(100).max(1);
        Self { file: File::open("/proc/stat").ok(), tick_ns, last: None, cpus: Vec::new() }
    }

    /// Smallest step of the values [ns].
    pub(super) const fn step_ns(&self) -> u64 {
        self.tick_ns
    }

    /// Sets the CPUs that are summed.
    pub(super) fn watch(&mut self, cpus: Vec<u32>) {
        if cpus != self.cpus {
            self.cpus = cpus;
            self.last = None;
        }
    }

    /// The sum before a run [ns].
    pub(super) fn before(&mut self) -> Option<u64> {
        match self.last {
            Some((value, at)) if monotonic_ns().saturating_sub(at) < FRESH_NS => Some(value),
            _ => self.now(),
        }
    }

    /// The sum at this moment [ns].
    pub(super) fn now(&mut self) -> Option<u64> {
        let mut buffer = vec![0_u8; BUFFER_BYTES];
        let length = self.file.as_ref()?.read_at(&mut buffer, 0).ok()?;
        let text = String::from_utf8_lossy(&buffer[..length]);
        let value = steal_ticks(&text, &self.cpus).saturating_mul(self.tick_ns);
        self.last = Some((value, monotonic_ns()));
        Some(value)
    }
}

pub(crate) fn steal_ticks(text: &str, cpus: &[u32]) -> u64 {
    text.lines()
        .filter_map(|line| line.strip_prefix("cpu"))
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            // The first line sums all CPUs; its name has no number.
            if line.starts_with(' ') {
                return None;
            }
            let cpu: u32 = words.next()?.parse().ok()?;
            // user nice system idle iowait irq softirq steal
            if cpus.contains(&cpu) { words.nth(7)?.parse::<u64>().ok() } else { None }
        })
        .fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_of_the_right_cpus_is_summed() {
        let text =
            "cpu  1 2 3 4 5 6 7 100 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 3 4 5 6 7 20 0 0\nintr 5\n";
        assert_eq!(steal_ticks(text, &[0]), 8);
        assert_eq!(steal_ticks(text, &[0, 1]), 28);
        assert_eq!(steal_ticks(text, &[7]), 0);
    }

    /// Found by fuzzing.
    #[test]
    fn counts_beyond_64_bits_do_not_overflow() {
        let line = |cpu: u32, ticks: u64| format!("cpu{cpu} 1 2 3 4 5 6 7 {ticks} 0 0\n");
        assert_eq!(steal_ticks(&(line(0, u64::MAX) + &line(1, 5)), &[0, 1]), u64::MAX);
    }
}
