use std::collections::BTreeMap;

use super::fact::{NoiseFact, Surroundings};
use crate::HostRoot;

/// Programs that start work by themselves, by name.
const SCHEDULERS: [&str; 7] =
    ["cron", "crond", "anacron", "atd", "unattended-upgr", "packagekitd", "apt.systemd.dai"];
/// Programs that change clock rates or temperatures' limits by themselves.
const POWER_DAEMONS: [&str; 5] = ["thermald", "power-profiles-", "tuned", "tlp", "auto-cpufreq"];

pub(super) fn read(host: &Surroundings<'_>) -> Vec<NoiseFact> {
    let names = program_names(host.root);
    vec![
        load(host),
        pressure(host),
        interrupts(host),
        balancer(&names),
        timers(host.root, &names),
        power(&names),
    ]
}

fn program_names(root: &HostRoot) -> Vec<String> {
    root.numbered("/proc", "").into_iter().filter_map(|id| root.text(&format!("/proc/{id}/comm"))).collect()
}

fn load(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "load",
        "other load",
        "Whatever else runs takes CPU time, caches and memory bandwidth from the measured program.",
    );
    let Some(activity) = host.activity else { return fact.unknown("/proc/stat cannot be read") };
    let cpus = activity.by_cpu.len().max(1);
    #[expect(clippy::cast_precision_loss, reason = "there are at most some thousand CPUs")]
    let per_cpu = activity.load[0] / cpus as f64;
    let seen = format!("{:.2} over the last minute on {cpus} CPUs", activity.load[0]);
    match per_cpu {
        share if share >= 0.5 => {
            fact.fail(seen).repaired_by("top -b -n 1 | head -20, then end what is not needed")
        }
        share if share >= 0.1 => fact.caution(seen).repaired_by("top -b -n 1 | head -20"),
        _ => fact.pass(seen),
    }
}

fn pressure(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "pressure",
        "waiting for CPU, memory, I/O",
        "Pressure says how much of the last seconds some task had to wait for a resource.",
    );
    let Some(activity) = host.activity.filter(|activity| !activity.pressure.is_empty()) else {
        return fact.unknown("not offered").repaired_by("boot with `psi=1`");
    };
    let shares: Vec<(&str, f64)> = activity
        .pressure
        .iter()
        .map(|(name, seen)| (name.as_str(), seen.some.average_10_s_percent))
        .collect();
    let seen: Vec<String> = shares.iter().map(|(name, share)| format!("{name} {share:.1} %")).collect();
    let worst = shares.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    match worst {
        share if share >= 10.0 => {
            fact.fail(seen.join(", ")).repaired_by("wait, or end what loads the machine")
        }
        share if share >= 1.0 => fact.caution(seen.join(", ")),
        _ => fact.pass(seen.join(", ")),
    }
}

fn interrupts(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "interrupts",
        "placement of interrupts",
        "Device interrupts stop whatever runs on the CPU they arrive at.",
    );
    let Some(text) = host.root.text("/proc/interrupts") else { return fact.unknown("not shown") };
    let by_cpu = device_interrupts(&text);
    let total: u64 = by_cpu.values().fold(0, |sum, count| sum.saturating_add(*count));
    if total == 0 {
        return fact.pass("none from devices");
    }
    let mut busiest: Vec<(u32, u64)> = by_cpu.into_iter().filter(|(_, count)| *count > 0).collect();
    busiest.sort_by_key(|(cpu, count)| (std::cmp::Reverse(*count), *cpu));
    let share = |count: u64| u128::from(count) * 100 / u128::from(total);
    let seen: Vec<String> =
        busiest.iter().take(3).map(|(cpu, count)| format!("CPU {cpu} {} %", share(*count))).collect();
    fact.caution(format!("{total} since boot: {}", seen.join(", ")))
        .repaired_by("for i in /proc/irq/*/smp_affinity_list; do echo HOUSEKEEPING_CPUS > $i; done")
}

/// Counts by CPU over the numbered lines, which are those of devices.
pub(crate) fn device_interrupts(text: &str) -> BTreeMap<u32, u64> {
    let mut lines = text.lines();
    let cpus: Vec<u32> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|name| name.strip_prefix("CPU")?.parse().ok())
        .collect();
    let mut counts = BTreeMap::new();
    for line in lines {
        let Some((number, rest)) = line.split_once(':') else { continue };
        if number.trim().parse::<u32>().is_err() {
            continue;
        }
        for (cpu, count) in cpus.iter().zip(rest.split_whitespace()) {
            let count: u64 = count.parse().unwrap_or(0);
            let sum: &mut u64 = counts.entry(*cpu).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    counts
}

fn balancer(names: &[String]) -> NoiseFact {
    let fact = NoiseFact::new(
        "interrupt-balancer",
        "irqbalance",
        "The balancer moves interrupts between CPUs while runs are measured.",
    );
    if names.iter().any(|name| name == "irqbalance") {
        return fact.caution("running").repaired_by("systemctl stop irqbalance");
    }
    fact.pass("not running")
}

fn timers(root: &HostRoot, names: &[String]) -> NoiseFact {
    let fact = NoiseFact::new(
        "unattended-work",
        "unattended work",
        "Updates, indexing and log rotation start by themselves and load the machine for minutes.",
    );
    let mut found: Vec<String> = SCHEDULERS
        .iter()
        .filter(|known| names.iter().any(|name| name == *known))
        .map(|n| (*n).to_owned())
        .collect();
    let services = names.iter().any(|name| name == "systemd");
    let wanted = ["/etc/systemd/system/timers.target.wants", "/usr/lib/systemd/system/timers.target.wants"];
    let timers: usize = wanted.iter().map(|folder| root.names(folder).len()).sum();
    if services && timers > 0 {
        found.push(format!("{timers} timers of systemd"));
    }
    if found.is_empty() {
        return fact.pass("none seen");
    }
    fact.caution(found.join(", ")).repaired_by("systemctl stop cron.service '*.timer'")
}

fn power(names: &[String]) -> NoiseFact {
    let fact = NoiseFact::new(
        "power-daemons",
        "power and heat daemons",
        "They change clock rates and limits by their own judgement during a run.",
    );
    let found: Vec<&str> =
        POWER_DAEMONS.iter().filter(|known| names.iter().any(|name| name == *known)).copied().collect();
    if found.is_empty() {
        return fact.pass("none running");
    }
    let units: Vec<&str> = found
        .iter()
        .map(|name| if *name == "power-profiles-" { "power-profiles-daemon" } else { *name })
        .collect();
    fact.caution(units.join(", ")).repaired_by(format!("systemctl stop {}", units.join(" ")))
}
