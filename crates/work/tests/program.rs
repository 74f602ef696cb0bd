//! The programs as others start them. CPU times are asserted here and not in unit tests, because
//! the test harness has threads of its own.
#![expect(clippy::unwrap_used, clippy::panic, reason = "the file is a test, its helpers included")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const WORK: &str = env!("CARGO_BIN_EXE_steelyard-work");
const TRUTH: &str = env!("CARGO_BIN_EXE_steelyard-truth");

fn execute(program: &str, line: &str) -> Output {
    Command::new(program).args(line.split_whitespace()).env_remove("STEELYARD_METRICS_FD").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Executes with descriptor 3 open on a file and gives standard output and the file's content.
fn execute_with_descriptor(program: &str, line: &str) -> (String, String) {
    let file = std::env::temp_dir().join(format!("steelyard-{}-{:?}", std::process::id(), Instant::now()));
    let script = format!("exec 3>'{}'; STEELYARD_METRICS_FD=3 exec {program} {line}", file.display());
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    let report = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    (text(&output.stdout), report)
}

/// Values in ns of a report whose lines are all `name value ns 1 measure`.
fn times(report: &str) -> BTreeMap<String, u64> {
    report
        .lines()
        .map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
            [name, value, "ns", "1", "measure"] => (name.to_owned(), value.parse().unwrap()),
            _ => panic!("`{line}` is not a measurement"),
        })
        .collect()
}

#[test]
fn a_kernel_reports_on_its_descriptor_and_prints_its_checksum() {
    let (stdout, report) = execute_with_descriptor(WORK, "kernel qsort --size 131072 --seed 1");
    assert_eq!(stdout, "d3f6a5325201e622\n");
    let times = times(&report);
    assert!(times["cpu"] > 100_000 && times["wall"] >= times["cpu"], "{times:?}");
}

#[test]
fn exit_codes_are_2_for_usage_and_1_for_a_closed_descriptor() {
    let wrong = execute(WORK, "kernel qsort --size none --seed 1");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(wrong.stdout.is_empty());
    let message = text(&wrong.stderr);
    assert!(message.contains("`none`") && message.contains("\nhint: "), "{message}");
    let closed = Command::new(WORK)
        .args(["kernel", "qsort", "--size", "10", "--seed", "1"])
        .env("STEELYARD_METRICS_FD", "999")
        .output()
        .unwrap();
    assert_eq!(closed.status.code(), Some(1));
    assert!(text(&closed.stderr).contains("descriptor 999"));
}

#[test]
fn spin_takes_the_cpu_time_asked_for() {
    let (_, report) = execute_with_descriptor(WORK, "spin --ms 20");
    let cpu_ns = times(&report)["cpu"];
    assert!((20_000_000..22_000_000).contains(&cpu_ns), "{cpu_ns}");
}

#[test]
fn a_calibrated_iteration_takes_about_the_time_asked_for() {
    let output = text(&execute(WORK, "calibrate insertion_sort --target-ms 8").stdout);
    let value = |name: &str| -> u64 {
        output.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse().unwrap()
    };
    assert!((4_000_000..16_000_000).contains(&value("iteration_ns")), "{output}");
    assert!(value("size") < 16_384, "{output}");
}

#[test]
fn the_truth_takes_the_cpu_time_asked_for() {
    let (stdout, report) = execute_with_descriptor(TRUTH, "--ms 20");
    let times = times(&report);
    assert_eq!(stdout, "");
    assert!((20_000_000..21_000_000).contains(&times["cpu"]), "{times:?}");
    assert!(times["wall"] >= times["cpu"], "{times:?}");
}

#[test]
fn calibrated_iterations_take_about_the_time_they_were_calibrated_for() {
    let count = text(&execute(TRUTH, "--calibrate 20").stdout);
    let (_, report) = execute_with_descriptor(TRUTH, &format!("--iterations {}", count.trim()));
    let cpu_ns = times(&report)["cpu"];
    assert!((10_000_000..60_000_000).contains(&cpu_ns), "{count} iterations took {cpu_ns} ns");
}

#[test]
fn the_truth_reports_on_standard_output_when_asked() {
    for (arguments, variable) in [("--ms 1 --metrics-stdout", "9"), ("--ms 1", "1")] {
        let output = Command::new(TRUTH)
            .args(arguments.split(' '))
            .env("STEELYARD_METRICS_FD", variable)
            .output()
            .unwrap();
        let stdout = text(&output.stdout);
        let lines: Vec<String> = stdout.lines().map(|line| line.replace("#steelyard ", "")).collect();
        assert!(stdout.lines().all(|line| line.starts_with("#steelyard ")), "{stdout}");
        assert_eq!(times(&lines.join("\n")).len(), 2);
    }
}

#[test]
fn the_truth_refuses_what_it_does_not_know() {
    for line in
        ["", "--ms", "--ms x", "--ms 1 --iterations 1", "--seconds 1", "--ms 600001", "--iterations 1x"]
    {
        let output = execute(TRUTH, line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(text(&output.stderr).contains("usage: steelyard-truth"), "{line}");
    }
    let output = Command::new(TRUTH).args(["--ms", "1"]).env("STEELYARD_METRICS_FD", "x").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let output = Command::new(TRUTH).args(["--ms", "1"]).env("STEELYARD_METRICS_FD", "999").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_stressor_leaves_on_sigterm_with_success() {
    let mut stressor = Command::new(WORK).args(["stress", "cpu", "--seconds", "60"]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert!(Command::new("kill").arg(stressor.id().to_string()).status().unwrap().success());
    assert_eq!(wait_until_end(&mut stressor).code(), Some(0));
}

#[test]
fn a_stressor_leaves_when_its_parent_dies() {
    // The shell prints the stressor's number and is then killed by its own command.
    let script = format!(
        "{WORK} stress memcpy --bytes 4194304 --seconds 60 >/dev/null & echo $!; sleep 0.3; kill -9 $$"
    );
    let mut shell = Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    shell.wait().unwrap();
    let folder = format!("/proc/{}/stat", line.trim());
    let start = Instant::now();
    // A dead process that nobody reaps stays visible as a zombie.
    while fs::read_to_string(&folder).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(start.elapsed() < Duration::from_secs(10), "the stressor lives on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn wait_until_end(child: &mut Child) -> std::process::ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > Duration::from_secs(10) {
            child.kill().unwrap();
            panic!("the stressor lives on");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
