//! The loop: wait for pressure, look, decide, throttle.

use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::daemon::tell_service_manager;
use crate::law::{Allowance, Law, Observation, Settings};
use crate::status::{Counters, FORMAT, Status};
use crate::{GovernError, Home, Journal, Throttle, Watch};

/// Between two looks where the kernel does not tell of pressure.
const IDLE_LOOK: Duration = Duration::from_millis(250);
/// Between two status files while nothing changes.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// What one governor does.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) state: PathBuf,
    pub(crate) home: Home,
    pub(crate) services: Vec<PathBuf>,
    pub(crate) settings: Settings,
}

/// Governs until a signal asks to end, then restores everything.
pub(crate) fn govern(task: &Task, ready: &mut dyn Write) -> Result<(), GovernError> {
    let signals = catch_signals()?;
    let throttle = Throttle::new(&task.home);
    if !throttle.has_quota() && throttle.freezer_version().is_none() {
        let message = "there is neither a quota nor a freezer for best-effort commands here";
        let hint = "run as root, or inside `systemd-run --user --scope -p Delegate=yes`";
        return Err(GovernError::capability(message, hint));
    }
    let watch = Watch::new(&task.services, &task.home, task.settings.high)?;
    Journal::write(&task.state, throttle.originals())?;
    let mut governor = Governor::new(task, throttle, watch);
    governor.tell();
    writeln!(ready, "ready")
        .and_then(|()| ready.flush())
        .map_err(|source| GovernError::system("cannot write to standard output", source))?;
    tell_service_manager();
    let answer = governor.follow(&signals);
    let restored = governor.throttle.restore();
    Status::remove(&task.state);
    restored.map_err(|source| GovernError::system("cannot restore every group", source))?;
    Journal::remove(&task.state);
    answer
}

fn catch_signals() -> Result<SignalFd, GovernError> {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        set.add(signal);
    }
    let attempt = set.thread_block().and_then(|()| SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC));
    attempt.map_err(|error| GovernError::system("cannot catch signals", error))
}

#[derive(Debug)]
struct Governor<'a> {
    state: &'a Path,
    settings: Settings,
    groups: Vec<String>,
    law: Law,
    throttle: Throttle,
    watch: Watch,
    begin: Instant,
    /// When and how much had been used at the last look.
    last_look: Option<(Instant, Option<u64>)>,
    last_told: Option<Instant>,
    counters: Counters,
    pressure: f64,
    used_cpus: Option<f64>,
    problem: Option<String>,
}

enum Woken {
    Time,
    Pressure,
    /// A watched group was removed.
    Loss,
    Signal,
}

impl<'a> Governor<'a> {
    fn new(task: &'a Task, throttle: Throttle, watch: Watch) -> Self {
        Self {
            state: &task.state,
            settings: task.settings,
            groups: task.home.groups().iter().map(|path| path.display().to_string()).collect(),
            law: Law::new(task.settings),
            throttle,
            watch,
            begin: Instant::now(),
            last_look: None,
            last_told: None,
            counters: Counters::default(),
            pressure: 0.0,
            used_cpus: None,
            problem: None,
        }
    }

    fn follow(&mut self, signals: &SignalFd) -> Result<(), GovernError> {
        // None: until there is pressure.
        let mut pause = None;
        loop {
            match self.wait(signals, pause)? {
                Woken::Signal => return Ok(()),
                Woken::Loss => self.watch.lose(),
                Woken::Pressure => {
                    // The kernel tells of its own window: begin one of ours, and judge by that.
                    self.counters.wakeups += 1;
                    self.watch.measure();
                    self.last_look = Some((Instant::now(), self.throttle.used_ns()));
                    pause = Some(self.settings.tick_ns);
                }
                Woken::Time => {
                    let again_ns = self.look();
                    // A blink is over when it is over, whatever a look costs.
                    let is_blink = again_ns.is_some_and(|again_ns| again_ns < self.settings.tick_ns);
                    let least_ns = if is_blink { 0 } else { self.watch.least_pause_ns() };
                    pause = again_ns.map(|again_ns| again_ns.max(least_ns));
                }
            }
        }
    }

