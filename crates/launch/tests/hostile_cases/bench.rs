//! Executes one attack with the launcher and compares the host before and after.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use steelyard_launch::{Launcher, LauncherOptions, NoControl};
use steelyard_model::{Isolation, Limits, OutputStream, RunOutcome, RunSpec, RunStatus, SandboxSpec};

use crate::attack::MARK;

/// A worker number of its own, so that its user is nobody else's.
pub(crate) const WORKER: u32 = 977;
pub(crate) const USER: u32 = 60_000 + WORKER;

pub(crate) const MIB: u64 = 1 << 20;

/// An attack with limits under which no machine suffers.
pub(crate) fn attack(name: &str, arguments: &[&str]) -> RunSpec {
    let own = std::env::current_exe().unwrap();
    let words = [own.to_str().unwrap(), MARK, name].into_iter().chain(arguments.iter().copied());
    let mut spec = RunSpec::of(name, words);
    spec.environment.insert("PATH".into(), "/usr/bin:/bin".into());
    spec.isolation = Isolation::Sandbox(SandboxSpec { read_only: vec![own], ..SandboxSpec::default() });
    spec.standard_output = OutputStream::Capture { limit_bytes: 1 << 16 };
    spec.standard_error = OutputStream::Capture { limit_bytes: 1 << 16 };
    spec.limits = Limits {
        wall_time_ns: Some(5_000_000_000),
        memory_bytes: Some(256 * MIB),
        process_count: Some(32),
        open_file_count: Some(256),
        output_bytes: Some(4 * MIB),
        disk_bytes: Some(8 * MIB),
        ..Limits::default()
    };
    spec
}

/// What a run may leave on a host: processes, control groups, mounts, descriptors, shared memory.
pub(crate) fn traces() -> BTreeSet<String> {
    let lines = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let mut found = BTreeSet::new();
    found.extend(processes_of(USER).into_iter().map(|pid| format!("process {pid}")));
    found.extend(
        groups_of(std::process::id()).into_iter().map(|path| format!("control group {}", path.display())),
    );
    found.extend(lines("/proc/self/mountinfo").lines().map(|line| format!("mount {line}")));
    let shared = lines("/proc/sysvipc/shm");
    let is_ours = |line: &&str| line.split_ascii_whitespace().any(|word| word == USER.to_string());
    found.extend(shared.lines().filter(is_ours).map(|line| format!("shared memory {line}")));
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    found.extend(descriptors.map(|entry| format!("descriptor {}", entry.file_name().display())));
    found
}

/// Executes a specification with a new launcher; afterwards nothing may be there that was not
/// there before. (What others take away in the meantime is theirs.)
pub(crate) fn execute(spec: &RunSpec) -> RunOutcome {
    let before = traces();
    let outcome = {
        let options = LauncherOptions { worker: WORKER, ..LauncherOptions::default() };
        let mut launcher = Launcher::start(&options).unwrap();
        let has_groups = launcher.cgroup() != "none";
        assert_eq!(has_groups, !groups_of(std::process::id()).is_empty(), "the check itself sees groups");
        let outcome = execute_with(&mut launcher, spec);
        let left = processes_of(USER);
        assert!(left.is_empty(), "left by the run: {left:?}");
        outcome
    };
    leaves_nothing(&before);
    outcome
}

/// Soon nothing is there that was not before.
pub(crate) fn leaves_nothing(before: &BTreeSet<String>) {
    let left = || traces().difference(before).cloned().collect::<Vec<_>>();
    let end = Instant::now() + Duration::from_secs(2);
    while !left().is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(left(), [] as [String; 0]);
}

/// Executes a specification with a launcher that stays.
pub(crate) fn execute_with(launcher: &mut Launcher, spec: &RunSpec) -> RunOutcome {
    let mut outcomes = Vec::new();
    launcher.prepare(spec).unwrap();
    launcher.execute(&mut NoControl, &mut |report| outcomes.push(report.outcome)).unwrap();
    outcomes.pop().unwrap()
}

/// Processes of the host whose user is this one.
pub(crate) fn processes_of(user_id: u32) -> BTreeSet<String> {
    let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| is_process(name))
        .filter(|name| {
            let status = std::fs::read_to_string(format!("/proc/{name}/status")).unwrap_or_default();
            // A launcher makes this process a subreaper: orphans of a killed one wait here as zombies. A process
            // on its way there has given up its memory before it leaves its group.
            status.contains(&format!("\nUid:\t{user_id}\t")) && status.contains("\nVmSize:")
        })
        .collect()
}

/// Control groups of the launcher with this process number, in every hierarchy.
pub(crate) fn groups_of(launcher: u32) -> BTreeSet<PathBuf> {
    let name = format!("steelyard-{launcher}");
    let mut found = BTreeSet::new();
    let mut open = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let found_name = entry.file_name();
                let own = found_name.to_string_lossy();
                if own == name || own.starts_with(&format!("{name}.")) {
                    found.insert(entry.path());
                }
                open.push(entry.path());
            }
        }
    }
    found
}

pub(crate) fn output(outcome: &RunOutcome) -> &str {
    outcome.standard_output.as_ref().map_or("", |stream| stream.text.as_str())
}

/// The attack ended by itself and found no way out.
#[track_caller]
pub(crate) fn must_be_contained(outcome: &RunOutcome) {
    let contained = outcome.status == RunStatus::Completed && !output(outcome).contains("ESCAPED");
    assert!(contained, "{outcome:#?}");
}

/// The kernel counts memory in pages.
#[track_caller]
pub(crate) fn must_not_exceed(peak_bytes: u64, limit_bytes: u64) {
    const PAGE: u64 = 4096;
    assert!(peak_bytes <= limit_bytes + PAGE, "{peak_bytes} bytes of {limit_bytes} bytes");
}

pub(crate) fn exists(path: &str) -> bool {
    Path::new(path).exists()
}
