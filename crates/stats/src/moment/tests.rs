use super::{MomentIntervals, Sums, moment_bootstrap, moment_bootstrap_groups};
use crate::error::StatsError;
use crate::registers::Registers;
use crate::sample::Plan;
use crate::stream::{open_uniform, stream};
use proptest::prelude::*;

const PLAN: Plan = Plan { resamples: 1000, level: 0.95, seed: 7, cell: 3 };

fn skewed(count: usize, cell: u64) -> Vec<f64> {
    let mut generator = stream(99, cell, 0);
    (0..count)
        .map(|_| 1.0 + libm::exp(0.5 * crate::special::normal_quantile(open_uniform(&mut generator))))
        .collect()
}

fn bits(found: &MomentIntervals) -> Vec<u64> {
    [found.mean, found.standard_deviation, found.variation]
        .iter()
        .flat_map(|part| [part.percentile, part.basic, part.bca, part.studentised])
        .flat_map(|(low, high)| [low.to_bits(), high.to_bits()])
        .collect()
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let values = skewed(300, 1);
    let found: Vec<_> = [1, 2, 5]
        .iter()
        .map(|&threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            bits(&pool.install(|| moment_bootstrap(&values, &PLAN)).unwrap())
        })
        .collect();
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0], found[2]);
}

#[test]
fn vector_registers_do_not_change_a_bit() {
    for count in [2, 3, 15, 16, 17, 31, 48, 50, 1000, 1024, 1030, 2500] {
        let sample = super::Sample::new(&skewed(count, 2));
        let sums = |registers| {
            let mut sums = Sums::with(&sample.rows, registers, &PLAN, 0);
            (0..20).map(|_| sums.next().map(f64::to_bits)).collect::<Vec<_>>()
        };
        for registers in Registers::available() {
            assert_eq!(sums(registers), sums(Registers::Plain), "{registers:?}, {count}");
        }
    }
}

#[test]
fn order_of_the_values_does_not_change_a_bit() {
    let mut values = skewed(101, 3);
    let before = bits(&moment_bootstrap(&values, &PLAN).unwrap());
    values.reverse();
    values.rotate_left(17);
    assert_eq!(before, bits(&moment_bootstrap(&values, &PLAN).unwrap()));
}

#[test]
fn groups_give_what_single_calls_give() {
    let (first, second) = (skewed(40, 4), skewed(60, 5));
    let all = [first.clone(), second.clone()].concat();
    let groups = moment_bootstrap_groups(&all, &[40, 60], &PLAN).unwrap();
    let alone = moment_bootstrap(&second, &Plan { cell: PLAN.cell + 1, ..PLAN }).unwrap();
    assert_eq!(bits(&groups[1]), bits(&alone));
    let wrong = moment_bootstrap_groups(&all, &[40, 61], &PLAN).unwrap_err();
    assert_eq!(wrong, StatsError::Layout { lengths: 101, values: 100 });
}

/// The bootstrap distribution of a mean has standard deviation sd sqrt((n-1)/n) / sqrt n exactly.
#[test]
fn width_of_the_mean_interval_is_that_of_theory() {
    let values = skewed(400, 6);
    let plan = Plan { resamples: 40_000, ..PLAN };
    let found = moment_bootstrap(&values, &plan).unwrap();
    let half = found.standard_deviation.estimate / 20.0 * (399.0_f64 / 400.0).sqrt() * 1.959_964;
    let width = found.mean.percentile.1 - found.mean.percentile.0;
    assert!((width / (2.0 * half) - 1.0).abs() < 0.02, "{width} against {}", 2.0 * half);
}

#[test]
fn a_constant_sample_has_point_intervals() {
    let found = moment_bootstrap(&[2.5; 12], &PLAN).unwrap();
    assert_eq!(found.mean.bca, (2.5, 2.5));
    assert_eq!(found.standard_deviation.percentile, (0.0, 0.0));
}

#[test]
fn bad_input_is_refused_with_its_reason() {
    assert_eq!(moment_bootstrap(&[1.0], &PLAN), Err(StatsError::TooFew { needed: 2, found: 1 }));
    assert_eq!(moment_bootstrap(&[1.0, f64::NAN], &PLAN), Err(StatsError::NotFinite { index: 1 }));
    let level = moment_bootstrap(&[1.0, 2.0], &Plan { level: 1.0, ..PLAN });
    assert_eq!(level, Err(StatsError::Probability { name: "level", value: 1.0 }));
    let none = moment_bootstrap(&[1.0, 2.0], &Plan { resamples: 0, ..PLAN });
    assert_eq!(none, Err(StatsError::Zero { name: "resamples" }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn limits_enclose_the_estimate_and_follow_shift_and_scale(
        values in prop::collection::vec(1.0..50.0_f64, 8..60), shift in 0.0..100.0_f64, scale in 0.1..10.0_f64,
    ) {
        let spread = values.iter().copied().fold(f64::MIN, f64::max) - values.iter().copied().fold(f64::MAX, f64::min);
        prop_assume!(spread > 1.0);
        let found = moment_bootstrap(&values, &PLAN).unwrap();
        for limits in [found.mean.percentile, found.mean.bca, found.mean.basic] {
            prop_assert!(limits.0 <= found.mean.estimate && found.mean.estimate <= limits.1);
        }
        let moved: Vec<f64> = values.iter().map(|value| shift + scale * value).collect();
        let other = moment_bootstrap(&moved, &PLAN).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + b.abs());
        prop_assert!(near(other.mean.percentile.0, shift + scale * found.mean.percentile.0));
        prop_assert!(near(other.mean.studentised.1, shift + scale * found.mean.studentised.1));
        prop_assert!(near(other.standard_deviation.bca.1, scale * found.standard_deviation.bca.1));
        prop_assert!(near(other.standard_deviation.basic.0, scale * found.standard_deviation.basic.0));
    }
}
