use proptest::prelude::*;

use super::covariance::{SIZES, fits};
use super::outlier::pull_in;
use super::{Results, SHORTEST, level_change, level_looks, newest_change};

fn noise(count: usize, seed: u32) -> Vec<f64> {
    let waves = |place: usize| {
        let x = f64::from(u32::try_from(place).unwrap()) + 17.3 * f64::from(seed);
        (x * x).sin() + (1.7 * x * x).cos()
    };
    (0..count).map(|place| 0.02 * waves(place)).collect()
}

fn stepped(count: usize, after: usize, size: f64) -> Vec<f64> {
    let mut values = noise(count, 1);
    values[count - after..].iter_mut().for_each(|value| *value += size);
    values
}

fn alone(values: &[f64]) -> (Vec<f64>, Vec<f64>) {
    (vec![1.0; values.len()], vec![0.0; values.len()])
}

fn found(values: &[f64], largest: f64) -> super::LevelChange {
    let (runs, squares) = alone(values);
    level_change(Results { values, runs: &runs, squares: &squares }, largest).unwrap()
}

/// Lower triangle of a symmetric positive matrix.
fn cholesky(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let count = matrix.len();
    let mut lower = vec![vec![0.0; count]; count];
    for row in 0..count {
        for column in 0..=row {
            let dot: f64 = (0..column).map(|inner| lower[row][inner] * lower[column][inner]).sum();
            let left = matrix[row][column] - dot;
            lower[row][column] = if row == column { left.sqrt() } else { left / lower[column][column] };
        }
    }
    lower
}

