//! Which CPU time is the program's.

use std::collections::BTreeMap;

use steelyard_model::{Metric, Quantity, Source};

use super::armed::Counters;
use super::evidence::{Evidence, count, time_ns};
use crate::shared_page::SetUpUsage;

/// Longest time at the beginning or end of a program that is taken for the kernel's work [ns]; one that
/// took longer may have waited. It takes 0.03 to 0.12 ms where nothing is emulated.
const LONGEST_WORK_NS: u64 = 200_000;

/// What giving back a page takes, at most [ns].
const PAGE_NS: u64 = 150;

pub(super) fn add_cpu(
    all: &mut BTreeMap<Metric, Quantity>,
    counters: &Counters,
    evidence: &Evidence,
    most_of_enforced_ns: Option<u64>,
) {
    let (usage, set_up, readings) = (&evidence.usage, &evidence.set_up, &evidence.readings);
    let (user_ns, system_ns) = (time_ns(usage.ru_utime), time_ns(usage.ru_stime));
    let since_exec = |total: u64, before: u64| {
        Quantity::measured(total.saturating_sub(before), Source::Rusage, evidence.tick_ns)
    };
    let rusage_since_exec =
        Quantity { granularity: 1000, ..since_exec(user_ns + system_ns, set_up.user_ns + set_up.system_ns) };
    let without = |meter: Quantity, before_ns: u64, after_ns: u64| Quantity {
        value: meter.value.map(|value| value.saturating_sub(before_ns + work_after_ns(evidence, after_ns))),
        ..meter
    };
    let interval = &evidence.interval;
    let loading_ns = within_reason(interval.loading_ns);
    let counted = without(counters.task_clock.quantity(), loading_ns, interval.taking_down_ns);
    let launch_ns = launch_cpu_ns(set_up, evidence.call_ns);
    let grouped = without(readings.usage_ns.clone(), launch_ns, interval.burial_ns.unwrap_or(0));
    let is_alone = interval.has_others == Some(false);
    let best = match most_of_enforced_ns {
        // The meter that ended the run is the one that tells of it.
        Some(_) if grouped.value.is_some() => &grouped,
        _ if is_alone => closest_above(&counted, &grouped).unwrap_or(&rusage_since_exec),
        _ => of_tree(&counted, &grouped, &rusage_since_exec),
    };
    let wall_ns = all.get(&Metric::WallNs).and_then(|wall| wall.value);
    // What could not be told apart from a wait was left in, and what the rest of a tree used that was ended with
    // its first process is the kernel's work on its end.
    let threads = if is_alone { 1 } else { evidence.cpus as u64 };
    let most_ns = wall_ns.map_or(u64::MAX, |wall_ns| wall_ns.saturating_mul(threads));
    let most_ns = most_ns.min(most_of_enforced_ns.unwrap_or(u64::MAX));
    all.insert(
        Metric::CpuNs,
        Quantity { value: best.value.map(|cpu_ns| cpu_ns.min(most_ns)), ..best.clone() },
    );
    all.insert(Metric::CpuCgroupNs, readings.usage_ns.clone());
    all.insert(Metric::CpuRusageNs, Quantity::measured(user_ns + system_ns, Source::Rusage, 1000));
    let or_rusage = |reading: &Quantity, rusage: Quantity| {
        if reading.value.is_some() { reading.clone() } else { rusage }
    };
    let user = or_rusage(&readings.user_ns, since_exec(user_ns, set_up.user_ns));
    let (user, system) = parts_of(all.get(&Metric::CpuNs).and_then(|cpu| cpu.value), user);
    all.insert(Metric::CpuUserNs, user);
    all.insert(Metric::CpuSystemNs, system);
}

/// User and system part of the CPU time, which they add up to.
///
/// The meter that splits it also counts the launch and the taking down, which are the kernel's work: what
/// the program did not use of the sum is missing from the system part.
fn parts_of(cpu_ns: Option<u64>, user: Quantity) -> (Quantity, Quantity) {
    match (cpu_ns, user.value) {
        (Some(cpu_ns), Some(user_ns)) => {
            let user_ns = user_ns.min(cpu_ns);
            let part = |value| Quantity { value: Some(value), ..user.clone() };
            (part(user_ns), part(cpu_ns - user_ns))
        }
        _ => (user.clone(), Quantity { value: None, ..user }),
    }
}

/// What is known of the CPU time that a group counted between the gate and the program's start [ns].
/// `call_ns` is the time from the call of `execve` to the start.
pub(super) fn launch_cpu_ns(set_up: &SetUpUsage, call_ns: Option<u64>) -> u64 {
    set_up.cpu_at_call_ns.saturating_sub(set_up.cpu_at_gate_ns) + call_ns.map_or(0, within_reason)
}

/// A time that is the kernel's work if it is short; a longer one may have been a wait.
pub(super) fn within_reason(span_ns: u64) -> u64 {
    if span_ns <= LONGEST_WORK_NS { span_ns } else { 0 }
}

/// Longest time that the kernel works on taking a process down that touched so many pages [ns]; one that took
/// longer has waited for a CPU.
pub(super) fn longest_burial_ns(minor_faults: i64) -> u64 {
    LONGEST_WORK_NS + PAGE_NS * count(minor_faults)
}

