//! Tail probabilities of Student's t and of F, accurate relative to the probability itself.

use std::f64::consts::PI;

/// Gives the probability that |T| is at least `t` for Student's t with `df` degrees of freedom.
///
/// Not a number unless `df` is positive and finite and `t` is a number.
///
/// Source: NIST Digital Library of Mathematical Functions, 8.17 (regularised incomplete beta function).
#[must_use]
pub fn student_two_sided(t: f64, df: f64) -> f64 {
    if !(df > 0.0 && df.is_finite()) || t.is_nan() {
        return f64::NAN;
    }
    if t.is_infinite() {
        return 0.0;
    }
    let square = t * t;
    if !square.is_finite() {
        return far_student(t.abs(), df);
    }
    incomplete_beta(df / (df + square), square / (df + square), df / 2.0, 0.5)
}

/// The leading term of the tail, which is all of it where t^2 overflows.
fn far_student(t: f64, df: f64) -> f64 {
    let half = df / 2.0;
    let scale = libm::lgamma(half + 0.5) - libm::lgamma(half + 1.0) - libm::lgamma(0.5);
    libm::exp(df * libm::log(df.sqrt() / t) + scale)
}

/// Gives the probability that F with `numerator` and `denominator` degrees of freedom is at least `f`.
///
/// Not a number unless both are positive and finite and `f` is a number.
#[must_use]
pub fn f_upper(f: f64, numerator: f64, denominator: f64) -> f64 {
    let fits = |df: f64| df > 0.0 && df.is_finite();
    if !fits(numerator) || !fits(denominator) || f.is_nan() {
        return f64::NAN;
    }
    if f <= 0.0 {
        return 1.0;
    }
    if f.is_infinite() {
        return 0.0;
    }
    let explained = numerator * f;
    let total = denominator + explained;
    incomplete_beta(denominator / total, explained / total, denominator / 2.0, numerator / 2.0)
}

/// Regularised incomplete beta function at `x`, with `rest` = 1 - x given separately so that neither loses digits.
fn incomplete_beta(x: f64, rest: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-290;
    if x <= 0.0 {
        return 0.0;
    }
    if rest <= 0.0 {
        return 1.0;
    }
    // As a goes to 0 the function goes to 1 like 1 + a ln x, and ln x is above -750; b alike.
    if a < TINY || b < TINY {
        return if a < b { 1.0 } else { 0.0 };
    }
    // DLMF 8.17.22 converges fast left of this point; beyond it the complement does.
    let found = if x <= (a + 1.0) / (a + b + 2.0) {
        power_factor(x, rest, a, b) / a * fraction(x, a, b)
    } else {
        1.0 - power_factor(x, rest, a, b) / b * fraction(rest, b, a)
    };
    // Rounding may lead past the ends.
    found.clamp(0.0, 1.0)
}

/// x^a (1 - x)^b / B(a, b) without the cancellation of large logarithms.
///
/// Source: C. Loader, "Fast and Accurate Computation of Binomial Probabilities", 2000 (saddle-point form).
fn power_factor(x: f64, rest: f64, a: f64, b: f64) -> f64 {
    let both = a + b;
    let exponent = stirling_rest(both)
        - stirling_rest(a)
        - stirling_rest(b)
        - deviance(a, both * x)
        - deviance(b, both * rest);
    (a * b / (2.0 * PI * both)).sqrt() * libm::exp(exponent)
}

/// v ln(v / m) + m - v.
pub(crate) fn deviance(value: f64, centre: f64) -> f64 {
    let difference = value - centre;
    if difference.abs() > 0.1 * (value + centre) {
        return value * libm::log(value / centre) - difference;
    }
    // With r = (v - m) / (v + m): ln(v / m) = 2 (r + r^3 / 3 + r^5 / 5 + ...).
    let ratio = difference / (value + centre);
    let square = ratio * ratio;
    let mut sum = difference * ratio;
    let mut power = 2.0 * value * ratio;
    let mut odd = 3.0;
    loop {
        power *= square;
        let next = sum + power / odd;
        if next.to_bits() == sum.to_bits() {
            return sum;
        }
        sum = next;
        odd += 2.0;
    }
}

/// ln Gamma(z + 1) minus Stirling's ln(sqrt(2 pi z) (z / e)^z).
pub(crate) fn stirling_rest(z: f64) -> f64 {
    if z < 16.0 {
        return libm::lgamma(z + 1.0) - (z + 0.5) * libm::log(z) + z - 0.5 * libm::log(2.0 * PI);
    }
    // SOURCE: DLMF 5.11.1, Bernoulli numbers B2 to B12 over 2k (2k - 1).
    let inverse = 1.0 / (z * z);
    let terms = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360_360.0];
    terms.iter().rev().fold(0.0, |sum, term| sum * inverse + term) / z
}

/// The continued fraction DLMF 8.17.22, evaluated by the modified Lentz algorithm.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    // Iterations needed grow with the root of the larger parameter; this bound serves 10^10 and beyond.
    const MOST: u32 = 1_000_000;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut upper = 1.0;
    let mut lower = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut product = lower;
    for step in 1..MOST {
        let m = f64::from(step);
        let twice = a + 2.0 * m;
        let even = m * (b - m) * x / ((twice - 1.0) * twice);
        lower = 1.0 / away(1.0 + even * lower);
        upper = away(1.0 + even / upper);
        product *= lower * upper;
        let odd = -(a + m) * (a + b + m) * x / (twice * (twice + 1.0));
        lower = 1.0 / away(1.0 + odd * lower);
        upper = away(1.0 + odd / upper);
        let change = lower * upper;
        product *= change;
        if (change - 1.0).abs() < 1e-16 {
            break;
        }
    }
    product
}

#[cfg(test)]
mod tests;
