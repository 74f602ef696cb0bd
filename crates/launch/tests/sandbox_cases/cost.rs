//! What the sandbox costs. The numbers are printed; the bounds are wide, for busy machines.

use std::time::{Duration, Instant};

use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};
use steelyard_launch::sandbox::ChildView;
use steelyard_model::{Limits, SandboxSpec};

use super::Case;
use crate::attack::MARK;
use crate::jail::Jail;

pub(super) const CASES: &[(&str, Case)] = &[
    ("the_filter_does_not_slow_system_calls", the_filter_does_not_slow_system_calls),
    ("setting_a_child_up_is_cheap", setting_a_child_up_is_cheap),
];

fn the_filter_does_not_slow_system_calls() {
    let own = std::env::current_exe().unwrap();
    let outside = std::process::Command::new(own).args([MARK, "time-calls"]).output().unwrap();
    let outside = String::from_utf8(outside.stdout).unwrap();
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    let inside = jail.attack("time-calls", &[]).output;
    println!("without filter: {outside}with filter: {inside}");
    let getpid = |text: &str| text.split(' ').nth(1).and_then(|word| word.parse::<u64>().ok()).unwrap();
    assert!(getpid(&inside) < getpid(&outside) + 500, "{outside} {inside}");
}

fn setting_a_child_up_is_cheap() {
    const RUNS: usize = 200;
    let start = Instant::now();
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    println!("a pool: {:?}", start.elapsed());
    let (mut prepare, mut seal, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let start = Instant::now();
        let (reader, writer) = nix::unistd::pipe().unwrap();
        // SAFETY: this process has one thread.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                let limits = Limits::default();
                let start = Instant::now();
                jail.pool.prepare_child(&ChildView { limits: &limits, working_directory: None }).unwrap();
                let prepared = start.elapsed();
                let start = Instant::now();
                jail.pool.seal_child().unwrap();
                let sealed = start.elapsed();
                let times =
                    [prepared, sealed].map(|time| u32::try_from(time.as_nanos()).unwrap().to_ne_bytes());
                nix::unistd::write(&writer, &times.concat()).unwrap();
                // SAFETY: the end.
                unsafe { libc::_exit(0) }
            }
            ForkResult::Parent { child } => {
                waitpid(child, None).unwrap();
                whole.push(start.elapsed());
                let mut times = [0_u8; 8];
                nix::unistd::read(&reader, &mut times).unwrap();
                let of = |index: usize| u32::from_ne_bytes(times[index..index + 4].try_into().unwrap());
                prepare.push(Duration::from_nanos(of(0).into()));
                seal.push(Duration::from_nanos(of(4).into()));
            }
        }
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[RUNS / 2]
    };
    let whole = median(&mut whole);
    println!("prepare {:?}, seal {:?}, fork to reaped {whole:?}", median(&mut prepare), median(&mut seal));
    let start = Instant::now();
    jail.pool.sweep().unwrap();
    println!("an empty sweep: {:?}", start.elapsed());
    // An emulated machine needs longer for the same instructions.
    let scale = std::env::var("STEELYARD_TIME_SCALE").map_or(1, |text| text.parse().unwrap());
    assert!(whole < scale * Duration::from_millis(10), "{whole:?}");
}
