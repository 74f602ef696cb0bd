use steelyard_model::{Quantity, Source};

/// A value with the mechanism it came from.
pub(super) type Reading = Option<(u64, Source)>;

/// Charges reach a group in batches of 64 pages per CPU, so a peak is exact to this [bytes].
/// SOURCE: `MEMCG_CHARGE_BATCH` in the kernel's `memcontrol.h`.
pub(super) const MEMORY_STEP_BYTES: u64 = 64 * 4096;

/// What the groups of a run say at one moment. Absent means that no group says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    pub(super) usage_ns: Reading,
    pub(super) user_ns: Reading,
    pub(super) system_ns: Reading,
    pub(super) throttled_ns: Reading,
    pub(super) cpu_pressure_ns: Reading,
    pub(super) memory_pressure_ns: Reading,
    pub(super) io_pressure_ns: Reading,
    /// Before the run: memory in use. After it: the peak.
    pub(super) memory_bytes: Reading,
    /// Before the run: how much of that may go while it executes.
    pub(super) memory_slack_bytes: u64,
    pub(super) read_bytes: Reading,
    pub(super) written_bytes: Reading,
    pub(super) oom_kills: Option<u64>,
    pub(super) refused_processes: Option<u64>,
}

impl Sample {
    /// Takes what is absent here from another sample.
    pub(super) fn or(self, other: &Self) -> Self {
        Self {
            usage_ns: self.usage_ns.or(other.usage_ns),
            user_ns: self.user_ns.or(other.user_ns),
            system_ns: self.system_ns.or(other.system_ns),
            throttled_ns: self.throttled_ns.or(other.throttled_ns),
            cpu_pressure_ns: self.cpu_pressure_ns.or(other.cpu_pressure_ns),
            memory_pressure_ns: self.memory_pressure_ns.or(other.memory_pressure_ns),
            io_pressure_ns: self.io_pressure_ns.or(other.io_pressure_ns),
            memory_bytes: self.memory_bytes.or(other.memory_bytes),
            memory_slack_bytes: self.memory_slack_bytes.max(other.memory_slack_bytes),
            read_bytes: self.read_bytes.or(other.read_bytes),
            written_bytes: self.written_bytes.or(other.written_bytes),
            oom_kills: self.oom_kills.or(other.oom_kills),
            refused_processes: self.refused_processes.or(other.refused_processes),
        }
    }

    /// Memory in use at this moment [bytes].
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        self.memory_bytes.map(|(value, _)| value)
    }

    /// CPU time used so far [ns].
    #[must_use]
    pub fn usage_ns(&self) -> Option<u64> {
        self.usage_ns.map(|(value, _)| value)
    }

    /// Kills for want of memory so far.
    #[must_use]
    pub const fn oom_kills(&self) -> Option<u64> {
        self.oom_kills
    }
}

/// What a run used, by its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readings {
    /// CPU time.
    pub usage_ns: Quantity,
    /// Its user part.
    pub user_ns: Quantity,
    /// Its system part.
    pub system_ns: Quantity,
    /// Time held back by bandwidth limits, of the groups above too.
    pub throttled_ns: Quantity,
    /// Time some task waited for a CPU.
    pub cpu_pressure_ns: Quantity,
    /// Time some task waited for memory.
    pub memory_pressure_ns: Quantity,
    /// Time some task waited for I/O.
    pub io_pressure_ns: Quantity,
    /// Peak memory.
    pub peak_memory_bytes: Quantity,
    /// Bytes read from storage.
    pub read_bytes: Quantity,
    /// Bytes written to storage.
    pub written_bytes: Quantity,
    /// Processes killed for want of memory; `None` when no group counts them.
    pub oom_kills: Option<u64>,
    /// Forks refused by the task limit; `None` when no group counts them.
    pub refused_processes: Option<u64>,
}

