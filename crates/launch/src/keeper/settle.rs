//! After the exit: nothing is left, everything is read, the next leaf is ready.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use steelyard_host::cgroup::{Readings, Sample};
use steelyard_model::Isolation;

use super::arm;
use super::armed::{Armed, Attached};
use super::batch::Batch;
use super::cpu_time::longest_burial_ns;
use super::enclosure::Enclosure;
use super::evidence::Evidence;
use super::meters::Meters;
use super::record::{self, Failed, Report};
use super::stamps::Interval;
use super::swaps::Swaps;
use crate::clock::monotonic_ns;
use crate::error::{During, LaunchError};
use crate::shared_page::{Progress, SetUpUsage};

/// What a run said itself, taken before the next child may write over it.
struct Said {
    usage: libc::rusage,
    run_delay_ns: Option<u64>,
    interval: Interval,
    set_up: SetUpUsage,
    call_ns: Option<u64>,
    residents: Sample,
    exec_failure: Option<(i32, String)>,
    status: WaitStatus,
    nothing_left_ns: u64,
    has_left: bool,
    /// Whether the pool was ended from outside, and the run with it.
    has_lost_pool: bool,
}

/// What a run is settled with.
pub(super) struct Settlement<'a> {
    pub(super) enclosure: &'a mut Enclosure,
    pub(super) meters: &'a mut Meters,
    pub(super) batch: &'a Batch,
}

