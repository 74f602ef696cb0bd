//! Isolated outliers of a history.

use crate::sample::real;

/// Neighbours on each side that an outlier is held against.
const REACH: usize = 2;

/// Farthest from its neighbours that a value counts, in standard deviations of the noise.
const FARTHEST: f64 = 5.0;

/// Outliers at most, as a share of the results: more are no outliers but the noise itself.
const MOST: f64 = 0.05;
const MOST_OF_FEW: usize = 2;

/// Median absolute difference of two normal values, in units of their standard deviation.
const NORMAL_DIFFERENCE: f64 = 0.953_872_6;
const NORMAL_MEAN_DIFFERENCE: f64 = std::f64::consts::FRAC_2_SQRT_PI;

/// Pulls values to what all but one of their neighbours reach: one or two outliers beside each other, not three.
///
/// A level of three results is left as it is, however far away.
pub(super) fn pull_in(values: &[f64]) -> Vec<f64> {
    let count = values.len();
    let farthest = FARTHEST * noise(values);
    let mut outliers: Vec<(f64, usize, f64)> = Vec::new();
    for (place, &value) in values.iter().enumerate() {
        let mut near: Vec<f64> = (place.saturating_sub(REACH)..(place + REACH + 1).min(count))
            .filter(|&other| other != place)
            .map(|other| values[other])
            .collect();
        near.sort_by(f64::total_cmp);
        let pulled = value.clamp(
            near[1].min(near[near.len() - 2]) - farthest,
            near[near.len() - 2].max(near[1]) + farthest,
        );
        #[expect(clippy::float_cmp, reason = "what lies within is left as it is")]
        let is_outlier = pulled != value;
        if is_outlier {
            outliers.push(((value - pulled).abs(), place, pulled));
        }
    }
    outliers.sort_by(|one, other| other.0.total_cmp(&one.0));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive share of a length"
    )]
    let most = ((MOST * real(count)).ceil() as usize).max(MOST_OF_FEW);
    let mut found = values.to_vec();
    for &(_, place, pulled) in outliers.iter().take(most) {
        found[place] = pulled;
    }
    found
}

/// Standard deviation from differences of neighbours, which changes of level cannot inflate.
fn noise(values: &[f64]) -> f64 {
    let mut steps: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let mean = steps.iter().sum::<f64>() / real(steps.len());
    let half = steps.len() / 2;
    let (_, &mut median, _) = steps.select_nth_unstable_by(half, f64::total_cmp);
    if median > 0.0 { median / NORMAL_DIFFERENCE } else { mean / NORMAL_MEAN_DIFFERENCE }
}
