//! Beta and binomial distribution functions.

use crate::sample::real;

/// Terms of the continued fraction at most; it needs about the square root of the larger parameter.
const TERMS: usize = 1_000_000;

/// Stands for zero in the modified Lentz algorithm.
const TINY: f64 = 1e-300;

/// Gives the regularised incomplete beta function of positive parameters; 0 below 0 and 1 above 1.
///
/// Source: NIST Digital Library of Mathematical Functions, 8.17.22 (continued fraction), evaluated by the modified Lentz
/// algorithm (Thompson and Barnett 1986).
pub(crate) fn beta_cdf(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let scale = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b);
    let front = libm::exp(scale + a * libm::log(x) + b * libm::log1p(-x));
    // Below the mean the fraction converges fast, above it by symmetry.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let guarded = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut upper = 1.0;
    let mut lower = 1.0 / guarded(1.0 - (a + b) * x / (a + 1.0));
    let mut total = lower;
    for term in 1..TERMS {
        let m = real(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for coefficient in [even, odd] {
            lower = 1.0 / guarded(1.0 + coefficient * lower);
            upper = guarded(1.0 + coefficient / upper);
            change = upper * lower;
            total *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    total
}

/// Gives the probability that at least `successes` of `trials` succeed.
pub(crate) fn binomial_upper(successes: usize, trials: usize, p: f64) -> f64 {
    if successes == 0 {
        return 1.0;
    }
    if successes > trials {
        return 0.0;
    }
    beta_cdf(p, real(successes), real(trials - successes) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::{beta_cdf, binomial_upper};

    /// In closed form: I(.1; 2, 3) = 6 x^2 - 8 x^3 + 3 x^4, I(.5; .5, .5) by symmetry, I(x; 1, 2) = 1 - (1 - x)^2.
    #[test]
    fn values_are_those_of_closed_forms() {
        for (x, a, b, expected) in [(0.1, 2.0, 3.0, 0.0523), (0.5, 0.5, 0.5, 0.5), (0.75, 1.0, 2.0, 0.9375)] {
            assert!((beta_cdf(x, a, b) - expected).abs() < 1e-14, "{x} {a} {b}");
        }
        assert!(beta_cdf(-0.1, 2.0, 2.0).abs() < 1e-300 && (beta_cdf(1.5, 2.0, 2.0) - 1.0).abs() < 1e-300);
    }

    #[test]
    fn the_binomial_tail_is_the_sum_of_its_terms() {
        let (trials, p) = (23_u32, 0.37_f64);
        let mut term = (1.0 - p).powi(23);
        let mut below = 0.0;
        for successes in 0..=trials {
            let found = binomial_upper(successes as usize, trials as usize, p);
            assert!((found - (1.0 - below)).abs() < 1e-12, "{successes}: {found}");
            below += term;
            term *= f64::from(trials - successes) / f64::from(successes + 1) * p / (1.0 - p);
        }
        assert!(binomial_upper(24, 23, p).abs() < 1e-300);
    }

    #[test]
    fn large_samples_converge_to_the_normal_law() {
        let found = binomial_upper(50_000_001, 100_000_000, 0.5);
        assert!((found - 0.5).abs() < 1e-4, "{found}");
    }
}
