//! The thread that ends a run at its limits.
//!
//! The keeper measures, and waits for a CPU like everybody: on a loaded host for seconds. So what must not
//! wait is done here, by a thread that sleeps until a limit may be reached, with the highest priority that it
//! may have. It owns all it needs, takes no lock that the keeper holds while a run executes, and goes on
//! ending the run until the keeper says that nothing is left. Behind it stand the kernel's own limits.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::{Pid, SysconfVar, sysconf};
use steelyard_host::cgroup::Grip;
use steelyard_model::Limits;

use super::stamps::{Beginning, StartOf};
use super::timers::{Timer, next_look};
use super::verdict::Cause;
use crate::clock::monotonic_ns;
use crate::error::{During, LaunchError};
use crate::perf::Counter;
use crate::scheduling::{Precedence, give_precedence, take_precedence};
use crate::shared_page::SharedPage;

/// What is forked while a run is being ended is ended this much later.
const NEXT_BLOW: Duration = Duration::from_millis(1);
/// What has not died by then waits for its group's real-time time, which may be a second away.
const LAST_BLOW_IN_REAL_TIME: u32 = 4;
/// A group that is empty but for what is buried is looked at this much later.
const NEXT_LOOK_AT_THE_DEAD: Duration = Duration::from_millis(20);
/// Somebody else reads the stamps: that takes microseconds, unless that thread lost its CPU meanwhile [ns].
const BUSY_NS: u64 = 200_000;
/// So long the exact start is waited for; then the child's own stamp has to do.
const MOST_PATIENCE_NS: u64 = 5_000_000;
/// A child that has not called `execve` so long after its gate opened never will [ns].
const MOST_TIME_TO_BEGIN_NS: u64 = 30_000_000_000;
/// A longer call of `execve` has waited for storage or for a CPU, and used no more CPU time than this [ns].
const MOST_WORK_OF_A_LAUNCH_NS: u64 = 5_000_000;

/// A run is ended so long after its limit, lest it is charged with less: its record takes off what the kernel
/// needed to take it down [ns].
const CPU_GRAIN_NS: u64 = 300_000;
/// By so much, and one part in so many of the limit, the two meters of one thread's CPU time may be apart [ns].
const MOST_APART_NS: u64 = 5_000_000;
const MOST_APART_RATIO: u64 = 200;
/// SOURCE: `CONFIG_HZ` is 100 or more in every kernel that is distributed.
const LONGEST_TICK_NS: u64 = 10_000_000;
/// Of more CPUs the rest is seen at its ticks: a visit takes some 20 us.
const MOST_VISITS: usize = 32;

/// Part of the host's memory that the kernel may need for a run: 1 in so many. What processes leave that
/// multiply faster than the kernel buries them is bounded by nothing else where memory has no limit.
const KERNEL_MEMORY_PART: u64 = 8;
/// Faster than this the kernel's memory for a run does not grow [bytes/s]; three times what was seen of trees
/// whose every fork fails.
const FASTEST_GROWTH: u64 = 1 << 30;
const SHORTEST_WATCH: Duration = Duration::from_millis(20);
const LONGEST_WATCH: Duration = Duration::from_secs(1);

/// How much memory the kernel may need for a run [bytes]; `None` if the host does not say how much it has.
fn kernel_memory_limit() -> Option<u64> {
    let number = |name| sysconf(name).ok().flatten().and_then(|value| u64::try_from(value).ok());
    Some(number(SysconfVar::_PHYS_PAGES)?.checked_mul(number(SysconfVar::PAGE_SIZE)?)? / KERNEL_MEMORY_PART)
}

/// A run in the hands of the enforcer.
#[derive(Debug)]
pub(super) struct Charge {
    pub(super) limits: Limits,
    pub(super) cpus: Vec<u32>,
    pub(super) gate_ns: u64,
    /// First process.
    pub(super) pidfd: OwnedFd,
    pub(super) start: StartOf,
    /// What was known of it at the last look.
    pub(super) beginning: Beginning,
    pub(super) page: Arc<SharedPage>,
    pub(super) grip: Grip,
    /// CPU time of the groups before the gate [ns].
    pub(super) usage_before_ns: u64,
    pub(super) oom_kills_before: Option<u64>,
    /// [`Enforcer::kernel_memory_limit`].
    pub(super) kernel_memory_limit: Option<u64>,
    /// Counts where no group does.
    pub(super) counter: Arc<Counter>,
    /// Why the run is being ended.
    pub(super) cause: Option<Cause>,
    /// CPU time of the tree when it was ended for it [ns]: what comes after is the kernel's work on its end.
    pub(super) most_cpu_ns: Option<u64>,
    /// How often it was struck.
    pub(super) blows: u32,
}

