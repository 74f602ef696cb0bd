//! Points gathered by x, weighted by their noise, and cut where they are outliers.

use crate::order::median;
use crate::sample::real;
use crate::segment::moments::{Both, Moments};
use crate::segment::options::{NoiseScale, SegmentOptions};

/// Distinct x in ascending order, with the points of each.
#[derive(Debug, Clone)]
pub(super) struct Groups {
    pub(super) x: Vec<f64>,
    /// First point of each group, then the number of points.
    pub(super) starts: Vec<usize>,
    /// Values in the order of x.
    pub(super) y: Vec<f64>,
    /// Noise of each group, in units that are the same for all: 1 where nothing else is known.
    pub(super) scale: Vec<f64>,
}

impl Groups {
    pub(super) fn new(x: &[f64], y: &[f64]) -> Self {
        Self::scaled(x, y, &[])
    }

    /// With the noise of each point; without any, all have the same. Points at one x share the largest.
    pub(super) fn scaled(x: &[f64], y: &[f64], scales: &[f64]) -> Self {
        let mut found = Self::of(x, y);
        found.scale = vec![if scales.is_empty() { 1.0 } else { 0.0 }; found.x.len()];
        for (place, &scale) in x.iter().zip(scales) {
            let group = found.x.partition_point(|each| each < place);
            found.scale[group] = found.scale[group].max(scale);
        }
        found
    }

    fn of(x: &[f64], y: &[f64]) -> Self {
        let mut order: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
        if !order.is_sorted_by(|a, b| a.0 <= b.0) {
            // The values join the key, so that the result does not depend on the order of the input.
            order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        }
        let mut found =
            Self { x: Vec::new(), starts: Vec::new(), y: Vec::with_capacity(order.len()), scale: Vec::new() };
        for (position, &(place, value)) in order.iter().enumerate() {
            #[expect(clippy::float_cmp, reason = "ties are exact")]
            if found.x.last().is_none_or(|&last| last != place) {
                found.x.push(place);
                found.starts.push(position);
            }
            found.y.push(value);
        }
        found.starts.push(order.len());
        found
    }

    pub(super) fn count(&self) -> usize {
        self.x.len()
    }

    pub(super) fn values(&self, group: usize) -> &[f64] {
        &self.y[self.starts[group]..self.starts[group + 1]]
    }

    /// The median of one group.
    pub(super) fn middle(&self, group: usize) -> f64 {
        let values = self.values(group);
        if values.len() == 1 { values[0] } else { median(values) }
    }

    /// Points that one median of the pilot needs.
    fn window(&self) -> usize {
        (self.y.len() / 40).clamp(15, 101).min(self.y.len())
    }

    /// Points from one median of the pilot to the next. Among few points, or few x, every x has its own.
    fn step(&self) -> usize {
        (self.y.len() / 400).clamp(1, (self.window() / 4).max(1))
    }

    /// Over how many points the pilot smears a jump.
    pub(super) fn smeared(&self) -> usize {
        (4 * self.step()).min(self.window())
    }

    /// First guess of the level at each x, interpolated between medians.
    ///
    /// A median is that of the x's own points and of as many neighbouring x on either side as it needs to have a window of
    /// points. Where x repeat often enough they need no neighbours; where they do not, the median of a rising curve is still
    /// that of the middle, because either side has as many x. Near the ends the window shrinks for the same reason.
    pub(super) fn pilot(&self) -> Vec<f64> {
        let (count, step) = (self.count(), self.step());
        let mut centres: Vec<usize> = Vec::new();
        for group in 0..count {
            let is_due = centres.last().is_none_or(|&last| self.starts[group] - self.starts[last] >= step);
            if is_due || group + 1 == count {
                centres.push(group);
            }
        }
        let levels: Vec<f64> = centres.iter().map(|&centre| self.smooth(centre)).collect();
        let mut left = 0;
        (0..count)
            .map(|group| {
                while left + 1 < centres.len() && centres[left + 1] <= group {
                    left += 1;
                }
                if centres[left] == group {
                    return levels[left];
                }
                let from = self.starts[centres[left]];
                let share = real(self.starts[group] - from) / real(self.starts[centres[left + 1]] - from);
                levels[left] + share * (levels[left + 1] - levels[left])
            })
            .collect()
    }

