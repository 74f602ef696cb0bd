//! Permutation test of equal means that allows for unequal spreads.

use rand_pcg::Pcg64;
use rayon::prelude::*;

use crate::error::StatsError;
use crate::registers::Registers;
use crate::sample::{Plan, check_values, real, sorted};
use crate::stream::{CHUNK, Indices, STEP, stream};
use crate::sum::{mean, standard_deviation};

/// Result of a permutation test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Permutation {
    /// Welch's t, second less first; infinite where neither sample has spread, 0 where all values are equal.
    pub statistic: f64,
    /// Two-sided: (1 + number of relabellings at least as extreme) / (1 + number of relabellings).
    pub p_value: f64,
}

/// Tests by random relabelling whether two samples differ in mean, studentised, so that the level is kept in the limit when
/// spreads differ too. The level of the plan is not used.
///
/// Source: A. Janssen, "Studentized permutation tests for non-i.i.d. hypotheses", Statistics and Probability Letters 36, 1997;
/// the p-value counts the sample itself (Phipson and Smyth 2010).
///
/// # Errors
///
/// If a sample has fewer than 2 values or one that is not finite, or the plan asks for nothing.
pub fn permutation_test(first: &[f64], second: &[f64], plan: &Plan) -> Result<Permutation, StatsError> {
    plan.check()?;
    check_values(first, 2)?;
    check_values(second, 2)?;
    let pooled = [sorted(first), sorted(second)].concat();
    check_values(&pooled, 4)?;
    let (centre, scale) = (mean(&pooled), standard_deviation(&pooled));
    if scale <= 0.0 {
        return Ok(Permutation { statistic: 0.0, p_value: 1.0 });
    }
    let standardised: Vec<f64> = pooled.iter().map(|value| (value - centre) / scale).collect();
    let (a, b) = standardised.split_at(first.len());
    // Drawing the smaller side is enough: the other one has what is left.
    let is_first_smaller = a.len() <= b.len();
    let (smaller, larger) = if is_first_smaller { (a, b) } else { (b, a) };
    let sizes = (real(smaller.len()), real(larger.len()));
    let total = Sums::of(&standardised);
    let welch = |drawn: Sums| drawn.welch(&total, sizes);
    let observed = welch(Sums::of(smaller));
    let mut order = standardised.clone();
    order.sort_unstable_by(f64::total_cmp);
    // Relabellings that are equal in exact arithmetic differ by rounding only.
    let bound = observed.abs() * (1.0 - 1e-9);
    let extreme: usize = (0..plan.resamples.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let rounds = CHUNK.min(plan.resamples - chunk * CHUNK);
            let mut shuffle = Shuffle::new(order.clone(), smaller.len(), plan, chunk);
            (0..rounds).filter(|_| welch(shuffle.next()).abs() >= bound).count()
        })
        .sum();
    Ok(Permutation {
        statistic: if is_first_smaller { -observed } else { observed },
        p_value: (real(extreme) + 1.0) / (real(plan.resamples) + 1.0),
    })
}

/// Sums of values and of squares.
#[derive(Clone, Copy)]
struct Sums {
    first: f64,
    second: f64,
}

impl Sums {
    fn of(values: &[f64]) -> Self {
        let (fours, rest) = values.as_chunks::<4>();
        let mut totals = Totals::default();
        for four in fours {
            totals.add(four);
        }
        totals.finish(rest)
    }

    /// t of this side less the rest.
    fn welch(&self, total: &Self, sizes: (f64, f64)) -> f64 {
        let share = |sums: &Self, size: f64| {
            let mean = sums.first / size;
            let variance = (sums.second - sums.first * mean).max(0.0) / (size - 1.0);
            // What cancellation leaves of a side without spread.
            let floor = 1e-14 * sums.second;
            (mean, if variance <= floor { 0.0 } else { variance / size })
        };
        let rest = Self { first: total.first - self.first, second: total.second - self.second };
        let (a, b) = (share(self, sizes.0), share(&rest, sizes.1));
        let (difference, error) = (a.0 - b.0, (a.1 + b.1).sqrt());
        if error > 0.0 {
            difference / error
        } else if difference.abs() > 1e-12 {
            difference.signum() * f64::INFINITY
        } else {
            0.0
        }
    }
}

/// Four sums side by side, in a fixed order.
#[derive(Default)]
struct Totals {
    first: [f64; 4],
    second: [f64; 4],
}

impl Totals {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
    fn add(&mut self, values: &[f64; 4]) {
        for (lane, value) in values.iter().enumerate() {
            self.first[lane] += value;
            self.second[lane] += value * value;
        }
    }

    /// What is left over joins the first sum.
    fn finish(mut self, rest: &[f64]) -> Sums {
        for value in rest {
            self.first[0] += value;
            self.second[0] += value * value;
        }
        let [first, second] = [self.first, self.second].map(|[a, b, c, d]| (a + c) + (b + d));
        Sums { first, second }
    }
}

/// Draws sides without replacement: the first places of a partial Fisher-Yates shuffle, from any order of the values.
struct Shuffle {
    pool: Vec<f64>,
    size: usize,
    words: Indices,
    drawn: Vec<u32>,
    registers: Registers,
}

impl Shuffle {
    fn new(pool: Vec<f64>, size: usize, plan: &Plan, chunk: usize) -> Self {
        Self::with(Registers::widest(), pool, size, stream(plan.seed, plan.cell, chunk))
    }

    fn with(registers: Registers, pool: Vec<f64>, size: usize, mut generator: Pcg64) -> Self {
        debug_assert!(size <= pool.len());
        let words = Indices::new(&mut generator, u32::MAX);
        Self { pool, size, words, drawn: vec![0; size.next_multiple_of(STEP)], registers }
    }

