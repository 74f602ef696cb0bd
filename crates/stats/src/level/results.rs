//! A history of results, as its evidence is computed from it.

use crate::error::StatsError;
use crate::sample::check_values;

/// Fewest results on each side of a change: one or two may be outliers.
pub(super) const SHORTEST: usize = 3;

/// Fewest results of a history.
pub(super) const FEWEST: usize = 2 * SHORTEST;

/// Results of a history, oldest first.
#[derive(Debug, Clone, Copy)]
pub struct Results<'a> {
    /// Logarithm of the mean of each result.
    pub values: &'a [f64],
    /// Runs in each result.
    pub runs: &'a [f64],
    /// Sum of squared deviations of the runs of each result from their mean, relative to it.
    pub squares: &'a [f64],
}

impl Results<'_> {
    pub(super) fn first(&self, count: usize) -> Self {
        Self { values: &self.values[..count], runs: &self.runs[..count], squares: &self.squares[..count] }
    }

    pub(super) fn check(&self, largest: f64) -> Result<(), StatsError> {
        check_values(self.values, FEWEST)?;
        for (name, found) in [("numbers of runs", self.runs), ("sums of squares", self.squares)] {
            if found.len() != self.values.len() {
                return Err(StatsError::Labels { name, needed: self.values.len(), found: found.len() });
            }
            check_values(found, FEWEST)?;
        }
        if let Some(index) = self.runs.iter().position(|&runs| runs < 1.0) {
            return Err(StatsError::NotFinite { index });
        }
        if (0.0..1.0).contains(&largest) { Ok(()) } else { Err(StatsError::Share { value: largest }) }
    }
}
