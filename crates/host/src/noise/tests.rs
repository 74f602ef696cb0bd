use super::*;
use crate::report::tests::tree;
use crate::{read_activity, read_topology};

fn judged(files: &[(&str, &str)], name: &str) -> NoiseFact {
    let folder = tree(files);
    let root = HostRoot::at(folder.path());
    let topology = read_topology(&root).ok();
    let activity = read_activity(&root).ok();
    let facts = read_noise(&root, topology.as_ref(), activity.as_ref());
    facts.into_iter().find(|fact| fact.name == name).unwrap()
}

#[test]
fn an_empty_tree_gives_every_fact_once_and_no_failure() {
    let folder = tree(&[]);
    let facts = read_noise(&HostRoot::at(folder.path()), None, None);
    let names: std::collections::BTreeSet<&str> = facts.iter().map(|fact| fact.name.as_str()).collect();
    assert_eq!(names.len(), facts.len());
    for fact in facts {
        assert!(matches!(fact.verdict, Verdict::Pass | Verdict::Unknown), "{}", fact.name);
        assert!(!fact.seen.is_empty() && fact.why.ends_with('.'), "{}", fact.name);
    }
}

#[test]
fn each_setting_is_judged_by_its_value() {
    let cases: &[(&str, &str, &str, Verdict)] = &[
        ("aslr", "proc/sys/kernel/randomize_va_space", "2", Verdict::Caution),
        ("aslr", "proc/sys/kernel/randomize_va_space", "0", Verdict::Pass),
        (
            "transparent-huge-pages",
            "sys/kernel/mm/transparent_hugepage/enabled",
            "[always] madvise never",
            Verdict::Caution,
        ),
        (
            "transparent-huge-pages",
            "sys/kernel/mm/transparent_hugepage/enabled",
            "always [madvise] never",
            Verdict::Pass,
        ),
        ("same-page-merging", "sys/kernel/mm/ksm/run", "1", Verdict::Caution),
        ("governor", "sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance", Verdict::Pass),
        (
            "governor",
            "sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
            "schedutil",
            Verdict::Caution,
        ),
        ("governor", "sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave", Verdict::Fail),
        ("turbo", "sys/devices/system/cpu/intel_pstate/no_turbo", "0", Verdict::Caution),
        ("turbo", "sys/devices/system/cpu/cpufreq/boost", "0", Verdict::Pass),
        (
            "clock-source",
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "hpet",
            Verdict::Fail,
        ),
        ("swap", "proc/swaps", "Filename Type Size Used Priority\n/x file 2048 0 -2\n", Verdict::Caution),
        ("swap", "proc/swaps", "Filename Type Size Used Priority\n/x file 2048 1024 -2\n", Verdict::Fail),
        ("watchdogs", "proc/sys/kernel/nmi_watchdog", "1", Verdict::Caution),
        ("autogroup", "proc/sys/kernel/sched_autogroup_enabled", "1", Verdict::Caution),
        ("access-monitor", "sys/kernel/mm/damon/admin/kdamonds/0/state", "on", Verdict::Caution),
        (
            "thermal-throttling",
            "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
            "4",
            Verdict::Caution,
        ),
        ("interrupt-balancer", "proc/77/comm", "irqbalance", Verdict::Caution),
        ("unattended-work", "proc/77/comm", "cron", Verdict::Caution),
        ("pressure", "proc/stat", "cpu 1 1 1 1\ncpu0 1 1 1 1", Verdict::Unknown),
        ("steal", "proc/stat", "cpu 90 0 0 1000 0 0 0 10\ncpu0 90 0 0 1000 0 0 0 10", Verdict::Fail),
    ];
    for (name, path, content, verdict) in cases {
        let fact = judged(&[(path, content)], name);
        assert_eq!(fact.verdict, *verdict, "{name} with `{content}`: {}", fact.seen);
        let needs_repair = matches!(verdict, Verdict::Caution | Verdict::Fail);
        assert!(!needs_repair || fact.repair.is_some(), "{name} names no repair");
    }
}

#[test]
fn load_is_judged_per_cpu() {
    let stat = ("proc/stat", "cpu 1 1 1 9\ncpu0 1 1 1 9\ncpu1 1 1 1 9");
    assert_eq!(judged(&[stat, ("proc/loadavg", "4.05 2.88 1.24 3/113 9")], "load").verdict, Verdict::Fail);
    assert_eq!(judged(&[stat, ("proc/loadavg", "0.3 2.88 1.24 3/113 9")], "load").verdict, Verdict::Caution);
    assert_eq!(judged(&[stat, ("proc/loadavg", "0.01 2.88 1.24 3/113 9")], "load").verdict, Verdict::Pass);
}

#[test]
fn interrupts_name_the_cpus_they_hit() {
    let text = "      CPU0   CPU1\n 24: 1 0 chip a\n 36: 0 99 chip disk\nLOC: 900 900 timer\nbroken\n";
    let fact = judged(&[("proc/interrupts", text)], "interrupts");
    assert_eq!(fact.seen, "100 since boot: CPU 1 99 %, CPU 0 1 %");
}
