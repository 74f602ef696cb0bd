//! How sure the place of a break is.

use rayon::prelude::*;

use crate::error::StatsError;
use crate::sample::{Plan, real, whole};
use crate::segment::groups::{Groups, Weighted, cut_value};
use crate::segment::moments::{Both, Moments};
use crate::segment::search::{Limits, best_place};
use crate::segment::tree::Tree;
use crate::segment::{PASSES, SegmentOptions, check, levels, limits, usable};
use crate::stream::{open_uniform, stream};

/// Gives for every break the largest x surely left and the smallest x surely right of it, at the level of the plan.
///
/// `breaks` are the smallest x of the pieces but the first, ascending. Points around a break (a twentieth of all
/// distinct x on either side, 200 to 4000) are drawn again with replacement and the break is placed anew between its
/// neighbours, which stay; the limits are percentiles of these places, widened to the data points around them and to the
/// break itself.
///
/// # Errors
///
/// As `fit_segments`; if a break is no x of the data or leaves a piece empty; if the plan is empty.
pub fn break_intervals(
    x: &[f64],
    y: &[f64],
    options: &SegmentOptions,
    breaks: &[f64],
    plan: &Plan,
) -> Result<Vec<(f64, f64)>, StatsError> {
    plan.check()?;
    check(x, y, options)?;
    let groups = Groups::new(x, y);
    let limits = limits(groups.y.len(), options);
    let mut places = Vec::with_capacity(breaks.len());
    for (index, &at) in breaks.iter().enumerate() {
        let place = groups.x.partition_point(|&each| each < at);
        if place == 0 || place >= groups.count() || places.last().is_some_and(|&last| last >= place) {
            return Err(StatsError::Break { index, value: at });
        }
        places.push(place);
    }
    let pilot = groups.pilot();
    let mut level = pilot.clone();
    for pass in 0..PASSES {
        let weighted = Weighted::new(&groups, &level, options);
        let smeared = if pass == 0 { groups.window() } else { 0 };
        level = levels(&groups, &weighted.groups, &places, smeared, options);
        usable(&mut level, &pilot, &groups, options.noise);
    }
    let weighted = Weighted::new(&groups, &level, options);
    let scene = Scene { groups: &groups, level: &level, weighted: &weighted, options, limits };
    Ok((0..places.len()).map(|index| scene.interval(&places, index, plan)).collect())
}

struct Scene<'a> {
    groups: &'a Groups,
    level: &'a [f64],
    weighted: &'a Weighted,
    options: &'a SegmentOptions,
    limits: Limits,
}

impl Scene<'_> {
    fn interval(&self, places: &[usize], index: usize, plan: &Plan) -> (f64, f64) {
        let at = places[index];
        let before = if index == 0 { 0 } else { places[index - 1] };
        let after = places.get(index + 1).copied().unwrap_or(self.groups.count());
        let reach = (self.groups.count() / 20).clamp(200, 4000);
        let shortest = self.limits.shortest;
        let from = at.saturating_sub(reach).max((before + shortest).min(at)).max(1);
        let to = (at + reach).min(after.saturating_sub(shortest).max(at)).max(from);
        let tree = Tree::new(&self.weighted.groups, &self.groups.starts);
        // Whatever lies beyond the window is the same in every replicate.
        let (left, right) = (tree.range(before, from), tree.range(to, after));
        let mut found: Vec<usize> = (0..plan.resamples)
            .into_par_iter()
            .map(|replicate| {
                let mut generator = stream(plan.seed, plan.cell.wrapping_add(index as u64), replicate);
                let mut drawn = vec![left];
                drawn.extend(self.draw(from..to, || open_uniform(&mut generator)));
                drawn.push(right);
                let last = drawn.len() - 1;
                let inner = Tree::new(&drawn, &[]);
                let (place, _) = best_place(&inner, (0, drawn.len()), (1, last.max(1)), &self.limits, &mut 0);
                from + place - 1
            })
            .collect();
        found.sort_unstable();
        let (low, high) = plan.tails();
        let rank = |p: f64| found[whole(p * real(found.len())).min(found.len() - 1)];
        let (first, last) = (rank(low).min(at), rank(high).max(at));
        (self.groups.x[first - 1], self.groups.x[last.min(self.groups.count() - 1)])
    }

    /// Moments of groups whose points are drawn with replacement from all points of the range.
    fn draw(&self, range: std::ops::Range<usize>, mut uniform: impl FnMut() -> f64) -> Vec<Both> {
        let first = self.groups.starts[range.start];
        let points = self.groups.starts[range.end] - first;
        let mut times = vec![0_u32; points];
        for _ in 0..points {
            times[whole(uniform() * real(points)).min(points - 1)] += 1;
        }
        range.map(|group| self.gather(group, &times[self.groups.starts[group] - first..])).collect()
    }

    fn gather(&self, group: usize, times: &[u32]) -> Both {
        let whole = &self.weighted.groups[group];
        let values = self.groups.values(group);
        let level = self.level[group];
        let cut = |value: f64| cut_value(value, level, self.weighted.spread[group], self.options);
        let drawn: u32 = times[..values.len()].iter().sum();
        if drawn == 0 {
            return Both::default();
        }
        let count = f64::from(drawn);
        let pairs = || values.iter().zip(times).map(|(&value, &time)| (cut(value), f64::from(time)));
        let mean = pairs().map(|(value, time)| value * time).sum::<f64>() / count;
        let spread = pairs().map(|(value, time)| time * (value - mean).powi(2)).sum::<f64>();
        let share = count / real(values.len());
        let weight = whole.plain.weight * share;
        let yy = whole.plain.weight / real(values.len()) * spread;
        let plain = Moments { weight, y: mean, xx: 0.0, xy: 0.0, yy, ..whole.plain };
        let log = if whole.log.weight > 0.0 {
            let y = libm::log(level) + (mean - level) / level;
            Moments { weight: whole.log.weight * share, y, xx: 0.0, xy: 0.0, yy, ..whole.log }
        } else {
            Moments::default()
        };
        Both { plain, log }
    }
}