/// CPU time of the `span_ns` after the program's end, which is not the program's [ns].
///
/// A program with much memory is taken down for long. That was work if nothing else came between: a
/// process that never slept did not sleep there, and what it waited for a CPU is known.
fn work_after_ns(evidence: &Evidence, span_ns: u64) -> u64 {
    if span_ns <= LONGEST_WORK_NS {
        return span_ns;
    }
    let sleeps = count(evidence.usage.ru_nvcsw).saturating_sub(evidence.set_up.voluntary_switches);
    match evidence.run_delay_ns {
        Some(waited_ns) if sleeps == 0 => {
            span_ns.saturating_sub(waited_ns.saturating_sub(evidence.set_up.run_delay_ns))
        }
        _ => 0,
    }
}

/// The smaller of two meters that both read one thread's CPU time or more.
///
/// The counter begins while the program is loaded and ends while it is taken down, which is subtracted, but
/// counts all time on a CPU, also what the hypervisor took of it. The group leaves that out, as the program's
/// own clock does, but begins at the gate and ends when nothing is left of the process; what is known of
/// both is subtracted. What is subtracted is time, so what the hypervisor took within it is missing from
/// both; but for that neither reads less than the program used, and the smaller one is nearer.
fn closest_above<'a>(counted: &'a Quantity, grouped: &'a Quantity) -> Option<&'a Quantity> {
    [counted, grouped].into_iter().filter(|one| one.value.is_some()).min_by_key(|one| one.value)
}

/// The group, which alone misses nothing of a tree.
///
/// The counter misses what each thread and process uses between handing in its count and its end: half of a
/// program that does nothing but fork. The kernel's word to the parent misses what nobody has waited for.
fn of_tree<'a>(counted: &'a Quantity, grouped: &'a Quantity, waited_for: &'a Quantity) -> &'a Quantity {
    match grouped.value {
        Some(_) => grouped,
        None => [counted, waited_for].into_iter().max_by_key(|one| one.value).unwrap_or(waited_for),
    }
}

/// The shortest time that one step of the kernel's took in a batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shortest(Option<u64>);

impl Shortest {
    /// How much of `span_ns` is taken for work: the step is the same in every iteration, so one that took
    /// half as long again as the shortest has waited for a CPU [ns].
    pub(super) fn bound(&mut self, span_ns: u64) -> u64 {
        let least_ns = self.0.map_or(span_ns, |least| least.min(span_ns));
        self.0 = Some(least_ns);
        span_ns.min(least_ns + least_ns / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_took_longer_than_usual_has_waited() {
        let mut shortest = Shortest::default();
        assert_eq!(shortest.bound(90_000), 90_000);
        assert_eq!(shortest.bound(70_000), 70_000);
        assert_eq!(shortest.bound(100_000), 100_000);
        assert_eq!(shortest.bound(190_000), 105_000);
    }

    #[test]
    fn a_group_is_not_charged_with_what_is_known_of_the_launch() {
        let set_up = SetUpUsage { cpu_at_gate_ns: 320_000, cpu_at_call_ns: 350_000, ..SetUpUsage::default() };
        assert_eq!(launch_cpu_ns(&set_up, Some(60_000)), 90_000);
        assert_eq!(launch_cpu_ns(&set_up, Some(3_000_000)), 30_000, "it may have waited");
        let unknown = SetUpUsage { cpu_at_gate_ns: u64::MAX, ..set_up };
        assert_eq!(launch_cpu_ns(&unknown, None), 0);
    }

    #[test]
    fn user_and_system_time_add_up_to_cpu_time() {
        let user = |value| Quantity::measured(value, Source::Cgroup2, 4_000_000);
        for (cpu_ns, user_ns) in [(682_000, 952_000), (10_000_000, 4_000_000), (0, 0), (5, 5)] {
            let (user, system) = parts_of(Some(cpu_ns), user(user_ns));
            assert_eq!(user.value.unwrap() + system.value.unwrap(), cpu_ns);
            assert!(user.value.unwrap() <= user_ns, "{user:?}");
            assert_eq!((system.source, system.granularity), (Source::Cgroup2, 4_000_000));
        }
    }

    #[test]
    fn the_smaller_meter_of_one_threads_cpu_time_is_taken_and_named() {
        let counted = Quantity::measured(66_900_000, Source::PerfCounter, 1);
        let grouped = Quantity::measured(42_200_000, Source::Cgroup2, 1000);
        assert_eq!(closest_above(&counted, &grouped), Some(&grouped), "the hypervisor took time");
        let counted = Quantity::measured(42_100_000, Source::PerfCounter, 1);
        assert_eq!(closest_above(&counted, &grouped), Some(&counted), "the group counts the exec too");
        let missing = Quantity::missing(Source::PerfCounter, "denied");
        assert_eq!(closest_above(&missing, &grouped), Some(&grouped));
        assert_eq!(closest_above(&missing, &missing), None);
    }

    #[test]
    fn the_meter_that_misses_least_tells_of_a_tree() {
        let counted = Quantity::measured(101_000_000, Source::PerfCounter, 1);
        let grouped = Quantity::measured(212_000_000, Source::Cgroup2, 1000);
        let waited_for = Quantity::measured(180_000_000, Source::Rusage, 1000);
        assert_eq!(of_tree(&counted, &grouped, &waited_for), &grouped);
        let missing = Quantity::missing(Source::Cgroup2, "no group");
        assert_eq!(of_tree(&counted, &missing, &waited_for), &waited_for);
        assert_eq!(of_tree(&waited_for, &missing, &counted), &waited_for);
    }
}
