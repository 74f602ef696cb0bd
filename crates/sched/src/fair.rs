//! The fair scheduler's choice: earliest eligible virtual deadline first, as in Linux 6.14.
//!
//! SOURCE: Stoica and Abdel-Wahab 1995, "Earliest eligible virtual deadline first"; kernel/sched/fair.c
//! (`avg_vruntime`, `entity_eligible`, `place_entity`, `update_entity_lag`, `pick_eevdf`, `RUN_TO_PARITY`).
//! Deviation: a thread that blocks leaves its queue at once (6.12 keeps it there while its lag is negative), and
//! sums are computed anew from the few members of a queue instead of being kept.

use crate::constant::{NICE_0_WEIGHT, WEIGHT_SHIFT};

/// No thread.
pub(crate) const NONE: u32 = u32::MAX;

/// A thread, or a control group on one CPU.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Entity {
    /// Virtual time consumed.
    pub(crate) vruntime: i64,
    /// Virtual time by which the slice is to be consumed.
    pub(crate) deadline: i64,
    /// Virtual time that was owed when it left a queue.
    pub(crate) lag: i64,
    /// Scaled up by [`WEIGHT_SHIFT`].
    pub(crate) weight: u32,
    /// It was picked, and its deadline has not moved since: it is not preempted while eligible.
    pub(crate) is_protected: bool,
}

impl Entity {
    /// `weight` is not scaled.
    pub(crate) fn new(weight: u32) -> Self {
        Self { weight: weight << WEIGHT_SHIFT, ..Self::default() }
    }

    /// Gives the virtual time that a time is for this entity (`calc_delta_fair`).
    #[inline]
    pub(crate) fn virtual_time(&self, time_ns: u64) -> i64 {
        const UNIT: u64 = (NICE_0_WEIGHT << WEIGHT_SHIFT) as u64;
        let weight = u64::from(self.weight);
        if weight == UNIT {
            return time_ns.cast_signed();
        }
        if let Some(product) = time_ns.checked_mul(UNIT) {
            return (product / weight).cast_signed();
        }
        let wide = u128::from(time_ns) * u128::from(UNIT) / u128::from(weight);
        i64::try_from(wide).unwrap_or(i64::MAX / 4)
    }

    /// Weight in averages (`scale_load_down`).
    #[inline]
    fn scale(&self) -> i64 {
        i64::from((self.weight >> WEIGHT_SHIFT).max(2))
    }

    /// Charges time on a CPU; says whether the slice is over.
    #[inline]
    pub(crate) fn charge(&mut self, time_ns: u64, slice_ns: u64) -> bool {
        self.vruntime += self.virtual_time(time_ns);
        if self.vruntime < self.deadline {
            return false;
        }
        self.deadline = self.vruntime + self.virtual_time(slice_ns);
        self.is_protected = false;
        true
    }
}

/// Gives `value * over / under`; 0 where that leaves the range.
#[inline]
fn scaled(value: i64, over: i64, under: i64) -> i64 {
    if let Some(product) = value.checked_mul(over) {
        return product / under;
    }
    i64::try_from(i128::from(value) * i128::from(over) / i128::from(under)).unwrap_or(0)
}

/// Entities that compete on one CPU.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    /// Those that wait.
    pub(crate) waiting: Vec<u32>,
    /// The one that executes, or [`NONE`].
    pub(crate) current: u32,
    /// Average virtual time when the queue ran empty.
    floor: i64,
}

/// Sums over a queue, relative to a base.
struct Sums {
    base: i64,
    weight: i64,
    moment: i128,
}

impl Sums {
    #[inline]
    fn is_eligible(&self, entity: &Entity) -> bool {
        i128::from(entity.vruntime - self.base) * i128::from(self.weight) <= self.moment
    }

    fn average(&self) -> i64 {
        if let Ok(moment) = i64::try_from(self.moment) {
            return self.base + moment.div_euclid(self.weight.max(1));
        }
        let mean = self.moment.div_euclid(i128::from(self.weight.max(1)));
        self.base + i64::try_from(mean).unwrap_or(0)
    }
}

