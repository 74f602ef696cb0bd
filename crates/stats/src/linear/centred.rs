//! Columns and response around a rounded mean.

use crate::error::StatsError;
use crate::linear::parts::extent;
use crate::sample::{check_values, real};

/// What is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intercept {
    /// A constant is the first coefficient.
    Fitted,
    /// The model goes through the origin.
    Zero,
}

/// Columns and response, seen with a rounded mean taken off (nothing off without intercept).
pub(super) struct Centred<'a> {
    pub(super) columns: &'a [&'a [f64]],
    pub(super) response: &'a [f64],
    pub(super) column_shifts: Vec<f64>,
    pub(super) response_shift: f64,
    /// Largest distance from the shift, by column.
    pub(super) largest: Vec<f64>,
    pub(super) intercept: Intercept,
}

impl<'a> Centred<'a> {
    pub(super) fn new(
        columns: &'a [&'a [f64]],
        response: &'a [f64],
        intercept: Intercept,
    ) -> Result<Self, StatsError> {
        let extents = columns.iter().map(|column| Extent::of(column)).collect::<Result<Vec<_>, _>>()?;
        let shift = |extent: &Extent| match intercept {
            Intercept::Fitted => extent.rounded_mean(),
            Intercept::Zero => 0.0,
        };
        let column_shifts: Vec<f64> = extents.iter().map(shift).collect();
        let largest = extents.iter().zip(&column_shifts).map(|(extent, by)| extent.largest(*by)).collect();
        let response_shift = shift(&Extent::of(response)?);
        Ok(Self { columns, response, column_shifts, response_shift, largest, intercept })
    }

    pub(super) fn count(&self) -> usize {
        self.response.len()
    }

    /// 1 with an intercept.
    pub(super) fn constants(&self) -> usize {
        usize::from(self.intercept == Intercept::Fitted)
    }

    pub(super) fn at(&self, column: usize, observation: usize) -> f64 {
        self.columns[column][observation] - self.column_shifts[column]
    }

    pub(super) fn response_at(&self, observation: usize) -> f64 {
        self.response[observation] - self.response_shift
    }

    /// One well-scaled column: double precision in blocks suffices, and is several times faster.
    pub(super) fn is_simple(&self) -> bool {
        self.columns.len() <= 1
    }
}

/// What one reading of a column says.
struct Extent {
    mean: f64,
    lowest: f64,
    highest: f64,
}

impl Extent {
    fn of(values: &[f64]) -> Result<Self, StatsError> {
        let (sum, lowest, highest) = extent(values);
        if !(lowest.is_finite() && highest.is_finite() && sum.is_finite()) {
            check_values(values, 1)?;
        }
        let count = real(values.len());
        // The sum of huge values may overflow where their mean does not.
        let mean = if sum.is_finite() { sum / count } else { values.iter().map(|value| value / count).sum() };
        Ok(Self { mean, lowest, highest })
    }

    fn largest(&self, shift: f64) -> f64 {
        (self.highest - shift).abs().max((self.lowest - shift).abs())
    }

    /// The mean on a grid of 2^-20 of the spread: data with few digits lose nothing when it is taken off.
    fn rounded_mean(&self) -> f64 {
        const EXPONENT: u64 = 0x7FF0_0000_0000_0000;
        let spread = self.largest(self.mean);
        let grid = f64::from_bits(spread.to_bits() & EXPONENT) / 1_048_576.0;
        let steps = self.mean / grid;
        if steps.abs() < 4_503_599_627_370_496.0 { steps.round() * grid } else { self.mean }
    }
}
