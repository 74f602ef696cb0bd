//! The readings of a run become its record.

use std::collections::BTreeMap;

use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use steelyard_model::{
    Flag, Isolation, Mechanism, Metric, OUTCOME_SCHEMA, Quantity, RunOutcome, RunStatus, Source,
};

use super::armed::{Armed, Counters};
use super::batch::Batch;
use super::cpu_time::add_cpu;
use super::evidence::{Evidence, count};
use super::stamps::Interval;
use super::streams::REPORT_BYTES;
use super::verdict::{Cause, End, judge};
use crate::clock::{monotonic_ns, utc_ns};
use crate::own_metrics;
use crate::perf::Scope;

/// Sources of CPU time may differ by this [ns], and by one part in [`TOLERANCE_RATIO`].
const TOLERANCE_NS: u64 = 1_000_000;
const TOLERANCE_RATIO: u64 = 100;
/// A wait longer than one part in this of the wall time is remarked.
const REMARK_RATIO: u64 = 100;
const SECTOR_BYTES: u64 = 512;

/// One iteration's result.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The record.
    pub outcome: RunOutcome,
    /// Error number of a failed `execve`.
    pub exec_errno: Option<i32>,
}

/// A run that was not executed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) message: Option<String>,
    pub(super) exec_errno: Option<i32>,
    pub(super) is_cancelled: bool,
    pub(super) begin_ns: u64,
    pub(super) iteration: u32,
}

/// The record of a run that was not executed.
pub(super) fn failed(batch: &Batch, cgroup: &'static str, failed: Failed) -> Report {
    let mut outcome = blank(batch, failed.iteration);
    outcome.status = if failed.is_cancelled { RunStatus::Interrupted } else { RunStatus::LauncherFailed };
    outcome.message =
        failed.message.or_else(|| failed.is_cancelled.then(|| "ended before its gate opened".into()));
    cgroup.clone_into(&mut outcome.mechanism.cgroup);
    let total_ns = monotonic_ns().saturating_sub(failed.begin_ns);
    outcome.quantities.insert(Metric::TotalNs, Quantity::measured(total_ns, Source::MonotonicClock, 1));
    Report { outcome, exec_errno: failed.exec_errno }
}

fn blank(batch: &Batch, iteration: u32) -> RunOutcome {
    RunOutcome {
        schema: OUTCOME_SCHEMA.to_owned(),
        id: batch.spec.id.clone(),
        iteration,
        status: RunStatus::Completed,
        exit_code: None,
        signal: None,
        limit: None,
        message: None,
        start_ns: None,
        end_ns: None,
        start_utc_ns: None,
        quantities: BTreeMap::new(),
        counters: BTreeMap::new(),
        own: Vec::new(),
        standard_output: None,
        standard_error: None,
        flags: Vec::new(),
        mechanism: Mechanism {
            cgroup: String::new(),
            stamps: Source::SharedMemory,
            isolation: match batch.spec.isolation {
                Isolation::Sandbox(_) => "sandbox".to_owned(),
                _ => "bare".to_owned(),
            },
            degraded: batch.degraded.clone(),
        },
    }
}

