use std::os::fd::FromRawFd;
use std::process::{Child, Command};

use super::*;
use crate::perf::{Event, ExecRing};

fn charge(child: &Child, limits: Limits) -> Charge {
    let pid = child.id().cast_signed();
    // SAFETY: no pointers are passed.
    let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let page = Arc::new(SharedPage::new().unwrap());
    page.stamp_exec(monotonic_ns());
    Charge {
        limits,
        cpus: vec![0],
        gate_ns: monotonic_ns(),
        // SAFETY: the kernel just gave this descriptor to us alone.
        pidfd: unsafe { OwnedFd::from_raw_fd(i32::try_from(pidfd).unwrap()) },
        start: StartOf::SharedPage,
        beginning: Beginning::default(),
        page,
        grip: Grip::default(),
        usage_before_ns: 0,
        oom_kills_before: None,
        kernel_memory_limit: None,
        counter: Arc::new(Counter::open(Event::TASK_CLOCK, pid)),
        cause: None,
        most_cpu_ns: None,
        blows: 0,
    }
}

fn wall_time(limit_ns: u64) -> Limits {
    Limits { wall_time_ns: Some(limit_ns), ..Limits::default() }
}

#[test]
fn a_run_ends_at_its_limit_and_not_before() {
    const LIMIT_NS: u64 = 50_000_000;
    let enforcer = Enforcer::start(None).unwrap();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let begin_ns = monotonic_ns();
    enforcer.take(charge(&child, wall_time(LIMIT_NS))).unwrap();
    child.wait().unwrap();
    assert!(monotonic_ns() - begin_ns >= LIMIT_NS);
    let by_wall_time = Enforced { cause: Cause::WallTime, most_cpu_ns: None };
    assert_eq!(enforcer.give_back().unwrap(), Some(by_wall_time));
}

#[test]
fn a_run_that_was_given_back_is_left_alone() {
    let enforcer = Enforcer::start(None).unwrap();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    enforcer.take(charge(&child, wall_time(20_000_000))).unwrap();
    assert_eq!(enforcer.give_back().unwrap(), None);
    std::thread::sleep(Duration::from_millis(60));
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_kernels_memory_is_looked_at_more_often_as_it_grows() {
    let mut child = Command::new("true").spawn().unwrap();
    let mut charge = charge(&child, Limits::default());
    assert_eq!(charge.watch_memory(), None, "nothing says how much it is");
    charge.kernel_memory_limit = Some(1 << 30);
    assert_eq!(charge.watch_memory(), None, "no group says it either");
    child.wait().unwrap();
    assert!(kernel_memory_limit().is_some_and(|limit| limit > 1 << 24));
}

#[test]
fn a_limit_of_wall_time_waits_for_nobody_who_reads_the_stamps() {
    const LIMIT_NS: u64 = 200_000_000;
    let mut child = Command::new("sh").args(["-c", "sleep 0.02; exec sleep 60"]).spawn().unwrap();
    let ring = Arc::new(ExecRing::open(child.id().cast_signed()).unwrap());
    let charge = Charge { start: StartOf::Perf(Arc::clone(&ring)), ..charge(&child, wall_time(LIMIT_NS)) };
    let enforcer = Enforcer::start(None).unwrap();
    enforcer.take(charge).unwrap();
    std::thread::sleep(Duration::from_nanos(LIMIT_NS * 3 / 4));
    let reading = ring.hold();
    child.wait().unwrap();
    let end_ns = monotonic_ns();
    drop(reading);
    let took_ns = end_ns - ring.drain().start_ns.unwrap();
    assert!((LIMIT_NS..2 * LIMIT_NS).contains(&took_ns), "{took_ns}");
}

/// The keeper may have lost its CPU in the middle of reading, to the very tree that is to be ended.
#[test]
fn a_limit_of_cpu_time_waits_for_nobody_who_reads_the_stamps() {
    let script = "sleep 0.1; exec sh -c 'while :; do :; done'";
    let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
    let ring = Arc::new(ExecRing::open(child.id().cast_signed()).unwrap());
    let limits = Limits { cpu_time_ns: Some(50_000_000), ..Limits::default() };
    let charge = Charge { start: StartOf::Perf(Arc::clone(&ring)), ..charge(&child, limits) };
    let reading = ring.hold();
    let enforcer = Enforcer::start(None).unwrap();
    enforcer.take(charge).unwrap();
    let end = monotonic_ns() + 10_000_000_000;
    while child.try_wait().unwrap().is_none() {
        assert!(monotonic_ns() < end, "it is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(reading);
    assert_eq!(enforcer.give_back().unwrap().map(|enforced| enforced.cause), Some(Cause::CpuTime));
}
