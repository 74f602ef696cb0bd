//! How sure the place of a break is.

use rayon::prelude::*;

use crate::error::StatsError;
use crate::order::median;
use crate::sample::{Plan, real, whole};
use crate::segment::check::check;
use crate::segment::groups::{Groups, TO_SIGMA, Weighted, gather};
use crate::segment::levels::{levels, usable};
use crate::segment::limits::{Limits, PASSES, limits};
use crate::segment::moments::Both;
use crate::segment::options::{NoiseScale, SegmentOptions};
use crate::segment::piece::best_piece;
use crate::stream::{open_uniform, stream};

/// Gives for every break the largest x surely left and the smallest x surely right of it, at the level of the plan.
///
/// `breaks` are the smallest x of the pieces but the first, ascending. The limits enclose every place that the data do not
/// refute: a place is refuted if the points are less likely with the break there than at the best place, by more than in all
/// but `1 - level` of samples that have their break where the best one is. Such samples are made of the fitted curves and of
/// residuals of the same side, drawn with replacement, and their curves are fitted and their break is placed again. Either
/// side has the noise of its own points, so that a quiet side decides against a noisy one; a few points in a hundred may
/// lie anywhere, so that spikes decide nothing. Neighbouring breaks stay, and at most 2000 points on either side
/// are looked at. The limits are widened to the data points around them and to the break itself.
///
/// The simulated quantile is not let below the asymptotic one.
///
/// Source: D. Siegmund, "Confidence sets in change-point problems", International Statistical Review 56, 1988: sets of
/// places whose likelihood ratio is below a quantile. Own deviation: the quantile is simulated. Drawing the points
/// themselves again does not do: E. Seijo, B. Sen, "Change-point in stochastic design regression and the bootstrap",
/// Annals of Statistics 39, 2011.
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
        let (weighted, smeared) = if pass == 0 {
            (Weighted::around_pilot(&groups, &level, options), groups.smeared())
        } else {
            (Weighted::new(&groups, &level, options), 0)
        };
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
    /// What lies beyond on either side, as it was measured.
    beyond: [Both; 2],
}

/// One side of a break.
#[derive(Debug, Clone)]
struct Side {
    /// Its curve at the groups of the window.
    curve: Vec<f64>,
    /// Middle and scale of its residuals.
    middle: f64,
    sigma: f64,
    /// Residuals of its own points in the window.
    residuals: Vec<f64>,
}

/// Rounds of placing the break and fitting both sides again.
const ROUNDS: usize = 3;

/// Fewer points of one side share the scale of both.
const FEW: usize = 15;

/// Points of either side that are looked at, and groups that are looked at in any case.
const POINTS: usize = 2000;
const GROUPS: usize = 10;

/// Share of points that may lie anywhere, and how many scales of the noisier side wide that is.
const ASTRAY: f64 = 0.03;
const ANYWHERE: f64 = 40.0;