/// The record of a run that was executed.
pub(super) fn outcome(mut armed: Armed, counters: &Counters, evidence: &Evidence, batch: &Batch) -> Report {
    let mut outcome = blank(batch, armed.iteration);
    evidence.cgroup.clone_into(&mut outcome.mechanism.cgroup);
    outcome.mechanism.stamps = evidence.stamps;
    outcome.mechanism.degraded.append(&mut armed.degraded);
    outcome.quantities = quantities(&armed, counters, evidence);
    outcome.counters =
        counters.named.iter().map(|(name, counter)| (name.clone(), counter.quantity())).collect();
    note_scope(counters, &mut outcome.mechanism.degraded);
    let (report, is_cut) = armed.streams.own_report();
    let (own, malformed) = own_metrics::parse(&report);
    outcome.own = own;
    if malformed > 0 {
        outcome.message = Some(format!(
            "{malformed} lines on STEELYARD_METRICS_FD are not `name value unit [iteration [warmup|measure]]`"
        ));
    }
    if is_cut {
        let mib = REPORT_BYTES >> 20;
        outcome.message =
            Some(format!("no more than {mib} MiB on STEELYARD_METRICS_FD is read; there is more"));
    }
    if armed.cause == Some(Cause::KernelMemory) {
        outcome.message =
            Some("the kernel needed more than an eighth of the host's memory for its processes".into());
    }
    outcome.standard_output = armed.streams.output.captured();
    outcome.standard_error = armed.streams.error.captured();
    outcome.start_ns = evidence.interval.start_ns;
    outcome.end_ns = Some(evidence.interval.end_ns);
    let utc_offset_ns = utc_ns().saturating_sub(monotonic_ns());
    outcome.start_utc_ns = outcome.start_ns.map(|start_ns| start_ns + utc_offset_ns);
    let verdict = judge(&end_of(&armed, evidence, &outcome), &batch.spec.limits);
    outcome.status = verdict.status;
    outcome.limit = verdict.limit;
    outcome.exit_code = verdict.exit_code;
    outcome.signal = verdict.signal;
    outcome.flags = flags(&armed, evidence, &outcome);
    let total_ns = monotonic_ns().saturating_sub(armed.begin_ns);
    outcome.quantities.insert(Metric::TotalNs, Quantity::measured(total_ns, Source::MonotonicClock, 1));
    Report { outcome, exec_errno: None }
}

fn note_scope(counters: &Counters, degraded: &mut Vec<String>) {
    if counters.task_clock.scope() == Ok(Scope::UserOnly) {
        degraded
            .push("perf counters see user code only: `kernel.perf_event_paranoid` denies the rest".into());
    }
}

fn end_of(armed: &Armed, evidence: &Evidence, outcome: &RunOutcome) -> End {
    End {
        status: evidence.status,
        cause: armed.cause,
        wall_ns: outcome.value(Metric::WallNs).unwrap_or(0),
        cpu_ns: outcome.value(Metric::CpuNs),
        output_bytes: armed.streams.total_bytes(),
        oom_kills: evidence.readings.oom_kills.unwrap_or(0),
        refused_processes: evidence.readings.refused_processes.unwrap_or(0),
    }
}

fn quantities(armed: &Armed, counters: &Counters, evidence: &Evidence) -> BTreeMap<Metric, Quantity> {
    let mut all = BTreeMap::new();
    add_times(&mut all, armed, evidence);
    let most_ns = armed.enforced.and_then(|enforced| enforced.most_cpu_ns);
    add_cpu(&mut all, counters, evidence, most_ns);
    add_memory(&mut all, evidence);
    add_scheduling(&mut all, counters, evidence);
    let total = armed.streams.total_bytes();
    all.insert(Metric::OutputBytes, Quantity::measured(total, Source::Launcher, 1));
    all
}

fn add_times(all: &mut BTreeMap<Metric, Quantity>, armed: &Armed, evidence: &Evidence) {
    let Interval { start_ns, end_ns, source, .. } = evidence.interval;
    let between = |from: Option<u64>, to: Option<u64>| match (from, to) {
        (Some(from), Some(to)) => Quantity::measured(to.saturating_sub(from), source, 1),
        _ => Quantity::missing(source, "the exec of the program was not seen"),
    };
    all.insert(Metric::WallNs, between(start_ns, Some(end_ns)));
    all.insert(Metric::LaunchNs, between(Some(armed.gate_ns), start_ns));
    all.insert(Metric::ReapNs, between(Some(end_ns), Some(evidence.nothing_left_ns)));
}

/// No process needs no memory: such a reading says that the group held more before than at the peak.
fn above_nothing(peak: &Quantity) -> Quantity {
    if peak.value == Some(0) {
        return Quantity::missing(peak.source, "not above what earlier runs had left in the group");
    }
    peak.clone()
}

