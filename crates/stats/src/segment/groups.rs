//! Points gathered by x, weighted by their noise, and cut where they are outliers.

use crate::order::median;
use crate::sample::real;
use crate::segment::moments::{Both, Moments};
use crate::segment::{NoiseScale, SegmentOptions};

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

    /// Points of one median of the pilot.
    pub(super) fn window(&self) -> usize {
        (self.y.len() / 40).clamp(15, 101).min(self.y.len())
    }

    /// First guess of the level at each x: medians of neighbouring points, interpolated between them.
    pub(super) fn pilot(&self) -> Vec<f64> {
        let points = self.y.len();
        let window = self.window();
        let step = (window / 4).max(1);
        let centres: Vec<usize> = (0..points).step_by(step).chain([points - 1]).collect();
        let levels: Vec<f64> = centres
            .iter()
            .map(|&centre| {
                let from = centre.saturating_sub(window / 2).min(points - window);
                median(&self.y[from..from + window])
            })
            .collect();
        (0..self.count())
            .map(|group| {
                let middle = usize::midpoint(self.starts[group], self.starts[group + 1] - 1);
                let left = (middle / step).min(centres.len() - 2);
                let width = real((centres[left + 1] - centres[left]).max(1));
                let share = (real(middle - centres[left]) / width).min(1.0);
                levels[left] + share * (levels[left + 1] - levels[left])
            })
            .collect()
    }
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
        let noise = noise_scale(groups, level, options.noise);
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
    let middle = sizes.len() / 2;
    TO_SIGMA * *sizes.select_nth_unstable_by(middle, f64::total_cmp).1
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