impl Scene<'_> {
    fn interval(&self, places: &[usize], index: usize, plan: &Plan) -> (f64, f64) {
        let at = places[index];
        let before = if index == 0 { 0 } else { places[index - 1] };
        let after = places.get(index + 1).copied().unwrap_or(self.groups.count());
        let window = self.window(before, at, after);
        let Window { from, to, .. } = window;
        let known: Vec<Vec<f64>> = (from..to).map(|group| self.groups.values(group).to_vec()).collect();
        let (best, sides, costs) = self.placed(window, at, &known, ROUNDS);
        let mut excesses: Vec<f64> = (0..plan.resamples)
            .into_par_iter()
            .map(|replicate| {
                let mut generator = stream(plan.seed, plan.cell.wrapping_add(index as u64), replicate);
                let drawn: Vec<Vec<f64>> = (from..to)
                    .map(|group| {
                        let side = &sides[usize::from(group >= best)];
                        let count = side.residuals.len();
                        let mut draw = || {
                            let at = whole(open_uniform(&mut generator) * real(count)).min(count - 1);
                            self.value(side.curve[group - from], side.residuals[at])
                        };
                        known[group - from].iter().map(|_| draw()).collect()
                    })
                    .collect();
                let (_, _, costs) = self.placed(window, best, &drawn, ROUNDS - 1);
                costs[best - from] - least(&costs).1
            })
            .collect();
        excesses.sort_unstable_by(f64::total_cmp);
        let rank = whole((plan.level * real(excesses.len() + 1)).ceil()).clamp(1, excesses.len());
        // SOURCE: B. E. Hansen, "Sample splitting and threshold estimation", Econometrica 68, 2000, theorem 2. A curve that is not
        // quite of the fitted kind biases the place by more than samples of the fitted curves show.
        let asymptotic = -2.0 * libm::log(1.0 - plan.level.sqrt());
        let most = least(&costs).1 + excesses[rank - 1].max(asymptotic);
        let kept = |cost: &f64| *cost <= most;
        let first = from + costs.iter().position(kept).unwrap_or(best - from);
        let last = from + costs.iter().rposition(kept).unwrap_or(best - from);
        let (first, last) = (first.min(at), last.max(at));
        (self.groups.x[first - 1], self.groups.x[last.min(self.groups.count() - 1)])
    }

    fn window(&self, before: usize, at: usize, after: usize) -> Window {
        let shortest = self.limits.shortest;
        let starts = &self.groups.starts;
        let near = |point: usize| starts.partition_point(|&start| start < point);
        let low = near(starts[at].saturating_sub(POINTS)).min(at.saturating_sub(GROUPS));
        let high = near(starts[at] + POINTS).max(at + GROUPS);
        let from = low.max((before + shortest).min(at)).max(1);
        let to = high.min(after.saturating_sub(shortest).max(at)).max(from);
        let sum = |first: usize, last: usize| {
            self.weighted.groups[first..last].iter().fold(Both::default(), |mut sum, each| {
                sum.join(each);
                sum
            })
        };
        Window { before, from, to, after, beyond: [sum(before, from), sum(to, after)] }
    }

    /// Places a break by turns with fitting the curves of both sides: where it is, the sides, and the cost of every place,
    /// which is minus twice the logarithm of the likelihood.
    fn placed(
        &self,
        window: Window,
        start: usize,
        values: &[Vec<f64>],
        rounds: usize,
    ) -> (usize, [Side; 2], Vec<f64>) {
        let mut best = start;
        let mut sides = self.sides(window, best, values);
        let mut costs = self.costs(window, &sides, values);
        for _ in 1..rounds {
            let found = window.from + least(&costs).0;
            if found == best {
                break;
            }
            best = found;
            sides = self.sides(window, best, values);
            costs = self.costs(window, &sides, values);
        }
        (window.from + least(&costs).0, sides, costs)
    }

    /// Both sides of a break at `place`; beyond the window the points are those that were measured.
    fn sides(&self, window: Window, place: usize, values: &[Vec<f64>]) -> [Side; 2] {
        let Window { before, from, to, after, beyond } = window;
        let inner = [(from.min(place), place), (place, to.max(place))];
        let outer = [(before, place), (place, after)];
        let mut sides = [0, 1].map(|side| {
            let mut sum = beyond[side];
            for group in inner[side].0..inner[side].1 {
                let (level, sigma) = (self.level[group], self.weighted.spread[group]);
                sum.join(&gather(self.groups.x[group], &values[group - from], level, sigma, self.options));
            }
            let (first, last) = outer[side];
            let points = self.groups.starts[last] - self.groups.starts[first];
            let own = best_piece(&sum, (self.groups.x[first], self.groups.x[last - 1]), points, &self.limits);
            let curve: Vec<f64> =
                (from..to).map(|group| self.usable(own.at(self.groups.x[group]), group)).collect();
            let residuals: Vec<f64> = (inner[side].0..inner[side].1)
                .flat_map(|group| {
                    let level = curve[group - from];
                    values[group - from].iter().map(move |value| self.residual(*value, level))
                })
                .collect();
            // A place at the very end of the window has no point of its own there.
            let residuals = if residuals.is_empty() { vec![0.0] } else { residuals };
            // The curve was fitted to these points: a level and a slope.
            let count = real(residuals.len());
            let freed = (count / (count - 2.0).max(1.0)).sqrt();
            let middle = median(&residuals);
            let sigma = freed * spread_of(&residuals, middle);
            let residuals = residuals.iter().map(|each| middle + freed * (each - middle)).collect();
            Side { curve, middle, sigma, residuals }
        });
        let counts = [sides[0].residuals.len(), sides[1].residuals.len()];
        if counts[0].min(counts[1]) < FEW {
            let both: Vec<f64> =
                sides.iter().flat_map(|side| side.residuals.iter().map(|each| each - side.middle)).collect();
            let shared = spread_of(&both, 0.0);
            for (side, count) in sides.iter_mut().zip(counts) {
                if count < FEW {
                    side.sigma = side.sigma.max(shared);
                    side.residuals = both.iter().map(|each| each + side.middle).collect();
                }
            }
        }
        let larger = sides[0].sigma.max(sides[1].sigma).max(1e-9 * self.weighted.sigma);
        for side in &mut sides {
            side.sigma = side.sigma.max(1e-3 * larger);
        }
        sides
    }

    fn residual(&self, value: f64, level: f64) -> f64 {
        match self.options.noise {
            NoiseScale::Proportional => libm::log(value / level),
            NoiseScale::Constant => value - level,
        }
    }

    fn value(&self, level: f64, residual: f64) -> f64 {
        match self.options.noise {
            NoiseScale::Proportional => level * libm::exp(residual),
            NoiseScale::Constant => level + residual,
        }
    }

    /// A level that can be compared with: where a curve is carried on below zero, a small one.
    fn usable(&self, level: f64, group: usize) -> f64 {
        let least = 1e-3 * self.level[group];
        let is_usable = level.is_finite() && (self.options.noise == NoiseScale::Constant || level > least);
        if is_usable { level } else { least }
    }

    /// Minus twice the logarithm of the likelihood for every place of the window, up to a constant.
    fn costs(&self, window: Window, sides: &[Side; 2], values: &[Vec<f64>]) -> Vec<f64> {
        let wide = ANYWHERE * sides[0].sigma.max(sides[1].sigma);
        let loss = |side: &Side, group: usize| -> f64 {
            let level = side.curve[group - window.from];
            let density = |value: &f64| {
                let scaled = (self.residual(*value, level) - side.middle) / side.sigma;
                // SOURCE: 1 / sqrt(2 pi).
                0.398_942_280_401_432_7 * (1.0 - ASTRAY) * libm::exp(-0.5 * scaled * scaled) / side.sigma
                    + ASTRAY / wide
            };
            values[group - window.from].iter().map(|value| -2.0 * libm::log(density(value))).sum()
        };
        let mut cost = 0.0;
        let mut costs = vec![0.0];
        for group in window.from..window.to {
            cost += loss(&sides[0], group) - loss(&sides[1], group);
            costs.push(cost);
        }
        costs
    }
}

/// 1.4826 times the median distance from the middle.
fn spread_of(values: &[f64], middle: f64) -> f64 {
    TO_SIGMA * median(&values.iter().map(|value| (value - middle).abs()).collect::<Vec<f64>>())
}

/// Place and value of the smallest cost.
fn least(costs: &[f64]) -> (usize, f64) {
    costs.iter().copied().enumerate().fold(
        (0, f64::INFINITY),
        |best, each| {
            if each.1 < best.1 { each } else { best }
        },
    )
}
