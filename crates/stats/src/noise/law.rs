//! The laws that noise may follow: tails, density, quantiles, and how tails move with the parameters.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use crate::noise::gamma::{gamma_density, gamma_quantile, gamma_tails};
use crate::special::normal_quantile;

/// Families of laws.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LawKind {
    /// Symmetric, for comparison.
    Normal,
    /// A smallest value plus the exponential of a normal value.
    Lognormal,
    /// A smallest value plus a gamma value.
    Gamma,
    /// A smallest value plus a Weibull value.
    Weibull,
}

/// A law with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Law {
    /// Which family.
    pub kind: LawKind,
    /// Smallest possible value; the mean of a normal law.
    pub shift: f64,
    /// Standard deviation of the logarithm (lognormal), or the exponent (gamma, Weibull); 0 for a normal law.
    pub shape: f64,
    /// Median above the shift (lognormal), scale (gamma, Weibull), or standard deviation (normal).
    pub scale: f64,
}

impl Law {
    /// Probabilities of a value below and above `x`, each accurate relative to itself.
    #[must_use]
    pub fn tails(&self, x: f64) -> (f64, f64) {
        match self.kind {
            LawKind::Normal => normal_tails((x - self.shift) / self.scale),
            _ => Excess::of(self).tails(x - self.shift),
        }
    }

    /// Natural logarithm of the density; minus infinity where nothing can lie.
    #[must_use]
    pub fn log_density(&self, x: f64) -> f64 {
        let excess = x - self.shift;
        let root = 0.5 * libm::log(2.0 * PI);
        if self.kind == LawKind::Normal {
            let z = excess / self.scale;
            return -0.5 * z * z - root - libm::log(self.scale);
        }
        if excess <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let ratio = excess / self.scale;
        match self.kind {
            LawKind::Lognormal => {
                let z = libm::log(ratio) / self.shape;
                -0.5 * z * z - root - libm::log(self.shape) - libm::log(excess)
            }
            LawKind::Gamma => {
                (self.shape - 1.0) * libm::log(ratio)
                    - ratio
                    - libm::lgamma(self.shape)
                    - libm::log(self.scale)
            }
            _ => {
                let power = self.shape * libm::log(ratio);
                power - libm::exp(power) + libm::log(self.shape) - libm::log(excess)
            }
        }
    }

    /// The value below which a share `p` of the law lies, `rest` = 1 - p above it.
    #[must_use]
    pub fn quantile(&self, p: f64, rest: f64) -> f64 {
        let normal = || if p < rest { normal_quantile(p) } else { -normal_quantile(rest) };
        let excess = match self.kind {
            LawKind::Normal => self.scale * normal(),
            LawKind::Lognormal => self.scale * libm::exp(self.shape * normal()),
            LawKind::Gamma => self.scale * gamma_quantile(self.shape, p, rest),
            LawKind::Weibull => {
                // -ln(rest), from whichever side keeps its digits.
                let risk = if p < 0.5 { -libm::log1p(-p) } else { -libm::log(rest) };
                self.scale * libm::pow(risk, 1.0 / self.shape)
            }
        };
        self.shift + excess
    }

    /// Whether errors and criteria have their usual meaning: below a shape of 2 the smallest value alone settles the shift.
    ///
    /// Source: R. L. Smith, "Maximum Likelihood Estimation in a Class of Nonregular Cases", 1985.
    #[must_use]
    pub fn is_regular(&self) -> bool {
        match self.kind {
            LawKind::Normal | LawKind::Lognormal => true,
            LawKind::Gamma | LawKind::Weibull => self.shape > 2.0,
        }
    }
}

pub(super) fn normal_tails(z: f64) -> (f64, f64) {
    (0.5 * libm::erfc(-z * FRAC_1_SQRT_2), 0.5 * libm::erfc(z * FRAC_1_SQRT_2))
}

/// A shifted law seen from its shift.
#[derive(Debug, Clone, Copy)]
pub(super) struct Excess {
    pub(super) kind: LawKind,
    pub(super) shape: f64,
    pub(super) scale: f64,
}

impl Excess {
    pub(super) fn of(law: &Law) -> Self {
        Self { kind: law.kind, shape: law.shape, scale: law.scale }
    }

    pub(super) fn tails(&self, excess: f64) -> (f64, f64) {
        if excess <= 0.0 {
            return (0.0, 1.0);
        }
        let ratio = excess / self.scale;
        match self.kind {
            LawKind::Gamma => gamma_tails(self.shape, ratio),
            LawKind::Weibull => {
                let power = libm::exp(self.shape * libm::log(ratio));
                (-libm::expm1(-power), libm::exp(-power))
            }
            _ => normal_tails(libm::log(ratio) / self.shape),
        }
    }

    /// How the probability below `excess` changes with the logarithms of the excess itself, the shape and the scale.
    pub(super) fn slopes(&self, excess: f64) -> [f64; 3] {
        if excess <= 0.0 {
            return [0.0; 3];
        }
        let ratio = excess / self.scale;
        match self.kind {
            LawKind::Gamma => {
                let by_value = gamma_density(self.shape, ratio) * ratio;
                [by_value, self.by_gamma_shape(ratio), -by_value]
            }
            LawKind::Weibull => {
                let log_power = self.shape * libm::log(ratio);
                let power = libm::exp(log_power);
                let by_log_power = if power < 700.0 { power * libm::exp(-power) } else { 0.0 };
                let by_value = self.shape * by_log_power;
                [by_value, log_power * by_log_power, -by_value]
            }
            _ => {
                let z = libm::log(ratio) / self.shape;
                let density = libm::exp(-0.5 * z * z) / (2.0 * PI).sqrt();
                let by_value = density / self.shape;
                [by_value, -z * density, -by_value]
            }
        }
    }

    /// No closed form: a central difference of the smaller tail.
    fn by_gamma_shape(&self, ratio: f64) -> f64 {
        // Step: the cube root of the precision balances rounding and curvature.
        const STEP: f64 = 6e-6;
        let up = gamma_tails(self.shape * libm::exp(STEP), ratio);
        let down = gamma_tails(self.shape * libm::exp(-STEP), ratio);
        if up.0 < 0.5 { (up.0 - down.0) / (2.0 * STEP) } else { (down.1 - up.1) / (2.0 * STEP) }
    }
}
