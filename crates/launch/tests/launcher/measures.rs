//! What is measured is true.

use steelyard_model::{Flag, Metric, RunOutcome, RunSpec, RunStatus, Source};

use super::Case;
use super::client::{Serve, launcher, spec, time_scale};
use super::layout::Layout;
use super::programs;

pub(crate) const CASES: &[Case] = &[
    ("measure::every_metric_is_there_or_says_why_not", every_metric_is_there),
    ("measure::stamp_sources_agree_with_the_program", stamp_sources_agree),
    ("measure::a_program_ends_with_its_last_thread", a_program_ends_with_its_last_thread),
    ("measure::cpu_time_counts_the_tree", cpu_time_counts_the_tree),
    ("measure::cpu_time_counts_every_fork", cpu_time_counts_every_fork),
    ("measure::memory_is_that_of_the_tree", memory_is_that_of_the_tree),
    ("measure::files_stay_in_memory_between_runs", files_stay_in_memory),
    ("measure::memory_does_not_depend_on_the_caller", memory_does_not_depend_on_the_caller),
    ("measure::counters_are_counted_or_say_why_not", counters_are_counted),
    ("measure::waiting_is_flagged", waiting_is_flagged),
    ("measure::figures_that_belong_together_agree", figures_that_belong_together_agree),
    ("measure::memory_is_what_the_program_touched", memory_is_what_the_program_touched),
    ("measure::a_competitor_on_the_same_cpu_is_not_felt", a_competitor_is_not_felt),
];

/// Of the file system that a guest begins with. SOURCE: linux/magic.h
const RAMFS_MAGIC: nix::sys::statfs::FsType = nix::sys::statfs::FsType(0x8584_58f6);

const METRICS: [Metric; 25] = [
    Metric::WallNs,
    Metric::CpuNs,
    Metric::CpuUserNs,
    Metric::CpuSystemNs,
    Metric::CpuRusageNs,
    Metric::CpuCgroupNs,
    Metric::PeakMemoryBytes,
    Metric::PeakResidentBytes,
    Metric::VoluntarySwitches,
    Metric::InvoluntarySwitches,
    Metric::Migrations,
    Metric::MinorFaults,
    Metric::MajorFaults,
    Metric::ReadBytes,
    Metric::WrittenBytes,
    Metric::RunDelayNs,
    Metric::CpuPressureNs,
    Metric::MemoryPressureNs,
    Metric::IoPressureNs,
    Metric::ThrottledNs,
    Metric::StealNs,
    Metric::LaunchNs,
    Metric::ReapNs,
    Metric::TotalNs,
    Metric::OutputBytes,
];

fn every_metric_is_there(layout: Layout) {
    let outcome = Serve::start(layout).run(&spec(&["burn", "5"]));
    for metric in METRICS {
        let quantity = outcome.quantities.get(&metric).unwrap_or_else(|| panic!("no {metric:?}"));
        assert_eq!(quantity.value.is_some(), quantity.missing.is_none(), "{metric:?}");
        assert!(quantity.granularity >= 1, "{metric:?}");
    }
    if layout.has_groups() {
        assert!(outcome.value(Metric::CpuCgroupNs).is_some());
        assert!(outcome.value(Metric::PeakMemoryBytes).is_some());
    }
}

fn own(outcome: &RunOutcome, metric: &str) -> f64 {
    outcome.own.iter().find(|one| one.metric == metric).unwrap().value
}

fn busy_spec(duration_ms: &str) -> RunSpec {
    let mut spec = spec(&["burn", duration_ms]);
    spec.own_metrics = true;
    spec.placement.maximal_weight = true;
    spec
}

/// Smallest error against the program's own clock: other load only adds to it, and the start of the
/// language's run-time library is inside.
#[expect(clippy::cast_precision_loss, reason = "milliseconds are compared")]
fn smallest_error(serve: &mut Serve, source: Source) -> f64 {
    let mut spec = busy_spec("20");
    spec.iterations = 8;
    spec.stamp_source = Some(source);
    let outcomes = serve.batch(&spec);
    outcomes
        .iter()
        .map(|outcome| {
            assert_eq!(outcome.mechanism.stamps, source);
            assert_eq!(outcome.quantities[&Metric::WallNs].source, source);
            outcome.value(Metric::WallNs).unwrap() as f64 - own(outcome, "wall")
        })
        .fold(f64::INFINITY, f64::min)
}

