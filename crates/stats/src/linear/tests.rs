#![allow(clippy::excessive_precision, reason = "certified values as they are printed")]

use super::{Intercept, LinearFit, fit_linear, linear_rows};
use proptest::prelude::*;

/// `NIST` Statistical Reference Datasets, linear regression, Norris: pairs (y, x).
const NORRIS: [(f64, f64); 36] = [
    (0.1, 0.2),
    (338.8, 337.4),
    (118.1, 118.2),
    (888.0, 884.6),
    (9.2, 10.1),
    (228.1, 226.5),
    (668.5, 666.3),
    (998.5, 996.3),
    (449.1, 448.6),
    (778.9, 777.0),
    (559.2, 558.2),
    (0.3, 0.4),
    (0.1, 0.6),
    (778.1, 775.5),
    (668.8, 666.9),
    (339.3, 338.0),
    (448.9, 447.5),
    (10.8, 11.6),
    (557.7, 556.0),
    (228.3, 228.1),
    (998.0, 995.8),
    (888.8, 887.6),
    (119.6, 120.2),
    (0.3, 0.3),
    (0.6, 0.3),
    (557.6, 556.8),
    (339.3, 339.1),
    (888.0, 887.2),
    (998.5, 999.0),
    (778.9, 779.0),
    (10.2, 11.1),
    (117.6, 118.3),
    (228.9, 229.2),
    (668.4, 669.1),
    (449.2, 448.9),
    (0.2, 0.5),
];

/// Longley: response, then columns.
const LONGLEY: [[f64; 16]; 7] = [
    [
        60323.0, 61122.0, 60171.0, 61187.0, 63221.0, 63639.0, 64989.0, 63761.0, 66019.0, 67857.0, 68169.0,
        66513.0, 68655.0, 69564.0, 69331.0, 70551.0,
    ],
    [83.0, 88.5, 88.2, 89.5, 96.2, 98.1, 99.0, 100.0, 101.2, 104.6, 108.4, 110.8, 112.6, 114.2, 115.7, 116.9],
    [
        234_289.0, 259_426.0, 258_054.0, 284_599.0, 328_975.0, 346_999.0, 365_385.0, 363_112.0, 397_469.0,
        419_180.0, 442_769.0, 444_546.0, 482_704.0, 502_601.0, 518_173.0, 554_894.0,
    ],
    [
        2356.0, 2325.0, 3682.0, 3351.0, 2099.0, 1932.0, 1870.0, 3578.0, 2904.0, 2822.0, 2936.0, 4681.0,
        3813.0, 3931.0, 4806.0, 4007.0,
    ],
    [
        1590.0, 1456.0, 1616.0, 1650.0, 3099.0, 3594.0, 3547.0, 3350.0, 3048.0, 2857.0, 2798.0, 2637.0,
        2552.0, 2514.0, 2572.0, 2827.0,
    ],
    [
        107_608.0, 108_632.0, 109_773.0, 110_929.0, 112_075.0, 113_270.0, 115_094.0, 116_219.0, 117_388.0,
        118_734.0, 120_445.0, 121_950.0, 123_366.0, 125_368.0, 127_852.0, 130_081.0,
    ],
    [
        1947.0, 1948.0, 1949.0, 1950.0, 1951.0, 1952.0, 1953.0, 1954.0, 1955.0, 1956.0, 1957.0, 1958.0,
        1959.0, 1960.0, 1961.0, 1962.0,
    ],
];

/// Wampler3: response at x = 0 to 20.
const WAMPLER3: [f64; 21] = [
    760.0,
    -2042.0,
    2111.0,
    -1684.0,
    3888.0,
    1858.0,
    11379.0,
    17560.0,
    39287.0,
    64382.0,
    113_159.0,
    175_108.0,
    273_291.0,
    400_186.0,
    581_243.0,
    811_568.0,
    1_121_004.0,
    1_506_550.0,
    2_002_767.0,
    2_611_612.0,
    3_369_180.0,
];

fn digits(found: f64, certified: f64) -> f64 {
    let error = if certified == 0.0 { found.abs() } else { (found / certified - 1.0).abs() };
    -error.max(1e-16).log10()
}

