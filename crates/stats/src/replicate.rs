//! Bootstrap replicates of one statistic of one sample, with standard errors where there are any.

use rayon::prelude::*;

use crate::error::StatsError;
use crate::moment::moment_replicates;
use crate::rank::quantile_replicates;
use crate::registers::Registers;
use crate::resample::Resample;
use crate::sample::Plan;
use crate::scheme::{Design, Kind, Strata};
use crate::statistic::{Evaluator, Statistic};
use crate::stream::{CHUNK, Indices, STEP, stream};
use crate::unit_moment::UnitMoments;

/// Groups of single values that are left out in turn, at most: the work is this times the size of the sample.
const MOST_GROUPS: usize = 1000;

/// What resampling tells about a statistic.
#[derive(Debug)]
pub(crate) struct Replicates {
    /// The statistic of the sample itself.
    pub(crate) estimate: f64,
    /// Its standard error; not a number where none is known.
    pub(crate) error: f64,
    /// The statistic of each resample.
    pub(crate) values: Vec<f64>,
    /// The standard error of each resample; empty where none is known.
    pub(crate) errors: Vec<f64>,
    /// The statistic without each unit, by stratum; empty unless asked for.
    pub(crate) left_out: Vec<Vec<f64>>,
}

/// Whether leave-one-out values are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Jackknife {
    Wanted,
    Unwanted,
}

impl Replicates {
    pub(crate) fn new(
        design: &Design,
        statistic: Statistic,
        jackknife: Jackknife,
        plan: &Plan,
    ) -> Result<Self, StatsError> {
        plan.check()?;
        statistic.check()?;
        let (needed, found) = (statistic.fewest(), design.sorted.len());
        if found < needed {
            return Err(StatsError::TooFew { needed, found });
        }
        Ok(if design.is_constant() {
            Self::constant(design, statistic, plan)
        } else if statistic.is_moment() {
            Self::of_moment(design, statistic, jackknife, plan)
        } else {
            Self::of_order(design, statistic, jackknife, plan)
        })
    }

    fn constant(design: &Design, statistic: Statistic, plan: &Plan) -> Self {
        let estimate = whole_sample(design, &Evaluator::new(statistic));
        let error = if statistic.is_moment() { 0.0 } else { f64::NAN };
        let errors = if statistic.is_moment() { vec![0.0; plan.resamples] } else { Vec::new() };
        Self { estimate, error, values: vec![estimate; plan.resamples], errors, left_out: Vec::new() }
    }

    fn of_moment(design: &Design, statistic: Statistic, jackknife: Jackknife, plan: &Plan) -> Self {
        let moments = UnitMoments::new(design, statistic);
        let (estimate, error) = moments.of_sample();
        let (error, rows) = match &design.kind {
            Kind::Plain => moment_replicates(&design.sorted, statistic, plan),
            _ => (error, moments.replicates(plan)),
        };
        let (values, errors) = rows.into_iter().unzip();
        let left_out = if jackknife == Jackknife::Wanted { moments.left_out() } else { Vec::new() };
        Self { estimate, error, values, errors, left_out }
    }

    fn of_order(design: &Design, statistic: Statistic, jackknife: Jackknife, plan: &Plan) -> Self {
        let evaluator = Evaluator::new(statistic);
        let values = match (&design.kind, statistic.probabilities()) {
            (Kind::Plain, Some(probabilities)) => quantile_replicates(&design.sorted, &probabilities, plan)
                .chunks_exact(probabilities.len())
                .map(|row| statistic.combine(row))
                .collect(),
            _ => counted(design, &evaluator, plan),
        };
        let left_out = if jackknife == Jackknife::Wanted {
            let units = design.jackknife_units(MOST_GROUPS, plan.seed, plan.cell);
            leave_out(design, &evaluator, &units)
        } else {
            Vec::new()
        };
        let estimate = whole_sample(design, &evaluator);
        Self { estimate, error: f64::NAN, values, errors: Vec::new(), left_out }
    }
}

impl Design {
    pub(crate) fn is_constant(&self) -> bool {
        let ends = (self.sorted.first(), self.sorted.last());
        matches!(ends, (Some(low), Some(high)) if low.total_cmp(high).is_eq())
    }
}

fn whole_sample(design: &Design, evaluator: &Evaluator) -> f64 {
    let counts = vec![1; design.sorted.len()];
    evaluator.value(&Resample { sample: &design.sorted, counts: &counts }, design.sorted.len())
}

/// Draws resamples as counts and evaluates each.
fn counted(design: &Design, evaluator: &Evaluator, plan: &Plan) -> Vec<f64> {
    let sample = design.sorted.as_slice();
    let mut values = vec![0.0; plan.resamples];
    values.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, out)| {
        let mut generator = stream(plan.seed, plan.cell, chunk);
        let mut draw = Counter::new(design, &mut generator);
        let mut counts = vec![0_u32; sample.len()];
        for slot in out {
            let total = draw.next(&mut counts);
            *slot = evaluator.value(&Resample { sample, counts: &counts }, total);
        }
    });
    values
}

/// Draws counts; single values come from the vector generator.
struct Counter<'a> {
    design: &'a Design,
    generator: &'a mut rand_pcg::Pcg64,
    plain: Option<(Indices, Vec<u32>)>,
    registers: Registers,
}

impl<'a> Counter<'a> {
    fn new(design: &'a Design, generator: &'a mut rand_pcg::Pcg64) -> Self {
        let count = design.sorted.len();
        let plain = matches!(design.kind, Kind::Plain).then(|| {
            let bound = u32::try_from(count).unwrap_or(u32::MAX);
            (Indices::new(generator, bound), vec![0; count.next_multiple_of(STEP)])
        });
        Self { design, generator, plain, registers: Registers::widest() }
    }

    fn next(&mut self, counts: &mut [u32]) -> usize {
        let Some((indices, drawn)) = &mut self.plain else {
            return self.design.count(self.generator, counts);
        };
        indices.fill(self.registers, drawn);
        counts.fill(0);
        for &index in &drawn[..counts.len()] {
            counts[index as usize] += 1;
        }
        counts.len()
    }
}

fn leave_out(design: &Design, evaluator: &Evaluator, strata: &Strata) -> Vec<Vec<f64>> {
    let sample = design.sorted.as_slice();
    let without = |counts: &mut Vec<u32>, unit: &Vec<u32>| {
        for &place in unit {
            counts[place as usize] = 0;
        }
        let value = evaluator.value(&Resample { sample, counts }, sample.len() - unit.len());
        for &place in unit {
            counts[place as usize] = 1;
        }
        value
    };
    strata
        .iter()
        .map(|units| units.par_iter().map_init(|| vec![1_u32; sample.len()], without).collect())
        .collect()
}
