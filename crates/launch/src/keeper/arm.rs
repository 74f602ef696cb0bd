//! From nothing to a child that waits at its gate.

use std::fs::File;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use steelyard_host::cgroup::Leaf;
use steelyard_model::Isolation;

use super::armed::{Armed, Attached, Counters};
use super::batch::Batch;
use super::enclosure::{Enclosure, MOST_ZYGOTES};
use super::meters::Meters;
use super::stamps::Stamper;
use super::streams::Streams;
use super::swaps::Swaps;
use crate::clock::monotonic_ns;
use crate::error::{During, LaunchError};
use crate::sandbox::Refusals;
use crate::shared_page::{Page, Progress};
use crate::zygote::ChildDescriptors;

/// A child that is not ready by then never will be.
const SET_UP_PATIENCE: Duration = Duration::from_secs(30);
/// How often a silent child is looked after.
const LOOK_AFTER: Duration = Duration::from_millis(20);

/// Sets up one iteration. A child that fails in its set-up is a result, not an error.
pub(super) fn arm(
    enclosure: &mut Enclosure,
    meters: &mut Meters,
    batch: &Batch,
    iteration: u32,
) -> Result<Armed, LaunchError> {
    let begin_ns = monotonic_ns();
    let mut armed = begin(enclosure, batch, iteration)?;
    if let Err(error) = enclosure.groups_mut().provide_spare() {
        give_up_begun(enclosure, armed);
        return Err(error.into());
    }
    armed.begin_ns = begin_ns;
    complete(enclosure, meters, batch, armed)
}

/// Has the zygote begin a child, and does not wait for it. Whatever the version 1 groups and
/// the shared page say of the run before has to be read by now.
pub(super) fn begin(enclosure: &mut Enclosure, batch: &Batch, iteration: u32) -> Result<Armed, LaunchError> {
    if enclosure.has_lost_zygote() {
        enclosure.replace_zygote(&batch.spec)?;
    }
    let leaf = enclosure.groups_mut().take_leaf()?;
    let streams = Streams::open(&batch.spec)?;
    let idle = enclosure.make_room(batch.spec.limits.memory_bytes)?;
    let armed = Armed {
        iteration,
        begin_ns: 0,
        gate_ns: 0,
        waited_ns: 0,
        pid: None,
        leaf,
        idle,
        streams,
        attached: None,
        cause: None,
        enforced: None,
        is_stopped: false,
        has_records_ended: false,
        failure: None,
        degraded: Vec::new(),
    };
    enclosure.clone_child(&ChildDescriptors {
        input: armed.streams.input.as_fd(),
        output: armed.streams.output.child_end(),
        error: armed.streams.error.child_end(),
        metrics: armed.streams.report.as_ref().map(AsFd::as_fd),
        leaf: armed.leaf.as_ref().map(Leaf::directory),
    })?;
    Ok(armed)
}

/// The child that was begun becomes ready: it waits at its gate, and everything is attached.
pub(super) fn complete(
    enclosure: &mut Enclosure,
    meters: &mut Meters,
    batch: &Batch,
    armed: Armed,
) -> Result<Armed, LaunchError> {
    let iteration = armed.iteration;
    let mut outcome = try_complete(enclosure, meters, batch, armed);
    for _ in 1..MOST_ZYGOTES {
        if outcome.is_ok() || !enclosure.has_lost_zygote() {
            break;
        }
        let again = begin(enclosure, batch, iteration);
        outcome = again.and_then(|armed| try_complete(enclosure, meters, batch, armed));
    }
    outcome
}

fn try_complete(
    enclosure: &mut Enclosure,
    meters: &mut Meters,
    batch: &Batch,
    mut armed: Armed,
) -> Result<Armed, LaunchError> {
    if armed.begin_ns == 0 {
        // Time before this is part of the run that was recorded meanwhile.
        armed.begin_ns = monotonic_ns();
    }
    (armed.gate_ns, armed.waited_ns) = (armed.begin_ns, armed.begin_ns);
    let outcome = await_child(enclosure, &mut armed).and_then(|()| match armed.failure {
        Some(_) => Ok(()),
        None => attach(enclosure, meters, batch, &mut armed).map(|attached| armed.attached = Some(attached)),
    });
    match outcome {
        Ok(()) => Ok(armed),
        Err(error) => {
            enclosure.abandon(armed);
            Err(error)
        }
    }
}