/// How a run was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Enforced {
    pub(super) cause: Cause,
    /// [`Charge::most_cpu_ns`].
    pub(super) most_cpu_ns: Option<u64>,
}

/// The thread, and what it shares with the keeper.
#[derive(Debug)]
pub(super) struct Enforcer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    kernel_memory_limit: Option<u64>,
}

#[derive(Debug)]
struct Shared {
    charge: Mutex<Option<Charge>>,
    timer: Timer,
    /// Becomes readable when the version 1 groups are out of memory.
    memory_alarm: Option<OwnedFd>,
    quit: EventFd,
}

impl Enforcer {
    /// Starts the thread. The caller forks no more.
    pub(super) fn start(memory_alarm: Option<OwnedFd>) -> Result<Self, LaunchError> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let shared = Arc::new(Shared {
            charge: Mutex::default(),
            timer: Timer::new()?,
            memory_alarm,
            quit: EventFd::from_value_and_flags(0, flags).during("create an event")?,
        });
        let its = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("steelyard-limits".into()).spawn(move || its.live());
        let thread = Some(thread.during("start the thread that enforces limits")?);
        Ok(Self { shared, thread, kernel_memory_limit: kernel_memory_limit() })
    }

    /// How much memory the kernel may need for a run [bytes].
    pub(super) const fn kernel_memory_limit(&self) -> Option<u64> {
        self.kernel_memory_limit
    }

    /// Takes a run over, right before its gate opens.
    pub(super) fn take(&self, charge: Charge) -> Result<(), LaunchError> {
        let first = charge.first_look();
        *self.shared.charge() = Some(charge);
        first.map_or(Ok(()), |after| self.shared.timer.arm(after))
    }

    /// Gives a run back, whose first process has ended. Answers how it was being ended, if it was.
    pub(super) fn give_back(&self) -> Result<Option<Enforced>, LaunchError> {
        let charge = self.shared.charge().take();
        self.shared.timer.disarm()?;
        let of = |charge: Charge| Some(Enforced { cause: charge.cause?, most_cpu_ns: charge.most_cpu_ns });
        Ok(charge.and_then(of))
    }
}

impl Drop for Enforcer {
    fn drop(&mut self) {
        let _ = self.shared.quit.write(1);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn charge(&self) -> MutexGuard<'_, Option<Charge>> {
        self.charge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) {
        take_precedence();
        let mut watched: Vec<BorrowedFd<'_>> = vec![self.quit.as_fd(), self.timer.descriptor()];
        watched.extend(self.memory_alarm.as_ref().map(AsFd::as_fd));
        loop {
            let mut polled: Vec<PollFd<'_>> =
                watched.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
            if poll(&mut polled, PollTimeout::NONE).is_err() {
                continue;
            }
            let events: Vec<PollFlags> =
                polled.iter().map(|fd| fd.revents().unwrap_or(PollFlags::empty())).collect();
            if events[0].contains(PollFlags::POLLIN) {
                return;
            }
            let broken = PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL;
            if events.get(2).is_some_and(|events| events.intersects(broken)) {
                // It would be ready for ever.
                watched.truncate(2);
            }
            let is_alarmed = events.get(2).is_some_and(|events| events.contains(PollFlags::POLLIN));
            if is_alarmed && let Some(alarm) = &self.memory_alarm {
                // Only the fact matters, and that it is no longer readable.
                let _ = nix::unistd::read(alarm, &mut [0_u8; 8]);
            }
            let mut charge = self.charge();
            // An error here is one of a descriptor of our own that is not closed before the thread ends.
            let _ = match charge.as_mut().and_then(|charge| charge.look(is_alarmed)) {
                Some(after) => self.timer.arm(after),
                None => self.timer.disarm(),
            };
        }
    }
}

