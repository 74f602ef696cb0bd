//! Statistics of any numbers: a clear refusal or a result that can be one, never a panic.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use steelyard_fuzz::{Number, check_probability, is_tame, plain};
use steelyard_stats as stats;
use steelyard_stats::{Contrast, Intervals, Plan, Question, SampleOf, Scheme, Statistic};

#[derive(Debug, Arbitrary)]
struct Input {
    first: Vec<Number>,
    second: Vec<Number>,
    labels: Vec<u8>,
    strata: Vec<u8>,
    p: Number,
    level: Number,
    resamples: u8,
    seed: u64,
    statistic: u8,
    scheme: u8,
    bca: bool,
}

fuzz_target!(|input: Input| {
    let (first, second) = (plain(&input.first, 60), plain(&input.second, 60));
    let level = if input.level.0 > 1.0 { 0.95 } else { input.level.0 };
    let p = if input.p.0 > 1.0 { 1.0 / input.p.0 } else { input.p.0 };
    let plan = Plan { resamples: usize::from(input.resamples % 64), level, seed: input.seed, cell: 1 };
    describe(&first, p, level);
    compare(&first, &second, &plan);
    resample(&first, p, &plan);
    design(&input, &first, &second, p, &plan);
});

fn describe(values: &[f64], p: f64, level: f64) {
    let tame = is_tame(values);
    if tame && !values.is_empty() {
        let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
        let slack = 1e-9 * (high - low).abs() + 1e-12 * low.abs().max(high.abs());
        for found in [stats::mean(values), stats::median(values)] {
            assert!((low - slack..=high + slack).contains(&found), "{found} outside [{low}, {high}]");
        }
    }
    let _ = (stats::standard_deviation(values), stats::median_absolute_deviation(values));
    let mut ascending = values.to_vec();
    ascending.sort_unstable_by(f64::total_cmp);
    let _ = stats::quantile(&ascending, p);
    let _ = stats::exact_sum(values.iter().copied().filter(|value| value.abs() < 1e300));
    let _ = stats::autocorrelation(values, 7);
    if let Ok(size) = stats::effective_size(values) {
        assert!(!tame || size > 0.0, "effective size {size}");
    }
    if let Ok(length) = stats::block_length(values) {
        assert!((1..=values.len() / 2).contains(&length));
    }
    if let Ok(found) = stats::order_interval(values, p, level) {
        assert!(found.limits.0 <= found.limits.1);
        check_probability(found.coverage, true);
    }
    check_probability_of_tails(p, level);
}

fn check_probability_of_tails(a: f64, b: f64) {
    for p in [stats::student_two_sided(a, b), stats::f_upper(a, b, 3.0), stats::normal_cdf(a)] {
        check_probability(p, false);
    }
    let _ = stats::normal_quantile(a);
}

fn compare(first: &[f64], second: &[f64], plan: &Plan) {
    let tame = is_tame(first) && is_tame(second);
    if let Ok(found) = stats::permutation_test(first, second, plan) {
        check_probability(found.p_value, true);
    }
    if let Ok(found) = stats::kolmogorov_smirnov(first, second) {
        check_probability(found.statistic, true);
        check_probability(found.p_value, true);
    }
    if let Ok(found) = stats::shift_interval(first, second, plan.level) {
        let (low, high) = found.limits;
        assert!(!tame || (low <= found.estimate && found.estimate <= high), "{found:?}");
    }
}

fn resample(values: &[f64], p: f64, plan: &Plan) {
    let refused = values.iter().any(|value| !value.is_finite());
    if let Ok(found) = stats::moment_bootstrap(values, plan) {
        assert!(!refused);
        for each in [found.mean, found.standard_deviation, found.variation] {
            check_intervals(&each);
        }
    }
    for kernel in [stats::quantile_bootstrap, stats::quantile_resampling] {
        if let Ok(found) = kernel(values, &[p, 0.5], &[(0, 1)], plan) {
            assert!(!refused && found.len() == 3);
            found.iter().for_each(check_intervals);
        }
    }
    if let Ok(found) = stats::deviation_bootstrap(values, plan) {
        assert!(!refused);
        check_intervals(&found.median);
        check_intervals(&found.deviation);
    }
}

fn check_intervals(found: &Intervals) {
    for (low, high) in [found.percentile, found.basic, found.bca, found.studentised] {
        assert!(low <= high || low.is_nan() || high.is_nan(), "{found:?}");
    }
}

fn design(input: &Input, first: &[f64], second: &[f64], p: f64, plan: &Plan) {
    let numbers =
        |labels: &[u8]| labels.iter().take(60).map(|label| usize::from(label % 8)).collect::<Vec<_>>();
    let (clusters, strata) = (numbers(&input.labels), numbers(&input.strata));
    let scheme = match input.scheme % 6 {
        0 => Scheme::Plain,
        1 => Scheme::Units { clusters: Some(&clusters), strata: None },
        2 => Scheme::Units { clusters: Some(&clusters), strata: Some(&strata) },
        3 => Scheme::Units { clusters: None, strata: Some(&strata) },
        4 => Scheme::Units { clusters: None, strata: None },
        _ => Scheme::Blocks(usize::from(input.scheme / 6)),
    };
    let statistic = match input.statistic % 9 {
        0 => Statistic::Mean,
        1 => Statistic::Deviation,
        2 => Statistic::Variation,
        3 => Statistic::Quantile(p),
        4 => Statistic::HarrellDavis(p),
        5 => Statistic::Range(p, 0.75),
        6 => Statistic::TailRatio(p, 0.99),
        7 => Statistic::MedianDeviation,
        _ => Statistic::TrimmedMean(p),
    };
    let question = Question { statistic, bca: input.bca };
    let sample = SampleOf { values: first, scheme };
    if let Ok(found) = stats::bootstrap(sample, &question, plan) {
        assert!(found.undefined <= plan.resamples);
        check_intervals(&found.intervals);
    }
    let other = SampleOf { values: second, scheme: Scheme::Plain };
    for contrast in [Contrast::Difference, Contrast::Ratio] {
        if let Ok(found) = stats::contrast_bootstrap([sample, other], contrast, &question, plan) {
            check_intervals(&found.intervals);
        }
    }
    let lengths: Vec<usize> = input.labels.iter().take(8).map(|length| usize::from(*length % 16)).collect();
    for options in [stats::ClusterOptions::UnitsOnly, stats::ClusterOptions::Within] {
        if let Ok(rows) = stats::cluster_bootstrap(first, &lengths, options, plan) {
            assert_eq!(rows.len(), plan.resamples);
        }
    }
}