/// Best one first. Only a kernel without tracefs has no tracepoints for the superuser.
fn stamp_sources() -> &'static [Source] {
    const ALL: [Source; 4] = [Source::Tracepoint, Source::PerfRecord, Source::Ptrace, Source::SharedMemory];
    let has_tracefs = std::fs::read_to_string("/proc/filesystems")
        .is_ok_and(|text| text.lines().any(|line| line.ends_with("\ttracefs")));
    if has_tracefs { &ALL } else { &ALL[1..] }
}

fn stamp_sources_agree(layout: Layout) {
    let scale = f64::from(time_scale());
    let mut serve = Serve::start(layout);
    let sources = stamp_sources();
    let mut best = vec![f64::INFINITY; sources.len()];
    // More rounds only where something else keeps the CPUs busy.
    for _ in 0..8 {
        for (best, source) in best.iter_mut().zip(sources.iter().copied()) {
            *best = best.min(smallest_error(&mut serve, source));
        }
        let range =
            best.iter().copied().fold(0.0, f64::max) - best.iter().copied().fold(f64::INFINITY, f64::min);
        if range < 1_000_000.0 * scale {
            assert!(best.iter().all(|error| *error >= 0.0), "{best:?}");
            return;
        }
    }
    panic!("more than {scale} ms apart: {best:?}");
}