impl Queue {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { waiting: Vec::with_capacity(capacity), current: NONE, floor: 0 }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.current == NONE
    }

    #[inline]
    fn members(&self) -> impl Iterator<Item = u32> + '_ {
        let current = (self.current != NONE).then_some(self.current);
        self.waiting.iter().copied().chain(current)
    }

    #[inline]
    fn sums(&self, entities: &[Entity]) -> Sums {
        let mut members = self.members();
        let Some(first) = members.next() else { return Sums { base: self.floor, weight: 0, moment: 0 } };
        let first = &entities[first as usize];
        let mut sums = Sums { base: first.vruntime, weight: first.scale(), moment: 0 };
        for each in members {
            let entity = &entities[each as usize];
            sums.weight += entity.scale();
            sums.moment += i128::from(entity.vruntime - sums.base) * i128::from(entity.scale());
        }
        sums
    }

    /// Lets an entity wait here, with the lag it left its last queue with (`place_entity`).
    pub(crate) fn add(&mut self, each: u32, entities: &mut [Entity], slice_ns: u64) {
        let sums = self.sums(entities);
        let entity = &mut entities[each as usize];
        entity.vruntime = if sums.weight > 0 {
            sums.average() - scaled(entity.lag, sums.weight + entity.scale(), sums.weight)
        } else {
            self.floor
        };
        entity.deadline = entity.vruntime + entity.virtual_time(slice_ns);
        entity.is_protected = false;
        self.waiting.push(each);
    }

    /// Takes an entity out and keeps its lag (`update_entity_lag`).
    pub(crate) fn remove(&mut self, each: u32, entities: &mut [Entity], longest_lag_ns: u64) {
        if self.current == each && self.waiting.is_empty() {
            let entity = &mut entities[each as usize];
            (entity.lag, entity.is_protected) = (0, false);
            (self.floor, self.current) = (entity.vruntime, NONE);
            return;
        }
        let average = self.sums(entities).average();
        let entity = &mut entities[each as usize];
        let limit = entity.virtual_time(longest_lag_ns);
        entity.lag = (average - entity.vruntime).clamp(-limit, limit);
        entity.is_protected = false;
        if self.current == each {
            self.current = NONE;
        } else {
            self.waiting.retain(|&other| other != each);
        }
        if self.is_empty() {
            self.floor = average;
        }
    }

    /// Changes the weight of a member and keeps what it is owed (`reweight_entity`).
    pub(crate) fn reweigh(&mut self, each: u32, weight: u32, entities: &mut [Entity]) {
        let old = entities[each as usize].weight;
        if old == weight {
            return;
        }
        let average = self.sums(entities).average();
        let entity = &mut entities[each as usize];
        let rescaled = |value: i64| scaled(value, old.into(), weight.max(1).into());
        let lag = rescaled(average - entity.vruntime);
        let deadline = rescaled(entity.deadline - entity.vruntime);
        entity.weight = weight;
        entity.vruntime = average - lag;
        entity.deadline = entity.vruntime + deadline;
    }

    /// Chooses who executes next (`pick_eevdf`).
    #[inline]
    pub(crate) fn choose(&self, entities: &[Entity]) -> u32 {
        if self.waiting.is_empty() {
            return self.current;
        }
        if let ([only], NONE) = (&self.waiting[..], self.current) {
            return *only;
        }
        let sums = self.sums(entities);
        let mut best = NONE;
        let mut earliest = i64::MAX;
        if self.current != NONE {
            let entity = &entities[self.current as usize];
            if sums.is_eligible(entity) {
                if entity.is_protected {
                    return self.current;
                }
                (best, earliest) = (self.current, entity.deadline);
            }
        }
        for &each in &self.waiting {
            let entity = &entities[each as usize];
            if (best == NONE || entity.deadline < earliest) && sums.is_eligible(entity) {
                (best, earliest) = (each, entity.deadline);
            }
        }
        // The one furthest behind is eligible by definition; rounding must not lose it.
        if best == NONE { self.furthest_behind(entities) } else { best }
    }

    #[cold]
    fn furthest_behind(&self, entities: &[Entity]) -> u32 {
        self.members().min_by_key(|&each| entities[each as usize].vruntime).unwrap_or(NONE)
    }

    /// Makes an entity the one that executes, protected until its slice is over (`set_next_entity`).
    #[inline]
    pub(crate) fn take(&mut self, each: u32, entities: &mut [Entity]) {
        if self.current != each {
            self.put_back();
            let place = self.waiting.iter().position(|&other| other == each);
            if let Some(place) = place {
                self.waiting.remove(place);
            }
            self.current = each;
            entities[each as usize].is_protected = true;
        }
    }

    /// Lets the one that executes wait.
    #[inline]
    pub(crate) fn put_back(&mut self) {
        if self.current != NONE {
            self.waiting.push(self.current);
            self.current = NONE;
        }
    }
}

#[cfg(test)]
mod tests;
