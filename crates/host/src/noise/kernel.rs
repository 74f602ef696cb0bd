use super::fact::{NoiseFact, Surroundings, chosen};

pub(super) fn read(host: &Surroundings<'_>) -> Vec<NoiseFact> {
    vec![
        aslr(host),
        autogroup(host),
        timer_migration(host),
        watchdogs(host),
        reserved_cpus(host),
        tickless(host),
        real_time_throttling(host),
        statistics_interval(host),
        perf_sampling(host),
        debugging(host),
        preemption(host),
    ]
}

fn sysctl(host: &Surroundings<'_>, name: &str) -> Option<String> {
    host.root.text(&format!("/proc/sys/{}", name.replace('.', "/")))
}

fn aslr(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "aslr",
        "address randomisation",
        "Each process gets another layout in caches and TLBs, which spreads runs by up to a few percent. Switched \
         off, all runs share one layout, which may be a lucky one: a bias that no repetition shows.",
    );
    match sysctl(host, "kernel.randomize_va_space").as_deref() {
        None => fact.unknown("not shown"),
        Some("0") => fact.pass("off"),
        Some(level) => {
            fact.caution(format!("on (level {level})")).repaired_by("sysctl kernel.randomize_va_space=0")
        }
    }
}

fn autogroup(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "autogroup",
        "autogroup scheduling",
        "Sessions share the CPU equally whatever their niceness, so nice cannot protect a run.",
    );
    match sysctl(host, "kernel.sched_autogroup_enabled").as_deref() {
        None | Some("0") => fact.pass("off"),
        Some(_) => fact.caution("on").repaired_by("sysctl kernel.sched_autogroup_enabled=0"),
    }
}

fn timer_migration(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "timer-migration",
        "migration of timers",
        "Timers of idle CPUs move to busy ones and interrupt the run there.",
    );
    match sysctl(host, "kernel.timer_migration").as_deref() {
        None => fact.unknown("not shown"),
        Some("0") => fact.pass("off"),
        Some(_) => fact.caution("on").repaired_by("sysctl kernel.timer_migration=0"),
    }
}

fn watchdogs(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "watchdogs",
        "lock-up watchdogs",
        "The watchdogs wake every CPU each few seconds, and the hard one occupies a hardware counter.",
    );
    let active: Vec<&str> = [("kernel.nmi_watchdog", "hard"), ("kernel.soft_watchdog", "soft")]
        .into_iter()
        .filter(|(name, _)| sysctl(host, name).as_deref() == Some("1"))
        .map(|(_, kind)| kind)
        .collect();
    if sysctl(host, "kernel.watchdog").is_none() && active.is_empty() {
        return fact.pass("not built in");
    }
    if active.is_empty() {
        return fact.pass("off");
    }
    fact.caution(format!("on: {}", active.join(", "))).repaired_by("sysctl kernel.watchdog=0")
}

fn reserved_cpus(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "isolated-cpus",
        "CPUs kept free",
        "Without CPUs taken from the scheduler's balancing, any process may be placed beside a run.",
    );
    match host.topology {
        None => fact.unknown("the topology cannot be read"),
        Some(topology) if topology.isolated.is_empty() => {
            fact.caution("none").repaired_by("boot with `isolcpus=domain,managed_irq,LIST`")
        }
        Some(topology) => fact.pass(topology.isolated.to_string()),
    }
}

fn tickless(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "periodic-tick",
        "periodic tick",
        "The tick interrupts a busy CPU 100 to 1000 times a second, for some microseconds each.",
    );
    match host.topology {
        None => fact.unknown("the topology cannot be read"),
        Some(topology) if topology.tickless.is_empty() => {
            let rate =
                host.config.value("HZ").map_or_else(String::new, |rate| format!(", {rate} times a second"));
            fact.caution(format!("on every busy CPU{rate}"))
                .repaired_by("boot with `nohz_full=LIST rcu_nocbs=LIST` (needs CONFIG_NO_HZ_FULL)")
        }
        Some(topology) => fact.pass(format!("off on CPUs {}", topology.tickless)),
    }
}

fn real_time_throttling(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "real-time-throttling",
        "real-time throttling",
        "Runs in a real-time class lose the CPU for the rest of each second once their share is used.",
    );
    match sysctl(host, "kernel.sched_rt_runtime_us").as_deref() {
        None => fact.unknown("not shown"),
        Some("-1") => fact.pass("off"),
        Some(runtime) => {
            fact.pass(format!("{runtime} us of each second; ordinary classes are not concerned"))
        }
    }
}

fn statistics_interval(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "statistics-interval",
        "memory statistics",
        "Each CPU folds its memory counters once per interval, a small but regular interruption.",
    );
    match sysctl(host, "vm.stat_interval").and_then(|text| text.parse::<u64>().ok()) {
        None => fact.unknown("not shown"),
        Some(seconds) if seconds >= 10 => fact.pass(format!("every {seconds} s")),
        Some(seconds) => {
            fact.caution(format!("every {seconds} s")).repaired_by("sysctl vm.stat_interval=120")
        }
    }
}

fn perf_sampling(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "perf-sampling",
        "rate of perf sampling",
        "A profiler elsewhere may interrupt every CPU this often.",
    );
    match sysctl(host, "kernel.perf_event_max_sample_rate").and_then(|text| text.parse::<u64>().ok()) {
        None => fact.unknown("not shown"),
        Some(rate) if rate <= 1 => fact.pass(format!("{rate} per second")),
        Some(rate) => fact
            .caution(format!("up to {rate} per second"))
            .repaired_by("sysctl kernel.perf_event_max_sample_rate=1"),
    }
}

fn debugging(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "kernel-debugging",
        "debugging in the kernel",
        "Checks built into a debugging kernel slow system calls and memory down several times.",
    );
    let heavy = [
        "KASAN",
        "KMSAN",
        "KCSAN",
        "PROVE_LOCKING",
        "LOCKDEP",
        "DEBUG_PAGEALLOC",
        "SLUB_DEBUG_ON",
        "DEBUG_KMEMLEAK",
        "DEBUG_OBJECTS",
        "UBSAN_TRAP",
        "GCOV_KERNEL",
    ];
    if host.config.source().is_none() {
        return fact.unknown("the kernel's options cannot be read");
    }
    let found: Vec<&str> = heavy.into_iter().filter(|option| host.config.has(option) == Some(true)).collect();
    if found.is_empty() {
        return fact.pass("none that costs time");
    }
    fact.fail(found.join(", ")).repaired_by("boot a kernel without these options")
}

fn preemption(host: &Surroundings<'_>) -> NoiseFact {
    let fact = NoiseFact::new(
        "preemption",
        "preemption model",
        "The model decides how soon the kernel's own work gives way; results compare within one model only.",
    );
    let dynamic = host.root.text("/sys/kernel/debug/sched/preempt").map(|text| {
        text.split_whitespace()
            .find_map(|word| word.strip_prefix('(')?.strip_suffix(')'))
            .unwrap_or(chosen(&text))
            .to_owned()
    });
    let built = [
        ("PREEMPT_RT", "real-time"),
        ("PREEMPT", "full"),
        ("PREEMPT_LAZY", "lazy"),
        ("PREEMPT_VOLUNTARY", "voluntary"),
        ("PREEMPT_NONE", "none"),
    ];
    let model = dynamic.or_else(|| {
        let known = built.into_iter().find(|(option, _)| host.config.has(option) == Some(true));
        known.map(|(_, model)| model.to_owned())
    });
    match model {
        Some(model) => fact.pass(format!("recorded: {model}")),
        None => fact.unknown("not shown"),
    }
}
