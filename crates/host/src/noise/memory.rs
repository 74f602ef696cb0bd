use super::fact::{NoiseFact, Surroundings, chosen};
use crate::HostRoot;

pub(super) fn read(host: &Surroundings<'_>) -> Vec<NoiseFact> {
    vec![
        huge_pages(host.root),
        page_sharing(host.root),
        numa_balancing(host),
        swap(host.root),
        compaction(host.root),
        access_monitor(host.root),
        page_reporting(host.root),
        overcommit(host.root),
    ]
}

fn huge_pages(root: &HostRoot) -> NoiseFact {
    let fact = NoiseFact::new(
        "transparent-huge-pages",
        "transparent huge pages",
        "Whether a run gets huge pages depends on how fragmented memory is at that moment.",
    );
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    match root.text(path).as_deref().map(chosen) {
        None => fact.pass("not built in"),
        Some("always") => fact.caution("always").repaired_by(format!("echo madvise > {path}")),
        Some(mode) => fact.pass(mode),
    }
}

fn page_sharing(root: &HostRoot) -> NoiseFact {
    let fact = NoiseFact::new(
        "same-page-merging",
        "merging of equal pages (KSM)",
        "The merging daemon uses CPU time and makes later writes fault.",
    );
    match root.text("/sys/kernel/mm/ksm/run").as_deref() {
        None => fact.pass("not built in"),
        Some("1") => fact.caution("on").repaired_by("echo 0 > /sys/kernel/mm/ksm/run"),
        Some(_) => fact.pass("off"),
    }
}

fn numa_balancing(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "numa-balancing",
        "balancing of memory nodes",
        "Balancing unmaps pages to see who uses them, which costs faults, and moves memory during a run.",
    );
    let nodes = host.topology.map_or(1, |topology| topology.memory_nodes.len());
    match host.root.text("/proc/sys/kernel/numa_balancing").as_deref() {
        None => fact.pass("not built in"),
        Some("0") => fact.pass("off"),
        Some(_) if nodes < 2 => fact.pass("on, but there is one node"),
        Some(_) => fact.caution("on").repaired_by("sysctl kernel.numa_balancing=0"),
    }
}

fn swap(root: &HostRoot) -> NoiseFact {
    let fact =
        NoiseFact::new("swap", "swap", "A page that has to be read back stops the run for milliseconds.");
    let Some(text) = root.text("/proc/swaps") else { return fact.unknown("not shown") };
    // SOURCE: proc_swaps(5): a header, then name, type, size, used, priority per line.
    let used: Vec<u64> =
        text.lines().skip(1).filter_map(|line| line.split_whitespace().rev().nth(1)?.parse().ok()).collect();
    match (used.len(), used.iter().fold(0u64, |sum, kib| sum.saturating_add(*kib))) {
        (0, _) => fact.pass("none"),
        (_, 0) => fact.caution("on, unused").repaired_by("swapoff -a"),
        (_, kib) => fact.fail(format!("{} MiB in use", kib / 1024)).repaired_by("swapoff -a"),
    }
}

fn compaction(root: &HostRoot) -> NoiseFact {
    let fact = NoiseFact::new(
        "compaction",
        "compaction ahead of need",
        "The kernel moves pages in the background to build huge ones, using CPU and caches.",
    );
    match root.number::<u64>("/proc/sys/vm/compaction_proactiveness") {
        None => fact.pass("not built in"),
        Some(0) => fact.pass("off"),
        Some(level) => {
            fact.caution(format!("level {level} of 100")).repaired_by("sysctl vm.compaction_proactiveness=0")
        }
    }
}

fn access_monitor(root: &HostRoot) -> NoiseFact {
    let fact = NoiseFact::new(
        "access-monitor",
        "memory access monitor (DAMON)",
        "A scheme that pages out idle memory makes the next touch of it fault.",
    );
    let folder = "/sys/kernel/mm/damon/admin/kdamonds";
    if !root.exists(folder) {
        return fact.pass("not built in");
    }
    let daemons = root.numbered(folder, "");
    let running: Vec<u32> = daemons
        .into_iter()
        .filter(|number| root.text(&format!("{folder}/{number}/state")).as_deref() == Some("on"))
        .collect();
    let Some(first) = running.first() else { return fact.pass("off") };
    let actions: Vec<String> =
        running.iter().flat_map(|daemon| actions(root, &format!("{folder}/{daemon}"))).collect();
    let seen =
        if actions.is_empty() { "on".to_owned() } else { format!("on with action {}", actions.join(", ")) };
    fact.caution(seen).repaired_by(format!("echo off > {folder}/{first}/state"))
}

fn actions(root: &HostRoot, daemon: &str) -> Vec<String> {
    let contexts = format!("{daemon}/contexts");
    root.numbered(&contexts, "")
        .into_iter()
        .flat_map(|context| {
            let schemes = format!("{contexts}/{context}/schemes");
            let numbers = root.numbered(&schemes, "").into_iter();
            numbers.filter_map(|scheme| root.text(&format!("{schemes}/{scheme}/action"))).collect::<Vec<_>>()
        })
        .collect()
}

fn page_reporting(root: &HostRoot) -> NoiseFact {
    let fact = NoiseFact::new(
        "free-page-reporting",
        "free page reporting",
        "Free memory is given back to the hypervisor, and its next use costs a fault outside our sight.",
    );
    let reporting = root.text("/proc/interrupts").is_some_and(|text| text.contains("reporting_vq"));
    match (root.text("/sys/module/page_reporting/parameters/page_reporting_order"), reporting) {
        (Some(order), true) => fact
            .caution(format!("on, in blocks of 2^{order} pages"))
            .repaired_by("switch free page reporting off in the balloon device of the virtual machine"),
        _ => fact.pass("not in use"),
    }
}

fn overcommit(root: &HostRoot) -> NoiseFact {
    let fact = NoiseFact::new(
        "overcommit",
        "promised memory",
        "Where more memory is promised than exists, a run can be killed for what others use.",
    );
    let (Some(total), Some(available)) = (
        crate::fingerprint::memory_bytes(root, "MemTotal"),
        crate::fingerprint::memory_bytes(root, "MemAvailable"),
    ) else {
        return fact.unknown("/proc/meminfo cannot be read");
    };
    let mode = root.text("/proc/sys/vm/overcommit_memory").unwrap_or_else(|| "?".to_owned());
    let percent = 100 * u128::from(available) / u128::from(total.max(1));
    let seen = format!("mode {mode}, {percent} % of the memory is free");
    if percent < 10 {
        fact.caution(seen).repaired_by("end programs that hold memory")
    } else {
        fact.pass(seen)
    }
}
