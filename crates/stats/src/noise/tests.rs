use super::{CurveError, Law, LawKind, NoiseFit, NoiseSetting, Simulation, pareto_tail};
use crate::error::StatsError;
use crate::noise::law::Excess;
use crate::sample::real;
use crate::stream::{open_uniform, stream};
use proptest::prelude::*;

const PLAN: Simulation = Simulation { samples: 99, enough: 10, seed: 1 };
const QUICK: Simulation = Simulation { samples: 1, enough: 1, seed: 1 };

fn fit_noise(values: &[f64], lowest_shift: Option<f64>, plan: &Simulation) -> Result<NoiseFit, StatsError> {
    super::fit_noise(values, &NoiseSetting { lowest_shift, curve: None }, plan)
}

fn draw(law: &Law, count: usize, seed: u64) -> Vec<f64> {
    let mut generator = stream(seed, 77, 0);
    (0..count)
        .map(|_| {
            let u = open_uniform(&mut generator);
            law.quantile(u, 1.0 - u)
        })
        .collect()
}

const LAWS: [Law; 6] = [
    Law { kind: LawKind::Lognormal, shift: 1.0, shape: 1.0, scale: 0.05 },
    Law { kind: LawKind::Lognormal, shift: 0.9, shape: 0.3, scale: 0.2 },
    Law { kind: LawKind::Gamma, shift: 1.0, shape: 0.6, scale: 0.1 },
    Law { kind: LawKind::Gamma, shift: 0.5, shape: 4.0, scale: 0.1 },
    Law { kind: LawKind::Weibull, shift: 1.0, shape: 0.7, scale: 0.1 },
    Law { kind: LawKind::Weibull, shift: 0.5, shape: 2.5, scale: 0.3 },
];

#[test]
fn planted_laws_are_recovered_and_not_refuted() {
    for (number, law) in LAWS.iter().enumerate() {
        for count in [2000, 20_000] {
            let values = draw(law, count, number as u64);
            let fits = fit_noise(&values, Some(0.0), &PLAN).expect("fits").laws;
            let own = fits.iter().find(|fit| fit.law.kind == law.kind).expect("is there");
            let near = |found: f64, truth: f64, error: f64| (found / truth).ln().abs() < 4.0 * error;
            assert!(near(own.law.shape, law.shape, own.errors[1]), "{law:?} {count}: {own:?}");
            assert!(near(own.law.scale, law.scale, own.errors[2]), "{law:?} {count}: {own:?}");
            assert!((own.law.shift - law.shift).abs() < 0.05, "{law:?} {count}: {own:?}");
            assert!(own.fitness.1 > 0.02, "{law:?} {count}: {own:?}");
            assert!(own.distance < 1.2 / real(count).sqrt(), "{law:?} {count}: {own:?}");
            let normal = &fits[0];
            assert!(normal.fitness.1 <= 0.011 && normal.log_likelihood < own.log_likelihood, "{normal:?}");
        }
    }
}

#[test]
fn slopes_are_the_changes_of_the_tail() {
    for law in &LAWS {
        let base = Excess::of(law);
        for excess in [0.01, 0.1, 0.5] {
            let slopes = base.slopes(excess);
            let step = 1e-5_f64;
            let change =
                |up: Excess, a: f64, down: Excess, b: f64| (up.tails(a).0 - down.tails(b).0) / (2.0 * step);
            let scaled = |factor: f64| Excess { shape: base.shape * factor, ..base };
            let wide = |factor: f64| Excess { scale: base.scale * factor, ..base };
            let (more, less) = (step.exp(), (-step).exp());
            let expected = [
                change(base, excess * more, base, excess * less),
                change(scaled(more), excess, scaled(less), excess),
                change(wide(more), excess, wide(less), excess),
            ];
            for axis in 0..3 {
                assert!((slopes[axis] - expected[axis]).abs() < 1e-6, "{law:?} {excess} {axis}: {slopes:?}");
            }
        }
    }
}

#[test]
fn densities_integrate_to_the_tails() {
    let normal = Law { kind: LawKind::Normal, shift: 1.0, shape: 0.0, scale: 0.1 };
    for law in LAWS.iter().chain([&normal]) {
        let (low, high) = (law.quantile(0.2, 0.8), law.quantile(0.8, 0.2));
        let steps = 2000_usize;
        let width = (high - low) / real(steps);
        let sum: f64 =
            (0..steps).map(|step| law.log_density(low + width * (real(step) + 0.5)).exp() * width).sum();
        assert!((sum - 0.6).abs() < 1e-5, "{law:?}: {sum}");
        for p in [1e-3, 0.3, 0.999] {
            let back = law.tails(law.quantile(p, 1.0 - p)).0;
            assert!((back / p - 1.0).abs() < 1e-8, "{law:?} {p}: {back}");
        }
    }
}

