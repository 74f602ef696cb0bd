use super::search::search;
use super::{
    NoiseScale, PieceKind, SegmentOptions, Segmentation, Weighted, break_intervals, fit_scaled_segments,
    fit_segments,
};
use crate::StatsError;
use crate::sample::{Plan, real};
use crate::segment::exact::best_partition;
use crate::segment::groups::Groups;
use crate::segment::tree::Tree;
use crate::special::normal_quantile;
use crate::stream::{open_uniform, stream};
use proptest::prelude::*;

const OPTIONS: SegmentOptions = SegmentOptions {
    break_penalty: 6.0,
    slope_penalty: 1.0,
    shortest: 3,
    noise: NoiseScale::Proportional,
    floor: 0.0,
    robust: true,
    line: true,
    power: true,
    budget: 100_000_000,
};

/// The measurements the segmentation is for: a constant, a line, another line after a jump, skewed noise and rare spikes.
fn messages(count: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut generator = stream(seed, 0, 0);
    let mut uniform = || open_uniform(&mut generator);
    (0..count)
        .map(|_| {
            let size = libm::pow(10.0, 7.0 * uniform()).round();
            let level = if size < 3000.0 {
                5e-6
            } else if size < 65_000.0 {
                4.2e-6 + 1.112e-9 * size
            } else {
                415.5e-6 + 8.497e-9 * size
            };
            let noise = 1.0 + libm::exp(libm::log(0.05) + normal_quantile(uniform()));
            let spike = if uniform() < 0.01 { 1e-4 * libm::pow(uniform(), -1.0 / 1.5) } else { 0.0 };
            (size, level * noise + spike)
        })
        .unzip()
}

/// All positions, one after the other: optimal partitioning without any bound.
fn brute(x: &[f64], y: &[f64], level: &[f64], options: &SegmentOptions) -> (Vec<usize>, f64, f64) {
    let groups = Groups::new(x, y);
    let weighted = Weighted::new(&groups, level, options);
    let limits = super::limits(y.len(), options);
    let tree = Tree::new(&weighted.groups, &groups.starts);
    let positions: Vec<usize> = (1..groups.count()).collect();
    let (breaks, cost) = best_partition(&tree, &positions, &limits, &mut 0);
    let found = search(&tree, &limits);
    assert!(found.bound <= found.cost * (1.0 + 1e-9) + 1e-9);
    assert!((found.cost - found.bound).abs() <= 1e-6 * (1.0 + cost), "gap left: {found:?}");
    (breaks, cost, found.cost)
}

#[test]
fn the_breaks_of_messages_are_found() {
    let mut right = 0;
    for seed in 0..40 {
        let (x, y) = messages(1000, seed);
        let found = fit_segments(&x, &y, &OPTIONS).expect("fits");
        assert!(found.cost - found.bound <= 1e-9 * found.cost, "{found:?}");
        let breaks: Vec<f64> = found.pieces[1..].iter().map(|piece| piece.x_range.0).collect();
        let near = |at: f64, truth: f64| (at / truth - 1.0).abs() < 0.1;
        if breaks.len() == 2 && near(breaks[0], 3000.0) && near(breaks[1], 65_000.0) {
            right += 1;
        } else {
            println!("seed {seed}: {:?}", found.pieces);
        }
    }
    assert!(right >= 38, "{right} of 40");
}

#[test]
fn points_beside_a_high_jump_are_counted_to_their_own_side() {
    for seed in 0..20 {
        let (x, y) = messages(100_000, 700 + seed);
        let found = fit_segments(&x, &y, &OPTIONS).expect("fits");
        assert_eq!(found.pieces.len(), 3, "{found:?}");
        // At 65 000 times grow twelvefold: no point can be mistaken but for a spike.
        let edge = (found.pieces[1].x_range.1, found.pieces[2].x_range.0);
        assert!(edge.0 < 65_000.0 && edge.1 >= 65_000.0, "{edge:?}");
    }
}