fn add_memory(all: &mut BTreeMap<Metric, Quantity>, evidence: &Evidence) {
    let readings = &evidence.readings;
    all.insert(Metric::PeakMemoryBytes, above_nothing(&readings.peak_memory_bytes));
    let resident_bytes = count(evidence.usage.ru_maxrss) * 1024;
    let floor_bytes = evidence.set_up.resident_bytes;
    let resident = if resident_bytes > floor_bytes {
        Quantity::measured(resident_bytes, Source::Rusage, 4096)
    } else {
        let reason = format!("not above the {floor_bytes} bytes that every child inherits from the launcher");
        Quantity::missing(Source::Rusage, reason)
    };
    all.insert(Metric::PeakResidentBytes, resident);
    let blocks = |reading: &Quantity, blocks: i64| {
        if reading.value.is_some() {
            return reading.clone();
        }
        Quantity::measured(count(blocks) * SECTOR_BYTES, Source::Rusage, SECTOR_BYTES)
    };
    all.insert(Metric::ReadBytes, blocks(&readings.read_bytes, evidence.usage.ru_inblock));
    all.insert(Metric::WrittenBytes, blocks(&readings.written_bytes, evidence.usage.ru_oublock));
    all.insert(Metric::MemoryPressureNs, readings.memory_pressure_ns.clone());
    all.insert(Metric::IoPressureNs, readings.io_pressure_ns.clone());
}

fn add_scheduling(all: &mut BTreeMap<Metric, Quantity>, counters: &Counters, evidence: &Evidence) {
    let (usage, set_up) = (&evidence.usage, &evidence.set_up);
    let rusage =
        |total: i64, before: u64| Quantity::measured(count(total).saturating_sub(before), Source::Rusage, 1);
    let counted = |quantity: Quantity, fallback: Quantity| {
        if quantity.value.is_some() { quantity } else { fallback }
    };
    all.insert(Metric::VoluntarySwitches, rusage(usage.ru_nvcsw, set_up.voluntary_switches));
    all.insert(Metric::InvoluntarySwitches, rusage(usage.ru_nivcsw, set_up.involuntary_switches));
    all.insert(Metric::Migrations, counters.migrations.quantity());
    let minor = rusage(usage.ru_minflt, set_up.minor_faults);
    let major = rusage(usage.ru_majflt, set_up.major_faults);
    // User-only counters miss the faults of system calls, which `wait4` has.
    let is_full = counters.minor_faults.scope() == Ok(Scope::Full);
    let full = |quantity: Quantity, fallback: Quantity| {
        if is_full { counted(quantity, fallback) } else { fallback }
    };
    all.insert(Metric::MinorFaults, full(counters.minor_faults.quantity(), minor));
    all.insert(Metric::MajorFaults, full(counters.major_faults.quantity(), major));
    all.insert(Metric::RunDelayNs, wait_for_cpu(evidence, all));
    all.insert(Metric::CpuPressureNs, pressure_since_exec(evidence));
    all.insert(Metric::ThrottledNs, evidence.readings.throttled_ns.clone());
    let steal = evidence.steal_ns.map_or_else(
        || Quantity::missing(Source::Procfs, "`/proc/stat` cannot be read"),
        |value| Quantity::measured(value, Source::Procfs, evidence.steal_step_ns),
    );
    all.insert(Metric::StealNs, steal);
}

