use serde::Serialize;

use self::alone::Level;

mod alone;
#[cfg(test)]
mod tests;

/// Who uses less than this part of the smallest quota is no cause of anybody's waiting.
const NEGLIGIBLE: f64 = 0.2;

/// A service that waits so much of the time alone is overloaded: then best-effort commands get nothing, whatever they
/// do to it.
const OVERLOADED: f64 = 0.5;

/// Looks at a service alone that it takes to know how much it waits.
const FEWEST_LOOKS: u32 = 3;

/// Numbers of the control law. All of them are own choices, explained in `docs/guides/best-effort.md`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// CPUs of the host, above 0.
    pub cpus: f64,
    /// Share of time a service may wait before best-effort commands are throttled, 0 to 1.
    pub high: f64,
    /// Share of time below which the service counts as calm, at most `high`.
    pub low: f64,
    /// Calm time before the first release [ns].
    pub calm_ns: u64,
    /// Longest calm time that is asked for after releases that were too early [ns].
    pub calm_limit_ns: u64,
    /// Time between two looks while anything is throttled [ns].
    pub tick_ns: u64,
    /// Smallest quota [CPUs]; below it they are parked.
    pub smallest_cpus: f64,
    /// Longest time without any progress [ns].
    pub park_limit_ns: u64,
    /// How long parked commands are let run when that is over [ns].
    pub blink_ns: u64,
    /// How long they are parked to see what a service waits alone [ns].
    pub trial_ns: u64,
    /// How long that counts [ns].
    pub trial_interval_ns: u64,
    /// How long it counts while it leaves open whether commands make the service wait [ns].
    pub doubt_ns: u64,
}

impl Settings {
    /// The defaults for a host with a number of CPUs.
    #[must_use]
    pub fn for_cpus(cpus: f64) -> Self {
        Self {
            cpus,
            high: 0.05,
            low: 0.01,
            calm_ns: 1_000_000_000,
            calm_limit_ns: 16_000_000_000,
            tick_ns: 100_000_000,
            smallest_cpus: 0.05,
            park_limit_ns: 10_000_000_000,
            blink_ns: 50_000_000,
            trial_ns: 500_000_000,
            trial_interval_ns: 30_000_000_000,
            doubt_ns: 2_000_000_000,
        }
    }

    /// Longest time until everything is released after the last pressure, given one look per tick [ns].
    #[must_use]
    pub fn release_limit_ns(&self) -> u64 {
        let mut steps = 2;
        let mut quota = self.smallest_cpus;
        while quota < self.cpus {
            quota *= 2.0;
            steps += 1;
        }
        self.trial_ns + self.calm_limit_ns + self.blink_ns + steps * self.tick_ns
    }
}

/// What was seen at one look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Monotonic time [ns].
    pub now_ns: u64,
    /// Share of the time since the look before in which the service waited for a CPU, 0 to 1.
    pub pressure: f64,
    /// CPUs that best-effort commands used since then, if known.
    pub used_cpus: Option<f64>,
}

/// What best-effort commands may use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "cpus")]
pub enum Allowance {
    /// Everything.
    Free,
    /// A quota [CPUs].
    Limited(f64),
    /// Nothing.
    Parked,
}

/// The answer to an observation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// What holds from now on.
    pub allowance: Allowance,
    /// When to look again [ns from now]; nothing: when there is pressure.
    pub look_again_ns: Option<u64>,
}

/// Whether best-effort commands make the service wait.
#[derive(Debug, Clone, Copy)]
struct Excess {
    is_sure: bool,
    is_calm: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Free,
    Limited {
        cpus: f64,
        /// It was raised before: the next raise needs no calm time of its own.
        is_rising: bool,
    },
    Parked {
        since_ns: u64,
    },
    Blinking {
        since_ns: u64,
    },
    /// Parked for a moment, to see what the service waits alone; before, it waited `beside` of the time.
    Trying {
        since_ns: u64,
        beside: f64,
        used_cpus: Option<f64>,
    },
}

/// When best-effort commands are throttled and released.
///
/// A service waits for its own queue too. What counts is what it waits beyond that: at the first pressure, and again
/// when that is long ago, the commands are parked for a moment to see what it waits alone. Throttling halves, at each
/// look with pressure, from what they really use; below the smallest quota they are parked. Releasing doubles, at each
/// calm look, once the service has been calm for a while. Pressure within `calm_limit_ns` of a release doubles that
/// while. Between `low` and `high` nothing changes.
///
/// # Examples
///
/// ```
/// use steelyard_govern::{Allowance, Law, Observation, Settings};
///
/// let mut law = Law::new(Settings::for_cpus(4.0));
/// let look = |now_ns, pressure| Observation { now_ns, pressure, used_cpus: Some(4.0) };
/// assert_eq!(law.decide(look(0, 0.0)).allowance, Allowance::Free);
/// assert_eq!(law.decide(look(100_000_000, 0.5)).allowance, Allowance::Parked, "a trial");
/// for tick in 2..6 {
///     law.decide(look(tick * 100_000_000, 0.1));
/// }
/// assert_eq!(law.decide(look(600_000_000, 0.1)).allowance, Allowance::Limited(2.0), "it was they");
/// ```
#[derive(Debug, Clone)]
pub struct Law {
    settings: Settings,
    state: State,
    /// Calm time the next release needs.
    patience_ns: u64,
    calm_since_ns: Option<u64>,
    raised_ns: Option<u64>,
    /// Pressure without best-effort commands, and when it was seen last.
    alone: Level,
    alone_ns: Option<u64>,
    /// Pressure beside them since their allowance changed.
    beside: Level,
    /// Whether the look before was far above what the service waits alone.
    was_far: bool,
}