#[test]
fn long_series_equal_brute_force() {
    for (count, seed) in [(1500, 1), (3000, 2), (3000, 3)] {
        let (x, y) = messages(count, seed);
        let level = Groups::new(&x, &y).pilot();
        let (_, cost, found) = brute(&x, &y, &level, &OPTIONS);
        assert!((found - cost).abs() <= 1e-9 * cost, "{found} {cost}");
    }
}

#[test]
fn kinds_of_pieces_are_recognised() {
    let x: Vec<f64> = (1..=600).map(f64::from).collect();
    let mut generator = stream(7, 0, 0);
    let y: Vec<f64> = x
        .iter()
        .map(|&x| {
            let level = if x < 200.0 {
                10.0
            } else if x < 400.0 {
                0.5 * libm::pow(x, 0.5)
            } else {
                -50.0 + 0.5 * x
            };
            level * (1.0 + 0.01 * normal_quantile(open_uniform(&mut generator)))
        })
        .collect();
    let found = fit_segments(&x, &y, &OPTIONS).expect("fits");
    let kinds: Vec<PieceKind> = found.pieces.iter().map(|piece| piece.kind).collect();
    assert_eq!(kinds, [PieceKind::Constant, PieceKind::Power, PieceKind::Line], "{found:?}");
    assert!((found.pieces[1].slope - 0.5).abs() < 0.03);
    assert!((found.pieces[2].slope - 0.5).abs() < 0.02);
    assert!((found.pieces[2].x_range.0 - 400.0).abs() < 1.5);
}

#[test]
fn intervals_hold_the_break_and_do_not_depend_on_threads() {
    let (x, y) = messages(2000, 5);
    let plan = Plan { resamples: 200, level: 0.95, seed: 3, cell: 0 };
    let found = fit_segments(&x, &y, &OPTIONS).expect("fits");
    let breaks: Vec<f64> = found.pieces[1..].iter().map(|piece| piece.x_range.0).collect();
    let intervals = break_intervals(&x, &y, &OPTIONS, &breaks, &plan).expect("fits");
    for ((low, high), at) in intervals.iter().zip(&breaks) {
        assert!(low < at && at <= high, "{low} {at} {high}");
        assert!(high / low < 1.5);
    }
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    let again = alone.install(|| break_intervals(&x, &y, &OPTIONS, &breaks, &plan)).expect("fits");
    assert_eq!(intervals, again);
    assert!(break_intervals(&x, &y, &OPTIONS, &[0.0], &plan).is_err());
}

#[test]
fn ties_are_never_cut() {
    let x: Vec<f64> = (0..60).map(|i| f64::from(1 + i / 15)).collect();
    let y: Vec<f64> =
        (0..60).map(|i| if i % 15 < 7 { 1.0 } else { 5.0 } + 0.001 * f64::from(i % 15)).collect();
    let found = fit_segments(&x, &y, &SegmentOptions { shortest: 1, ..OPTIONS }).expect("fits");
    for piece in &found.pieces {
        assert_eq!(piece.points % 15, 0);
    }
}

#[test]
fn degenerate_inputs_have_clear_answers() {
    let flat = fit_segments(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0; 5], &OPTIONS).expect("fits");
    assert_eq!((flat.pieces.len(), flat.pieces[0].kind), (1, PieceKind::Constant));
    let same_x = fit_segments(&[3.0; 8], &[1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0], &OPTIONS).expect("fits");
    assert_eq!(same_x.pieces.len(), 1);
    assert!(fit_segments(&[1.0; 3], &[1.0; 3], &OPTIONS).is_err());
    assert!(fit_segments(&[1.0; 5], &[1.0, 2.0, 3.0, -1.0, 2.0], &OPTIONS).is_err());
    assert!(fit_segments(&[1.0; 5], &[1.0, 2.0, f64::NAN, 1.0, 2.0], &OPTIONS).is_err());
    let negative = SegmentOptions { break_penalty: -1.0, ..OPTIONS };
    assert!(fit_segments(&[1.0; 5], &[1.0; 5], &negative).is_err());
}

