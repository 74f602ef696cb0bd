#![allow(clippy::excessive_precision, reason = "certified values as they are printed")]

use super::{f_upper, student_two_sided};

/// Regularised incomplete beta function computed with 60 digits (mpmath 1.3 `betainc`).
const STUDENT: [(f64, f64, f64); 14] = [
    (0.5, 1.0, 0.704_832_764_699_133_45),
    (2.0, 3.0, 0.139_325_968_558_843_18),
    (12.5, 2.0, 0.006_339_208_103_544_683_6),
    (667.666, 5.0, 1.430_530_490_591_106_1e-13),
    (0.0, 4.0, 1.0),
    (1e-5, 7.0, 0.999_992_300_170_983_5),
    (27.79, 104.0, 6.130_000_560_292_197_7e-50),
    (35.0, 104.0, 2.355_924_415_218_589_5e-59),
    (5.0, 1000.0, 6.767_256_364_648_630_4e-7),
    (30.0, 7679.0, 4.421_551_266_978_438_5e-187),
    (36.5, 1e6, 1.728_758_436_523_982_6e-291),
    (1.7, 1e6, 0.089_131_236_490_348_769),
    (2.5, 0.5, 0.400_970_529_053_293_18),
    (1e8, 2.0, 9.999_999_999_999_998_5e-17),
];

const F: [(f64, f64, f64, f64); 8] = [
    (0.4457, 1.0, 5.0, 0.533_956_064_763_600_53),
    (471.7, 1.0, 21.0, 7.169_175_845_474_85e-16),
    (3.5, 4.0, 30.0, 0.018_467_568_289_618_402),
    (120.0, 10.0, 40.0, 1.396_160_598_579_610_4e-26),
    (1.0, 7.0, 9.0, 0.487_968_169_082_097_8),
    (0.01, 3.0, 1000.0, 0.998_629_404_725_213_56),
    (60.0, 6.0, 200_000.0, 1.288_415_634_706_91e-74),
    (9.0, 100.0, 20.0, 5.592_584_666_742_143_1e-7),
];

#[test]
fn student_tails_keep_thirteen_digits() {
    for (t, df, expected) in STUDENT {
        let found = student_two_sided(t, df);
        assert!((found / expected - 1.0).abs() < 1e-13, "t {t}, df {df}: {found:e}, expected {expected:e}");
        assert_eq!(found.to_bits(), student_two_sided(-t, df).to_bits());
    }
}

#[test]
fn f_tails_keep_thirteen_digits() {
    for (f, numerator, denominator, expected) in F {
        let found = f_upper(f, numerator, denominator);
        assert!((found / expected - 1.0).abs() < 1e-13, "F {f}: {found:e}, expected {expected:e}");
    }
}

#[test]
fn edges_have_clear_answers() {
    assert_eq!(student_two_sided(f64::INFINITY, 3.0).to_bits(), 0.0_f64.to_bits());
    assert!((student_two_sided(1e200, 1.0) / (2.0 / std::f64::consts::PI / 1e200) - 1.0).abs() < 1e-13);
    assert!(student_two_sided(f64::NAN, 3.0).is_nan());
    assert!(student_two_sided(1.0, 0.0).is_nan());
    assert_eq!(f_upper(0.0, 1.0, 1.0).to_bits(), 1.0_f64.to_bits());
    assert_eq!(f_upper(f64::INFINITY, 1.0, 1.0).to_bits(), 0.0_f64.to_bits());
    assert!(f_upper(1.0, 1.0, -1.0).is_nan());
}

/// Found by fuzzing.
#[test]
fn tiny_degrees_of_freedom_give_a_probability() {
    for df in [3.1111e-319, 5e-324, 1e-310, f64::MIN_POSITIVE] {
        assert!((0.0..=1.0).contains(&student_two_sided(-1.0, df)), "{df}");
        assert!((0.0..=1.0).contains(&f_upper(1.0, df, 3.0)), "{df}");
    }
}