impl Charge {
    fn first_look(&self) -> Option<Duration> {
        // The stamp of the start is read before it is needed: then somebody else may be reading.
        let wall = self.limits.wall_time_ns.map(|limit_ns| Duration::from_nanos(limit_ns / 2));
        let cpu = self.limits.cpu_time_ns.map(|limit_ns| next_look(limit_ns, self.cpus.len()));
        [wall, cpu, self.watch_memory()].into_iter().flatten().min()
    }

    /// Looks whether a limit is reached, and ends the run if so. Answers when to look again.
    fn look(&mut self, is_alarmed: bool) -> Option<Duration> {
        if is_alarmed && self.grip.oom_kills() > self.oom_kills_before {
            self.cause.get_or_insert(Cause::Memory);
        }
        if self.cause.is_some() {
            return Some(self.strike());
        }
        let now_ns = monotonic_ns();
        // Who reads the stamps may have lost its CPU to what is to be ended here, and is not waited for.
        let read = self.start.try_read(&self.page);
        let is_being_read = read.is_err();
        self.beginning = read.unwrap_or(self.beginning);
        let Beginning { start_ns: stamped_ns, is_alone } = self.beginning;
        let may_be_missed =
            self.start.may_be_missed() && (!is_being_read || self.is_beyond(now_ns, MOST_PATIENCE_NS));
        let is_past = |called_ns: &u64| now_ns.saturating_sub(*called_ns) > MOST_PATIENCE_NS;
        let called_ns = self.page.exec_ns().filter(is_past).filter(|_| may_be_missed);
        let wall = self.limits.wall_time_ns.map(|limit_ns| match stamped_ns.or(called_ns) {
            Some(start_ns) => limit_ns.saturating_sub(now_ns.saturating_sub(start_ns)),
            None if is_being_read => BUSY_NS,
            // The program has not begun, so its time has not either.
            None if now_ns.saturating_sub(self.gate_ns) < limit_ns.saturating_add(MOST_TIME_TO_BEGIN_NS) => {
                (limit_ns / 8).max(MOST_PATIENCE_NS)
            }
            None => 0,
        });
        if wall == Some(0) {
            self.cause = Some(Cause::WallTime);
            return Some(self.strike());
        }
        let wall = wall.map(Duration::from_nanos);
        let cpu = self.limits.cpu_time_ns.map(|limit_ns| {
            let rest_ns = self.cpu_rest_ns(stamped_ns, is_alone, limit_ns);
            if rest_ns == 0 {
                self.cause = Some(Cause::CpuTime);
            }
            next_look(rest_ns, self.cpus.len())
        });
        let memory = self.watch_memory();
        if memory == Some(Duration::ZERO) {
            self.cause.get_or_insert(Cause::KernelMemory);
        }
        if self.cause.is_some() {
            let next = self.strike();
            if self.cause == Some(Cause::CpuTime) {
                // None of its processes executes a further instruction of its own.
                visit(&self.cpus);
                self.most_cpu_ns = self.group_cpu_ns(stamped_ns);
            }
            return Some(next);
        }
        [wall, cpu, memory].into_iter().flatten().min()
    }

    /// When to look at the kernel's memory again, no earlier than it can have reached its limit; at once if it
    /// has.
    fn watch_memory(&self) -> Option<Duration> {
        let limit = self.kernel_memory_limit?;
        // All memory is one number, the kernel's part of it a sum over CPUs.
        let mut room = limit.saturating_sub(self.grip.memory_bytes()?);
        if room == 0 {
            room = limit.saturating_sub(self.grip.kernel_memory_bytes()?);
        }
        if room == 0 {
            return Some(Duration::ZERO);
        }
        let after = Duration::from_millis(room.saturating_mul(1000) / FASTEST_GROWTH);
        Some(after.clamp(SHORTEST_WATCH, LONGEST_WATCH))
    }

    /// Whether the wall time is over by so much, by the child's own stamp.
    fn is_beyond(&self, now_ns: u64, by_ns: u64) -> bool {
        let limit_ns = self.limits.wall_time_ns.unwrap_or(u64::MAX);
        let begin_ns = self.page.exec_ns().unwrap_or(self.gate_ns);
        now_ns.saturating_sub(begin_ns) > limit_ns.saturating_add(by_ns)
    }