#[test]
fn numbers_whose_squares_are_none_are_refused() {
    let x = [43.0, 43.0, 43.0, 43.0, 44.0, 45.0];
    let y = [38.4, 38.3, 38.3, 38.4, 43.0, 43.0];
    let with = |floor: f64| SegmentOptions { floor, ..OPTIONS };
    let refused = |found: Result<Segmentation, StatsError>| match found {
        Err(StatsError::Size { name, .. }) => Some(name),
        _ => None,
    };
    assert!(fit_segments(&x, &y, &with(1e30)).is_ok());
    assert_eq!(refused(fit_segments(&x, &y, &with(f64::MAX))), Some("floor"));
    let small = [38.4, 38.3, 38.3, 38.4, 43.0, 5e-324];
    assert_eq!(refused(fit_segments(&x, &small, &OPTIONS)), Some("y"));
    let far = [43.0, 43.0, 43.0, 43.0, 44.0, 1e200];
    assert_eq!(refused(fit_segments(&far, &y, &OPTIONS)), Some("x"));
    assert_eq!(refused(fit_scaled_segments(&x, &y, &[1e-300; 6], &OPTIONS)), Some("scales"));
}

#[test]
fn known_noise_keeps_a_noisy_range_from_being_cut_up() {
    let mut generator = stream(5, 0, 0);
    let scales: Vec<f64> = (0..400).map(|place| if place < 200 { 40.0 } else { 1.0 }).collect();
    let x: Vec<f64> = (1..=400).map(f64::from).collect();
    let noise: Vec<f64> = scales
        .iter()
        .map(|scale| 1.0 + 0.005 * scale * normal_quantile(open_uniform(&mut generator)).tanh())
        .collect();
    let y: Vec<f64> =
        x.iter().zip(&noise).map(|(x, noise)| noise * if *x <= 300.0 { 1.0 } else { 1.03 }).collect();
    let plain = fit_segments(&x, &y, &OPTIONS).unwrap();
    let known = fit_scaled_segments(&x, &y, &scales, &OPTIONS).unwrap();
    let ends: Vec<f64> = known.pieces.iter().map(|piece| piece.x_range.1).collect();
    assert_eq!(ends, [300.0, 400.0]);
    assert_ne!(plain.pieces.len(), 2, "one noise for all sees no step of 3 %, or too many");
    assert!(fit_scaled_segments(&x, &y, &scales[1..], &OPTIONS).is_err());
    assert!(fit_scaled_segments(&x, &y, &[0.0; 400], &OPTIONS).is_err());
}

/// Steps with slopes, `pieces` of about the same length, and multiplicative noise.
fn steps(seed: u64, count: usize, pieces: usize, noise: f64) -> (Vec<f64>, Vec<f64>) {
    let mut generator = stream(seed, 1, 0);
    let mut uniform = || open_uniform(&mut generator);
    let length = count.div_ceil(pieces);
    let mut shape = (0.0, 0.0);
    (0..count)
        .map(|i| {
            if i % length == 0 {
                shape = (1.0 + 9.0 * uniform(), 4.0 * uniform());
            }
            let x = (1.0 + real(i) + uniform()).round();
            let level = shape.0 + shape.1 * real(i % length) / real(length);
            (x, level * libm::exp(noise * normal_quantile(uniform())))
        })
        .unzip()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Random steps, slopes, noise and prices: the bounded search gives the cost of full optimal partitioning.
    #[test]
    fn search_equals_brute_force(
        seed in 0_u64..1_000_000, count in 330_usize..900, pieces in 1_usize..12, noise in 0.001..0.5_f64,
        penalty in 0.2..8.0_f64, robust: bool, power: bool, shortest in 1_usize..6,
    ) {
        let (x, y) = steps(seed, count, pieces, noise);
        let options = SegmentOptions { break_penalty: penalty, robust, power, shortest, ..OPTIONS };
        let level = Groups::new(&x, &y).pilot();
        let (_, cost, found) = brute(&x, &y, &level, &options);
        prop_assert!((found - cost).abs() <= 1e-8 * (1.0 + cost), "{} {}", found, cost);
    }
}