fn check(found: &[f64], certified: &[f64]) {
    assert_eq!(found.len(), certified.len());
    for (each, value) in found.iter().zip(certified) {
        assert!(digits(*each, *value) >= 9.0, "{each:e} for {value:e}");
    }
}

fn summary(fit: &LinearFit) -> [f64; 3] {
    [fit.sigma, fit.r_squared, fit.f_statistic.expect("slopes").0]
}

#[test]
fn norris() {
    let (y, x): (Vec<f64>, Vec<f64>) = NORRIS.iter().copied().unzip();
    let fit = fit_linear(&[&x], &y, Intercept::Fitted, None).expect("fits");
    check(&fit.coefficients, &[-0.262_323_073_774_029, 1.002_116_818_020_45]);
    check(&fit.standard_errors, &[0.232_818_234_301_152, 0.429_796_848_199_937e-3]);
    check(&summary(&fit), &[0.884_796_396_144_373, 0.999_993_745_883_712, 5_436_385.540_797_85]);
    assert_eq!((fit.residual_df, fit.rank), (34, 2));
}

#[test]
fn longley() {
    let columns: Vec<&[f64]> = LONGLEY[1..].iter().map(|column| &column[..]).collect();
    let fit = fit_linear(&columns, &LONGLEY[0], Intercept::Fitted, None).expect("fits");
    let coefficients = [
        -3_482_258.634_595_82,
        15.061_872_271_373_3,
        -0.358_191_792_925_910e-1,
        -2.020_229_803_816_83,
        -1.033_226_867_173_59,
        -0.511_041_056_535_807e-1,
        1_829.151_464_613_55,
    ];
    check(&fit.coefficients, &coefficients);
    let errors = [
        890_420.383_607_373,
        84.914_925_774_766_9,
        0.334_910_077_722_432e-1,
        0.488_399_681_651_699,
        0.214_274_163_161_675,
        0.226_073_200_069_370,
        455.478_499_142_212,
    ];
    check(&fit.standard_errors, &errors);
    check(&summary(&fit), &[304.854_073_561_965, 0.995_479_004_577_296, 330.285_339_234_588]);
}

#[test]
fn through_the_origin() {
    let x: Vec<f64> = (60..=70).map(f64::from).collect();
    let y: Vec<f64> = (130..=140).map(f64::from).collect();
    let fit = fit_linear(&[&x], &y, Intercept::Zero, None).expect("fits");
    check(&fit.coefficients, &[2.074_380_165_289_26]);
    check(&fit.standard_errors, &[0.165_289_256_198_347e-1]);
    check(&summary(&fit), &[3.567_530_340_063_38, 0.999_365_492_298_663, 15750.25]);
    let fit = fit_linear(&[&[4.0, 5.0, 6.0]], &[3.0, 4.0, 4.0], Intercept::Zero, None).expect("fits");
    check(&fit.coefficients, &[0.727_272_727_272_727]);
    check(&fit.standard_errors, &[0.420_827_318_078_432e-1]);
    check(&summary(&fit)[..2], &[0.369_274_472_937_998, 0.993_348_115_299_335]);
}

fn powers() -> Vec<Vec<f64>> {
    (1..=5).map(|power| (0..=20).map(|x| f64::from(x).powi(power)).collect()).collect()
}

#[test]
fn polynomials_of_wampler() {
    let columns = powers();
    let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let exact: Vec<f64> =
        (0..21).map(|i| 1.0 + columns.iter().map(|column| column[i]).sum::<f64>()).collect();
    let fit = fit_linear(&slices, &exact, Intercept::Fitted, None).expect("fits");
    check(&fit.coefficients, &[1.0; 6]);
    check(&fit.standard_errors, &[0.0; 6]);
    let noisy = fit_linear(&slices, &WAMPLER3, Intercept::Fitted, None).expect("fits");
    check(&noisy.coefficients, &[1.0; 6]);
    let errors = [
        2_152.326_246_781_70,
        2_363.551_734_696_81,
        779.343_524_331_583,
        101.475_507_550_350,
        5.645_665_121_707_52,
        0.112_324_854_679_312,
    ];
    check(&noisy.standard_errors, &errors);
    check(&[noisy.sigma], &[2_360.145_023_792_68]);
}

