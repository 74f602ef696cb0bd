use super::{Contrast, Question, SampleOf, acceleration, bootstrap, contrast_bootstrap};
use crate::sample::Plan;
use crate::scheme::Scheme;
use crate::statistic::Statistic;
use crate::stream::{open_uniform, stream};
use crate::{Intervals, moment_bootstrap};
use proptest::prelude::*;

const PLAN: Plan = Plan { resamples: 1000, level: 0.95, seed: 7, cell: 3 };

const ALL: [Statistic; 9] = [
    Statistic::Mean,
    Statistic::Deviation,
    Statistic::Variation,
    Statistic::Quantile(0.9),
    Statistic::HarrellDavis(0.5),
    Statistic::Range(0.25, 0.75),
    Statistic::TailRatio(0.5, 0.9),
    Statistic::MedianDeviation,
    Statistic::TrimmedMean(0.2),
];

fn skewed(count: usize, cell: u64) -> Vec<f64> {
    let mut generator = stream(99, cell, 0);
    (0..count)
        .map(|_| 1.0 + libm::exp(0.5 * crate::special::normal_quantile(open_uniform(&mut generator))))
        .collect()
}

fn labels(count: usize, size: usize) -> Vec<usize> {
    (0..count).map(|index| index / size).collect()
}

fn of(values: &[f64], scheme: Scheme<'_>, statistic: Statistic) -> Intervals {
    bootstrap(SampleOf { values, scheme }, &Question { statistic, bca: true }, &PLAN).unwrap().intervals
}

fn bits(found: &Intervals) -> Vec<u64> {
    let Intervals { estimate, percentile, basic, bca, studentised } = *found;
    [(estimate, estimate), percentile, basic, bca, studentised]
        .iter()
        .flat_map(|(low, high)| [low.to_bits(), high.to_bits()])
        .collect()
}

/// Found by fuzzing: limits came in the wrong order.
#[test]
fn a_negative_estimate_has_no_studentised_limits_on_the_logarithm() {
    let plan = Plan { resamples: 200, level: 0.9, seed: 1, cell: 1 };
    let below = [-5.0, -4.0, -6.5, -3.0, -4.5];
    let question = Question { statistic: Statistic::Variation, bca: false };
    let sample = |values| SampleOf { values, scheme: Scheme::Plain };
    let found = bootstrap(sample(&below), &question, &plan).unwrap().intervals;
    assert!(found.estimate < 0.0 && found.percentile.0 < found.percentile.1 && found.studentised.0.is_nan());
    let moments = crate::moment_bootstrap(&below, &plan).unwrap().variation;
    assert!(moments.studentised.0.is_nan() && moments.studentised.1.is_nan());
    let above = [35.0, 36.0, 30.0];
    let question = Question { statistic: Statistic::Mean, bca: false };
    let pair = [sample(&below), sample(&above)];
    let found = contrast_bootstrap(pair, Contrast::Ratio, &question, &plan).unwrap().intervals;
    assert!(found.estimate < 0.0 && found.studentised.0.is_nan());
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let (values, other) = (skewed(120, 1), skewed(80, 2));
    let (clusters, strata) = (labels(120, 8), labels(120, 40));
    let schemes = [
        Scheme::Plain,
        Scheme::Units { clusters: Some(&clusters), strata: Some(&strata) },
        Scheme::Units { clusters: None, strata: Some(&strata) },
        Scheme::Blocks(7),
    ];
    let second = SampleOf { values: &other, scheme: Scheme::Plain };
    let results = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut found = Vec::new();
            for statistic in ALL {
                for scheme in schemes {
                    found.extend(bits(&of(&values, scheme, statistic)));
                    let first = SampleOf { values: &values, scheme };
                    let question = Question { statistic, bca: true };
                    let ratio = contrast_bootstrap([first, second], Contrast::Ratio, &question, &PLAN);
                    found.extend(bits(&ratio.unwrap().intervals));
                }
            }
            found
        })
    };
    let one = results(1);
    assert_eq!(one, results(2));
    assert_eq!(one, results(5));
}

#[test]
fn moments_of_single_values_are_those_of_the_one_pass_kernel() {
    let values = skewed(150, 3);
    let known = moment_bootstrap(&values, &PLAN).unwrap();
    for (statistic, expected) in [
        (Statistic::Mean, known.mean),
        (Statistic::Deviation, known.standard_deviation),
        (Statistic::Variation, known.variation),
    ] {
        let found = of(&values, Scheme::Plain, statistic);
        for (a, b) in [
            (found.percentile, expected.percentile),
            (found.basic, expected.basic),
            (found.bca, expected.bca),
            (found.studentised, expected.studentised),
        ] {
            let near =
                |x: f64, y: f64| (x - y).abs() < 1e-9 * (expected.percentile.1 - expected.percentile.0);
            assert!(near(a.0, b.0) && near(a.1, b.1), "{statistic:?}: {a:?} against {b:?}");
        }
    }
}