/// A power law through the inner points of a short piece has a factor that is no number; the one through all has.
#[test]
fn a_part_that_is_too_steep_for_a_power_law_bounds_its_piece() {
    for (seed, count, pieces, shortest) in [(952_606, 689, 10, 5), (744_638, 748, 9, 3)] {
        let (x, y) = steps(seed, count, pieces, 0.001);
        let options = SegmentOptions { break_penalty: 0.2, robust: false, power: true, shortest, ..OPTIONS };
        let level = Groups::new(&x, &y).pilot();
        let (_, cost, found) = brute(&x, &y, &level, &options);
        assert!((found - cost).abs() <= 1e-8 * (1.0 + cost), "{found} {cost}");
    }
}

#[test]
fn a_budget_that_ends_too_early_leaves_an_honest_gap() {
    let (x, y) = messages(5000, 9);
    let options = SegmentOptions { budget: 1, ..OPTIONS };
    let cut_short = fit_segments(&x, &y, &options).expect("fits");
    let complete = fit_segments(&x, &y, &OPTIONS).expect("fits");
    assert!(cut_short.bound <= cut_short.cost && cut_short.evaluations < complete.evaluations * 2);
}

/// Size, median and its relative error of round trips over a shaped link as they were measured: a level, then a steep line that
/// only the last quarter of the points follows. The pilot's window spans a quarter of all points.
const SHAPED: [(f64, f64, f64); 40] = [
    (1.0, 45.90, 0.0829),
    (2.0, 59.13, 0.0993),
    (4.0, 50.91, 0.1198),
    (6.0, 43.44, 0.1009),
    (9.0, 45.43, 0.1172),
    (12.0, 51.19, 0.1268),
    (16.0, 48.41, 0.1045),
    (19.5, 48.17, 0.0993),
    (27.0, 61.74, 0.1252),
    (37.0, 47.33, 0.1143),
    (52.0, 50.36, 0.1120),
    (69.5, 47.51, 0.1153),
    (102.5, 49.98, 0.1131),
    (131.5, 41.94, 0.1314),
    (212.0, 53.22, 0.1091),
    (281.0, 45.15, 0.1282),
    (372.0, 53.47, 0.1153),
    (487.0, 51.84, 0.1060),
    (656.0, 45.58, 0.1001),
    (887.0, 42.63, 0.1285),
    (1284.0, 46.25, 0.0931),
    (1681.0, 58.80, 0.1097),
    (2640.0, 53.99, 0.1074),
    (3886.0, 51.24, 0.0801),
    (6564.0, 65.49, 0.0920),
    (8690.0, 50.13, 0.0742),
    (11_429.0, 88.95, 0.0877),
    (15_412.0, 120.68, 0.0719),
    (20_517.0, 99.85, 0.0649),
    (31_110.0, 269.42, 0.0648),
    (46_936.0, 396.65, 0.0309),
    (58_234.0, 494.12, 0.0310),
    (75_230.0, 607.49, 0.0283),
    (93_393.0, 784.86, 0.0244),
    (135_084.0, 1137.84, 0.0222),
    (173_574.0, 1559.55, 0.0181),
    (240_681.0, 2040.37, 0.0130),
    (334_247.0, 2880.94, 0.0160),
    (486_586.0, 4095.41, 0.0130),
    (716_334.0, 6166.92, 0.0132),
];

