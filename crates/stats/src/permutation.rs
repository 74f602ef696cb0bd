//! Permutation test of equal means that allows for unequal spreads.

use rayon::prelude::*;

use crate::error::StatsError;
use crate::sample::{Plan, check_values, real, sorted};
use crate::stream::{CHUNK, Filler, Indices, STEP, stream};
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
        // Four sums side by side, in a fixed order.
        let mut totals = [[0.0_f64; 2]; 4];
        let fours = values.chunks_exact(4);
        let rest = fours.remainder();
        for four in fours {
            for (total, value) in totals.iter_mut().zip(four) {
                total[0] += value;
                total[1] += value * value;
            }
        }
        for value in rest {
            totals[0][0] += value;
            totals[0][1] += value * value;
        }
        let [a, b, c, d] = totals;
        let [first, second] = [0, 1].map(|power| (a[power] + c[power]) + (b[power] + d[power]));
        Self { first, second }
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

/// Draws sides without replacement: the first places of a partial Fisher-Yates shuffle, from any order of the values.
struct Shuffle {
    pool: Vec<f64>,
    size: usize,
    words: Indices,
    drawn: Vec<u32>,
    filler: Filler,
}

impl Shuffle {
    fn new(pool: Vec<f64>, size: usize, plan: &Plan, chunk: usize) -> Self {
        let words = Indices::new(&mut stream(plan.seed, plan.cell, chunk), u32::MAX);
        Self { pool, size, words, drawn: vec![0; size.next_multiple_of(STEP)], filler: Filler::new() }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "places lie below the number of values, which fits 32 bits"
    )]
    fn next(&mut self) -> Sums {
        self.filler.fill(&mut self.words, &mut self.drawn);
        let count = self.pool.len() as u64;
        for (place, word) in self.drawn[..self.size].iter_mut().enumerate() {
            let place = place as u64;
            *word = (place + ((u64::from(*word) * (count - place)) >> 32)) as u32;
        }
        for (place, &other) in self.drawn[..self.size].iter().enumerate() {
            self.pool.swap(place, other as usize);
        }
        Sums::of(&self.pool[..self.size])
    }
}

#[cfg(test)]
mod tests {
    use super::permutation_test;
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