/// Ends a child that was begun and is not wanted any more.
pub(super) fn give_up_begun(enclosure: &mut Enclosure, mut armed: Armed) {
    let _ = await_child(enclosure, &mut armed);
    enclosure.abandon(armed);
}

fn await_child(enclosure: &Enclosure, armed: &mut Armed) -> Result<(), LaunchError> {
    let progress = wait_until_ready(enclosure)?;
    let page = enclosure.page();
    if page.has_entered_slowly() {
        armed.degraded.push(
            "CLONE_INTO_CGROUP: refused by this kernel or container; the run was moved into its group".into(),
        );
    }
    armed.pid = Some(Pid::from_raw(page.pid())).filter(|pid| pid.as_raw() > 0);
    if progress != Progress::Ready {
        armed.failure = Some(reason_of_failure(page, progress));
    }
    Ok(())
}

fn wait_until_ready(enclosure: &Enclosure) -> Result<Progress, LaunchError> {
    let page = enclosure.page();
    let begin = Instant::now();
    loop {
        match page.wait_for_progress(LOOK_AFTER) {
            Progress::SettingUp => {}
            other => return Ok(other),
        }
        let pid = page.pid();
        if pid > 0 && has_ended(Pid::from_raw(pid)) {
            return Ok(page.progress());
        }
        if enclosure.has_lost_zygote() {
            // A child may have got on until then.
            return match page.progress() {
                Progress::SettingUp => {
                    Err(LaunchError::Zygote { what: "ended while it set a run up".into() })
                }
                other => Ok(other),
            };
        }
        if begin.elapsed() > SET_UP_PATIENCE {
            return Err(LaunchError::Zygote {
                what: format!("set nothing up within {} s", SET_UP_PATIENCE.as_secs()),
            });
        }
    }
}

fn reason_of_failure(page: &Page, progress: Progress) -> String {
    if progress == Progress::Failed {
        return page.failure().1;
    }
    "the child was killed while it was set up; a memory limit below 1 MiB does that".to_owned()
}

fn attach(
    enclosure: &Enclosure,
    meters: &mut Meters,
    batch: &Batch,
    armed: &mut Armed,
) -> Result<Attached, LaunchError> {
    let page = enclosure.page();
    let pid = page.pid();
    let pidfd = pidfd_open(pid)?;
    if page.is_spared() {
        mark_as_victim(pid)?;
    }
    let stamper = Stamper::attach(pid, batch.spec.stamp_source, &batch.watch, &mut armed.degraded)?;
    let refusals = page.listener().and_then(|listener| Refusals::take(pidfd.as_fd(), listener).ok());
    Ok(Attached {
        pidfd,
        refusals,
        stamper,
        counters: Counters::open(pid, &batch.spec.counters),
        schedstat: File::open(format!("/proc/{pid}/schedstat")).ok(),
        _namespaces: if matches!(batch.spec.isolation, Isolation::Sandbox(_)) {
            ["mnt", "ipc"].map(|name| File::open(format!("/proc/{pid}/ns/{name}")).ok())
        } else {
            [None, None]
        },
        steal_before_ns: meters.steal.before(),
        swapped_before: meters.swaps.as_ref().and_then(Swaps::pages),
        before: enclosure.groups().sample_before(armed.leaf.as_ref(), armed.idle),
    })
}

/// Makes a child the first victim when memory is short, which a zygote that is spared has not made it.
fn mark_as_victim(pid: i32) -> Result<(), LaunchError> {
    std::fs::write(format!("/proc/{pid}/oom_score_adj"), "1000")
        .during("mark the run as the first victim of a lack of memory")
}

fn has_ended(pid: Pid) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    !matches!(waitid(Id::Pid(pid), flags), Ok(WaitStatus::StillAlive))
}

fn pidfd_open(pid: i32) -> Result<OwnedFd, LaunchError> {
    // SAFETY: no pointers are passed.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let raw = nix::errno::Errno::result(raw).during("open the run's process descriptor")?;
    let raw = i32::try_from(raw).unwrap_or(-1);
    // SAFETY: the kernel just gave this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}