impl Settlement<'_> {
    /// Ends what is left of a run and makes its record. Meanwhile the zygote sets the child of the
    /// iteration `following` up, whose completion is the caller's.
    pub(super) fn settle(
        &mut self,
        mut armed: Armed,
        following: Option<u32>,
    ) -> Result<(Report, Option<Armed>), LaunchError> {
        let Some(mut attached) = armed.attached.take().filter(|_| armed.gate_ns != armed.begin_ns) else {
            return Ok((self.settle_unexecuted(armed)?, None));
        };
        let said = self.listen(&mut armed, &mut attached)?;
        let next =
            following.map(|iteration| arm::begin(self.enclosure, self.batch, iteration)).transpose()?;
        match self.conclude(armed, &attached, said) {
            Ok(report) => Ok((report, next)),
            Err(error) => {
                if let Some(next) = next {
                    arm::give_up_begun(self.enclosure, next);
                }
                Err(error)
            }
        }
    }

    /// A run whose child never reached its gate, or whose gate never opened.
    fn settle_unexecuted(&mut self, mut armed: Armed) -> Result<Report, LaunchError> {
        let failed = Failed {
            message: armed.failure.take(),
            exec_errno: None,
            is_cancelled: armed.is_cancelled(),
            begin_ns: armed.begin_ns,
            iteration: armed.iteration,
        };
        self.enclosure.abandon(armed);
        self.enclosure.groups_mut().provide_spare()?;
        Ok(record::failed(self.batch, self.enclosure.cgroup(), failed))
    }

    /// Ends what is left and reads what the next child would change: processes, page, groups that
    /// all runs share.
    fn listen(&mut self, armed: &mut Armed, attached: &mut Attached) -> Result<Said, LaunchError> {
        let pid = armed.pid.ok_or_else(|| LaunchError::Zygote { what: "cloned nothing".into() })?;
        let status = exit_status(pid)?;
        let run_delay_ns = attached.schedstat.as_ref().and_then(run_delay_ns);
        let has_left = self.enclosure.end_left_processes(armed)?;
        if armed.enforced.is_some() {
            self.enclosure.groups().relax()?;
        }
        let usage = wait4(pid)?;
        armed.pid = None;
        // Who asks has to be sure: a zygote that is on its way out answers no more.
        let has_lost_pool = armed.cause.is_none()
            && matches!(status, WaitStatus::Signaled(_, Signal::SIGKILL, _))
            && self.enclosure.has_lost_pool();
        self.enclosure.reap_orphans();
        let page = self.enclosure.page();
        let interval = attached.stamper.interval(page, armed.waited_ns);
        Ok(Said {
            usage,
            run_delay_ns,
            status,
            has_left,
            has_lost_pool,
            nothing_left_ns: monotonic_ns(),
            call_ns: page.call_ns(interval.start_ns),
            interval,
            set_up: page.usage(),
            residents: self.enclosure.groups().sample_residents(),
            exec_failure: (page.progress() == Progress::ExecFailed).then(|| page.failure()),
        })
    }

    /// Reads what is the run's alone, removes its leaf, makes its record.
    fn conclude(&mut self, mut armed: Armed, attached: &Attached, said: Said) -> Result<Report, LaunchError> {
        let steal_ns = self.meters.steal.now().zip(attached.steal_before_ns);
        let steal_ns = steal_ns.map(|(now, before)| now.saturating_sub(before));
        let swapped_pages = self.meters.swaps.as_ref().and_then(Swaps::pages).zip(attached.swapped_before);
        let swapped_pages = swapped_pages.map(|(now, before)| now.saturating_sub(before));
        armed.streams.output.drain();
        armed.streams.error.drain();
        let after = self.enclosure.groups().sample_after(armed.leaf.as_ref(), &said.residents);
        if let Some(leaf) = armed.leaf.take() {
            // A program outside of a sandbox may have written to its group's files.
            if matches!(self.batch.spec.isolation, Isolation::Sandbox(_)) {
                self.enclosure.groups_mut().give_back(leaf)?;
            } else {
                leaf.remove()?;
            }
        }
        self.enclosure.groups_mut().provide_spare()?;
        let failed = |message: String, exec_errno| Failed {
            message: Some(message),
            exec_errno,
            is_cancelled: false,
            begin_ns: armed.begin_ns,
            iteration: armed.iteration,
        };
        if let Some((errno, message)) = said.exec_failure {
            return Ok(record::failed(self.batch, self.enclosure.cgroup(), failed(message, Some(errno))));
        }
        let readings = Readings::between(&attached.before, &after, self.meters.tick_ns);
        if said.has_lost_pool && readings.oom_kills.unwrap_or(0) == 0 {
            let message = "the sandbox was killed from outside, and the run with it".into();
            return Ok(record::failed(self.batch, self.enclosure.cgroup(), failed(message, None)));
        }
        let burial_ns = said.interval.burial_ns.map(|span_ns| self.meters.steps.burial.bound(span_ns));
        let waited_after_end_ns = said.interval.burial_ns.zip(burial_ns).map_or(0, |(span_ns, bound_ns)| {
            span_ns.saturating_sub(bound_ns.min(longest_burial_ns(said.usage.ru_minflt)))
        });
        let evidence = Evidence {
            status: said.status,
            interval: Interval { burial_ns, ..said.interval },
            stamps: attached.stamper.source(),
            usage: said.usage,
            set_up: said.set_up,
            call_ns: said.call_ns.map(|span_ns| self.meters.steps.call.bound(span_ns)),
            readings,
            run_delay_ns: said.run_delay_ns,
            waited_after_end_ns,
            swapped_pages,
            steal_ns,
            steal_step_ns: self.meters.steal.step_ns(),
            tick_ns: self.meters.tick_ns,
            nothing_left_ns: said.nothing_left_ns,
            has_left: said.has_left,
            cpus: self.batch.cpus.len(),
            has_refusals: attached.refusals.as_ref().is_some_and(|heard| heard.calls().next().is_some()),
            cgroup: self.enclosure.cgroup(),
        };
        Ok(record::outcome(armed, &attached.counters, &evidence, self.batch))
    }
}

/// How the first process ended; it stays a zombie.
fn exit_status(pid: Pid) -> Result<WaitStatus, LaunchError> {
    loop {
        match waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
            Err(Errno::EINTR) => {}
            other => return other.during("read how the run ended"),
        }
    }
}

/// Time the first process was runnable but not running, exec and set-up included.
fn run_delay_ns(schedstat: &File) -> Option<u64> {
    let mut text = [0_u8; 96];
    let length = schedstat.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn wait4(pid: Pid) -> Result<libc::rusage, LaunchError> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: the pointer is valid for the call, the status is not asked for.
        let result =
            unsafe { libc::wait4(pid.as_raw(), std::ptr::null_mut(), libc::__WALL, usage.as_mut_ptr()) };
        match Errno::result(result) {
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).during("wait for the run"),
            // SAFETY: all zeroes is a valid value, and the kernel has filled it.
            Ok(_) => return Ok(unsafe { usage.assume_init() }),
        }
    }
}