    /// Waits for a time, or for pressure where nothing is throttled.
    fn wait(&self, signals: &SignalFd, pause_ns: Option<u64>) -> Result<Woken, GovernError> {
        let triggers = if pause_ns.is_none() { self.watch.triggers() } else { Vec::new() };
        let pause = match pause_ns {
            Some(pause_ns) => Some(Duration::from_nanos(pause_ns)),
            None if triggers.is_empty() => {
                Some(IDLE_LOOK.max(Duration::from_nanos(self.watch.least_pause_ns())))
            }
            None => None,
        };
        let mut files = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        files.extend(triggers.into_iter().map(|file| PollFd::new(file, PollFlags::POLLPRI)));
        // Rounded up: a look that comes too early would see its time not yet over.
        let timeout = pause.map_or(PollTimeout::NONE, |pause| {
            PollTimeout::try_from(pause.as_nanos().div_ceil(1_000_000)).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut files, timeout) {
            Ok(0) | Err(Errno::EINTR) => return Ok(Woken::Time),
            Ok(_) => {}
            Err(error) => return Err(GovernError::system("cannot wait for pressure", error)),
        }
        let events = |file: &PollFd<'_>| file.revents().unwrap_or(PollFlags::empty());
        if !events(&files[0]).is_empty() {
            return Ok(Woken::Signal);
        }
        if files[1..].iter().any(|file| events(file).contains(PollFlags::POLLERR)) {
            return Ok(Woken::Loss);
        }
        Ok(Woken::Pressure)
    }

    /// Looks, decides and acts; gives when to look again.
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of CPU time within a few looks")]
    fn look(&mut self) -> Option<u64> {
        let now = Instant::now();
        let used_ns = self.throttle.used_ns();
        let elapsed_ns = self.last_look.map_or(0, |(last, _)| nanos(now.duration_since(last)));
        let before_ns = self.last_look.and_then(|(_, before_ns)| before_ns);
        self.used_cpus = match (before_ns, used_ns) {
            (Some(before_ns), Some(used_ns)) if elapsed_ns > 0 => {
                Some(used_ns.saturating_sub(before_ns) as f64 / elapsed_ns as f64)
            }
            _ => None,
        };
        self.last_look = Some((now, used_ns));
        self.pressure = self.watch.measure();
        self.counters.looks += 1;
        let before = self.law.allowance();
        match before {
            Allowance::Free => {}
            Allowance::Limited(_) => self.counters.limited_ns += elapsed_ns,
            Allowance::Parked => self.counters.parked_ns += elapsed_ns,
        }
        let now_ns = nanos(now.duration_since(self.begin));
        let decision =
            self.law.decide(Observation { now_ns, pressure: self.pressure, used_cpus: self.used_cpus });
        let refused = self.throttle.apply(decision.allowance).err().map(|error| error.to_string());
        let lost = self.watch.is_lost().then(|| "a service's group is gone".to_owned());
        self.problem = refused.or(lost);
        self.count(before, decision.allowance);
        let is_due = self.last_told.is_none_or(|told| told.elapsed() >= STATUS_INTERVAL);
        if before != decision.allowance || is_due {
            self.tell();
        }
        if decision.allowance == Allowance::Free && before != Allowance::Free {
            self.forget_events();
        }
        decision.look_again_ns
    }

    /// What the kernel told meanwhile was about the time before the release.
    fn forget_events(&self) {
        let mut files: Vec<PollFd<'_>> =
            self.watch.triggers().into_iter().map(|file| PollFd::new(file, PollFlags::POLLPRI)).collect();
        let _ = poll(&mut files, PollTimeout::ZERO);
    }

    fn count(&mut self, before: Allowance, now: Allowance) {
        match (before, now) {
            (Allowance::Parked, Allowance::Parked)
            | (Allowance::Limited(_), Allowance::Limited(_))
            | (Allowance::Free, Allowance::Free) => {}
            (_, Allowance::Parked) => self.counters.parks += 1,
            (Allowance::Parked, Allowance::Limited(_)) => self.counters.thaws += 1,
            (Allowance::Free, Allowance::Limited(_)) => self.counters.throttles += 1,
            (_, Allowance::Free) => self.counters.releases += 1,
        }
    }

    fn tell(&mut self) {
        self.last_told = Some(Instant::now());
        let allowance = self.law.allowance();
        let (word, quota_cpus) = match allowance {
            Allowance::Free => ("free", None),
            Allowance::Limited(cpus) => ("limited", Some(cpus)),
            Allowance::Parked => ("parked", None),
        };
        let status = Status {
            format: FORMAT.to_owned(),
            process_id: std::process::id(),
            watches: self.watch.describe(),
            is_event_driven: !self.watch.triggers().is_empty(),
            groups: self.groups.clone(),
            has_quota: self.throttle.has_quota(),
            freezer_version: self.throttle.freezer_version().map_or(0, crate::Version::number),
            allowance: word.to_owned(),
            quota_cpus,
            pressure: self.pressure,
            pressure_alone: self.law.alone(),
            used_cpus: self.used_cpus,
            counters: self.counters,
            problem: self.problem.clone(),
        };
        status.write(self.state);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