/// How long the program waited for a CPU between its start and its end.
///
/// The kernel tells it of one thread, and until that is taken down. Where others ran too, the group tells how
/// long some thread waited, which is no more than the wall time. A single thread waits in no more than
/// what its wall time leaves beside its CPU time, and what it waited after its end is not the program's.
fn wait_for_cpu(evidence: &Evidence, all: &BTreeMap<Metric, Quantity>) -> Quantity {
    let value = |metric| all.get(&metric).and_then(|quantity: &Quantity| quantity.value);
    let wall_ns = value(Metric::WallNs).unwrap_or(u64::MAX);
    if evidence.interval.has_others != Some(false) {
        let mut some = pressure_since_exec(evidence);
        some.value = some.value.map(|waited_ns| waited_ns.min(wall_ns));
        if some.value.is_some() {
            return some;
        }
        if evidence.interval.has_others == Some(true) {
            let reason = "the kernel tells it of the first thread only, and there was more than one";
            return Quantity::missing(Source::Procfs, reason);
        }
    }
    let total_ns = evidence.run_delay_ns.filter(|_| evidence.set_up.run_delay_ns != u64::MAX);
    let Some(total_ns) = total_ns else {
        return Quantity::missing(Source::Procfs, "the kernel does not tell run delays (no `schedstat`)");
    };
    let since_start_ns = total_ns.saturating_sub(evidence.set_up.run_delay_ns);
    let before_end_ns = since_start_ns.saturating_sub(evidence.waited_after_end_ns);
    let most_ns = wall_ns.saturating_sub(value(Metric::CpuNs).unwrap_or(0));
    Quantity::measured(before_end_ns.min(most_ns), Source::Procfs, 1)
}

/// Pressure without the wake-up at the gate and without the wait to be taken down: then the first process is
/// alone in its group, or nearly, so its own run delay is what the group waited.
fn pressure_since_exec(evidence: &Evidence) -> Quantity {
    let mut pressure = evidence.readings.cpu_pressure_ns.clone();
    let wake_up_ns = evidence.set_up.run_delay_ns.saturating_sub(evidence.set_up.run_delay_at_gate_ns);
    let beside_ns = wake_up_ns + evidence.waited_after_end_ns;
    pressure.value = pressure.value.map(|value| value.saturating_sub(beside_ns));
    pressure
}

fn flags(armed: &Armed, evidence: &Evidence, outcome: &RunOutcome) -> Vec<Flag> {
    let value = |metric| outcome.value(metric).unwrap_or(0);
    let threshold_ns = value(Metric::WallNs) / REMARK_RATIO;
    let waited_ns = value(Metric::RunDelayNs);
    let cpu_ns = value(Metric::CpuNs);
    let other_ns = outcome.value(Metric::CpuCgroupNs);
    let differs = |other: u64| other.abs_diff(cpu_ns) > TOLERANCE_NS + cpu_ns / TOLERANCE_RATIO;
    let is_forbidden =
        evidence.has_refusals || matches!(evidence.status, WaitStatus::Signaled(_, Signal::SIGSYS, _));
    [
        (Flag::Preempted, waited_ns > threshold_ns),
        (Flag::Migrated, value(Metric::Migrations) > 0),
        (Flag::Stolen, value(Metric::StealNs) > threshold_ns),
        (Flag::Throttled, value(Metric::ThrottledNs) > 0),
        // The host tells of all programs together, so this one must have waited for pages too.
        (
            Flag::Swapped,
            value(Metric::MajorFaults) > 0 && evidence.swapped_pages.is_some_and(|pages| pages > 0),
        ),
        (Flag::CpuSourcesDisagree, other_ns.is_some_and(differs)),
        (Flag::Stopped, armed.is_stopped),
        (Flag::LeftProcesses, evidence.has_left),
        (Flag::ForbiddenCall, is_forbidden && outcome.mechanism.isolation == "sandbox"),
    ]
    .into_iter()
    .filter_map(|(flag, applies)| applies.then_some(flag))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_of_nothing_is_no_measurement() {
        let nothing = above_nothing(&Quantity::measured(0, Source::Cgroup1, 4096));
        assert!(nothing.value.is_none() && nothing.missing.is_some());
        let something = Quantity::measured(4096, Source::Cgroup1, 4096);
        assert_eq!(above_nothing(&something), something);
    }
}
