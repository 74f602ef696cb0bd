//! The program as others start it. CPU times are asserted here and not in unit tests, because the test
//! harness has threads of its own.
#![cfg(not(any(loom, miri)))]
#![expect(clippy::unwrap_used, clippy::panic, reason = "the file is a test, its functions included")]

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output};
use std::time::Instant;

const PACKETS: &str = env!("CARGO_BIN_EXE_steelyard-packets");

fn execute(line: &str) -> Output {
    Command::new(PACKETS).args(line.split_whitespace()).env_remove("STEELYARD_METRICS_FD").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Values with their units, by name and iteration.
type Lines = BTreeMap<(String, usize), (u64, String)>;

/// Executes with descriptor 3 open on a file; gives standard output and the lines `name value unit
/// iteration phase` by name and iteration.
fn measured(line: &str) -> (String, Lines) {
    let file = std::env::temp_dir().join(format!("steelyard-{}-{:?}", std::process::id(), Instant::now()));
    let script = format!("exec 3>'{}'; STEELYARD_METRICS_FD=3 exec {PACKETS} {line}", file.display());
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    let report = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let lines = report.lines().map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
        [name, value, unit, place, "measure"] => {
            ((name.to_owned(), place.parse().unwrap()), (value.parse().unwrap(), unit.to_owned()))
        }
        _ => panic!("`{line}` is not a measurement"),
    });
    (text(&output.stdout), lines.collect())
}

#[test]
fn both_programs_print_the_sum_of_the_source() {
    for line in ["serial 20 3 500 f 2 correct", "parallel 20 3 500 f 2 8 m A correct --workers 2"] {
        assert_eq!(text(&execute(line).stdout), "2031768981945\n", "{line}");
    }
}

#[test]
fn a_run_reports_every_worker_and_source() {
    let (stdout, report) = measured("parallel 50 2 1000 f 1 8 b A --workers 3");
    let value = |name: &str, place: usize| report[&(name.to_owned(), place)].0;
    let sum = |name: &str, count: usize| (0..count).map(|place| value(name, place)).sum::<u64>();
    assert_eq!(stdout.trim().parse::<u64>().unwrap(), value("packets", 0));
    assert_eq!(sum("worker_packets", 3), value("packets", 0));
    assert_eq!(sum("source_packets", 2), value("packets", 0));
    assert!(value("dispatched", 0) >= value("packets", 0));
    assert!(value("wall", 0) >= 50_000_000);
    assert!(value("cpu", 0) > 0 && sum("worker_iterations", 3) > 0 && value("full_waits", 0) > 0);
    assert_eq!([value("source_mean", 0), value("source_mean", 1)], [813, 1186]);
    assert_eq!(report[&("wall".to_owned(), 0)].1, "ns");
    assert!(sum("worker_idle", 3) < 3 * value("wall", 0) && value("dispatcher_idle", 0) > 0);
    assert_eq!(report.len(), 6 + 3 * 3 + 2 * 2);
}

#[test]
fn only_a_dispatcher_that_met_a_full_queue_has_waited() {
    for (depth, must_wait) in [(1, true), (2000, false)] {
        let (_, report) = measured(&format!("parallel 1000 1 25 t 1 {depth} n L correct"));
        let value = |name: &str| report[&(name.to_owned(), 0)].0;
        assert_eq!(value("dispatcher_idle") > 0, value("full_waits") > 0, "depth {depth}");
        assert!(must_wait || value("full_waits") == 0, "depth {depth}");
        assert!(value("dispatcher_idle") <= value("wall") && value("worker_idle") > 0, "depth {depth}");
    }
}

#[test]
fn waiting_for_a_sleeper_leaves_the_cores_alone() {
    for lock in ["t", "b", "k", "s", "p", "g", "a", "c", "m"] {
        let stdout = text(&execute(&format!("sleeper {lock} 6 100")).stdout);
        let share = stdout.lines().find_map(|line| line.strip_prefix("cpu_per_wall ")).unwrap();
        // Five threads that spin or yield would keep every core busy.
        assert!(share.parse::<f64>().unwrap() < 0.5, "{lock}: {stdout}");
    }
}

/// Packets that one worker finishes in a tenth of a second.
fn packets() -> f64 {
    text(&execute("parallel 100 1 200 t 1 32 n L").stdout).trim().parse().unwrap()
}

/// Whoever offers its core on a busy machine waits for a slice of each of the others; the pipeline did hardly
/// anything else there, a thousandth of its work.
#[test]
fn a_busy_machine_takes_its_share_and_not_more() {
    let alone = packets();
    let done = std::sync::atomic::AtomicBool::new(false);
    let mut beside: Vec<f64> = std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().unwrap().get() {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let counts = (0..5).map(|_| packets()).collect();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        counts
    });
    beside.sort_by(f64::total_cmp);
    assert!(beside[2] > 0.01 * alone, "{beside:?} beside as many busy threads as cores, {alone} without");
}

#[test]
fn exit_codes_are_2_for_usage_and_1_for_a_closed_descriptor() {
    let wrong = execute("parallel 10 1 25 t 1 8 n A");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(wrong.stdout.is_empty());
    let message = text(&wrong.stderr);
    assert!(message.contains("L is `n`; allowed for S = `A`") && message.contains("\nhint: "), "{message}");
    let line = "serial 5 1 25 t 1".split(' ');
    let closed = Command::new(PACKETS).args(line).env("STEELYARD_METRICS_FD", "999").output().unwrap();
    assert_eq!(closed.status.code(), Some(1));
    assert!(text(&closed.stderr).contains("descriptor 999"));
}