impl Law {
    /// Begins with everything released.
    #[must_use]
    pub const fn new(settings: Settings) -> Self {
        let patience_ns = settings.calm_ns;
        Self {
            settings,
            state: State::Free,
            patience_ns,
            calm_since_ns: None,
            raised_ns: None,
            alone: Level::new(),
            alone_ns: None,
            beside: Level::new(),
            was_far: false,
        }
    }

    /// Takes one observation; their times never go back.
    pub fn decide(&mut self, seen: Observation) -> Decision {
        let before = self.allowance();
        self.learn(seen);
        let excess = self.excess(seen.pressure);
        if excess.is_calm {
            self.calm_since_ns.get_or_insert(seen.now_ns);
        } else {
            self.calm_since_ns = None;
        }
        self.state = match self.state {
            State::Trying { since_ns, beside, used_cpus } => self.tried(seen, since_ns, beside, used_cpus),
            State::Free
                if !excess.is_sure && self.is_unknown(seen) && seen.pressure >= self.settings.high =>
            {
                State::Trying { since_ns: seen.now_ns, beside: seen.pressure, used_cpus: seen.used_cpus }
            }
            _ if excess.is_sure => self.throttled(seen),
            _ => self.relieved(seen.now_ns),
        };
        if self.allowance() != before {
            self.beside = Level::new();
            self.was_far = false;
        }
        Decision { allowance: self.allowance(), look_again_ns: self.look_again_ns(seen.pressure) }
    }

    /// What the service waits alone, as far as it is known: the share of the time.
    #[must_use]
    pub fn alone(&self) -> Option<f64> {
        self.alone_ns.filter(|_| self.alone.looks() >= FEWEST_LOOKS).map(|_| self.alone.mean())
    }

    /// Adds a look to what is known of the service alone or beside the commands.
    fn learn(&mut self, seen: Observation) {
        let is_idle = self.uses_nothing(seen);
        match self.state {
            // What was queued when they were parked is not the service's own.
            State::Parked { since_ns } | State::Trying { since_ns, .. }
                if seen.now_ns.saturating_sub(since_ns) <= self.settings.tick_ns => {}
            State::Parked { .. } | State::Trying { .. } => self.see_alone(seen),
            State::Free if is_idle => self.see_alone(seen),
            State::Free | State::Limited { .. } | State::Blinking { .. } => self.beside.add(seen.pressure),
        }
    }

    fn see_alone(&mut self, seen: Observation) {
        if self.alone_ns.is_some_and(|last_ns| self.is_past(last_ns, seen.now_ns)) {
            self.alone.fade();
        }
        self.alone.add(seen.pressure);
        self.alone_ns = Some(seen.now_ns);
    }

    const fn is_past(&self, last_ns: u64, now_ns: u64) -> bool {
        now_ns.saturating_sub(last_ns) > self.settings.trial_interval_ns
    }

    /// Whether the service seems to wait more beside the commands, and too little is known of it alone to say so.
    fn is_open(&self) -> bool {
        self.alone().is_some_and(|alone| self.beside.mean() - alone >= self.settings.high)
    }

    fn uses_nothing(&self, seen: Observation) -> bool {
        let negligible_cpus = self.settings.smallest_cpus * NEGLIGIBLE;
        seen.used_cpus.is_some_and(|used| used < negligible_cpus)
    }

    /// Whether a trial would tell more: commands are at work, and what the service waits alone is not known any more.
    fn is_unknown(&self, seen: Observation) -> bool {
        let is_doubtful =
            |last_ns| self.is_open() && seen.now_ns.saturating_sub(last_ns) > self.settings.doubt_ns;
        let is_stale =
            self.alone_ns.is_none_or(|last_ns| self.is_past(last_ns, seen.now_ns) || is_doubtful(last_ns));
        !self.uses_nothing(seen) && (is_stale || self.alone.looks() < FEWEST_LOOKS)
    }

    /// Compares a look, and those since the allowance changed, with what the service waits alone.
    fn excess(&mut self, pressure: f64) -> Excess {
        let Some(alone) = self.alone().filter(|alone| *alone < OVERLOADED) else {
            // Before the first trial nothing says that it is the commands' doing.
            let is_sure =
                pressure >= self.settings.high && (self.state != State::Free || self.alone().is_some());
            return Excess { is_sure, is_calm: pressure < self.settings.low };
        };
        let (high, low) = (self.settings.high, self.settings.low);
        let is_far = pressure - alone >= high.max(self.alone.margin(1));
        let looks = self.beside.looks();
        let (mean, margin) = (self.beside.mean() - alone, self.alone.margin(looks));
        let is_sure = (is_far && self.was_far) || (looks > 0 && mean >= high.max(margin));
        self.was_far = is_far;
        let is_calm = !is_far && !is_sure && (looks == 0 || mean < low.max(margin));
        Excess { is_sure, is_calm }
    }