/// Small enough to work out by hand: x = 0, 0, 1, 1; y = 0, 2, 3, 7.
#[test]
fn robust_errors_of_a_two_by_two_table() {
    let (x, y) = ([0.0, 0.0, 1.0, 1.0], [0.0, 2.0, 3.0, 7.0]);
    let fit = fit_linear(&[&x], &y, Intercept::Fitted, Some(&[1, 2, 3, 4])).expect("fits");
    check(&fit.coefficients, &[1.0, 4.0]);
    let rows = linear_rows(&[&x], &y, Intercept::Fitted).expect("fits");
    check(&rows.residuals, &[-1.0, 1.0, -2.0, 2.0]);
    check(&rows.leverage, &[0.5; 4]);
    check(&fit.residual_quartiles, &[-2.0, -1.25, 0.0, 1.25, 2.0]);
    // Fitted: 1, 1, 5, 5.
    check(&[fit.fitted_square], &[13.0]);
    // HC3: the residuals double, so the variances of the two means are 4 * 2 / 4 and 16 * 2 / 4.
    check(&fit.hc3_errors, &[2.0_f64.sqrt(), 10.0_f64.sqrt()]);
    // One observation per cluster: HC0 (0.5 and 2.5) times 4/3 times 3/2.
    check(&fit.cluster_errors.expect("given"), &[1.0, 5.0_f64.sqrt()]);
    // Cook: r^2 h / (2 * 5 * (1 - h)^2).
    check(&rows.cook, &[0.2, 0.2, 0.8, 0.8]);
}

#[test]
fn a_constant_column_is_left_out() {
    let fit = fit_linear(&[&[0.1; 7]], &[1.0, 2.0, 4.0, 3.0, 1.0, 0.0, 5.0], Intercept::Fitted, None)
        .expect("fits");
    assert!(fit.coefficients[1].is_nan() && fit.standard_errors[1].is_nan());
    assert_eq!((fit.rank, fit.residual_df), (1, 6));
    check(&fit.coefficients[..1], &[16.0 / 7.0]);
}

#[test]
fn large_offsets_do_not_cost_digits() {
    let x: Vec<f64> = (0..1000).map(|i| 1e15 + f64::from(i)).collect();
    let y: Vec<f64> = (0..1000).map(|i| 3.0 + 0.25 * f64::from(i) + f64::from(i % 2)).collect();
    let near: Vec<f64> = (0..1000).map(f64::from).collect();
    let far = fit_linear(&[&x], &y, Intercept::Fitted, None).expect("fits");
    let base = fit_linear(&[&near], &y, Intercept::Fitted, None).expect("fits");
    check(&far.coefficients[1..], &base.coefficients[1..]);
    check(&far.standard_errors[1..], &base.standard_errors[1..]);
    check(&[far.sigma], &[base.sigma]);
}

#[test]
fn degenerate_inputs_have_clear_answers() {
    let one = fit_linear(&[], &[4.0], Intercept::Fitted, None).expect("fits");
    assert_eq!(one.residual_df, 0);
    assert!(one.sigma.is_nan());
    assert!(fit_linear(&[], &[], Intercept::Fitted, None).is_err());
    assert!(fit_linear(&[&[1.0]], &[1.0, 2.0], Intercept::Fitted, None).is_err());
    assert!(fit_linear(&[&[1.0, f64::NAN]], &[1.0, 2.0], Intercept::Fitted, None).is_err());
    assert!(fit_linear(&[], &[1.0], Intercept::Zero, None).is_err());
    // Found by a property test: nothing is left to estimate.
    let none = fit_linear(&[&[0.0, 0.0]], &[1.0, 2.0], Intercept::Zero, Some(&[1, 2])).expect("fits");
    assert_eq!((none.rank, none.residual_df), (0, 2));
    assert!(none.cluster_errors.expect("given")[0].is_nan());
}