#[test]
fn a_steep_line_at_the_end_of_few_points_is_found() {
    let x: Vec<f64> = SHAPED.iter().map(|row| row.0).collect();
    let y: Vec<f64> = SHAPED.iter().map(|row| row.1).collect();
    let errors: Vec<f64> = SHAPED.iter().map(|row| row.2).collect();
    let options = SegmentOptions { break_penalty: 3.0, floor: 0.01, ..OPTIONS };
    let found = fit_scaled_segments(&x, &y, &errors, &options).unwrap();
    let last = found.pieces.last().unwrap();
    assert!(last.x_range.0 < 60_000.0 && last.kind != PieceKind::Constant, "{found:?}");
    for (place, value, _) in SHAPED.into_iter().filter(|row| row.0 >= last.x_range.0) {
        assert!((last.at(place) / value - 1.0).abs() < 0.1, "{place}: {found:?}");
    }
}

/// Half a round trip over a link of 1 Gbit/s by size: a step where a message no longer fits into one frame (1448 bytes), the
/// bucket that lets short messages pass, and the rate.
fn link_cost(size: f64) -> f64 {
    if size <= 1448.0 {
        8.5 + 0.00083 * size
    } else if size <= 8267.0 {
        12.4 + 0.00114 * size
    } else if size <= 1e6 {
        21.8 * libm::pow(size / 8267.0, 1.236)
    } else {
        0.00819 * size
    }
}

#[test]
fn one_line_through_the_small_messages_of_a_link_is_not_the_end() {
    // As 1000 round trips give it: 40 medians of 25, those of small messages known to 5 %. The pilot is far below the steep
    // end, and a search that ends there takes a third of the medians for outliers of one line.
    let mut steps = 0;
    for seed in 0..40 {
        let mut generator = stream(seed, 0, 0);
        let x: Vec<f64> =
            (0..40).map(|step| libm::pow(10.0, 0.1 + 6.85 * f64::from(step) / 39.0).round()).collect();
        let errors: Vec<f64> = x.iter().map(|&size| if size < 65_536.0 { 0.05 } else { 0.01 }).collect();
        let y: Vec<f64> = x
            .iter()
            .zip(&errors)
            .map(|(&size, error)| {
                link_cost(size) * (1.0 + error * normal_quantile(open_uniform(&mut generator)))
            })
            .collect();
        let options = SegmentOptions { break_penalty: 3.0, floor: 0.01, ..OPTIONS };
        let found = fit_scaled_segments(&x, &y, &errors, &options).expect("fits");
        let last = found.pieces.last().expect("one piece at least");
        assert!(found.pieces.len() > 1, "{seed}: {found:?}");
        assert!((last.at(5e6) / link_cost(5e6) - 1.0).abs() < 0.05, "{seed}: {found:?}");
        // The last median within a frame and the first beyond it.
        steps += u32::from(found.pieces.windows(2).any(|pair| {
            pair[0].x_range.1 <= 1448.0 && pair[1].x_range.0 > 1448.0 && pair[1].x_range.0 < 2000.0
        }));
    }
    assert!(steps >= 28, "{steps} of 40");
}

/// Times at doubling sizes from 1 to 2^21, `repeats` of each, with gamma noise of 7 %.
fn doubling(curve: impl Fn(f64) -> f64, repeats: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut generator = stream(seed, 0, 0);
    (0..22 * repeats)
        .map(|place| {
            let size = libm::ldexp(1.0, i32::try_from(place / repeats).expect("small"));
            // A gamma variable of shape 2 is the sum of two exponential ones.
            let product = open_uniform(&mut generator) * open_uniform(&mut generator);
            (size, curve(size) * (0.9 - 0.05 * libm::log(product)))
        })
        .unzip()
}

/// The median at each x, as a search over many repetitions sees them.
fn medians(x: &[f64], y: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let groups = Groups::new(x, y);
    ((0..groups.count()).map(|group| (groups.x[group], groups.middle(group)))).unzip()
}

