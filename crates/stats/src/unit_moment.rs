//! Mean, standard deviation and coefficient of variation of resamples of whole units, with standard errors.
//!
//! Each unit is three sums: its number of values, of standardised values d and of d^2. A resample costs one row per unit drawn.
//! The standard error is that of the linearised statistic, whose units are the units drawn.

use rayon::prelude::*;

use crate::sample::{Plan, real};
use crate::scheme::{Design, Kind, below};
use crate::statistic::Statistic;
use crate::stream::{CHUNK, stream};
use crate::sum::{mean, standard_deviation};

/// Number of values, sum of d, sum of d^2.
type Row = [f64; 3];

pub(crate) struct UnitMoments {
    statistic: Statistic,
    centre: f64,
    scale: f64,
    /// Rows of the sample's own units by stratum; of blocks: neighbouring ones.
    strata: Vec<Vec<Row>>,
    /// Of a series: sums up to each position, and the length of a block.
    series: Option<(Vec<Row>, usize)>,
}

impl UnitMoments {
    /// The sample is not constant.
    pub(crate) fn new(design: &Design, statistic: Statistic) -> Self {
        let sorted = design.sorted.as_slice();
        let (centre, scale) = (mean(sorted), standard_deviation(sorted));
        let standardised = |place: usize| (sorted[place] - centre) / scale;
        let row = |places: &[u32]| {
            places
                .iter()
                .map(|&place| standardised(place as usize))
                .fold([0.0; 3], |sum, d| plus(sum, [1.0, d, d * d]))
        };
        let (strata, series) = match &design.kind {
            Kind::Plain => {
                let single = |place: usize| {
                    let d = standardised(place);
                    [1.0, d, d * d]
                };
                (vec![(0..sorted.len()).map(single).collect()], None)
            }
            Kind::Units(strata) => {
                (strata.iter().map(|units| units.iter().map(|unit| row(unit)).collect()).collect(), None)
            }
            Kind::Blocks { places, length } => {
                let mut sums = vec![[0.0; 3]];
                for &place in places {
                    let before = sums[sums.len() - 1];
                    sums.push(plus(before, row(&[place])));
                }
                let blocks = places.chunks(*length).map(row).collect();
                (vec![blocks], Some((sums, *length)))
            }
        };
        Self { statistic, centre, scale, strata, series }
    }

    /// The statistic of the sample and its standard error.
    pub(crate) fn of_sample(&self) -> (f64, f64) {
        let rows = self.strata.concat();
        let ends = self.ends();
        let found = self.evaluate(&rows, &ends);
        let exact = match self.statistic {
            Statistic::Mean => self.centre,
            Statistic::Deviation => self.scale,
            _ => self.scale / self.centre,
        };
        (exact, found.1)
    }

    fn ends(&self) -> Vec<usize> {
        let mut end = 0;
        self.strata
            .iter()
            .map(|units| {
                end += units.len();
                end
            })
            .collect()
    }

    pub(crate) fn replicates(&self, plan: &Plan) -> Vec<(f64, f64)> {
        let mut out = vec![(0.0, 0.0); plan.resamples];
        let ends = self.ends();
        out.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, part)| {
            let mut generator = stream(plan.seed, plan.cell, chunk);
            let mut drawn: Vec<Row> = Vec::new();
            for slot in part {
                drawn.clear();
                self.draw(&mut generator, &mut drawn);
                *slot = self.evaluate(&drawn, &ends);
            }
        });
        out
    }

    fn draw(&self, generator: &mut rand_pcg::Pcg64, drawn: &mut Vec<Row>) {
        let Some((sums, length)) = &self.series else {
            for units in &self.strata {
                drawn.extend((0..units.len()).map(|_| units[below(generator, units.len())]));
            }
            return;
        };
        let count = sums.len() - 1;
        let mut left = count;
        while left > 0 {
            let take = (*length).min(left);
            let start = below(generator, count);
            let end = start + take;
            drawn.push(if end <= count {
                minus(sums[end], sums[start])
            } else {
                plus(minus(sums[count], sums[start]), sums[end - count])
            });
            left -= take;
        }
    }

    /// The statistic without each unit.
    pub(crate) fn left_out(&self) -> Vec<Vec<f64>> {
        let total = self.strata.iter().flatten().fold([0.0; 3], |sum, row| plus(sum, *row));
        let without = |row: &Row| self.value(minus(total, *row));
        self.strata.iter().map(|units| units.iter().map(without).collect()).collect()
    }

    fn value(&self, total: Row) -> f64 {
        let [count, first, second] = total;
        let mean = first / count;
        let variance = (second / count - mean * mean).max(0.0) * count / (count - 1.0);
        match self.statistic {
            Statistic::Mean => self.centre + mean * self.scale,
            Statistic::Deviation => variance.sqrt() * self.scale,
            _ => variance.sqrt() * self.scale / (self.centre + mean * self.scale),
        }
    }

    /// Value and standard error: square root of the summed squares of the units' influences, about their mean in each stratum.
    ///
    /// Source: A. C. Davison, D. V. Hinkley, 1997, eq. 2.36 and 3.13 (nonparametric delta method).
    fn evaluate(&self, rows: &[Row], ends: &[usize]) -> (f64, f64) {
        let total = rows.iter().fold([0.0; 3], |sum, row| plus(sum, *row));
        let [count, first, second] = total;
        let mean = first / count;
        let variance = (second / count - mean * mean).max(0.0);
        let deviation = variance.sqrt();
        let natural_mean = self.centre + mean * self.scale;
        let value = self.value(total);
        let influence = |row: &Row| {
            let [m, a, b] = *row;
            let of_mean = a - mean * m;
            let of_deviation = ((b - 2.0 * mean * a + mean * mean * m) - variance * m) / (2.0 * deviation);
            match self.statistic {
                Statistic::Mean => of_mean * self.scale,
                // The statistic has the divisor n - 1.
                Statistic::Deviation => of_deviation * self.scale * (count / (count - 1.0)).sqrt(),
                _ => value * (of_deviation / deviation - of_mean * self.scale / natural_mean),
            }
        };
        let mut start = 0;
        let mut squares = 0.0;
        for &end in ends {
            let units = real(end - start);
            let centre = rows[start..end].iter().map(influence).sum::<f64>() / units;
            let spread: f64 = rows[start..end].iter().map(|row| (influence(row) - centre).powi(2)).sum();
            squares += spread * units / (units - 1.0);
            start = end;
        }
        (value, squares.sqrt() / count)
    }
}

fn plus(a: Row, b: Row) -> Row {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

fn minus(a: Row, b: Row) -> Row {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}
