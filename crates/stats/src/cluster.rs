//! Hierarchical bootstrap: whole units are drawn, then, if asked, values inside each drawn unit.

use rand_pcg::Pcg64;
use rayon::prelude::*;

use crate::error::StatsError;
use crate::order::Position;
use crate::sample::{Plan, check_values, real, split};
use crate::scheme::below;
use crate::stream::{CHUNK, stream};

/// What is drawn below the level of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterOptions {
    /// Units are drawn whole.
    UnitsOnly,
    /// Values are drawn inside each drawn unit too.
    Within,
}

/// Gives mean, standard deviation, coefficient of variation and median of each resample, row by row.
///
/// Values stand unit after unit; `lengths` says how many belong to each. Statistics are taken over the pooled values of the drawn units.
///
/// # Errors
///
/// If there are fewer than 2 units or 2 values, an empty unit, a value that is not finite, or the plan asks for nothing.
pub fn cluster_bootstrap(
    values: &[f64],
    lengths: &[usize],
    options: ClusterOptions,
    plan: &Plan,
) -> Result<Vec<[f64; 4]>, StatsError> {
    plan.check()?;
    check_values(values, 2)?;
    if lengths.len() < 2 {
        return Err(StatsError::TooFew { needed: 2, found: lengths.len() });
    }
    if lengths.contains(&0) {
        return Err(StatsError::Zero { name: "length of a unit" });
    }
    let units = split(values, lengths)?;
    let mut replicates = vec![[0.0; 4]; plan.resamples];
    replicates.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, out)| {
        let mut generator = stream(plan.seed, plan.cell, chunk);
        let mut pool = Vec::with_capacity(values.len());
        for row in out {
            draw(&units, options, &mut generator, &mut pool);
            *row = summary(&mut pool);
        }
    });
    Ok(replicates)
}

fn draw(units: &[&[f64]], options: ClusterOptions, generator: &mut Pcg64, pool: &mut Vec<f64>) {
    pool.clear();
    for _ in 0..units.len() {
        let unit = units[below(generator, units.len())];
        match options {
            ClusterOptions::UnitsOnly => pool.extend_from_slice(unit),
            ClusterOptions::Within => {
                pool.extend((0..unit.len()).map(|_| unit[below(generator, unit.len())]));
            }
        }
    }
}

fn summary(pool: &mut [f64]) -> [f64; 4] {
    let count = real(pool.len());
    let mean = pool.iter().sum::<f64>() / count;
    let squares: f64 = pool.iter().map(|value| (value - mean) * (value - mean)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    let position = Position::of(pool.len(), 0.5);
    let (_, &mut low, rest) = pool.select_nth_unstable_by(position.rank - 1, f64::total_cmp);
    let median = if position.share > 0.0 {
        let next = rest.iter().copied().fold(f64::INFINITY, f64::min);
        low + position.share * (next - low)
    } else {
        low
    };
    [mean, deviation, deviation / mean, median]
}

#[cfg(test)]
mod tests {
    use super::{ClusterOptions, cluster_bootstrap};
    use crate::error::StatsError;
    use crate::sample::Plan;

    const PLAN: Plan = Plan { resamples: 20_000, level: 0.95, seed: 11, cell: 0 };

    /// Units of equal size drawn whole: the variance of the mean is that of the unit means, (k-1)/k s^2 / k.
    #[test]
    fn spread_between_units_rules_the_spread_of_the_mean() {
        let values = [1.0, 1.1, 0.9, 5.0, 5.1, 4.9, 9.0, 9.2, 8.8, 3.0, 3.0, 3.0];
        let found = cluster_bootstrap(&values, &[3; 4], ClusterOptions::UnitsOnly, &PLAN).unwrap();
        let means: Vec<f64> = found.iter().map(|row| row[0]).collect();
        let unit_means = [1.0, 5.0, 9.0, 3.0];
        let expected = crate::standard_deviation(&unit_means) * (3.0_f64 / 4.0).sqrt() / 2.0;
        assert!((crate::standard_deviation(&means) / expected - 1.0).abs() < 0.02);
    }

    #[test]
    fn drawing_inside_units_adds_spread() {
        let values = [1.0, 9.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0];
        let spread = |options| {
            let rows = cluster_bootstrap(&values, &[2; 4], options, &PLAN).unwrap();
            crate::standard_deviation(&rows.iter().map(|row| row[0]).collect::<Vec<_>>())
        };
        assert!(spread(ClusterOptions::UnitsOnly) < 1e-12);
        assert!(spread(ClusterOptions::Within) > 0.5);
    }

    #[test]
    fn an_empty_unit_is_refused() {
        let found = cluster_bootstrap(&[1.0, 2.0], &[2, 0], ClusterOptions::UnitsOnly, &PLAN);
        assert_eq!(found, Err(StatsError::Zero { name: "length of a unit" }));
    }
}
