//! How sure the place of a break is.

use rayon::prelude::*;

use crate::error::StatsError;
use crate::order::median;
use crate::sample::{Plan, real, whole};
use crate::segment::groups::{Groups, TO_SIGMA, Weighted, gather};
use crate::segment::moments::Both;
use crate::segment::search::Limits;
use crate::segment::{NoiseScale, PASSES, Piece, SegmentOptions, check, levels, limits, piece_of, usable};
use crate::stream::{open_uniform, stream};

/// Gives for every break the largest x surely left and the smallest x surely right of it, at the level of the plan.
///
/// `breaks` are the smallest x of the pieces but the first, ascending. The limits enclose every place that the data do not
/// refute: a place is refuted if both pieces around it cost more than at the best place, by more than in all but `1 - level`
/// of samples that have their break where the best one is. Such samples are made of the fitted curves and of residuals of
/// the same side, drawn with replacement, and both pieces are fitted to them again at every place. Either side has the noise
/// of its own points, so that a quiet side decides against a noisy one. Neighbouring breaks stay; places further away than a
/// twentieth of all distinct x (1000 to 4000) are not looked at. The limits are widened to the data points around them and to
/// the break itself.
///
/// Source: D. Siegmund, "Confidence sets in change-point problems", International Statistical Review 56, 1988: sets of
/// places whose likelihood ratio is below a quantile. Own deviation: the quantile is simulated, and residuals are cut. A
/// bootstrap of the place itself does not do: E. Seijo, B. Sen, "Change-point in stochastic design regression and the
/// bootstrap", Annals of Statistics 39, 2011.
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

/// Places that are looked at: of the pieces from group `before` to `after` those between `from` and `to`.
#[derive(Debug, Clone, Copy)]
struct Window {
    before: usize,
    from: usize,
    to: usize,
    after: usize,
}

/// One side of a break: its curve at the groups of the window, its noise, and what lies beyond the window.
struct Side {
    curve: Vec<f64>,
    sigma: f64,
    /// Residuals of its own points in the window over the unit of its noise.
    residuals: Vec<f64>,
    beyond: Both,
}

/// Rounds of placing the break and fitting both sides again.
const ROUNDS: usize = 3;

/// Fewer points of one side share the noise of both.
const FEW: usize = 15;