impl Readings {
    /// The difference of two samples. `tick_ns` is the kernel's tick, by which it splits CPU time
    /// into user and system.
    #[must_use]
    pub fn between(before: &Sample, after: &Sample, tick_ns: u64) -> Self {
        let cpu = |was: Reading, is: Reading, step: u64| {
            difference(was, is, step, "no control group accounts CPU time on this host")
        };
        let pressure = |was: Reading, is: Reading| {
            difference(was, is, 1000, "no version 2 control group with pressure information on this host")
        };
        let storage = |was: Reading, is: Reading| {
            difference(was, is, 1, "no control group accounts storage on this host")
        };
        let usage_step = match after.usage_ns {
            Some((_, Source::Cgroup1)) => 1,
            _ => 1000,
        };
        Self {
            usage_ns: cpu(before.usage_ns, after.usage_ns, usage_step),
            user_ns: cpu(before.user_ns, after.user_ns, tick_ns),
            system_ns: cpu(before.system_ns, after.system_ns, tick_ns),
            throttled_ns: difference(
                before.throttled_ns,
                after.throttled_ns,
                1000,
                "no cpu controller is visible on this host",
            ),
            cpu_pressure_ns: pressure(before.cpu_pressure_ns, after.cpu_pressure_ns),
            memory_pressure_ns: pressure(before.memory_pressure_ns, after.memory_pressure_ns),
            io_pressure_ns: pressure(before.io_pressure_ns, after.io_pressure_ns),
            peak_memory_bytes: difference(
                before.memory_bytes,
                after.memory_bytes,
                MEMORY_STEP_BYTES + before.memory_slack_bytes,
                "no control group accounts memory on this host",
            ),
            read_bytes: storage(before.read_bytes, after.read_bytes),
            written_bytes: storage(before.written_bytes, after.written_bytes),
            oom_kills: count(before.oom_kills, after.oom_kills),
            refused_processes: count(before.refused_processes, after.refused_processes),
        }
    }
}

fn difference(before: Reading, after: Reading, step: u64, why_missing: &str) -> Quantity {
    match after {
        Some((value, source)) => {
            let start = before.filter(|(_, was)| *was == source).map_or(0, |(value, _)| value);
            Quantity::measured(value.saturating_sub(start), source, step)
        }
        None => Quantity::missing(Source::Cgroup2, why_missing),
    }
}

fn count(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    after.map(|value| value.saturating_sub(before.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_keep_their_source() {
        let before = Sample { usage_ns: Some((100, Source::Cgroup1)), ..Sample::default() };
        let after = Sample { usage_ns: Some((350, Source::Cgroup1)), ..Sample::default() };
        let readings = Readings::between(&before, &after, 4_000_000);
        assert_eq!(readings.usage_ns, Quantity::measured(250, Source::Cgroup1, 1));
        assert!(readings.cpu_pressure_ns.missing.unwrap().contains("version 2"));
    }

    #[test]
    fn memory_that_earlier_runs_left_widens_the_step() {
        let before = Sample {
            memory_bytes: Some((1000, Source::Cgroup1)),
            memory_slack_bytes: 300,
            ..Sample::default()
        };
        let after = Sample { memory_bytes: Some((5000, Source::Cgroup1)), ..Sample::default() };
        let peak = Readings::between(&before, &after, 1).peak_memory_bytes;
        assert_eq!(peak, Quantity::measured(4000, Source::Cgroup1, MEMORY_STEP_BYTES + 300));
    }

    #[test]
    fn version_two_wins_over_version_one() {
        let v2 = Sample { usage_ns: Some((1, Source::Cgroup2)), ..Sample::default() };
        let v1 = Sample { usage_ns: Some((2, Source::Cgroup1)), oom_kills: Some(3), ..Sample::default() };
        let merged = v2.or(&v1);
        assert_eq!(merged.usage_ns, Some((1, Source::Cgroup2)));
        assert_eq!(merged.oom_kills(), Some(3));
    }

    #[test]
    fn counts_start_at_zero_without_a_first_sample() {
        assert_eq!(count(None, Some(2)), Some(2));
        assert_eq!(count(Some(2), Some(2)), Some(0));
        assert_eq!(count(Some(1), None), None);
    }
}