    fn next(&mut self) -> Sums {
        self.words.fill(self.registers, &mut self.drawn);
        match self.registers {
            Registers::Plain => self.exchange(),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Registers` names only what the processor reports.
            Registers::Avx2 => unsafe { self.exchange_avx2() },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Registers` names only what the processor reports.
            Registers::Avx512 => unsafe { self.exchange_avx512() },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn exchange_avx2(&mut self) -> Sums {
        self.exchange()
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn exchange_avx512(&mut self) -> Sums {
        self.exchange()
    }

    /// Exchanges each of the first places with a drawn one at or behind it, and adds up what comes there.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "places lie below the number of values, which fits 32 bits"
    )]
    fn exchange(&mut self) -> Sums {
        let Self { pool, size, drawn, .. } = self;
        let drawn = &mut drawn[..*size];
        let count = pool.len() as u64;
        for (place, word) in drawn.iter_mut().enumerate() {
            let place = place as u64;
            *word = (place + ((u64::from(*word) * (count - place)) >> 32)) as u32;
        }
        let (fours, rest) = drawn.as_chunks::<4>();
        let mut totals = Totals::default();
        for (number, four) in fours.iter().enumerate() {
            let here = 4 * number;
            let mut values = [0.0; 4];
            for (offset, (value, &other)) in values.iter_mut().zip(four).enumerate() {
                debug_assert!((other as usize) < pool.len());
                // SAFETY: the first places are among the values.
                let moved = unsafe { *pool.get_unchecked(here + offset) };
                // SAFETY: place + (word (count - place) >> 32) is below the number of values for every word.
                *value = std::mem::replace(unsafe { pool.get_unchecked_mut(other as usize) }, moved);
            }
            // Later draws of the four lie behind the earlier places, so these may be written together.
            pool[here..here + 4].copy_from_slice(&values);
            totals.add(&values);
        }
        let done = 4 * fours.len();
        for (offset, &other) in rest.iter().enumerate() {
            pool.swap(done + offset, other as usize);
        }
        totals.finish(&pool[done..done + rest.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::{Shuffle, permutation_test};
    use crate::registers::Registers;
    use crate::sample::Plan;
    use crate::special::normal_quantile;
    use crate::stream::{open_uniform, stream};

    const PLAN: Plan = Plan { resamples: 20_000, level: 0.95, seed: 3, cell: 1 };

    fn normal(count: usize, seed: u64, mean: f64, spread: f64) -> Vec<f64> {
        let mut generator = stream(seed, 0, 0);
        (0..count).map(|_| mean + spread * normal_quantile(open_uniform(&mut generator))).collect()
    }

    /// All 20 relabellings of 3 + 3 values, counted by hand: only the sample and its mirror are as extreme.
    #[test]
    fn small_samples_have_the_probability_of_counting() {
        let found = permutation_test(&[1.0, 2.0, 3.0], &[11.0, 12.0, 13.5], &PLAN).unwrap();
        assert!((found.p_value - 0.1).abs() < 0.01, "{}", found.p_value);
        // Welch's t: 31/3 - 10/6... = (36.5/3 - 2) / sqrt((1 + 19/12) / 3).
        let expected = (36.5 / 3.0 - 2.0) / ((1.0 + 19.0 / 12.0) / 3.0_f64).sqrt();
        assert!((found.statistic / expected - 1.0).abs() < 1e-9, "{}", found.statistic);
    }

    #[test]
    fn vector_registers_do_not_change_a_bit() {
        for (count, size) in [(4, 2), (5, 2), (7, 3), (40, 16), (41, 19), (2000, 1000)] {
            let sums = |registers| {
                let mut shuffle = Shuffle::with(registers, normal(count, 5, 0.0, 1.0), size, stream(1, 2, 3));
                let drawn = (0..50).map(|_| shuffle.next());
                let bits: Vec<_> = drawn.map(|sums| (sums.first.to_bits(), sums.second.to_bits())).collect();
                (bits, shuffle.pool)
            };
            for registers in Registers::available() {
                assert_eq!(sums(registers), sums(Registers::Plain), "{registers:?}, {count}");
            }
        }
    }

    #[test]
    fn sides_order_and_threads_do_not_matter() {
        let (a, b) = (normal(80, 1, 0.0, 1.0), normal(50, 2, 0.3, 2.0));
        let found = permutation_test(&a, &b, &PLAN).unwrap();
        let swapped = permutation_test(&b, &a, &PLAN).unwrap();
        assert_eq!(found.p_value.to_bits(), swapped.p_value.to_bits());
        assert!((found.statistic + swapped.statistic).abs() < 1e-12);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let reversed: Vec<f64> = a.iter().rev().copied().collect();
        assert_eq!(pool.install(|| permutation_test(&reversed, &b, &PLAN)).unwrap(), found);
    }

    #[test]
    fn unequal_spreads_keep_the_level() {
        let plan = Plan { resamples: 500, ..PLAN };
        let alarms = (0..400_u64)
            .filter(|&seed| {
                let (a, b) = (normal(40, 2 * seed, 0.0, 1.0), normal(20, 2 * seed + 1, 0.0, 4.0));
                permutation_test(&a, &b, &plan).unwrap().p_value <= 0.05
            })
            .count();
        // 20 expected, standard deviation 4.4; without studentising there are about 60.
        assert!((8..=34).contains(&alarms), "{alarms}");
    }

    #[test]
    fn equal_values_do_not_differ() {
        let found = permutation_test(&[2.0; 5], &[2.0; 7], &PLAN).unwrap();
        assert!((found.p_value - 1.0).abs() < 1e-15);
        let apart = permutation_test(&[2.0; 5], &[3.0; 5], &PLAN).unwrap();
        assert!(apart.statistic.is_infinite() && apart.p_value < 0.02);
    }
}