#[test]
fn the_result_does_not_depend_on_threads_or_order() {
    let values = draw(&LAWS[0], 5000, 3);
    let first = fit_noise(&values, Some(0.0), &PLAN).expect("fits");
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    let mut turned = values.clone();
    turned.reverse();
    let again = alone.install(|| fit_noise(&turned, Some(0.0), &PLAN)).expect("fits");
    for (a, b) in first.laws.iter().zip(&again.laws) {
        assert_eq!((a.law, a.fitness, a.simulated), (b.law, b.fitness, b.simulated));
    }
    let tails = (pareto_tail(&values, &PLAN), alone.install(|| pareto_tail(&turned, &PLAN)));
    assert_eq!(tails.0, tails.1);
}

#[test]
fn simulated_differences_are_what_a_fitted_line_leaves() {
    let noise = draw(&LAWS[0], 900, 5);
    let rows: Vec<[f64; 2]> = (0..900).map(|i| [1.0, f64::from(i)]).collect();
    let mut curve = CurveError { rows, weights: vec![1.0; 900], is_factor: false, is_cut: false };
    let mut residuals = noise.clone();
    curve.apply(&mut residuals);
    let slope = |values: &[f64]| -> f64 {
        let mean = values.iter().sum::<f64>() / 900.0;
        values.iter().zip(&curve.rows).map(|(value, row)| (value - mean) * (row[1] - 449.5)).sum()
    };
    assert!(slope(&noise).abs() > 100.0 && slope(&residuals).abs() < 1e-6, "{}", slope(&noise));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / 900.0;
    assert!((mean(&noise) - mean(&residuals)).abs() < 1e-12);
    curve.is_factor = true;
    let mut factors = noise.clone();
    curve.apply(&mut factors);
    for (index, factor) in factors.iter().enumerate() {
        // The same error, to first order: a share of the curve instead of a difference from it.
        let error = noise[index] - residuals[index];
        assert!((factor * (1.0 + error) - noise[index]).abs() < 1e-12);
    }
    let setting = NoiseSetting { lowest_shift: None, curve: Some(curve) };
    assert!(super::fit_noise(&noise[..20], &setting, &PLAN).is_err());
}

#[test]
fn two_modes_follow_no_law() {
    let normal = |at: f64| Law { kind: LawKind::Normal, shift: at, shape: 0.0, scale: 0.02 };
    let mut values = draw(&normal(1.0), 1000, 1);
    values.extend(draw(&normal(1.3), 700, 2));
    for fit in fit_noise(&values, Some(0.0), &PLAN).expect("fits").laws {
        assert!(fit.fitness.1 <= 0.011, "{fit:?}");
    }
}

/// One value of a hundred is followed by a delay of Pareto's law with index 1.5: whether the tail is surely heavy, whether its
/// limits hold the index.
fn rare_delays(count: usize, seed: u64, unit: f64) -> (bool, bool) {
    let mut generator = stream(seed, 1, 5);
    let values: Vec<f64> = draw(&LAWS[0], count, seed)
        .into_iter()
        .map(|value| {
            let (hit, u) = (open_uniform(&mut generator), open_uniform(&mut generator));
            if hit < 0.01 { value + unit * libm::pow(u, -1.0 / 1.5) } else { value }
        })
        .collect();
    let tail = pareto_tail(&values, &QUICK).expect("finite").expect("long enough");
    let (low, high) = tail.shape_limits;
    (tail.holds && low > 0.0, low <= 1.0 / 1.5 && 1.0 / 1.5 <= high)
}

#[test]
fn rare_heavy_delays_are_found_behind_a_light_body() {
    // Delays as short as the body's own tail are found as surely, but the law of both together is a little heavier than theirs
    // alone: the limits, of 90 % for a tail that is a law of its own, hold the index less often.
    for (count, unit, least, right) in
        [(5000, 20.0, 43, 0.8), (10_000, 20.0, 46, 0.8), (10_000, 5.0, 46, 0.8), (10_000, 1.0, 46, 0.6)]
    {
        let found: Vec<(bool, bool)> = (0..50).map(|seed| rare_delays(count, seed, unit)).collect();
        let heavy = found.iter().filter(|each| each.0).count();
        let held = found.iter().filter(|each| each.0 && each.1).count();
        assert!(
            heavy >= least && real(held) >= right * real(heavy),
            "{count} {unit}: {heavy} of 50 found, {held} held"
        );
    }
}