/// Fits 3, 20 and 200 repetitions, all points and medians; a check gets whether medians were seen, and what 5 % are.
fn at_doubling_sizes(curve: impl Fn(f64) -> f64, check: impl Fn(&Segmentation, bool, f64) -> bool) {
    let (mut wrong, mut all) = (Vec::new(), 0);
    for repeats in [3, 20, 200] {
        // Three values of 7 % at each size do not say more.
        let tolerance = if repeats == 3 { 0.1 } else { 0.05 };
        for seed in 0..10 {
            let (x, y) = doubling(&curve, repeats, seed);
            let options = SegmentOptions { floor: 0.02, ..OPTIONS };
            let whole = fit_segments(&x, &y, &options).expect("fits");
            // Half of the noise lies within 0.0465 of its mean.
            let scale = (whole.sigma.powi(2) - options.floor.powi(2)).sqrt() / (1.4826 * 0.0465);
            let (x, y) = medians(&x, &y);
            let seen = fit_segments(&x, &y, &SegmentOptions { floor: 0.1, ..OPTIONS }).expect("fits");
            let is_scale = (scale - 1.0).abs() < if repeats == 3 { 0.3 } else { 0.2 };
            for (are_medians, found, is_right) in [(false, whole, is_scale), (true, seen, true)] {
                all += 1;
                if !is_right || !check(&found, are_medians, tolerance) {
                    wrong.push(format!("{are_medians} {repeats} {seed} {scale}: {found:?}"));
                }
            }
        }
    }
    assert!(wrong.len() <= all / 20, "{} of {all}\n{}", wrong.len(), wrong.join("\n"));
}

fn is_near(found: f64, truth: f64, tolerance: f64) -> bool {
    (found / truth - 1.0).abs() < tolerance
}

#[test]
fn a_power_law_at_doubling_sizes_is_found() {
    at_doubling_sizes(
        |size| 0.01 * libm::pow(size, 1.4),
        |found, _, tolerance| {
            let first = found.pieces[0];
            found.pieces.len() == 1
                && first.kind == PieceKind::Power
                && is_near(libm::exp(first.base), 0.01, tolerance)
                && is_near(first.slope, 1.4, 0.05)
        },
    );
}

#[test]
fn a_bend_at_doubling_sizes_is_found() {
    let curve = |size: f64| 30.0 + 2e-3 * (size - 10_000.0).max(0.0);
    at_doubling_sizes(curve, |found, _, tolerance| {
        let last = found.pieces.last().expect("one piece at least");
        (4096.0..=32_768.0).contains(&last.x_range.0)
            && [1e5, 5e5, 2e6].into_iter().all(|size| is_near(last.at(size), curve(size), tolerance))
    });
}

#[test]
fn jumps_at_doubling_sizes_are_found() {
    let curve = |size: f64| match size {
        ..3000.0 => 5.0,
        ..65_000.0 => 4.2 + 1.112e-3 * size,
        _ => 415.5 + 8.497e-3 * size,
    };
    at_doubling_sizes(curve, |found, are_medians, tolerance| {
        let starts: Vec<f64> = found.pieces.iter().map(|piece| piece.x_range.0).collect();
        let last = found.pieces.last().expect("one piece at least");
        // A floor of 10 % hides the bend at 3000 from 22 medians.
        (are_medians || (starts.len() == 3 && (2048.0..=8192.0).contains(&starts[1])))
            && (32_769.0..=65_536.0).contains(&last.x_range.0)
            && [1e5, 5e5, 2e6].into_iter().all(|size| is_near(last.at(size), curve(size), tolerance))
    });
}

#[test]
fn a_line_at_doubling_sizes_is_one_line() {
    at_doubling_sizes(
        |size| 20.0 + 3e-3 * size,
        |found, _, tolerance| found.pieces.len() == 1 && is_near(found.pieces[0].slope, 3e-3, tolerance),
    );
}
