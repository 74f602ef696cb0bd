use crate::error::StatsError;

/// How much is resampled, and from which stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Number of resamples, at least 1.
    pub resamples: usize,
    /// Nominal coverage of the intervals, in (0, 1).
    pub level: f64,
    /// The study's seed.
    pub seed: u64,
    /// Number of the cell (or whatever tells two calls of one study apart).
    pub cell: u64,
}

impl Plan {
    pub(crate) fn check(&self) -> Result<(), StatsError> {
        if self.resamples == 0 {
            return Err(StatsError::Zero { name: "resamples" });
        }
        check_probability("level", self.level)
    }

    /// Lower and upper tail probability of a two-sided interval.
    pub(crate) fn tails(&self) -> (f64, f64) {
        let lower = (1.0 - self.level) / 2.0;
        (lower, 1.0 - lower)
    }
}

pub(crate) fn check_probability(name: &'static str, value: f64) -> Result<(), StatsError> {
    if value > 0.0 && value < 1.0 { Ok(()) } else { Err(StatsError::Probability { name, value }) }
}

pub(crate) fn check_values(values: &[f64], needed: usize) -> Result<(), StatsError> {
    if values.len() < needed {
        return Err(StatsError::TooFew { needed, found: values.len() });
    }
    if u32::try_from(values.len()).is_err() {
        return Err(StatsError::TooMany { found: values.len() });
    }
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(StatsError::NotFinite { index }),
        None => Ok(()),
    }
}

/// Values in ascending order: resampling from them makes every result independent of the order of the input.
pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut copy = values.to_vec();
    copy.sort_unstable_by(f64::total_cmp);
    copy
}

/// A count as a number; exact below 2^53, and no sample is longer than 2^32.
#[expect(clippy::cast_precision_loss, reason = "counts here are below 2^53")]
pub(crate) const fn real(count: usize) -> f64 {
    count as f64
}

/// The whole part of a non-negative number that is known to fit.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "callers pass 0 <= value < 2^53")]
pub(crate) const fn whole(value: f64) -> usize {
    value as usize
}

/// Cuts consecutive groups of the given lengths.
pub(crate) fn split<'a>(values: &'a [f64], lengths: &[usize]) -> Result<Vec<&'a [f64]>, StatsError> {
    let total: usize = lengths.iter().sum();
    if total != values.len() {
        return Err(StatsError::Layout { lengths: total, values: values.len() });
    }
    let mut rest = values;
    Ok(lengths
        .iter()
        .map(|&length| {
            let (group, tail) = rest.split_at(length);
            rest = tail;
            group
        })
        .collect())
}
