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

    /// The same, beginning with what helped the last time.
    #[inline]
    pub(crate) fn wait_as_before(self, habit: &mut Habit, mut is_ready: impl FnMut() -> bool) -> bool {
        if habit.offers_first && self.spins > 0 {
            yield_now();
            if is_ready() {
                return true;
            }
        }
        habit.offers_first = false;
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
            if spun % self.spins_per_offer < pauses {
                yield_now();
                if is_ready() {
                    habit.offers_first = true;
                    return true;
                }
            }
        }
        for _ in 0..self.yields {
            yield_now();
            if is_ready() {
                habit.offers_first = true;
                return true;
            }
        }
        is_ready()
    }
}

/// What a thread has learnt from waiting: whether the other side answers as soon as it gets this core,
/// because the system has put both on the same one.
#[derive(Debug, Default)]
pub(crate) struct Habit {
    offers_first: bool,
}

#[cfg(not(loom))]
impl Habit {
    /// Whether an offer of the core has ended the last wait.
    pub(crate) fn offers_first(&self) -> bool {
        self.offers_first
    }
}