    /// CPU time that the tree may use at least until its record says that the limit is reached [ns]; 0 if it is.
    fn cpu_rest_ns(&self, start_ns: Option<u64>, is_alone: bool, limit_ns: u64) -> u64 {
        let end_ns = limit_ns + CPU_GRAIN_NS;
        let call_ns = self.call_ns(start_ns);
        let by_counter_ns = || self.counter.read().map(|counted_ns| counted_ns.saturating_sub(call_ns));
        let Some(used_ns) = self.group_cpu_ns(start_ns) else {
            let used_ns = by_counter_ns().or_else(|| self.process_clock_ns()).unwrap_or(0);
            return end_ns.saturating_sub(used_ns);
        };
        // What runs now is charged at its CPU's next tick.
        let uncharged_ns = LONGEST_TICK_NS * self.cpus.len() as u64;
        if used_ns + uncharged_ns < limit_ns {
            return limit_ns - used_ns - uncharged_ns;
        }
        visit(&self.cpus);
        let used_ns = self.group_cpu_ns(start_ns).unwrap_or(used_ns);
        let rest_ns = end_ns.saturating_sub(used_ns);
        let most_ns = (end_ns + MOST_APART_NS + limit_ns / MOST_APART_RATIO).saturating_sub(used_ns);
        if rest_ns > 0 || most_ns == 0 || !is_alone {
            return rest_ns;
        }
        // To read the counter takes a lock that a dying process may hold, so that is done last.
        by_counter_ns().map_or(0, |counted_ns| end_ns.saturating_sub(counted_ns).min(most_ns))
    }

    /// CPU time of the tree by its group, without what the launch may have used [ns].
    fn group_cpu_ns(&self, start_ns: Option<u64>) -> Option<u64> {
        let set_up = self.page.usage();
        let launch_ns = set_up.cpu_at_call_ns.saturating_sub(set_up.cpu_at_gate_ns) + self.call_ns(start_ns);
        Some(self.grip.usage_ns()?.saturating_sub(self.usage_before_ns + launch_ns))
    }

    /// What the call of `execve` may have used [ns].
    fn call_ns(&self, start_ns: Option<u64>) -> u64 {
        let span_ns = self.page.call_ns(start_ns).or(self.page.exec_ns()).unwrap_or(0);
        span_ns.min(MOST_WORK_OF_A_LAUNCH_NS)
    }

    /// CPU time of the first process alone, where nothing counts the tree.
    fn process_clock_ns(&self) -> Option<u64> {
        let clock = nix::time::clock_getcpuclockid(Pid::from_raw(self.page.pid())).ok()?;
        let time = nix::time::clock_gettime(clock).ok()?;
        let part = |value: i64| u64::try_from(value).unwrap_or(0);
        Some(part(time.tv_sec()) * 1_000_000_000 + part(time.tv_nsec()))
    }

    /// Ends what is there. The first process goes first, by no more than its descriptor, and is then put
    /// before the others: to die takes a CPU too.
    fn strike(&mut self) -> Duration {
        end_process(&self.pidfd);
        let is_left = self.grip.end();
        self.blows = self.blows.saturating_add(1);
        // Its number is its own until the keeper takes it over.
        match self.blows {
            1 => give_precedence(self.page.pid(), Precedence::RealTime),
            LAST_BLOW_IN_REAL_TIME => give_precedence(self.page.pid(), Precedence::Nice),
            _ => {}
        }
        if is_left { NEXT_BLOW } else { NEXT_LOOK_AT_THE_DEAD }
    }
}

/// Runs on each of these CPUs for a moment: that takes them from what runs there, whose group is charged with
/// its time at each switch, and otherwise at each tick alone.
fn visit(cpus: &[u32]) {
    let own = Pid::from_raw(0);
    let Ok(before) = sched_getaffinity(own) else { return };
    for cpu in cpus.iter().take(MOST_VISITS) {
        let mut there = CpuSet::new();
        if there.set(*cpu as usize).is_ok() {
            let _ = sched_setaffinity(own, &there);
        }
    }
    let _ = sched_setaffinity(own, &before);
}

fn end_process(pidfd: &OwnedFd) {
    let none = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a null `siginfo` asks for the same as `kill`; one that has ended is refused.
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), libc::SIGKILL, none, 0) };
}

#[cfg(test)]
mod tests;