    /// The median around one x.
    fn smooth(&self, centre: usize) -> f64 {
        let window = self.window();
        let most = centre.min(self.count() - 1 - centre);
        let points = |reach: usize| self.starts[centre + reach + 1] - self.starts[centre - reach];
        let mut reach = 0;
        while reach < most && points(reach) < window {
            reach += 1;
        }
        let (mut from, mut to) = (centre - reach, centre + reach + 1);
        while self.starts[to] - self.starts[from] < FEWEST && to - from < self.count() {
            from = from.saturating_sub(1);
            to = (to + 1).min(self.count());
        }
        median(&self.y[self.starts[from]..self.starts[to]])
    }

    /// Noise before any curve is known: what the points at one x differ by, or x from the curve through their neighbours.
    ///
    /// Points at one x are compared with the median of the others there, whatever the curve does. Where the medians of
    /// x stray further from what their neighbours on either side say, which is all there is where no x repeats, that counts.
    ///
    /// Source: T. Gasser, L. Sroka, C. Jennen-Steinmetz, "Residual variance and residual pattern in nonlinear regression",
    /// Biometrika 73, 1986: strays from the line through the neighbours. Own deviation: their median, and the line is
    /// straight in x or in ln(x), whichever is nearer.
    pub(super) fn local_noise(&self, level: &[f64], noise: NoiseScale) -> f64 {
        let unit = |group: usize| {
            self.scale[group] * if noise == NoiseScale::Proportional { level[group] } else { 1.0 }
        };
        let mut repeats = Vec::new();
        for group in 0..self.count() {
            strays(self.values(group), unit(group), &mut repeats);
        }
        // Few x that repeat say nothing about the others.
        let within = if 2 * repeats.len() >= self.y.len() { middle_size(&mut repeats) } else { 0.0 };
        let middles: Vec<f64> = (0..self.count()).map(|group| self.middle(group)).collect();
        let mut between: Vec<f64> =
            (1..self.count().max(2) - 1).map(|group| self.stray(group, &middles, noise)).collect();
        within.max(middle_size(&mut between))
    }

    /// How far the median at one x lies from the line through its neighbours, over the noise of that.
    fn stray(&self, group: usize, middles: &[f64], noise: NoiseScale) -> f64 {
        let off = |x: [f64; 3], y: [f64; 3], unit: f64| {
            let share = (x[1] - x[0]) / (x[2] - x[0]);
            let (left, right) = ((1.0 - share) * self.scale[group - 1], share * self.scale[group + 1]);
            let spread = self.scale[group].hypot(left).hypot(right);
            ((y[1] - (1.0 - share) * y[0] - share * y[2]) / (unit * spread)).abs()
        };
        let x = [self.x[group - 1], self.x[group], self.x[group + 1]];
        let y = [middles[group - 1], middles[group], middles[group + 1]];
        if noise == NoiseScale::Constant {
            return off(x, y, 1.0);
        }
        let straight = off(x, y, y[1]);
        if x[0] > 0.0 { straight.min(off(x.map(libm::log), y.map(libm::log), 1.0)) } else { straight }
    }
}

/// Points from which on the median of an x is good enough near the ends.
const FEWEST: usize = 3;

/// Points at one x from which on it does not matter that a point is part of the median it is compared with.
const MANY: usize = 32;

