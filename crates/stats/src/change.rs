//! Change points of the level of a series, robust against outliers.
//!
//! Minimises the sum over segments of |x - median| / scale, doubled, plus a penalty per change, exactly, by optimal
//! partitioning (Jackson et al. 2005). The cost is minus twice the log-likelihood of Laplace noise, so that single outliers,
//! however large, buy no segment.

use crate::error::StatsError;
use crate::order::median;
use crate::sample::{check_values, real};

/// How a series is cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangeOptions {
    /// Price of one change in units of ln n.
    pub penalty: f64,
    /// Fewest values of a segment.
    pub shortest: usize,
}

/// Longer series are cut on medians of equal blocks, so that the price stays that of this many values.
const LONGEST: usize = 1000;

/// Gives the positions where a new segment begins, ascending, 0 excluded.
///
/// # Errors
///
/// If the series is empty, has a value that is not finite, or the shortest segment is 0.
pub fn change_points(values: &[f64], options: &ChangeOptions) -> Result<Vec<usize>, StatsError> {
    check_values(values, 1)?;
    if options.shortest == 0 {
        return Err(StatsError::Zero { name: "shortest segment" });
    }
    let block = values.len().div_ceil(LONGEST);
    if block > 1 {
        let coarse: Vec<f64> = values.chunks(block).map(median).collect();
        let shortest = options.shortest.div_ceil(block);
        let found = partition(&coarse, &ChangeOptions { shortest, ..*options });
        return Ok(found.into_iter().map(|position| position * block).collect());
    }
    Ok(partition(values, options))
}

/// Gives the scale of the noise from differences of neighbours, which a few changes of level cannot inflate.
///
/// The mean absolute deviation of Laplace noise with the same median absolute difference; falls back to the mean absolute
/// difference where more than half of the neighbours are equal (coarse clocks).
#[must_use]
pub fn noise_scale(values: &[f64]) -> f64 {
    let steps: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    if steps.is_empty() {
        return 0.0;
    }
    let middle = median(&steps);
    if middle > 0.0 {
        // Normal noise: median |difference| = 0.9539 sigma, mean |deviation| = 0.7979 sigma.
        return middle * 0.797_884_560_802_865_4 / 0.953_872_552_417_104_3;
    }
    crate::sum::mean(&steps) / std::f64::consts::SQRT_2
}

fn partition(values: &[f64], options: &ChangeOptions) -> Vec<usize> {
    let count = values.len();
    let scale = noise_scale(values);
    if scale <= 0.0 || count < 2 * options.shortest {
        return Vec::new();
    }
    let price = options.penalty * libm::log(real(count));
    let mut best = vec![f64::INFINITY; count + 1];
    let mut from = vec![0_usize; count + 1];
    best[0] = -price;
    let mut links = Links::new(values);
    for start in 0..count {
        // What begins where no segment may end is in no partition.
        if best[start].is_finite() {
            links.grow(values, start, |end, distance| {
                let cost = best[start] + 2.0 * distance / scale + price;
                if end - start >= options.shortest && cost < best[end] {
                    best[end] = cost;
                    from[end] = start;
                }
            });
        }
        links.unlink(start);
    }
    let mut changes = Vec::new();
    let mut end = count;
    while from[end] > 0 {
        end = from[end];
        changes.push(end);
    }
    changes.reverse();
    changes
}

/// Ends of the list of `Links`.
const NONE: u32 = u32::MAX;

/// The values that are left, linked in ascending order; of equal ones the last comes first.
///
/// What is unlinked keeps its neighbours, and finds its place by them where it is linked again in the reverse order
/// (Knuth, "Dancing links", 2000): no search for the place of a value, of which there are count^2 / 2.
struct Links {
    rank: Vec<u32>,
    below: Vec<u32>,
    above: Vec<u32>,
}

impl Links {
    #[expect(clippy::cast_possible_truncation, reason = "a series has at most 1000 values")]
    fn new(values: &[f64]) -> Self {
        let mut order: Vec<u32> = (0..values.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| values[a as usize].total_cmp(&values[b as usize]).then(b.cmp(&a)));
        let (mut rank, mut below, mut above) =
            (vec![0; values.len()], vec![NONE; values.len()], vec![NONE; values.len()]);
        for (place, &own) in order.iter().enumerate() {
            rank[own as usize] = place as u32;
            if place > 0 {
                below[own as usize] = order[place - 1];
                above[order[place - 1] as usize] = own;
            }
        }
        Self { rank, below, above }
    }

    fn unlink(&mut self, own: usize) {
        let (below, above) = (self.below[own], self.above[own]);
        if below != NONE {
            self.above[below as usize] = above;
        }
        if above != NONE {
            self.below[above as usize] = below;
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "a series has at most 1000 values")]
    fn link(&mut self, own: usize) {
        let (below, above) = (self.below[own], self.above[own]);
        if below != NONE {
            self.above[below as usize] = own as u32;
        }
        if above != NONE {
            self.below[above as usize] = own as u32;
        }
    }

