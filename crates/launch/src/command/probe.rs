//! `probe`: which mechanisms work here, tried rather than guessed.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use serde::Serialize;
use steelyard_host::cgroup::{Controller, Layout};
use steelyard_launch::guard::{Role, stand_guard};
use steelyard_launch::{LaunchError, Launcher, LauncherOptions, NoControl};
use steelyard_model::{Isolation, Metric, RunOutcome, RunSpec, RunStatus, SandboxSpec, Source};

#[derive(Debug, Serialize)]
struct Findings {
    kernel: String,
    cgroup: CgroupFindings,
    mechanisms: BTreeMap<&'static str, Mechanism>,
}

#[derive(Debug, Serialize)]
struct CgroupFindings {
    found: &'static str,
    used: &'static str,
    controllers: Vec<&'static str>,
    degraded: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Mechanism {
    available: bool,
    reason: Option<String>,
    hint: Option<String>,
}

impl Mechanism {
    fn of(reason: Option<String>) -> Self {
        Self { available: reason.is_none(), reason, hint: None }
    }

    fn refused(error: &LaunchError) -> Self {
        Self { available: false, reason: Some(error.to_string()), hint: error.hint() }
    }
}

pub(crate) fn execute() -> anyhow::Result<i32> {
    if let Role::Guard { exit_code } = stand_guard()? {
        return Ok(exit_code);
    }
    let mut launcher = Launcher::start(&LauncherOptions { is_guarded: true, ..LauncherOptions::default() })?;
    let mut text = serde_json::to_vec_pretty(&find(&mut launcher))?;
    text.push(b'\n');
    std::io::stdout().write_all(&text)?;
    Ok(0)
}

fn find(launcher: &mut Launcher) -> Findings {
    let layout = Layout::discover(Path::new("/")).unwrap_or_default();
    let all = Controller::V1.into_iter().chain([Controller::Io]);
    let controllers = all.filter(|one| launcher.groups().has(*one)).map(Controller::as_str).collect();
    let mut mechanisms = BTreeMap::new();
    for (name, source) in [
        ("tracepoints", Source::Tracepoint),
        ("perf_records", Source::PerfRecord),
        ("ptrace", Source::Ptrace),
        ("shared_memory", Source::SharedMemory),
    ] {
        mechanisms.insert(name, try_stamps(launcher, source));
    }
    mechanisms.extend(try_sandbox(launcher));
    mechanisms.extend(try_meters(launcher));
    Findings {
        kernel: nix::sys::utsname::uname()
            .map(|name| name.release().to_string_lossy().into_owned())
            .unwrap_or_default(),
        cgroup: CgroupFindings {
            found: layout.kind().as_str(),
            used: launcher.cgroup(),
            controllers,
            degraded: launcher.degraded().to_vec(),
        },
        mechanisms,
    }
}

/// This very program is the one that surely exists here.
fn own_command() -> RunSpec {
    let path = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    RunSpec::of("probe", [path.to_string_lossy().into_owned(), "--version".to_owned()])
}

fn execute_once(launcher: &mut Launcher, spec: &RunSpec) -> Result<RunOutcome, LaunchError> {
    launcher.prepare(spec)?;
    let mut found = None;
    launcher.execute(&mut NoControl, &mut |report| found = Some(report.outcome))?;
    found.ok_or(LaunchError::Request { what: "probe", reason: "no outcome".into() })
}

fn try_stamps(launcher: &mut Launcher, source: Source) -> Mechanism {
    let mut spec = own_command();
    spec.stamp_source = Some(source);
    match execute_once(launcher, &spec) {
        Ok(outcome) if outcome.status != RunStatus::Completed => Mechanism::of(outcome.message),
        Ok(outcome) => Mechanism::of(
            outcome
                .quantities
                .get(&Metric::WallNs)
                .filter(|wall| wall.source != source)
                .map(|_| "the stamps did not arrive".to_owned()),
        ),
        Err(error) => Mechanism::refused(&error),
    }
}

/// A child that is ready at its gate went through every step of the sandbox.
fn try_sandbox(launcher: &mut Launcher) -> Vec<(&'static str, Mechanism)> {
    let mut spec = RunSpec::of("probe", ["true"]);
    spec.isolation = Isolation::Sandbox(SandboxSpec::default());
    let namespaces = match launcher.prepare(&spec) {
        Ok(()) => Mechanism::of(launcher.set_up_failure().map(str::to_owned)),
        Err(error) => Mechanism::refused(&error),
    };
    launcher.give_up();
    let filter = std::fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail");
    let seccomp =
        Mechanism::of(filter.err().map(|_| "this kernel was built without seccomp filters".to_owned()));
    vec![("sandbox", namespaces), ("seccomp", seccomp)]
}

fn try_meters(launcher: &mut Launcher) -> Vec<(&'static str, Mechanism)> {
    let mut spec = own_command();
    spec.counters = vec!["instructions".to_owned()];
    let outcome = match execute_once(launcher, &spec) {
        Ok(outcome) => outcome,
        Err(error) => return vec![("task_clock", Mechanism::refused(&error))],
    };
    let missing = |metric: Metric| {
        Mechanism::of(match outcome.quantities.get(&metric) {
            Some(quantity) => quantity.missing.clone(),
            None => Some("not measured".to_owned()),
        })
    };
    let task_clock = outcome
        .quantities
        .get(&Metric::CpuNs)
        .filter(|cpu| cpu.source != Source::PerfCounter)
        .map(|cpu| format!("CPU time comes from {:?} instead", cpu.source));
    let into_group =
        outcome.mechanism.degraded.iter().find(|text| text.contains("CLONE_INTO_CGROUP")).cloned();
    let no_tree = (launcher.cgroup() == "none" || launcher.cgroup() == "v1")
        .then(|| "no usable version 2 tree".to_owned());
    vec![
        ("task_clock", Mechanism::of(task_clock)),
        ("clone_into_cgroup", Mechanism::of(no_tree.or(into_group))),
        (
            "hardware_counters",
            Mechanism::of(outcome.counters.get("instructions").and_then(|one| one.missing.clone())),
        ),
        ("pressure", missing(Metric::CpuPressureNs)),
        ("peak_memory", missing(Metric::PeakMemoryBytes)),
        ("run_delay", missing(Metric::RunDelayNs)),
    ]
}