impl Scene<'_> {
    fn interval(&self, places: &[usize], index: usize, plan: &Plan) -> (f64, f64) {
        let at = places[index];
        let before = if index == 0 { 0 } else { places[index - 1] };
        let after = places.get(index + 1).copied().unwrap_or(self.groups.count());
        let reach = (self.groups.count() / 20).clamp(1000, 4000);
        let shortest = self.limits.shortest;
        let from = at.saturating_sub(reach).max((before + shortest).min(at)).max(1);
        let to = (at + reach).min(after.saturating_sub(shortest).max(at)).max(from);
        let window = Window { before, from, to, after };
        let values = |group: usize| self.groups.values(group);
        let mut best = at;
        let mut sides = self.sides(window, best);
        let mut costs = self.costs(window, &sides, |group| values(group).to_vec());
        for _ in 1..ROUNDS {
            let found = from + least(&costs).0;
            if found == best {
                break;
            }
            best = found;
            sides = self.sides(window, best);
            costs = self.costs(window, &sides, |group| values(group).to_vec());
        }
        let mut excesses: Vec<f64> = (0..plan.resamples)
            .into_par_iter()
            .map(|replicate| {
                let mut generator = stream(plan.seed, plan.cell.wrapping_add(index as u64), replicate);
                let drawn = |group: usize| {
                    let side = &sides[usize::from(group >= best)];
                    let level = side.curve[group - from];
                    let unit = self.unit(level) * side.sigma;
                    let count = side.residuals.len();
                    let mut draw =
                        || side.residuals[whole(open_uniform(&mut generator) * real(count)).min(count - 1)];
                    values(group).iter().map(|_| level + unit * draw()).collect()
                };
                let costs = self.costs(window, &sides, drawn);
                costs[best - from] - least(&costs).1
            })
            .collect();
        excesses.sort_unstable_by(f64::total_cmp);
        let rank = whole((plan.level * real(excesses.len() + 1)).ceil()).clamp(1, excesses.len());
        let most = least(&costs).1 + excesses[rank - 1];
        let kept = |cost: &f64| *cost <= most;
        let first = from + costs.iter().position(kept).unwrap_or(best - from);
        let last = from + costs.iter().rposition(kept).unwrap_or(best - from);
        let (first, last) = (first.min(at), last.max(at));
        (self.groups.x[first - 1], self.groups.x[last.min(self.groups.count() - 1)])
    }

    /// Both sides of a break at `place`, fitted to their own points.
    fn sides(&self, window: Window, place: usize) -> [Side; 2] {
        let Window { before, from, to, after } = window;
        let ranges = [(before, place), (place, after)];
        let curves = ranges.map(|range| {
            let own = piece_of(self.groups, &self.weighted.groups, range, &self.limits);
            self.curve(&own, window)
        });
        let near = [(from.min(place - 1), place), (place, to.max(place + 1))];
        let residuals = [0, 1].map(|side| {
            let own = piece_of(self.groups, &self.weighted.groups, ranges[side], &self.limits);
            (near[side].0..near[side].1)
                .flat_map(|group| {
                    let level = self.positive(own.at(self.groups.x[group]), group);
                    self.groups.values(group).iter().map(move |value| (value - level) / self.unit(level))
                })
                .collect::<Vec<f64>>()
        });
        let scale = |values: &[f64]| {
            let mut sizes: Vec<f64> = values.iter().map(|value| value.abs()).collect();
            sizes.sort_unstable_by(f64::total_cmp);
            TO_SIGMA * median(&sizes)
        };
        let both = scale(&residuals.concat());
        let smallest = (1e-3 * both).max(1e-9 * self.weighted.sigma);
        let mut curves = curves.into_iter();
        let mut build = |side: usize| {
            let own = if residuals[side].len() < FEW { both } else { scale(&residuals[side]) };
            let sigma = own.max(smallest);
            // Fitted curves take part of the noise away: at most a slope and a level.
            let count = real(residuals[side].len());
            let freed = (count / (count - 2.0).max(1.0)).sqrt();
            Side {
                curve: curves.next().unwrap_or_default(),
                sigma,
                residuals: residuals[side].iter().map(|value| value * freed / sigma).collect(),
                beyond: Both::default(),
            }
        };
        let mut sides = [build(0), build(1)];
        for (side, (first, last)) in sides.iter_mut().zip([(before, from), (to, after)]) {
            let mut sum = Both::default();
            for group in first..last {
                let level = self.level[group];
                sum.join(&gather(
                    self.groups.x[group],
                    self.groups.values(group),
                    level,
                    side.sigma,
                    self.options,
                ));
            }
            side.beyond = sum;
        }
        sides
    }

    fn unit(&self, level: f64) -> f64 {
        if self.options.noise == NoiseScale::Proportional { level } else { 1.0 }
    }

    /// A level that can be weighted by: where a curve is carried on too far, that of the points themselves.
    fn positive(&self, level: f64, group: usize) -> f64 {
        let known = self.level[group];
        let is_usable =
            level.is_finite() && (self.options.noise == NoiseScale::Constant || level > 1e-3 * known);
        if is_usable { level } else { known }
    }

    fn curve(&self, piece: &Piece, window: Window) -> Vec<f64> {
        (window.from..window.to).map(|group| self.positive(piece.at(self.groups.x[group]), group)).collect()
    }

    /// Cost of both pieces for every place of the window, in squared sigmas of either side.
    fn costs(
        &self,
        window: Window,
        sides: &[Side; 2],
        mut values: impl FnMut(usize) -> Vec<f64>,
    ) -> Vec<f64> {
        let Window { from, to, .. } = window;
        let prices = &self.limits.prices;
        let drawn: Vec<Vec<f64>> = (from..to).map(&mut values).collect();
        let moments = |side: &Side, group: usize| {
            let level = side.curve[group - from];
            gather(self.groups.x[group], &drawn[group - from], level, side.sigma, self.options)
        };
        let mut costs = vec![0.0; to - from + 1];
        let mut right = sides[1].beyond;
        costs[to - from] = right.cost(prices);
        let step = 2.0 * (libm::log(sides[0].sigma) - libm::log(sides[1].sigma));
        for group in (from..to).rev() {
            right.join(&moments(&sides[1], group));
            costs[group - from] = right.cost(prices);
        }
        let mut left = sides[0].beyond;
        let mut scales = 0.0;
        costs[0] += left.cost(prices);
        for group in from..to {
            left.join(&moments(&sides[0], group));
            scales += step * real(drawn[group - from].len());
            costs[group + 1 - from] += left.cost(prices) + scales;
        }
        costs
    }
}

/// Place and value of the smallest cost.
fn least(costs: &[f64]) -> (usize, f64) {
    costs
        .iter()
        .copied()
        .enumerate()
        .fold((0, f64::INFINITY), |best, each| if each.1 < best.1 { each } else { best })
}
