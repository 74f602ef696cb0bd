use std::collections::BTreeSet;

use super::fact::{NoiseFact, Surroundings};
use crate::{CpuTicks, HostRoot};

const CPU_FOLDER: &str = "/sys/devices/system/cpu";

pub(super) fn read(host: &Surroundings<'_>) -> Vec<NoiseFact> {
    vec![
        governor(host.root),
        frequency_driver(host.root),
        turbo(host.root),
        smt(host),
        hybrid(host),
        idle_states(host.root),
        throttling(host.root),
        clock_source(host.root),
        mitigations(host.root),
        steal(host),
    ]
}

/// Distinct contents of one file over all frequency policies.
fn policy_values(root: &HostRoot, file: &str) -> BTreeSet<String> {
    let folder = format!("{CPU_FOLDER}/cpufreq");
    let policies = root.numbered(&folder, "policy").into_iter();
    policies.filter_map(|policy| root.text(&format!("{folder}/policy{policy}/{file}"))).collect()
}

fn joined(values: &BTreeSet<String>) -> String {
    values.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn governor(root: &HostRoot) -> NoiseFact {
    let fact = NoiseFact::new(
        "governor",
        "frequency governor",
        "A governor that follows the load makes the first milliseconds of a run slower than the rest.",
    );
    let governors = policy_values(root, "scaling_governor");
    let repair = "cpupower frequency-set -g performance";
    if governors.is_empty() {
        return fact.unknown("no interface: the firmware or the hypervisor decides");
    }
    if governors.iter().all(|governor| governor == "performance") {
        return fact.pass("performance");
    }
    if governors.contains("powersave")
        && !policy_values(root, "scaling_driver").iter().any(|d| d.ends_with("pstate"))
    {
        return fact.fail(joined(&governors)).repaired_by(repair);
    }
    fact.caution(joined(&governors)).repaired_by(repair)
}

fn frequency_driver(root: &HostRoot) -> NoiseFact {
    let fact = NoiseFact::new(
        "frequency-range",
        "clock rate",
        "As long as the clock rate may move, the same work takes a different time.",
    );
    let drivers = policy_values(root, "scaling_driver");
    if drivers.is_empty() {
        return fact.unknown("no frequency driver is visible");
    }
    let (low, high) = (policy_values(root, "scaling_min_freq"), policy_values(root, "scaling_max_freq"));
    let seen = format!("driver {}, {} to {} kHz", joined(&drivers), joined(&low), joined(&high));
    if low == high && low.len() == 1 {
        return fact.pass(seen);
    }
    fact.caution(seen).repaired_by("cpupower frequency-set -d BASE -u BASE")
}

fn turbo(root: &HostRoot) -> NoiseFact {
    let fact = NoiseFact::new(
        "turbo",
        "turbo, boost",
        "With turbo the clock rate depends on temperature and on how many other cores are busy.",
    );
    let no_turbo = format!("{CPU_FOLDER}/intel_pstate/no_turbo");
    let boost = format!("{CPU_FOLDER}/cpufreq/boost");
    let (on, repair) = match (root.text(&no_turbo), root.text(&boost)) {
        (Some(off), _) => (off == "0", format!("echo 1 > {no_turbo}")),
        (None, Some(on)) => (on == "1", format!("echo 0 > {boost}")),
        (None, None) => return fact.unknown("no interface"),
    };
    if on { fact.caution("on").repaired_by(repair) } else { fact.pass("off") }
}

fn smt(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "smt",
        "hardware threads (SMT)",
        "Two threads of one core share its units: a neighbour can halve the speed.",
    );
    match host.topology {
        None => fact.unknown("the topology cannot be read"),
        Some(topology) if topology.smt => fact
            .caution(format!("{} CPUs on {} cores", topology.online.len(), topology.core_count))
            .repaired_by(format!("echo off > {CPU_FOLDER}/smt/control")),
        Some(_) if crate::capability::is_virtual(host.root) => {
            fact.caution("none shown, but the hypervisor may place CPUs on threads of one core")
        }
        Some(_) => fact.pass("one thread per core"),
    }
}

fn hybrid(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "core-kinds",
        "kinds of cores",
        "On hybrid processors the same program takes longer on an efficient core than on a fast one.",
    );
    let Some(topology) = host.topology else { return fact.unknown("the topology cannot be read") };
    let classes: BTreeSet<u32> = topology.cpus.iter().map(|cpu| cpu.efficiency_class).collect();
    if classes.len() < 2 {
        return fact.pass("one kind");
    }
    let quick: crate::CpuSet =
        topology.cpus.iter().filter(|cpu| cpu.efficiency_class == 0).map(|cpu| cpu.id).collect();
    fact.caution(format!("{} kinds; the fast one is CPUs {quick}", classes.len()))
        .repaired_by(format!("taskset -c {quick} steelyard run ..."))
}