    /// Ends a trial: goes on as before, or throttles what made the service wait.
    fn tried(&mut self, seen: Observation, since_ns: u64, beside: f64, used_cpus: Option<f64>) -> State {
        if seen.now_ns.saturating_sub(since_ns) < self.settings.trial_ns.min(self.settings.park_limit_ns) {
            return self.state;
        }
        match self.alone() {
            Some(alone) if alone < OVERLOADED => {
                if beside - alone < self.settings.high.max(self.alone.margin(1)) {
                    return State::Free;
                }
                self.state = State::Free;
                self.throttled(Observation { used_cpus, ..seen })
            }
            _ => {
                self.state = State::Parked { since_ns };
                self.parked(since_ns, seen.now_ns)
            }
        }
    }

    /// What holds now.
    #[must_use]
    pub const fn allowance(&self) -> Allowance {
        match self.state {
            State::Free => Allowance::Free,
            State::Limited { cpus, .. } => Allowance::Limited(cpus),
            State::Parked { .. } | State::Trying { .. } => Allowance::Parked,
            State::Blinking { .. } => Allowance::Limited(self.settings.smallest_cpus),
        }
    }

    fn look_again_ns(&self, pressure: f64) -> Option<u64> {
        match self.state {
            // Where the service waits anyhow, the kernel's word is no news.
            State::Free => (pressure >= self.settings.high).then_some(self.settings.tick_ns),
            State::Blinking { .. } => Some(self.settings.blink_ns),
            State::Limited { .. } | State::Parked { .. } | State::Trying { .. } => {
                Some(self.settings.tick_ns)
            }
        }
    }

    fn throttled(&mut self, seen: Observation) -> State {
        if self.state == State::Free && self.uses_nothing(seen) {
            return State::Free;
        }
        let quota = match self.state {
            State::Parked { since_ns } | State::Blinking { since_ns } => {
                return self.parked(since_ns, seen.now_ns);
            }
            State::Free | State::Trying { .. } => self.settings.cpus,
            State::Limited { cpus, .. } => cpus,
        };
        self.take_back(seen.now_ns);
        let used = seen.used_cpus.map_or(quota, |used| used.min(quota));
        // Somebody who uses nearly nothing is no cause: he is limited to little, not parked for it.
        let half = (used / 2.0).max(quota / 8.0);
        if half < self.settings.smallest_cpus {
            State::Parked { since_ns: seen.now_ns }
        } else {
            State::Limited { cpus: half, is_rising: false }
        }
    }

    /// Pressure soon after a raise says that it came too early.
    fn take_back(&mut self, now_ns: u64) {
        let Some(raised_ns) = self.raised_ns.take() else {
            if self.state == State::Free {
                self.patience_ns = self.settings.calm_ns;
            }
            return;
        };
        let is_soon = now_ns.saturating_sub(raised_ns) < self.settings.calm_limit_ns;
        self.patience_ns = if is_soon {
            self.patience_ns.saturating_mul(2).min(self.settings.calm_limit_ns)
        } else {
            self.settings.calm_ns
        };
    }

    fn relieved(&mut self, now_ns: u64) -> State {
        let is_due =
            self.calm_since_ns.is_some_and(|since_ns| now_ns.saturating_sub(since_ns) >= self.patience_ns);
        match self.state {
            State::Free | State::Trying { .. } => State::Free,
            State::Limited { cpus, is_rising } => {
                if is_due || (is_rising && self.calm_since_ns.is_some()) {
                    self.raised(cpus * 2.0, now_ns)
                } else {
                    State::Limited { cpus, is_rising: false }
                }
            }
            State::Parked { since_ns } | State::Blinking { since_ns } => {
                if is_due {
                    self.raised(self.settings.smallest_cpus, now_ns)
                } else {
                    self.parked(since_ns, now_ns)
                }
            }
        }
    }

    fn raised(&mut self, cpus: f64, now_ns: u64) -> State {
        self.raised_ns = Some(now_ns);
        if cpus >= self.settings.cpus { State::Free } else { State::Limited { cpus, is_rising: true } }
    }

    fn parked(&self, since_ns: u64, now_ns: u64) -> State {
        let held_ns = now_ns.saturating_sub(since_ns);
        let is_over = |limit_ns| held_ns >= limit_ns;
        match self.state {
            State::Blinking { .. } if is_over(self.settings.blink_ns) => State::Parked { since_ns: now_ns },
            State::Parked { .. } if is_over(self.settings.park_limit_ns) => {
                State::Blinking { since_ns: now_ns }
            }
            state => state,
        }
    }
}