/// Adds how far each point lies from the median of the others, over the noise of that: as far as independent points do.
fn strays(values: &[f64], unit: f64, found: &mut Vec<f64>) {
    let count = values.len();
    if count < 2 {
        return;
    }
    if count >= MANY {
        let middle = median(values);
        found.extend(values.iter().map(|value| ((value - middle) / unit).abs()));
        return;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    // The variance of the median of normal values is pi / 2 times that of their mean, of two at most the same.
    let excess = if count > 3 { core::f64::consts::FRAC_PI_2 } else { 1.0 };
    let spread = unit * (1.0 + excess / real(count - 1)).sqrt();
    for (place, value) in sorted.iter().enumerate() {
        let other = |rank: usize| sorted[rank + usize::from(rank >= place)];
        let middle = f64::midpoint(other((count - 2) / 2), other((count - 1) / 2));
        found.push(((value - middle) / spread).abs());
    }
}

/// Sigma of normal values from their sizes; 0 without any.
fn middle_size(sizes: &mut [f64]) -> f64 {
    if sizes.is_empty() {
        return 0.0;
    }
    let middle = sizes.len() / 2;
    TO_SIGMA * *sizes.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// Everything the search needs of the points: one set of moments per group.
#[derive(Debug, Clone)]
pub(super) struct Weighted {
    pub(super) groups: Vec<Both>,
    /// Scale of the noise: a share of the level, or a number in the unit of y.
    pub(super) sigma: f64,
    /// The same for each group, where points differ in their noise.
    pub(super) spread: Vec<f64>,
}

impl Weighted {
    pub(super) fn new(groups: &Groups, level: &[f64], options: &SegmentOptions) -> Self {
        Self::of_noise(groups, level, noise_scale(groups, level, options.noise), options)
    }

    /// Around a level that is only a guess: residuals are not what the noise is.
    pub(super) fn around_pilot(groups: &Groups, level: &[f64], options: &SegmentOptions) -> Self {
        Self::of_noise(groups, level, groups.local_noise(level, options.noise), options)
    }

    fn of_noise(groups: &Groups, level: &[f64], noise: f64, options: &SegmentOptions) -> Self {
        // Data that the level describes exactly: any positive scale gives the same partition.
        let least = 1e-12 * (1.0 + largest(level, options.noise));
        let joined = |noise: f64| {
            let sigma = noise.hypot(options.floor);
            if sigma > 0.0 { sigma } else { least }
        };
        let spread: Vec<f64> = groups.scale.iter().map(|scale| joined(noise * scale)).collect();
        let each = (0..groups.count())
            .map(|group| gather(groups.x[group], groups.values(group), level[group], spread[group], options))
            .collect();
        Self { groups: each, sigma: joined(noise), spread }
    }
}

fn largest(level: &[f64], noise: NoiseScale) -> f64 {
    match noise {
        NoiseScale::Proportional => 0.0,
        NoiseScale::Constant => level.iter().fold(0.0, |most: f64, value| most.max(value.abs())),
    }
}

/// From the median absolute residual to sigma, for normal values.
pub(super) const TO_SIGMA: f64 = 1.482_602_218_505_602;

/// 1.4826 times the median absolute residual, as a share of the level where noise is proportional, over the point's own scale.
fn noise_scale(groups: &Groups, level: &[f64], noise: NoiseScale) -> f64 {
    let mut sizes: Vec<f64> = Vec::with_capacity(groups.y.len());
    for (group, &centre) in level.iter().enumerate() {
        let unit = groups.scale[group] * if noise == NoiseScale::Proportional { centre } else { 1.0 };
        sizes.extend(groups.values(group).iter().map(|value| ((value - centre) / unit).abs()));
    }
    middle_size(&mut sizes)
}

/// Residuals beyond this many sigmas cost as much as this many (Huber's bounded residual around the current level).
pub(super) const CUT: f64 = 3.0;

pub(super) fn cut_value(value: f64, level: f64, sigma: f64, options: &SegmentOptions) -> f64 {
    if !options.robust {
        return value;
    }
    let unit = if options.noise == NoiseScale::Proportional { level } else { 1.0 };
    value.clamp(level - CUT * sigma * unit, level + CUT * sigma * unit)
}

/// Moments of the points at one x, cut around a level.
pub(super) fn gather(x: f64, values: &[f64], level: f64, sigma: f64, options: &SegmentOptions) -> Both {
    let count = real(values.len());
    let unit = if options.noise == NoiseScale::Proportional { sigma * level } else { sigma };
    let weight = 1.0 / (unit * unit);
    let cut = |value: &f64| cut_value(*value, level, sigma, options);
    let mean = values.iter().map(cut).sum::<f64>() / count;
    let spread: f64 = values.iter().map(|value| (cut(value) - mean).powi(2)).sum();
    Both {
        plain: Moments { weight: weight * count, x, y: mean, yy: weight * spread, ..Moments::default() },
        log: if options.power {
            // The logarithm is taken at the level and continued by its tangent, so that skewed noise costs a power law as
            // much as it costs a line, and the kinds are compared on equal terms.
            let y = libm::log(level) + (mean - level) / level;
            let relative = weight * level * level;
            let yy = weight * spread;
            Moments { weight: relative * count, x: libm::log(x), y, yy, ..Moments::default() }
        } else {
            Moments::default()
        },
    }
}