fn whitened(lower: &[Vec<f64>], vector: &[f64]) -> Vec<f64> {
    let mut found = vec![0.0; vector.len()];
    for row in 0..vector.len() {
        let dot: f64 = (0..row).map(|inner| lower[row][inner] * found[inner]).sum();
        found[row] = (vector[row] - dot) / lower[row][row];
    }
    found
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// The likelihood by dense matrices, for every autocorrelation, share and place.
#[test]
fn the_likelihood_is_that_of_dense_matrices() {
    let values = stepped(14, 6, 0.05);
    let runs: Vec<f64> = (0..14_u32).map(|place| f64::from(2 + place % 5)).collect();
    let squares: Vec<f64> = runs.iter().map(|runs| 4e-4 * (runs - 1.0)).collect();
    let results = Results { values: &values, runs: &runs, squares: &squares };
    let average = runs.iter().map(|runs| 1.0 / runs).sum::<f64>() / 14.0;
    let freedom: f64 = runs.iter().map(|runs| runs - 1.0).sum();
    let within = squares.iter().sum::<f64>() * average;
    let number = |place: usize| f64::from(u32::try_from(place).unwrap());
    for fit in fits(results, 0.7).iter().filter(|fit| fit.between < 1.0) {
        let (rho, share) = (fit.autocorrelation, fit.between);
        let matrix: Vec<Vec<f64>> = (0..14)
            .map(|row: usize| {
                (0..14)
                    .map(|column: usize| {
                        let error = if row == column { (1.0 - share) / runs[row] / average } else { 0.0 };
                        share * rho.powf(number(row.abs_diff(column))) + error
                    })
                    .collect()
            })
            .collect();
        let lower = cholesky(&matrix);
        let (ones, data) = (whitened(&lower, &[1.0; 14]), whitened(&lower, &values));
        let determinant: f64 = 2.0 * (0..14).map(|row| lower[row][row].ln()).sum::<f64>();
        let weight = dot(&ones, &ones);
        let level = dot(&ones, &data) / weight;
        let rest: Vec<f64> = data.iter().zip(&ones).map(|(value, one)| value - level * one).collect();
        let residual = dot(&rest, &rest) + within / (1.0 - share);
        let base = -0.5 * (determinant + weight.ln() + freedom * (1.0 - share).ln());
        let total = 13.0 + freedom;
        assert!((fit.unchanged() - (base - 0.5 * total * residual.ln())).abs() < 1e-7, "{rho} {share}");
        for place in [2, 5, 8, 11, 13] {
            let mut step = vec![0.0; 14];
            step[place..].fill(1.0);
            let step = whitened(&lower, &step);
            let shared = dot(&step, &ones) / weight;
            let step: Vec<f64> = step.iter().zip(&ones).map(|(value, one)| value - shared * one).collect();
            let (information, effect) = (dot(&step, &step), dot(&step, &rest));
            let likelihood: f64 = SIZES
                .iter()
                .map(|(size, weight)| {
                    let left = residual - effect * effect / (information + 1.0 / size / size);
                    weight * (base - 0.5 * total * left.ln()).exp() / (1.0 + size * size * information).sqrt()
                })
                .sum();
            assert!((fit.likelihood(place) - likelihood.ln()).abs() < 1e-6, "{rho} {share} {place}");
            let (size, _, _) = fit.size(place);
            assert!((size - effect / information).abs() < 1e-8, "{rho} {share} {place}");
        }
    }
}

#[test]
fn without_runs_inside_the_likelihood_is_that_of_autoregression() {
    let values = noise(9, 3);
    let (runs, squares) = alone(&values);
    for fit in fits(Results { values: &values, runs: &runs, squares: &squares }, 0.5) {
        let rho = fit.autocorrelation;
        let matrix: Vec<Vec<f64>> =
            (0..9_i32).map(|row| (0..9_i32).map(|column| rho.powi((row - column).abs())).collect()).collect();
        let lower = cholesky(&matrix);
        let (ones, data) = (whitened(&lower, &[1.0; 9]), whitened(&lower, &values));
        let determinant: f64 = 2.0 * (0..9).map(|row| lower[row][row].ln()).sum::<f64>();
        let weight = dot(&ones, &ones);
        let residual = dot(&data, &data) - dot(&ones, &data).powi(2) / weight;
        let expected = -0.5 * (determinant + weight.ln()) - 4.0 * residual.ln();
        assert!((fit.unchanged() - expected).abs() < 1e-9, "{rho}");
    }
}

/// The fault of a cut-off at three standard deviations: it hid large steps.
#[test]
fn evidence_grows_with_the_size_of_the_step() {
    for largest in [0.0, 0.3, 0.7] {
        for after in [3, 5, 8] {
            let evidence: Vec<f64> = [0.05, 0.1, 0.2, 0.4, 1.1, 3.0]
                .iter()
                .map(|&size| found(&stepped(16, after, size), largest).evidence)
                .collect();
            assert!(evidence.windows(2).all(|pair| pair[0] < pair[1]), "{largest} {after}: {evidence:?}");
        }
    }
}

#[test]
fn a_step_is_found_where_it_is_with_its_size() {
    let change = found(&stepped(40, 15, 0.2), 0.7);
    assert_eq!((change.position, change.places), (25, (25, 25)));
    assert!(change.effect.low < 0.2 && 0.2 < change.effect.high, "{change:?}");
    assert!(change.effect.high - change.effect.low < 0.06 && change.evidence > 20.0, "{change:?}");
}

#[test]
fn one_or_two_outliers_are_no_level_and_three_results_are() {
    for size in [1.0, -5.0, 50.0] {
        for after in [1, 2] {
            let change = found(&stepped(30, after, size), 0.7);
            assert!(change.evidence < 0.0, "{size} {after}: {change:?}");
        }
        let change = found(&stepped(30, 3, size), 0.7);
        assert!(change.evidence > 10.0 && change.position == 27, "{size}: {change:?}");
    }
    let (runs, squares) = alone(&[0.0; 30]);
    for after in [1, 2] {
        let values = stepped(30, after, 0.5);
        let newest = newest_change(Results { values: &values, runs: &runs, squares: &squares }, 0.7).unwrap();
        assert!(newest.evidence > 5.0 && newest.position == 30 - after, "{after}: {newest:?}");
    }
}

#[test]
fn outliers_are_pulled_to_their_neighbours_and_levels_are_left() {
    let mut values = noise(60, 2);
    values[7] += 4.0;
    values[20] -= 4.0;
    values[21] -= 4.0;
    let pulled = pull_in(&values);
    assert!(pulled.iter().all(|value| value.abs() < 0.5), "{pulled:?}");
    let levels = stepped(40, SHORTEST, 4.0);
    assert_eq!(pull_in(&levels), levels);
}

/// The spread inside results says that the noise between them is that of their means, which do not wander.
#[test]
fn runs_inside_results_make_a_change_surer() {
    let values = stepped(10, 5, 0.06);
    let runs = vec![10.0; 10];
    let squares = vec![9.0 * 10.0 * 4e-4; 10];
    let informed = level_change(Results { values: &values, runs: &runs, squares: &squares }, 0.7).unwrap();
    assert!(informed.evidence > found(&values, 0.7).evidence + 0.3, "{informed:?}");
}

#[test]
fn looks_are_those_of_histories_cut_short() {
    let values = stepped(24, 10, 0.1);
    let (runs, squares) = alone(&values);
    let results = Results { values: &values, runs: &runs, squares: &squares };
    let up = level_looks(results, 0.3, 6, false).unwrap();
    let down = level_looks(results, 0.3, 6, true).unwrap();
    assert_eq!(up.len(), 19);
    for (look, (up, down)) in up.iter().zip(&down).enumerate() {
        let whole = found(&values[..6 + look], 0.3).evidence;
        assert!(up.max(*down).to_bits() == whole.to_bits(), "{look}");
    }
    assert!(down[18] == f64::NEG_INFINITY);
}

#[test]
fn a_wandering_history_gives_no_evidence() {
    let waves: Vec<f64> = (0..80_u32).map(|place| (f64::from(place) / 9.0).sin() / 10.0).collect();
    let values: Vec<f64> = waves.iter().zip(noise(80, 5)).map(|(wave, noise)| wave + 0.3 * noise).collect();
    let change = found(&values, 0.7);
    assert!(change.evidence == f64::NEG_INFINITY && change.autocorrelation > 0.7, "{change:?}");
}

/// The fault: results that scatter much more than those before were a new level.
#[test]
fn noise_that_grows_gives_less_evidence_than_a_level() {
    let grown: Vec<f64> = noise(60, 4)
        .iter()
        .enumerate()
        .map(|(place, value)| if place < 45 { *value } else { 15.0 * (value.abs() - 0.005) })
        .collect();
    let level = stepped(60, 15, 0.25);
    for largest in [0.0, 0.7] {
        let (grown, level) = (found(&grown, largest).evidence, found(&level, largest).evidence);
        assert!(grown < 3.0 && level > 20.0, "{largest}: {grown} {level}");
    }
}

#[test]
fn a_level_is_found_though_the_noise_has_changed_before() {
    let mut values = noise(80, 6);
    values[40..].iter_mut().for_each(|value| *value *= 6.0);
    values[60..].iter_mut().for_each(|value| *value += 0.8);
    let change = found(&values, 0.7);
    assert!(change.evidence > 5.0 && change.position.abs_diff(60) <= 1, "{change:?}");
}

#[test]
fn few_results_constants_and_wrong_input_are_handled() {
    assert!(found(&[1.0; 12], 0.7).evidence == f64::NEG_INFINITY);
    let mut exact = vec![1.0; 20];
    exact[12..].fill(2.0);
    assert_eq!(found(&exact, 0.0).position, 12);
    let (runs, squares) = alone(&[0.0; 6]);
    let results = |values| Results { values, runs: &runs, squares: &squares };
    assert!(level_change(results(&[1.0; 5]), 0.0).is_err());
    assert!(level_change(results(&[f64::NAN; 6]), 0.0).is_err());
    assert!(level_change(results(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 1.0).is_err());
    assert!(level_looks(results(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 0.0, 5, false).is_err());
    let none = Results { runs: &[0.0; 6], ..results(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) };
    assert!(level_change(none, 0.0).is_err());
    let few = Results { runs: &[1.0; 5], ..results(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) };
    assert!(level_change(few, 0.0).is_err());
}

proptest! {
    #[test]
    fn scale_and_shift_do_not_matter(values in prop::collection::vec(-5.0..5.0_f64, 8..30), shift in -10.0..10.0_f64) {
        let moved: Vec<f64> = values.iter().map(|value| 4.0 * value + shift).collect();
        let (plain, moved) = (found(&values, 0.3), found(&moved, 0.3));
        prop_assert!((plain.evidence - moved.evidence).abs() < 1e-6 * (1.0 + plain.evidence.abs()));
    }
}
