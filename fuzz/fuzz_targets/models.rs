//! Models of any numbers: a clear refusal or a model, never a panic.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use steelyard_fuzz::{Number, plain};
use steelyard_stats::{
    ChangeOptions, Intercept, NoiseScale, Plan, SegmentOptions, break_intervals, change_points, fit_linear,
    fit_segments, linear_rows, noise_scale,
};

#[derive(Debug, Arbitrary)]
struct Input {
    columns: [Vec<Number>; 3],
    used: u8,
    response: Vec<Number>,
    clusters: Option<Vec<i8>>,
    penalty: Number,
    floor: Number,
    flags: u8,
    shortest: u8,
    budget: u16,
    seed: u64,
}

fuzz_target!(|input: Input| {
    let response = plain(&input.response, 48);
    let columns: Vec<Vec<f64>> = input.columns.iter().map(|column| plain(column, response.len())).collect();
    linear(&input, &columns[..usize::from(input.used % 4)], &response);
    let x = &columns[0][..columns[0].len().min(response.len())];
    segments(&input, x, &response[..x.len()]);
    changes(&input, &response);
});

fn linear(input: &Input, columns: &[Vec<f64>], response: &[f64]) {
    let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let repeated = |labels: &Vec<i8>| -> Vec<i64> {
        labels.iter().cycle().take(response.len()).map(|label| i64::from(*label)).collect()
    };
    let clusters: Option<Vec<i64>> = input.clusters.as_ref().map(repeated);
    let intercept = if input.flags & 1 == 0 { Intercept::Fitted } else { Intercept::Zero };
    let Ok(fit) = fit_linear(&columns, response, intercept, clusters.as_deref()) else { return };
    assert!(response.iter().all(|value| value.is_finite()));
    let terms = columns.len() + usize::from(intercept == Intercept::Fitted);
    for each in [&fit.coefficients, &fit.standard_errors, &fit.hc3_errors] {
        assert_eq!(each.len(), terms);
    }
    assert!(fit.rank <= terms && fit.rank + fit.residual_df >= response.len());
    let rows = linear_rows(&columns, response, intercept).expect("fits again");
    assert_eq!(rows.residual_sum.to_bits(), fit.residual_sum.to_bits());
    for each in [&rows.residuals, &rows.leverage, &rows.cook] {
        assert_eq!(each.len(), response.len());
    }
}

fn segments(input: &Input, x: &[f64], y: &[f64]) {
    let options = SegmentOptions {
        break_penalty: input.penalty.0,
        slope_penalty: input.floor.0,
        shortest: usize::from(input.shortest % 6),
        noise: if input.flags & 2 == 0 { NoiseScale::Proportional } else { NoiseScale::Constant },
        floor: input.floor.0,
        robust: input.flags & 4 == 0,
        line: input.flags & 8 == 0,
        power: input.flags & 16 == 0,
        budget: usize::from(input.budget),
    };
    let Ok(found) = fit_segments(x, y, &options) else { return };
    assert_eq!(found.pieces.iter().map(|piece| piece.points).sum::<usize>(), x.len());
    assert!(found.bound <= found.cost + 1e-9 * found.cost.abs() || !found.cost.is_finite());
    let breaks: Vec<f64> = found.pieces.iter().skip(1).map(|piece| piece.x_range.0).collect();
    let plan = Plan { resamples: 4, level: 0.9, seed: input.seed, cell: 0 };
    if let Ok(intervals) = break_intervals(x, y, &options, &breaks, &plan) {
        assert_eq!(intervals.len(), breaks.len());
    }
}

fn changes(input: &Input, values: &[f64]) {
    let options = ChangeOptions { penalty: input.penalty.0, shortest: usize::from(input.shortest % 6) };
    if let Ok(places) = change_points(values, &options) {
        assert!(places.is_sorted() && places.iter().all(|place| (1..values.len()).contains(place)));
    }
    let _ = noise_scale(values);
}