#[test]
fn a_light_law_has_no_heavy_tail() {
    let exponential = Law { kind: LawKind::Weibull, shift: 0.0, shape: 1.0, scale: 2.0 };
    let heavy = (0..100).filter(|&seed| {
        let tail =
            pareto_tail(&draw(&exponential, 3000, seed), &QUICK).expect("finite").expect("long enough");
        tail.holds && tail.shape_limits.0 > 0.0
    });
    // One of twenty is claimed at the level of the limits.
    assert!(heavy.count() <= 11);
}

#[test]
fn a_pareto_tail_is_found_above_the_body() {
    // Uniform body, Pareto of exponent 2 above 1: its excesses follow shape 1/2, scale 1/2.
    let mut generator = stream(9, 9, 9);
    let values: Vec<f64> = (0..20_000)
        .map(|_| {
            let u = open_uniform(&mut generator);
            if u < 0.95 { u / 0.95 } else { libm::pow((1.0 - u) / 0.05, -0.5) }
        })
        .collect();
    let tail = pareto_tail(&values, &PLAN).expect("finite").expect("long enough");
    assert!(tail.holds && tail.exceedances <= 1000, "{tail:?}");
    assert!((tail.shape - 0.5).abs() < 3.0 * tail.errors.0, "{tail:?}");
    let light = draw(&Law { kind: LawKind::Weibull, shift: 0.0, shape: 1.0, scale: 2.0 }, 5000, 4);
    let tail = pareto_tail(&light, &PLAN).expect("finite").expect("long enough");
    assert!(tail.holds && tail.exceedances > 500, "{tail:?}");
    assert!(tail.shape.abs() < 3.0 * tail.errors.0 && (tail.scale / 2.0 - 1.0).abs() < 0.2, "{tail:?}");
    assert_eq!(pareto_tail(&light[..70], &PLAN).expect("finite"), None);
    assert!(pareto_tail(&[f64::NAN], &PLAN).is_err());
}

#[test]
fn ties_do_not_pull_the_shift_to_the_smallest_value() {
    // A clock of two digits: nearly every value occurs several times.
    let values: Vec<f64> =
        draw(&LAWS[3], 4000, 8).iter().map(|value| (value * 100.0).round() / 100.0).collect();
    let found = fit_noise(&values, Some(0.0), &QUICK).expect("fits");
    assert!(found.distinct < 200);
    let gamma = found.laws[2].law;
    assert!((gamma.shape / 4.0 - 1.0).abs() < 0.25 && (gamma.shift - 0.5).abs() < 0.05, "{gamma:?}");
}

#[test]
fn impossible_samples_say_why() {
    let text = |values: &[f64]| fit_noise(values, Some(0.0), &PLAN).expect_err("cannot fit").to_string();
    assert!(text(&[1.0; 5]).contains("at least 10"));
    assert!(text(&[1.0; 20]).contains("at least 3"));
    let mut values = draw(&LAWS[0], 20, 1);
    values[7] = f64::INFINITY;
    assert!(text(&values).contains("number 7"));
    values[7] = 0.0;
    assert!(text(&values).contains("not positive"));
    assert!(fit_noise(&draw(&LAWS[0], 20, 1), None, &Simulation { samples: 0, enough: 1, seed: 0 }).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever the sample: numbers come back, laws lie where the data do, and units only scale them.
    #[test]
    fn any_sample_is_described_in_its_unit(
        values in prop::collection::vec(1e-3..1e3_f64, 12..200), unit in -20..20_i32,
    ) {
        let factor = libm::exp2(f64::from(unit));
        let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
        let plain = fit_noise(&values, Some(0.0), &QUICK);
        let other = fit_noise(&scaled, Some(0.0), &QUICK);
        let (Ok(plain), Ok(other)) = (plain, other) else { return Ok(()) };
        for (a, b) in plain.laws.iter().zip(&other.laws) {
            prop_assert!(a.law.scale > 0.0 && a.law.shift.is_finite() && a.fitness.0.is_finite(), "{:?}", a);
            prop_assert!(a.law.kind == LawKind::Normal || (a.law.shift >= 0.0 && a.law.shift <= a.lowest));
            prop_assert!((0.0..=1.0).contains(&a.distance));
            prop_assert!((a.distance - b.distance).abs() < 1e-3, "{:?} {:?}", a, b);
        }
    }
}