fn idle_states(root: &HostRoot) -> NoiseFact {
    let fact = NoiseFact::new(
        "idle-states",
        "idle states",
        "Waking from a deep idle state takes up to 0.2 ms, which shows at the start of short runs.",
    );
    let folder = format!("{CPU_FOLDER}/cpu0/cpuidle");
    let states: Vec<(String, u64)> = root
        .numbered(&folder, "state")
        .into_iter()
        .filter(|state| root.text(&format!("{folder}/state{state}/disable")).as_deref() != Some("1"))
        .filter_map(|state| {
            let place = format!("{folder}/state{state}");
            Some((root.text(&format!("{place}/name"))?, root.number(&format!("{place}/latency"))?))
        })
        .collect();
    let Some((name, latency_us)) = states.into_iter().max_by_key(|state| state.1) else {
        return fact.unknown("no idle driver is visible");
    };
    let seen = format!("deepest state `{name}` wakes in {latency_us} us");
    // 10 us is the order of a context switch: below it, waking up cannot be told from switching.
    if latency_us <= 10 {
        return fact.pass(seen);
    }
    fact.caution(seen).repaired_by("cpupower idle-set -D 10")
}

fn throttling(root: &HostRoot) -> NoiseFact {
    let fact = NoiseFact::new(
        "thermal-throttling",
        "thermal throttling",
        "A processor that grows too hot lowers its clock rate for everything it executes.",
    );
    match crate::activity::read_throttle_count(root) {
        None => fact.unknown("no counters"),
        Some(0) => fact.pass("never since boot"),
        Some(count) => fact.caution(format!("{count} events since boot")).repaired_by("improve the cooling"),
    }
}

fn clock_source(root: &HostRoot) -> NoiseFact {
    let fact = NoiseFact::new(
        "clock-source",
        "source of time",
        "A clock that needs a trap or a device costs microseconds per reading instead of 20 ns.",
    );
    match root.text("/sys/devices/system/clocksource/clocksource0/current_clocksource") {
        None => fact.unknown("not shown"),
        Some(source) => match source.as_str() {
            "tsc" | "arch_sys_counter" | "timebase" | "tod" => fact.pass(source),
            "kvm-clock" | "hyperv_clocksource_tsc_page" | "xen" => fact.caution(source),
            _ => fact.fail(source).repaired_by("boot with `clocksource=tsc tsc=reliable`"),
        },
    }
}

fn mitigations(root: &HostRoot) -> NoiseFact {
    let fact = NoiseFact::new(
        "mitigations",
        "processor mitigations",
        "Mitigations make system calls and branches dearer, so results differ from hosts without them.",
    );
    let folder = format!("{CPU_FOLDER}/vulnerabilities");
    let active = |name: &String| {
        root.text(&format!("{folder}/{name}")).is_some_and(|text| text.starts_with("Mitigation"))
    };
    let names = root.names(&folder);
    if names.is_empty() {
        return fact.unknown("not shown");
    }
    let active: Vec<String> = names.into_iter().filter(active).collect();
    if active.is_empty() {
        fact.pass("none active")
    } else {
        fact.pass(format!("recorded: {}", active.join(", ")))
    }
}

fn steal(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "steal",
        "time taken by the hypervisor",
        "While the hypervisor runs somebody else, wall time passes and nothing here can see why.",
    );
    let Some(activity) = host.activity else { return fact.unknown("/proc/stat cannot be read") };
    let CpuTicks { user, system, interrupt, idle, steal } = activity.total;
    let busy = user + system + interrupt + steal;
    if busy + idle == 0 {
        return fact.unknown("no CPU time is counted");
    }
    #[expect(clippy::cast_precision_loss, reason = "tick counts of years are exact in a double")]
    let percent = 100.0 * steal as f64 / busy.max(1) as f64;
    let seen = format!("{percent:.2} % of the busy time since boot");
    // 1 % is the bound above which a single run is flagged as stolen from.
    match percent {
        share if share >= 5.0 => fact.fail(seen).repaired_by("use dedicated CPUs or bare metal"),
        share if share >= 1.0 => fact.caution(seen).repaired_by("use dedicated CPUs or bare metal"),
        _ => fact.pass(seen),
    }
}
