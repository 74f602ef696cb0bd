use proptest::prelude::*;

use super::{FEWEST, SHORTEST, measure_split, ordered, restored, simulated_splits};

fn noise(count: usize) -> Vec<f64> {
    (0..count).map(|place| (f64::from(u32::try_from(place).unwrap()).powi(2)).sin()).collect()
}

#[test]
fn a_step_is_measured_where_it_is() {
    let mut values = noise(60);
    for value in &mut values[25..] {
        *value += 8.0;
    }
    let found = measure_split(&values).unwrap();
    assert_eq!(found.position, 25);
    assert!(found.size > 8.0, "{found:?}");
}

#[test]
fn every_split_of_a_short_series_is_tried() {
    // Brute force over all splits of values that nothing cuts off.
    let values = [0.1, -0.4, 0.3, 0.9, 0.7, 1.1, 0.2, 0.8];
    let found = measure_split(&values).unwrap();
    let count = 8.0;
    let mut squares: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).collect();
    squares.sort_by(f64::total_cmp);
    let scale = (squares[..6].iter().sum::<f64>() / 6.0 / 2.0).sqrt();
    let mut ascending = values;
    ascending.sort_by(f64::total_cmp);
    let middle = f64::midpoint(ascending[3], ascending[4]);
    let scaled: Vec<f64> = values.iter().map(|value| ((value - middle) / scale).clamp(-3.0, 3.0)).collect();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / f64::from(u32::try_from(part.len()).unwrap());
    let best = (SHORTEST..=values.len() - SHORTEST)
        .map(|cut| {
            let left = f64::from(u32::try_from(cut).unwrap());
            let difference = mean(&scaled[cut..]) - mean(&scaled[..cut]);
            difference.abs() * (left * (count - left) / count).sqrt()
        })
        .fold(0.0, f64::max);
    assert!((found.size - best).abs() < 1e-12, "{} against {best}", found.size);
}

#[test]
fn simulated_series_have_the_autocorrelation_asked_for() {
    let grid = [0.0, 0.3, 0.5];
    let found = simulated_splits(400, 300, &grid, 1).unwrap();
    for (rho, splits) in grid.iter().zip(&found) {
        assert_eq!(splits.len(), 300);
        let mean = splits.iter().map(|split| split.residual_correlation).sum::<f64>() / 300.0;
        // Two means are taken off each series, the split is chosen and far values are cut off: all lower it.
        assert!((rho - 0.06..rho + 0.01).contains(&mean), "{rho}: {mean}");
    }
    let median = |splits: &[super::Split]| {
        let mut sizes: Vec<f64> = splits.iter().map(|split| split.size).collect();
        sizes.sort_by(f64::total_cmp);
        sizes[150]
    };
    assert!(median(&found[0]) < median(&found[1]) && median(&found[1]) < median(&found[2]));
}

#[test]
fn the_same_arguments_give_the_same_numbers_with_one_thread() {
    let all = simulated_splits(50, 60, &[0.0, 0.3], 7).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(pool.install(|| simulated_splits(50, 60, &[0.0, 0.3], 7).unwrap()), all);
}

#[test]
fn few_values_constants_and_ties_are_handled() {
    assert!(measure_split(&[1.0; FEWEST - 1]).is_err());
    assert!(measure_split(&[f64::NAN; 10]).is_err());
    let constant = measure_split(&[2.0; 30]).unwrap();
    assert!(constant.size.abs() < 1e-300 && constant.residual_correlation.abs() < 1e-300);
    let mut stepped = vec![1.0; 20];
    stepped[12..].fill(2.0);
    assert_eq!(measure_split(&stepped).unwrap().position, 12);
    assert!(simulated_splits(FEWEST - 1, 10, &[0.0], 1).is_err());
    assert!(simulated_splits(20, 10, &[1.0], 1).is_err());
    assert_eq!(simulated_splits(20, 0, &[0.0], 1).unwrap(), Vec::<Vec<super::Split>>::new());
}

proptest! {
    #[test]
    fn keys_order_like_numbers(a in any::<f64>(), b in any::<f64>()) {
        prop_assume!(a.is_finite() && b.is_finite());
        prop_assert_eq!(ordered(a.to_bits()).cmp(&ordered(b.to_bits())), a.total_cmp(&b));
        prop_assert_eq!(restored(ordered(a.to_bits())), a.to_bits());
    }

    #[test]
    fn scale_and_shift_do_not_matter(values in prop::collection::vec(-5.0..5.0_f64, 6..40), shift in -1e3..1e3_f64) {
        let moved: Vec<f64> = values.iter().map(|value| 4.0 * value + shift).collect();
        let (plain, moved) = (measure_split(&values).unwrap(), measure_split(&moved).unwrap());
        prop_assert!((plain.size - moved.size).abs() < 1e-6 * (1.0 + plain.size));
    }
}