proptest! {
    /// Residuals are orthogonal to the columns, leverages add up to the rank.
    #[test]
    fn normal_equations_hold(rows in prop::collection::vec((-1e3..1e3_f64, -1e3..1e3_f64, -1e3..1e3_f64), 4..40)) {
        let (a, b): (Vec<f64>, Vec<f64>) = rows.iter().map(|row| (row.0, row.1)).unzip();
        let y: Vec<f64> = rows.iter().map(|row| row.2).collect();
        let fit = linear_rows(&[&a, &b], &y, Intercept::Fitted).expect("fits");
        for column in [&a, &b] {
            let along: f64 = column.iter().zip(&fit.residuals).map(|(x, r)| x * r).sum();
            prop_assert!(along.abs() < 1e-6, "{}", along);
        }
        let total: f64 = fit.leverage.iter().sum();
        prop_assert!((total - 3.0).abs() < 1e-9);
    }
}

/// Deterministic noise with a few far values.
fn rough(count: usize) -> (Vec<f64>, Vec<f64>) {
    let mut generator = crate::stream::stream(5, 6, 7);
    let x: Vec<f64> = (0..count).map(|_| 100.0 * crate::stream::open_uniform(&mut generator)).collect();
    let noise = |u: f64| crate::special::normal_quantile(u).powi(5);
    let y = x.iter().map(|x| 3.0 + 2.0 * x + noise(crate::stream::open_uniform(&mut generator))).collect();
    (x, y)
}

/// A second column that says nothing new sends the same data along the general way, in 106 bits.
#[test]
fn one_column_in_parts_agrees_with_the_general_way() {
    for count in [5, 8, 63, 64, 65, 1000, 40_000] {
        let (x, y) = rough(count);
        let labels: Vec<i64> = (0..count).map(|i| i64::try_from(i % 5).unwrap() * 1_000_000_007).collect();
        for intercept in [Intercept::Fitted, Intercept::Zero] {
            let fast = fit_linear(&[&x], &y, intercept, Some(&labels)).expect("fits");
            let slow = fit_linear(&[&x, &x], &y, intercept, Some(&labels)).expect("fits");
            let kept = fast.coefficients.len();
            check(&fast.coefficients, &slow.coefficients[..kept]);
            check(&fast.standard_errors, &slow.standard_errors[..kept]);
            check(&fast.hc3_errors, &slow.hc3_errors[..kept]);
            check(&fast.cluster_errors.unwrap(), &slow.cluster_errors.unwrap()[..kept]);
            check(&fast.residual_quartiles, &slow.residual_quartiles);
            check(&[fast.residual_sum, fast.fitted_square], &[slow.residual_sum, slow.fitted_square]);
            assert_eq!((fast.rank, fast.residual_df), (slow.rank, slow.residual_df));
        }
    }
}

/// Sampled limits, the selection behind them, and what is left when every residual is the same.
#[test]
fn quartiles_of_many_residuals_are_those_of_sorting() {
    let (x, y) = rough(300_000);
    let steps: Vec<f64> = x.iter().map(|x| if *x < 20.0 { 1.0 } else { 2.0 }).collect();
    for (columns, response) in [(vec![x.as_slice()], &y), (Vec::new(), &y), (Vec::new(), &steps)] {
        let fit = fit_linear(&columns, response, Intercept::Fitted, None).expect("fits");
        let mut residuals = linear_rows(&columns, response, Intercept::Fitted).expect("fits").residuals;
        residuals.sort_unstable_by(f64::total_cmp);
        let expected = [0.0, 0.25, 0.5, 0.75, 1.0].map(|p| crate::order::quantile(&residuals, p));
        assert_eq!(fit.residual_quartiles.map(f64::to_bits), expected.map(f64::to_bits));
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let (x, y) = rough(200_000);
    let labels: Vec<i64> = (0..200_000).map(|i| i / 7 % 40).collect();
    let fit = || fit_linear(&[&x], &y, Intercept::Fitted, Some(&labels)).expect("fits");
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(fit);
    let many = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap().install(fit);
    assert_eq!(alone, many);
    let rows = linear_rows(&[&x], &y, Intercept::Fitted).expect("fits");
    assert_eq!(rows.residual_sum.to_bits(), alone.residual_sum.to_bits());
}