    /// Gives the sum of distances to the median of the values from `start` on, for each end; those before are unlinked.
    fn grow(&mut self, values: &[f64], start: usize, mut found: impl FnMut(usize, f64)) {
        for own in (start..values.len()).rev() {
            self.unlink(own);
        }
        let (mut middle, mut lower, mut upper) = (start, 0.0, 0.0);
        for own in start..values.len() {
            self.link(own);
            let value = values[own];
            let has_even_before = (own - start).is_multiple_of(2);
            if self.rank[own] <= self.rank[middle] {
                lower += value;
                if !has_even_before {
                    lower -= values[middle];
                    upper += values[middle];
                    middle = self.below[middle] as usize;
                }
            } else {
                upper += value;
                if has_even_before {
                    middle = self.above[middle] as usize;
                    upper -= values[middle];
                    lower += values[middle];
                }
            }
            let (end, count) = (own + 1, own + 1 - start);
            let (below, above) = (real(count - count / 2), real(count / 2));
            let distance = (values[middle] * below - lower) + (upper - values[middle] * above);
            found(end, distance.max(0.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ChangeOptions, change_points, partition};
    use crate::order::median;
    use crate::special::normal_quantile;
    use crate::stream::{open_uniform, stream};
    use proptest::prelude::*;

    const OPTIONS: ChangeOptions = ChangeOptions { penalty: 5.0, shortest: 5 };

    fn noise(count: usize, cell: u64) -> Vec<f64> {
        let mut generator = stream(17, cell, 0);
        (0..count).map(|_| normal_quantile(open_uniform(&mut generator))).collect()
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let mut values = noise(100, 1);
        for value in &mut values[..30] {
            *value += 6.0;
        }
        assert_eq!(change_points(&values, &OPTIONS).unwrap(), vec![30]);
    }

    #[test]
    fn outliers_however_large_make_no_segment() {
        let mut values = noise(100, 2);
        for index in [0, 40, 41, 80] {
            values[index] += 1e6;
        }
        assert_eq!(change_points(&values, &OPTIONS).unwrap(), Vec::<usize>::new());
    }

    #[test]
    fn independent_noise_is_cut_in_less_than_two_percent_of_series() {
        let cut = (0..500).filter(|&cell| !change_points(&noise(100, cell), &OPTIONS).unwrap().is_empty());
        let skewed = (500..1000).filter(|&cell| {
            let values: Vec<f64> = noise(100, cell).into_iter().map(|z| libm::exp(0.5 * z)).collect();
            !change_points(&values, &OPTIONS).unwrap().is_empty()
        });
        let (plain, skewed) = (cut.count(), skewed.count());
        assert!(plain <= 10 && skewed <= 10, "{plain} and {skewed} of 500");
    }

    #[test]
    fn constant_and_long_series_are_handled() {
        assert!(change_points(&[1.0; 50], &OPTIONS).unwrap().is_empty());
        let mut long = noise(5000, 3);
        for value in &mut long[..1500] {
            *value += 4.0;
        }
        let found = change_points(&long, &OPTIONS).unwrap();
        assert!(found.len() == 1 && found[0].abs_diff(1500) <= 5, "{found:?}");
    }

    fn brute(values: &[f64], options: &ChangeOptions) -> f64 {
        let scale = super::noise_scale(values);
        let price = options.penalty * libm::log(crate::sample::real(values.len()));
        let cost = |part: &[f64]| {
            let middle = median(part);
            2.0 * part.iter().map(|value| (value - middle).abs()).sum::<f64>() / scale
        };
        let mut best = f64::INFINITY;
        for mask in 0_u32..(1 << (values.len() - 1)) {
            let mut bounds = vec![0];
            bounds.extend((1..values.len()).filter(|bit| mask >> (bit - 1) & 1 == 1));
            bounds.push(values.len());
            if bounds.windows(2).all(|pair| pair[1] - pair[0] >= options.shortest) {
                let total: f64 = bounds.windows(2).map(|pair| cost(&values[pair[0]..pair[1]])).sum();
                best = best.min(total + price * crate::sample::real(bounds.len() - 2));
            }
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn the_partition_is_as_cheap_as_brute_force(
            values in prop::collection::vec(-5.0..5.0_f64, 8..13), penalty in 0.1..3.0_f64,
        ) {
            let options = ChangeOptions { penalty, shortest: 2 };
            let mut bounds = vec![0];
            bounds.extend(partition(&values, &options));
            bounds.push(values.len());
            let scale = super::noise_scale(&values);
            prop_assume!(scale > 1e-6);
            let price = penalty * libm::log(crate::sample::real(values.len()));
            let total: f64 = bounds.windows(2).map(|pair| {
                let part = &values[pair[0]..pair[1]];
                let middle = median(part);
                2.0 * part.iter().map(|value| (value - middle).abs()).sum::<f64>() / scale
            }).sum();
            let found = total + price * crate::sample::real(bounds.len() - 2);
            prop_assert!((found - brute(&values, &options)).abs() < 1e-9 * (1.0 + found));
        }
    }
}
