//! The incomplete gamma function: both tails, and their inverse.

use std::f64::consts::PI;

use crate::special::normal_quantile;
use crate::tail::{deviance, stirling_rest};

/// Terms of a series or fraction at most; about six roots of the shape are needed.
const TERMS: u32 = 100_000;

/// Stands for zero in the modified Lentz algorithm.
const TINY: f64 = 1e-300;

/// Gives the probabilities that a gamma variate of scale 1 is below and above `x`, each accurate relative to itself.
///
/// Source: NIST Digital Library of Mathematical Functions, 8.11.4 (series) and 8.9.2 (continued fraction).
pub(super) fn gamma_tails(shape: f64, x: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    if x.is_infinite() {
        return (1.0, 0.0);
    }
    let front = power_factor(shape, x);
    if x < shape + 1.0 {
        let below = (front * series(shape, x)).min(1.0);
        (below, 1.0 - below)
    } else {
        let above = (front * shape * fraction(shape, x)).min(1.0);
        (1.0 - above, above)
    }
}

/// Density of a gamma variate of scale 1.
pub(super) fn gamma_density(shape: f64, x: f64) -> f64 {
    if x > 0.0 { power_factor(shape, x) * shape / x } else { 0.0 }
}

/// x^a e^-x / Gamma(a + 1) without the cancellation of large logarithms.
///
/// Source: C. Loader, "Fast and Accurate Computation of Binomial Probabilities", 2000 (saddle-point form).
fn power_factor(shape: f64, x: f64) -> f64 {
    libm::exp(-deviance(shape, x) - stirling_rest(shape)) / (2.0 * PI * shape).sqrt()
}

fn series(shape: f64, x: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for step in 1..TERMS {
        term *= x / (shape + f64::from(step));
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
    }
    sum
}

/// Gamma(a, x) over x^a e^-x, by the modified Lentz algorithm.
fn fraction(shape: f64, x: f64) -> f64 {
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut middle = x + 1.0 - shape;
    let mut upper = 1.0 / TINY;
    let mut lower = 1.0 / away(middle);
    let mut product = lower;
    for step in 1..TERMS {
        let n = f64::from(step);
        let numerator = -n * (n - shape);
        middle += 2.0;
        lower = 1.0 / away(numerator * lower + middle);
        upper = away(middle + numerator / upper);
        let change = upper * lower;
        product *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    product
}

/// Gives the value below which a gamma variate of scale 1 lies with probability `p`; `rest` is 1 - p.
///
/// Newton's method on the logarithm of the smaller tail against the logarithm of the value, which is concave.
pub(super) fn gamma_quantile(shape: f64, p: f64, rest: f64) -> f64 {
    if p <= 0.0 {
        return 0.0;
    }
    if rest <= 0.0 {
        return f64::INFINITY;
    }
    let is_low = p < rest;
    let mut log_x = libm::log(first_guess(shape, p, rest));
    for _ in 0..100 {
        let x = libm::exp(log_x);
        let (below, above) = gamma_tails(shape, x);
        let (tail, target, sign) = if is_low { (below, p, 1.0) } else { (above, rest, -1.0) };
        let slope = gamma_density(shape, x) * x;
        if tail <= 0.0 || slope <= 0.0 {
            // Beyond the range of doubles: halve the way to where the tail can be seen.
            log_x -= sign * if is_low { -1.0 } else { -0.5 };
            continue;
        }
        let step = (sign * libm::log(target / tail) * tail / slope).clamp(-4.0, 4.0);
        log_x += step;
        if step.abs() < 1e-14 * (1.0 + log_x.abs()) {
            break;
        }
    }
    libm::exp(log_x)
}

/// Source: E. B. Wilson, M. M. Hilferty, "The Distribution of Chi-Square", 1931; the leading term of the series far left.
fn first_guess(shape: f64, p: f64, rest: f64) -> f64 {
    let normal = if p < rest { normal_quantile(p) } else { -normal_quantile(rest) };
    let root = 1.0 - 1.0 / (9.0 * shape) + normal / (3.0 * shape.sqrt());
    if root > 0.3 {
        return shape * root.powi(3);
    }
    libm::exp((libm::log(p) + libm::lgamma(shape + 1.0)) / shape).max(1e-290)
}

#[cfg(test)]
mod tests {
    use super::{gamma_density, gamma_quantile, gamma_tails};

    /// Whole shapes in closed form: Q(a, x) = e^-x (1 + x + ... + x^(a-1) / (a-1)!); Q(1/2, x) = erfc(sqrt x).
    #[test]
    fn tails_are_those_of_closed_forms() {
        for x in [0.01, 0.5, 1.0, 3.0, 9.0, 40.0, 300.0] {
            let q3 = libm::exp(-x) * (1.0 + x + x * x / 2.0);
            let (below, above) = gamma_tails(3.0, x);
            assert!((above / q3 - 1.0).abs() < 1e-12, "{x}");
            assert!((below + above - 1.0).abs() < 1e-14, "{x}");
            let half = libm::erfc(libm::sqrt(x));
            assert!((gamma_tails(0.5, x).1 / half - 1.0).abs() < 1e-12, "{x}");
            assert!((gamma_density(1.0, x) / libm::exp(-x) - 1.0).abs() < 1e-12, "{x}");
        }
        // Far left the leading term is everything.
        let x: f64 = 1e-8;
        let leading = libm::exp(0.3 * libm::log(x) - libm::lgamma(1.3));
        assert!((gamma_tails(0.3, x).0 / leading - 1.0).abs() < 1e-8);
        assert_eq!(gamma_tails(2.0, 0.0), (0.0, 1.0));
        assert_eq!(gamma_tails(2.0, f64::INFINITY), (1.0, 0.0));
    }

    #[test]
    fn the_inverse_undoes_both_tails() {
        for shape in [0.05, 0.3, 1.0, 2.5, 30.0, 2000.0] {
            for p in [1e-12, 1e-4, 0.1, 0.5, 0.9, 0.9999] {
                let x = gamma_quantile(shape, p, 1.0 - p);
                let (below, above) = gamma_tails(shape, x);
                if x > 1e-280 {
                    assert!((below / p - 1.0).abs() < 1e-9, "{shape} {p}: {x} {below}");
                }
                let far = gamma_quantile(shape, 1.0 - p, p);
                let back = gamma_tails(shape, far).1;
                if far > 1e-280 {
                    assert!((back / p - 1.0).abs() < 1e-9, "{shape} {p}: {far} {back} {above}");
                }
            }
        }
        assert!(gamma_quantile(2.0, 0.0, 1.0).abs() < 1e-300);
        assert!(gamma_quantile(2.0, 1.0, 0.0).is_infinite());
    }
}
