use serde::Serialize;

#[cfg(test)]
mod tests;

/// Who uses less than this part of the smallest quota is no cause of anybody's waiting.
const NEGLIGIBLE: f64 = 0.2;

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
        self.calm_limit_ns + self.blink_ns + steps * self.tick_ns
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
}

/// When best-effort commands are throttled and released.
///
/// Throttling halves, at each look with pressure, from what they really use; below the smallest quota
/// they are parked. Releasing doubles, at each calm look, once the service has been calm for a while.
/// Pressure within `calm_limit_ns` of a release doubles that while. Between `low` and `high` nothing
/// changes.
///
/// # Examples
///
/// ```
/// use steelyard_govern::{Allowance, Law, Observation, Settings};
///
/// let mut law = Law::new(Settings::for_cpus(4.0));
/// let look = |now_ns, pressure| Observation { now_ns, pressure, used_cpus: Some(4.0) };
/// assert_eq!(law.decide(look(0, 0.0)).allowance, Allowance::Free);
/// assert_eq!(law.decide(look(100_000_000, 0.5)).allowance, Allowance::Limited(2.0));
/// assert_eq!(law.decide(look(200_000_000, 0.5)).allowance, Allowance::Limited(1.0));
/// ```
#[derive(Debug, Clone)]
pub struct Law {
    settings: Settings,
    state: State,
    /// Calm time the next release needs.
    patience_ns: u64,
    calm_since_ns: Option<u64>,
    raised_ns: Option<u64>,
}

impl Law {
    /// Begins with everything released.
    #[must_use]
    pub const fn new(settings: Settings) -> Self {
        let patience_ns = settings.calm_ns;
        Self { settings, state: State::Free, patience_ns, calm_since_ns: None, raised_ns: None }
    }

    /// Takes one observation; their times never go back.
    pub fn decide(&mut self, seen: Observation) -> Decision {
        let waits = seen.pressure >= self.settings.high;
        if seen.pressure < self.settings.low {
            self.calm_since_ns.get_or_insert(seen.now_ns);
        } else {
            self.calm_since_ns = None;
        }
        self.state = if waits { self.throttled(seen) } else { self.relieved(seen.now_ns) };
        Decision { allowance: self.allowance(), look_again_ns: self.look_again_ns() }
    }

    /// What holds now.
    #[must_use]
    pub const fn allowance(&self) -> Allowance {
        match self.state {
            State::Free => Allowance::Free,
            State::Limited { cpus, .. } => Allowance::Limited(cpus),
            State::Parked { .. } => Allowance::Parked,
            State::Blinking { .. } => Allowance::Limited(self.settings.smallest_cpus),
        }
    }

    const fn look_again_ns(&self) -> Option<u64> {
        match self.state {
            State::Free => None,
            State::Blinking { .. } => Some(self.settings.blink_ns),
            State::Limited { .. } | State::Parked { .. } => Some(self.settings.tick_ns),
        }
    }

    fn throttled(&mut self, seen: Observation) -> State {
        let negligible_cpus = self.settings.smallest_cpus * NEGLIGIBLE;
        if self.state == State::Free && seen.used_cpus.is_some_and(|used| used < negligible_cpus) {
            return State::Free;
        }
        let quota = match self.state {
            State::Parked { since_ns } | State::Blinking { since_ns } => {
                return self.parked(since_ns, seen.now_ns);
            }
            State::Free => self.settings.cpus,
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
            State::Free => State::Free,
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
