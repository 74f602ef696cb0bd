use std::time::{Duration, Instant};

use crate::atomic::{pause, yield_now};

/// How long to wait before sleeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience {
    spins: u32,
    /// Spins after which the core is offered once.
    spins_per_offer: u32,
    yields: u32,
}

/// Pauses between two looks at most.
const MOST_PAUSES: u32 = 16;

impl Patience {
    /// Before a lock: whoever holds it may need this core.
    ///
    /// SOURCE: measured with `benches/packets.py`. A pause takes 10 to 40 ns, so spinning covers the
    /// transfer of a cache line several times; offering the core takes 0.3 to 0.7 us, so all of it
    /// together is about as long as sleeping and being woken, which bounds the loss to a factor of two
    /// whatever the other side does.
    pub(crate) const USUAL: Self = Self::new(32, 32, 16);

    /// In a pipeline with more threads than cores: whoever is waited for gets this core by each offer, and
    /// works until its queue is empty or full.
    pub(crate) const CROWDED: Self = Self::new(32, 32, 128);

    /// With a core for every thread: nobody needs this one, and being woken would cost the other side
    /// some microseconds.
    pub(crate) const LONG: Self = Self::new(1024, 128, 0);

    /// With a core for every thread that is awake, while others sleep that could use this one.
    pub(crate) const SHORT: Self = Self::new(128, 128, 0);

    /// On a busy machine: whoever offers the core waits until others have had their slices, and whoever spins
    /// for long has less of a claim to it. Whoever sleeps is back at once.
    const AMONG_STRANGERS: Self = Self::new(32, 32, 0);

    const fn new(spins: u32, spins_per_offer: u32, yields: u32) -> Self {
        // A model and an interpreter have no time in which anything could happen meanwhile.
        let (spins, yields) = if cfg!(any(loom, miri)) { (0, 0) } else { (spins, yields) };
        Self { spins, spins_per_offer, yields }
    }

    /// Waits until `is_ready`; says false when it would be time to sleep.
    #[inline]
    pub(crate) fn wait(self, is_ready: impl FnMut() -> bool) -> bool {
        self.wait_as_before(&mut Habit::default(), is_ready)
    }

    /// The same, with what this thread has learnt from its waits before.
    #[inline]
    pub(crate) fn wait_as_before(self, habit: &mut Habit, mut is_ready: impl FnMut() -> bool) -> bool {
        habit.offered = false;
        if habit.is_among_strangers() {
            return Self::AMONG_STRANGERS.spin(&mut is_ready);
        }
        if habit.offers_first && self.spins > 0 && habit.offer(&mut is_ready) {
            return true;
        }
        habit.offers_first = false;
        let mut offers_left = self.spins / self.spins_per_offer + self.yields;
        let spins = Self { spins: self.spins_per_offer.min(self.spins), ..self };
        while offers_left > 0 {
            if offers_left > self.yields && spins.spin(&mut is_ready) || habit.offer(&mut is_ready) {
                return true;
            }
            if habit.strangers_until.is_some() {
                return false;
            }
            offers_left -= 1;
        }
        is_ready()
    }

    /// Waits without offering the core.
    #[inline]
    fn spin(self, is_ready: &mut impl FnMut() -> bool) -> bool {
        let mut pauses = 1;
        let mut spun = 0;
        while spun < self.spins {
            // Looking takes the cache line away from whoever is about to write it.
            for _ in 0..pauses {
                pause();
            }
            if is_ready() {
                return true;
            }
            spun += pauses;
            pauses = (pauses * 2).min(MOST_PAUSES);
        }
        false
    }
}

/// What a thread has learnt from waiting: whether the other side answers as soon as it gets this core, because
/// the system has put both on the same one; and whether strangers take the core, threads of other programs.
#[derive(Debug, Default)]
pub(crate) struct Habit {
    offers_first: bool,
    /// Whether the last wait has ended with an offer of the core.
    offered: bool,
    strangers_until: Option<Instant>,
}

impl Habit {
    /// SOURCE: a slice of the system's scheduler is 3 ms; half a queue of usual packets takes less than 1 ms.
    const SLICE: Duration = Duration::from_millis(1);

    /// How long the core is not offered after strangers took it, in multiples of how long they had it: trying
    /// again costs 6 % at most.
    const MEMORY: u32 = 16;

    /// Whether strangers have taken this core lately.
    pub(crate) fn is_among_strangers(&mut self) -> bool {
        self.strangers_until = self.strangers_until.filter(|until| Instant::now() < *until);
        self.strangers_until.is_some()
    }

    /// Offers the core and says whether the wait is over.
    fn offer(&mut self, is_ready: impl FnOnce() -> bool) -> bool {
        let start = Instant::now();
        yield_now();
        let end = Instant::now();
        self.offered = is_ready();
        self.learn(end - start, end);
        self.offered
    }

    fn learn(&mut self, away: Duration, back: Instant) {
        if away > Self::SLICE {
            self.strangers_until = back.checked_add(away * Self::MEMORY);
        } else {
            self.offers_first = self.offered;
        }
    }
}

#[cfg(not(loom))]
impl Habit {
    /// A habit that begins with an offer, before anybody waits for this thread.
    pub(crate) fn after_an_offer() -> Self {
        let mut habit = Self::default();
        habit.offer(|| false);
        habit
    }

    /// Whether an offer of the core has ended the last wait.
    pub(crate) fn offered(&self) -> bool {
        self.offered
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;

    /// Looks in a wait that is in vain.
    fn looks(habit: &mut Habit) -> u32 {
        let mut looks = 0;
        let is_over = Patience::CROWDED.wait_as_before(habit, || {
            looks += 1;
            false
        });
        assert!(!is_over);
        looks
    }

    #[test]
    fn a_core_that_strangers_took_is_not_offered_for_a_while() {
        let away = Duration::from_millis(3);
        let mut habit = Habit::default();
        habit.learn(away, Instant::now());
        assert!(habit.is_among_strangers());
        // Spins alone, with more and more pauses between two looks.
        assert!(looks(&mut habit) < 10);
        habit.learn(away, Instant::now().checked_sub(away * Habit::MEMORY).unwrap());
        assert!(!habit.is_among_strangers());
    }

    #[test]
    fn an_offer_that_helps_comes_first_the_next_time() {
        let mut habit = Habit { offered: true, ..Habit::default() };
        habit.learn(Duration::from_micros(100), Instant::now());
        assert!(habit.offers_first && !habit.is_among_strangers());
    }
}