/// Clusters of equal size without spread inside are single values of a sample as large as their number.
#[test]
fn clusters_of_equal_values_are_single_values() {
    let values = skewed(40, 4);
    let repeated: Vec<f64> = values.iter().flat_map(|&value| [value; 5]).collect();
    let clusters = labels(200, 5);
    let scheme = Scheme::Units { clusters: Some(&clusters), strata: None };
    let whole = Plan { resamples: 40_000, ..PLAN };
    let question = Question { statistic: Statistic::Mean, bca: true };
    let found = bootstrap(SampleOf { values: &repeated, scheme }, &question, &whole).unwrap().intervals;
    let alone = moment_bootstrap(&values, &whole).unwrap().mean;
    let width = alone.percentile.1 - alone.percentile.0;
    for (a, b) in
        [(found.percentile, alone.percentile), (found.bca, alone.bca), (found.studentised, alone.studentised)]
    {
        assert!((a.0 - b.0).abs() < 0.03 * width && (a.1 - b.1).abs() < 0.03 * width, "{a:?} {b:?}");
    }
}

/// Strata explain the whole spread: no resample differs from the sample.
#[test]
fn strata_without_spread_leave_none() {
    let values = [1.0, 1.0, 1.0, 5.0, 5.0, 9.0, 9.0, 9.0];
    let strata = [0, 0, 0, 1, 1, 2, 2, 2];
    let found = of(&values, Scheme::Units { clusters: None, strata: Some(&strata) }, Statistic::Mean);
    assert!((found.percentile.0 - 5.0).abs() < 1e-12 && (found.percentile.1 - 5.0).abs() < 1e-12);
}

/// Of a first-order series with correlation 0.8 the mean has about three times the error of independent values.
#[test]
fn blocks_see_the_dependence_of_neighbours() {
    let mut generator = stream(5, 0, 0);
    let mut current = 0.0;
    let values: Vec<f64> = (0..5000)
        .map(|_| {
            current = 0.8 * current + crate::special::normal_quantile(open_uniform(&mut generator));
            current
        })
        .collect();
    let width = |scheme| {
        let (low, high) = of(&values, scheme, Statistic::Mean).percentile;
        high - low
    };
    // sqrt((1 + 0.8) / (1 - 0.8)) = 3; blocks of 50 lose about 5 % of it.
    let growth = width(Scheme::Blocks(50)) / width(Scheme::Plain);
    assert!((2.4..3.3).contains(&growth), "{growth}");
}

#[test]
fn acceleration_of_one_stratum_is_the_usual_one() {
    let values = vec![1.0, 2.0, 4.0, 9.0];
    let usual = crate::interval::acceleration(&values);
    assert!((acceleration(&[values]) / usual - 1.0).abs() < 1e-12);
}

#[test]
fn a_constant_sample_has_point_intervals() {
    for statistic in [Statistic::Mean, Statistic::HarrellDavis(0.3), Statistic::TrimmedMean(0.1)] {
        let found = of(&[2.5; 12], Scheme::Plain, statistic);
        let near = |limits: (f64, f64)| (limits.0 - 2.5).abs() < 1e-12 && (limits.1 - 2.5).abs() < 1e-12;
        assert!(near(found.percentile) && near(found.bca) && near(found.studentised), "{statistic:?}");
    }
}

#[test]
fn a_ratio_without_a_denominator_counts_as_undefined() {
    let constant = [1.0; 10];
    let sample = SampleOf { values: &constant, scheme: Scheme::Plain };
    let question = Question { statistic: Statistic::Deviation, bca: false };
    let found = contrast_bootstrap([sample, sample], Contrast::Ratio, &question, &PLAN).unwrap();
    assert_eq!(found.undefined, PLAN.resamples);
    assert!(found.intervals.estimate.is_nan() && found.intervals.percentile.0.is_nan());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn limits_follow_shift_and_scale_and_ignore_order(
        values in prop::collection::vec(1.0..50.0_f64, 10..60), shift in 0.0..100.0_f64, scale in 0.1..10.0_f64,
    ) {
        let spread = values.iter().copied().fold(f64::MIN, f64::max) - values.iter().copied().fold(f64::MAX, f64::min);
        prop_assume!(spread > 1.0);
        let clusters = labels(values.len(), 2);
        let scheme = Scheme::Units { clusters: Some(&clusters), strata: None };
        let moved: Vec<f64> = values.iter().map(|value| shift + scale * value).collect();
        let swapped: Vec<f64> = values.chunks(2).flat_map(|pair| pair.iter().rev().copied()).collect();
        for statistic in ALL {
            let found = of(&values, scheme, statistic);
            prop_assert_eq!(bits(&found), bits(&of(&swapped, scheme, statistic)));
            prop_assert!(found.percentile.0 <= found.percentile.1);
            let (offset, factor) = match statistic {
                Statistic::Variation | Statistic::TailRatio(..) => continue,
                Statistic::Deviation | Statistic::Range(..) | Statistic::MedianDeviation => (0.0, scale),
                _ => (shift, scale),
            };
            let other = of(&moved, scheme, statistic);
            for (a, b) in [(found.percentile, other.percentile), (found.basic, other.basic)] {
                prop_assert!((offset + factor * a.0 - b.0).abs() <= 1e-8 * (1.0 + b.0.abs()), "{statistic:?}");
                prop_assert!((offset + factor * a.1 - b.1).abs() <= 1e-8 * (1.0 + b.1.abs()), "{statistic:?}");
            }
        }
    }
}
