//! Recorded results are recomputed bit by bit when a result folder is verified, so no kernel may change a bit of what it gave.
//!
//! The digests below were taken when results were first recorded. One that differs is either a defect or a change of the method,
//! which needs a new version of it.

use crate::{
    Intervals, Plan, Question, SampleOf, Scheme, Statistic, StatsError, bootstrap, moment_bootstrap,
    permutation_test, quantile_bootstrap, quantile_resampling,
};

const PLAN: Plan = Plan { resamples: 600, level: 0.95, seed: 11, cell: 5 };
/// One step of the generators holds 16 indices; 1024 are one block.
const COUNTS: [u32; 6] = [7, 16, 100, 1000, 1030, 2500];

/// Skewed values that are exact in every arithmetic.
fn values(count: u32, shift: u32) -> Vec<f64> {
    (0..count).map(|i| 1.0 + f64::from((i * i + shift * i + 13) % 1009) / 128.0).collect()
}

/// FNV-1a over the bits.
fn digest(numbers: impl IntoIterator<Item = f64>) -> u64 {
    numbers
        .into_iter()
        .flat_map(|number| number.to_bits().to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn numbers(found: &Intervals) -> Vec<f64> {
    let limits = [found.percentile, found.basic, found.bca, found.studentised];
    let all = limits.iter().flat_map(|&(low, high)| [low, high]);
    // What is not a number may have any bits.
    std::iter::once(found.estimate).chain(all).filter(|number| !number.is_nan()).collect()
}

#[test]
fn moments_keep_their_bits() {
    let found = COUNTS.iter().flat_map(|&count| {
        let found = moment_bootstrap(&values(count, 0), &PLAN).unwrap();
        [found.mean, found.standard_deviation, found.variation].iter().flat_map(numbers).collect::<Vec<_>>()
    });
    assert_eq!(format!("{:016x}", digest(found)), "01fae75f6ac01f45");
}

#[test]
fn quantiles_keep_their_bits() {
    type Kernel = fn(&[f64], &[f64], &[(usize, usize)], &Plan) -> Result<Vec<Intervals>, StatsError>;
    let asked = [0.5, 0.95, 0.99, 0.25, 0.75];
    for (kernel, expected) in
        [(quantile_bootstrap as Kernel, "557c483eb8f2b6ca"), (quantile_resampling, "9e14fdf936a18c15")]
    {
        let found = COUNTS.iter().flat_map(|&count| {
            let found = kernel(&values(count, 0), &asked, &[(3, 4)], &PLAN).unwrap();
            found.iter().flat_map(numbers).collect::<Vec<_>>()
        });
        assert_eq!(format!("{:016x}", digest(found)), expected);
    }
}

#[test]
fn permutations_keep_their_bits() {
    let found = COUNTS.iter().flat_map(|&count| {
        let other: Vec<f64> = values(count + 3, 7).iter().map(|value| value + 0.125).collect();
        let found = permutation_test(&values(count, 0), &other, &PLAN).unwrap();
        [found.statistic, found.p_value]
    });
    assert_eq!(format!("{:016x}", digest(found)), "87f5c1230f070cb5");
}

#[test]
fn counted_resamples_keep_their_bits() {
    let found = COUNTS.iter().flat_map(|&count| {
        let values = values(count, 0);
        let sample = SampleOf { values: &values, scheme: Scheme::Plain };
        let question = Question { statistic: Statistic::TrimmedMean(0.1), bca: false };
        numbers(&bootstrap(sample, &question, &PLAN).unwrap().intervals)
    });
    assert_eq!(format!("{:016x}", digest(found)), "9cbc3809633dc79f");
}
