//! The examples in `tests/contract`, which Python's side of the same documents is held to as well.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    BarrierSpec, CapturedStream, Flag, InputStream, Isolation, LimitKind, Limits, Mechanism, Metric,
    NetworkView, OutputStream, OwnMeasurement, Phase, Placement, Quantity, RootView, RunOutcome, RunSpec,
    RunStatus, SandboxSpec, SchedulingPolicy, Source,
};

const SPECS: &str = include_str!("../../../tests/contract/run-spec.json");
const OUTCOMES: &str = include_str!("../../../tests/contract/run-outcome.json");
const VOCABULARY: &str = include_str!("../../../tests/contract/vocabulary.json");

/// Every variant of an enumeration; one that is missing here does not compile.
macro_rules! all {
    ($kind:ident: $($variant:ident)*) => {{
        const fn is_complete(one: $kind) { match one { $($kind::$variant => {})* } }
        [$($kind::$variant),*].map(|one| { is_complete(one); serde_json::to_value(one).unwrap() }).to_vec()
    }};
}

fn examples<T: DeserializeOwned + Serialize>(text: &str) -> Vec<T> {
    let documents: Vec<Value> = serde_json::from_str(text).unwrap();
    documents
        .into_iter()
        .map(|document| {
            let read: T = serde_json::from_value(document.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), document);
            read
        })
        .collect()
}

#[test]
fn specifications_are_read_and_written_as_in_the_examples() {
    let specs = examples::<RunSpec>(SPECS);
    assert!(specs.iter().any(names_every_field), "an example with every field");
    for spec in specs {
        spec.validate().unwrap();
    }
}

/// Whether a specification has a value in every field; a field that is new does not compile here.
fn names_every_field(spec: &RunSpec) -> bool {
    let RunSpec {
        schema: _,
        id: _,
        command: _,
        environment: _,
        working_directory: Some(_),
        standard_input: InputStream::File { path: _ },
        standard_output: OutputStream::Capture { limit_bytes: _ },
        standard_error: OutputStream::File { path: _ },
        isolation:
            Isolation::Sandbox(SandboxSpec {
                root: RootView::Directory { path: _ },
                read_only: _,
                writable: _,
                network: NetworkView::Host,
                user_id: Some(_),
            }),
        limits:
            Limits {
                cpu_time_ns: Some(_),
                wall_time_ns: Some(_),
                memory_bytes: Some(_),
                process_count: Some(_),
                file_size_bytes: Some(_),
                output_bytes: Some(_),
                open_file_count: Some(_),
                stack_bytes: Some(_),
                disk_bytes: Some(_),
            },
        placement:
            Placement {
                cpus: Some(_),
                memory_nodes: Some(_),
                policy: SchedulingPolicy::Fifo { priority: _ },
                maximal_weight: true,
                randomise_addresses: Some(_),
            },
        counters: _,
        own_metrics: true,
        stamp_source: Some(_),
        iterations: _,
        first_iteration: _,
        barrier: Some(BarrierSpec { path: _, parties: _, timeout_ns: _ }),
    } = spec
    else {
        return false;
    };
    true
}

#[test]
fn outcomes_are_read_and_written_as_in_the_examples() {
    let outcomes = examples::<RunOutcome>(OUTCOMES);
    assert!(outcomes.iter().any(says_everything), "an example with every field");
}

/// Whether an outcome has a value in every field; a field that is new does not compile here.
fn says_everything(outcome: &RunOutcome) -> bool {
    let RunOutcome {
        schema: _,
        id: _,
        iteration: _,
        status: _,
        exit_code: Some(_),
        signal: Some(_),
        limit: Some(_),
        message: Some(_),
        start_ns: Some(_),
        end_ns: Some(_),
        start_utc_ns: Some(_),
        quantities,
        counters: _,
        own,
        standard_output: Some(CapturedStream { text: _, total_bytes: _, truncated: _ }),
        standard_error: Some(_),
        flags: _,
        mechanism: Mechanism { cgroup: _, stamps: _, isolation: _, degraded: _ },
    } = outcome
    else {
        return false;
    };
    let is_missing =
        |one: &Quantity| matches!(one, Quantity { value: None, source: _, granularity: _, missing: Some(_) });
    let is_own = |one: &OwnMeasurement| {
        matches!(one, OwnMeasurement { metric: _, value: _, unit: _, iteration: _, phase: _ })
    };
    quantities.values().any(is_missing) && own.iter().any(is_own)
}

#[test]
fn every_word_is_in_the_vocabulary() {
    let words: Value = serde_json::from_str(VOCABULARY).unwrap();
    let own = serde_json::json!({
        "statuses": all!(RunStatus: Completed NonzeroExit Signalled CpuTimeout WallTimeout OutOfMemory LimitExceeded
            Interrupted LauncherFailed),
        "flags": all!(Flag: Preempted Migrated Stolen Throttled Swapped CpuSourcesDisagree Stopped LeftProcesses
            ForbiddenCall),
        "limits": all!(LimitKind: CpuTime WallTime Memory ProcessCount FileSize Output),
        "metrics": all!(Metric: WallNs CpuNs CpuUserNs CpuSystemNs CpuRusageNs CpuCgroupNs PeakMemoryBytes
            PeakResidentBytes VoluntarySwitches InvoluntarySwitches Migrations MinorFaults MajorFaults ReadBytes
            WrittenBytes RunDelayNs CpuPressureNs MemoryPressureNs IoPressureNs ThrottledNs StealNs LaunchNs ReapNs
            TotalNs OutputBytes),
        "sources": all!(Source: Tracepoint PerfRecord Ptrace SharedMemory PerfCounter Cgroup2 Cgroup1 Rusage Procfs
            MonotonicClock Launcher),
        "phases": all!(Phase: Warmup Measure),
    });
    assert_eq!(own, words);
}