fn a_program_ends_with_its_last_thread(layout: Layout) {
    let mut spec = spec(&["outlive", "150"]);
    let mut serve = Serve::start(layout);
    for source in stamp_sources().iter().copied() {
        spec.stamp_source = Some(source);
        let wall = serve.run(&spec).value(Metric::WallNs).unwrap();
        assert!((150_000_000..1_000_000_000).contains(&wall), "{source:?}: {wall}");
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds are compared")]
fn cpu_time_counts_the_tree(layout: Layout) {
    let outcome = Serve::start(layout).run(&spec(&["tree", "80"]));
    let used = outcome.value(Metric::CpuNs).unwrap() as f64;
    let scale = f64::from(time_scale());
    assert!((80e6..80e6 + 30e6 * scale).contains(&used), "{used}");
    for metric in [Metric::CpuRusageNs, Metric::CpuCgroupNs] {
        if let Some(other) = outcome.value(metric) {
            assert!((other as f64 - used).abs() < 8e6 * scale, "{metric:?}: {other} against {used}");
        }
    }
}

/// Against the kernel's own account of a tree whose processes are all waited for, which misses the last steps of
/// each.
#[expect(clippy::cast_precision_loss, reason = "milliseconds are compared")]
fn cpu_time_counts_every_fork(layout: Layout) {
    let mut spec = spec(&["fork-often", "400"]);
    spec.own_metrics = true;
    let outcome = Serve::start(layout).run(&spec);
    let (used, truth) = (outcome.value(Metric::CpuNs).unwrap() as f64, own(&outcome, "cpu"));
    let grain = 2e6 * f64::from(time_scale());
    assert!((0.95 * truth - grain..1.2 * truth + grain).contains(&used), "{used} against {truth}");
    assert!(!outcome.flags.contains(&Flag::CpuSourcesDisagree), "{outcome:?}");
}

/// Identities that hold of every run, also beside twice as much load as there are CPUs.
fn figures_that_belong_together_agree(layout: Layout) {
    let cpus = u64::try_from(std::thread::available_parallelism().unwrap().get()).unwrap();
    let busy = programs::command(&["burn", "60000"]);
    let load: Vec<_> = (0..2 * cpus)
        .map(|_| std::process::Command::new(&busy[0]).args(&busy[1..]).spawn().unwrap())
        .collect();
    let has_swap = std::fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1);
    let mut serve = Serve::start(layout);
    // Name, threads that exist at once at most, launches.
    for (words, threads, launches) in [
        (&["exit", "0"][..], 1, 40),
        (&["burn", "3"], 1, 20),
        (&["sleep", "2"], 1, 20),
        (&["tree", "8"], 2, 10),
    ] {
        let mut spec = spec(words);
        spec.iterations = launches;
        for outcome in serve.batch(&spec) {
            let value = |metric| outcome.value(metric).unwrap_or(0);
            let (wall, cpu) = (value(Metric::WallNs), value(Metric::CpuNs));
            assert_eq!(value(Metric::CpuUserNs) + value(Metric::CpuSystemNs), cpu, "{outcome:?}");
            // A charge by a group has its own grain.
            let grain = outcome.quantities[&Metric::CpuNs].granularity;
            assert!(value(Metric::RunDelayNs) + cpu <= wall * threads + grain, "{words:?}: {outcome:?}");
            assert!(cpu <= wall * threads.min(cpus) + grain, "{words:?}: {outcome:?}");
            assert!(has_swap || !outcome.flags.contains(&Flag::Swapped), "{outcome:?}");
        }
    }
    for mut child in load {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

const ALLOCATED_BYTES: u64 = 64 << 20;
/// More than any child inherits from the launcher: below that the resident peak is not the program's own.
const SMALL_BYTES: u64 = 8 << 20;

fn allocating_spec() -> RunSpec {
    spec(&["allocate", &ALLOCATED_BYTES.to_string()])
}

fn memory_is_that_of_the_tree(layout: Layout) {
    let mut serve = Serve::start(layout);
    let small = serve.run(&spec(&["allocate", &SMALL_BYTES.to_string()]));
    let large = serve.run(&allocating_spec());
    for metric in [Metric::PeakMemoryBytes, Metric::PeakResidentBytes] {
        let (Some(small), Some(large)) = (small.value(metric), large.value(metric)) else {
            assert!(!layout.has_groups(), "{metric:?} is missing");
            continue;
        };
        let grown = large - small;
        let tolerance = (512 << 10) + ALLOCATED_BYTES / 100;
        assert!(grown.abs_diff(ALLOCATED_BYTES - SMALL_BYTES) <= tolerance, "{metric:?}: {grown}");
    }
    // The next run does not inherit the peak of the one before.
    let after = serve.run(&spec(&["exit", "0"]));
    if let Some(peak) = after.value(Metric::PeakMemoryBytes) {
        assert!(peak < 8 << 20, "{peak}");
    }
}

/// Against the truth, not against another measurement: the pages that the program touched. What it
/// has beside them (its own image, page tables, kernel stacks) is below half a megabyte.
fn memory_is_what_the_program_touched(layout: Layout) {
    let mut serve = Serve::start(layout);
    for allocated in [1 << 20, 16 << 20, ALLOCATED_BYTES, 200 << 20] {
        let mut spec = spec(&["allocate", &allocated.to_string()]);
        spec.iterations = 3;
        for outcome in serve.batch(&spec) {
            let Some(peak) = outcome.value(Metric::PeakMemoryBytes) else {
                assert!(!layout.has_groups(), "the peak is missing");
                continue;
            };
            let step = outcome.quantities[&Metric::PeakMemoryBytes].granularity;
            let tolerance = allocated / 100 + (512 << 10);
            let range = allocated - step..=allocated + tolerance + step;
            assert!(range.contains(&peak), "{peak} for {allocated}, step {step}");
        }
    }
}

/// What a program has read is in memory at its next run, and is no part of its memory there, unless it has to make
/// room.
fn files_stay_in_memory(layout: Layout) {
    const FILE_BYTES: usize = 16 << 20;
    let mut file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
    std::io::Write::write_all(&mut file, &vec![7; FILE_BYTES]).unwrap();
    file.as_file().sync_all().unwrap();
    let kind = nix::sys::statfs::fstatfs(&file).unwrap().filesystem_type();
    if [nix::sys::statfs::TMPFS_MAGIC, RAMFS_MAGIC].contains(&kind) {
        println!("skipped: needs `/var/tmp` on a disk");
        return;
    }
    let mut serve = Serve::start(layout);
    let mut spec = spec(&["map-file", &file.path().to_string_lossy()]);
    spec.iterations = 4;
    for limit_bytes in [None, Some(64 << 20)] {
        let advice = nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED;
        nix::fcntl::posix_fadvise(file.as_file(), 0, 0, advice).unwrap();
        spec.limits.memory_bytes = limit_bytes;
        let outcomes = serve.batch(&spec);
        assert!(outcomes[0].value(Metric::MajorFaults).unwrap() > 0, "{:?}", outcomes[0]);
        for outcome in &outcomes[1..] {
            assert_eq!(outcome.value(Metric::MajorFaults), Some(0), "{outcome:?}");
            if let Some(peak) = outcome.value(Metric::PeakMemoryBytes) {
                assert!(peak < FILE_BYTES as u64 / 4, "{peak}");
            }
        }
    }
    if layout.has_groups() {
        // Beside them it has not room enough.
        spec.command = programs::command(&["allocate", &(12 << 20).to_string()]);
        spec.limits.memory_bytes = Some(20 << 20);
        for outcome in serve.batch(&spec) {
            let peak = outcome.value(Metric::PeakMemoryBytes).unwrap();
            assert!((12 << 20..14 << 20).contains(&peak), "{peak}");
        }
        let mut bomb = allocating_spec();
        bomb.limits.memory_bytes = Some(20 << 20);
        let outcome = serve.run(&bomb);
        assert_eq!(outcome.status, RunStatus::OutOfMemory, "{outcome:?}");
        assert_eq!(outcome.value(Metric::PeakMemoryBytes), Some(20 << 20));
    }
}

fn memory_does_not_depend_on_the_caller(layout: Layout) {
    let small = Serve::start(layout).run(&allocating_spec());
    let mut burden = vec![0_u8; 512 << 20];
    for byte in burden.iter_mut().step_by(4096) {
        *byte = 1;
    }
    let large = Serve::from(launcher(layout, "serve")).run(&allocating_spec());
    assert_eq!(burden.iter().step_by(4096).map(|byte| u64::from(*byte)).sum::<u64>(), (512 << 20) / 4096);
    for metric in [Metric::PeakMemoryBytes, Metric::PeakResidentBytes] {
        if let (Some(small), Some(large)) = (small.value(metric), large.value(metric)) {
            let tolerance = (512 << 10) + small / 100;
            assert!(small.abs_diff(large) <= tolerance, "{metric:?}: {small} against {large}");
        }
    }
}

fn counters_are_counted(layout: Layout) {
    let mut spec = spec(&["allocate", "8388608"]);
    spec.counters = vec!["page-faults".into(), "context-switches".into(), "instructions".into()];
    let outcome = Serve::start(layout).run(&spec);
    assert_eq!(outcome.counters.len(), 3);
    for (name, quantity) in &outcome.counters {
        assert_eq!(quantity.value.is_some(), quantity.missing.is_none(), "{name}");
    }
    if let Some(faults) = outcome.counters["page-faults"].value {
        assert!(faults >= 2, "{faults}");
        assert!(outcome.value(Metric::MinorFaults).unwrap() >= 2);
    }
}

/// Ends a program of the test with the test.
struct Competitor(std::process::Child);

impl Drop for Competitor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The weight of the run's group is the largest there is: a program that never sleeps, pinned to the
/// same CPU, takes less than 0.2 % of its time. SOURCE: the aim of the project.
fn a_competitor_is_not_felt(layout: Layout) {
    if !layout.has_groups() {
        return;
    }
    let mut spec = busy_spec("50");
    spec.placement.cpus = Some(vec![0]);
    spec.iterations = 12;
    let mut serve = Serve::start(layout);
    let command = programs::command(&["burn", "600000"]);
    let child = std::process::Command::new(&command[0]).args(&command[1..]).spawn().unwrap();
    let competitor = Competitor(child);
    pin(&competitor.0, 0);
    let limit = 0.002 * f64::from(time_scale());
    let mut medians = Vec::new();
    // More rounds only where something else of the same weight wants this CPU.
    for _ in 0..8 {
        let outcomes = serve.batch(&spec);
        let mut felt: Vec<f64> = outcomes.iter().map(waited_ratio).collect();
        felt.sort_by(f64::total_cmp);
        medians.push(felt[felt.len() / 2]);
        if medians.last().is_some_and(|median| *median < limit) {
            return;
        }
    }
    panic!("{medians:?}");
}

#[expect(clippy::cast_precision_loss, reason = "a ratio is compared")]
fn waited_ratio(outcome: &RunOutcome) -> f64 {
    let value = |metric| outcome.value(metric).unwrap() as f64;
    value(Metric::RunDelayNs) / value(Metric::WallNs)
}

fn pin(child: &std::process::Child, cpu: usize) {
    let mut set = nix::sched::CpuSet::new();
    set.set(cpu).unwrap();
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sched::sched_setaffinity(pid, &set).unwrap();
}

/// Two programs on one CPU: at least one has to wait.
fn waiting_is_flagged(layout: Layout) {
    let mut spec = busy_spec("100");
    spec.placement.maximal_weight = false;
    spec.placement.cpus = Some(vec![0]);
    let (mut first, mut second) = (Serve::start(layout), Serve::start(layout));
    first.prepare(&spec);
    second.prepare(&spec);
    first.send(&steelyard_model::Request::Go);
    second.send(&steelyard_model::Request::Go);
    for outcome in [first.outcomes().remove(0), second.outcomes().remove(0)] {
        let waited = outcome.value(Metric::RunDelayNs).unwrap();
        assert!(outcome.flags.contains(&Flag::Preempted), "{waited}: {:?}", outcome.flags);
        if let Some(pressure) = outcome.value(Metric::CpuPressureNs) {
            // The kernel counts pressure at switches and ticks, which come late where all is emulated.
            let apart_ns = 5_000_000 * u64::from(time_scale().min(4));
            assert!(pressure.abs_diff(waited) < apart_ns, "{pressure} against {waited}");
        }
    }
}
