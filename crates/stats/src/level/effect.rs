//! The size of a change whose place is not known for sure.

use super::covariance::Fit;
use crate::beta::beta_cdf;

/// Terms that the size is taken from; the rest weighs less than a rounding of the limits.
const MOST_TERMS: usize = 200;

/// A term lighter than this share of the heaviest is left out.
const LIGHTEST: f64 = 1e-4;

const HALVINGS: usize = 60;

/// A change of level as difference of logarithms: median, and limits that hold it with 95 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// Median.
    pub middle: f64,
    /// Limit that it lies below with 2.5 %.
    pub low: f64,
    /// Limit that it lies above with 2.5 %.
    pub high: f64,
}

/// A place under one fit, with its weight.
pub(super) struct Term<'a> {
    pub(super) fit: &'a Fit,
    pub(super) place: usize,
    pub(super) weight: f64,
}

/// Gives the size over all places and fits, heaviest first: a mixture of Student laws.
pub(super) fn effect(terms: &[Term<'_>]) -> Effect {
    let kept: Vec<(f64, f64, f64, f64)> = terms
        .iter()
        .take(MOST_TERMS)
        .take_while(|term| term.weight >= LIGHTEST * terms[0].weight)
        .map(|term| {
            let (size, error, freedom) = term.fit.size(term.place);
            (term.weight, size, error, freedom)
        })
        .collect();
    let total: f64 = kept.iter().map(|term| term.0).sum();
    let below = |limit: f64| {
        let sum = kept
            .iter()
            .map(|&(weight, size, error, freedom)| weight * student((limit - size) / error, freedom));
        sum.sum::<f64>() / total
    };
    let reach = kept.iter().map(|term| 1e4 * term.2).fold(0.0, f64::max);
    let (least, most) = kept.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), term| {
        (least.min(term.1), most.max(term.1))
    });
    let quantile = |share: f64| {
        let (mut low, mut high) = (least - reach, most + reach);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if below(middle) < share { low = middle } else { high = middle }
        }
        high
    };
    Effect { middle: quantile(0.5), low: quantile(0.025), high: quantile(0.975) }
}

fn student(value: f64, freedom: f64) -> f64 {
    let tail = 0.5 * beta_cdf(freedom / (freedom + value * value), 0.5 * freedom, 0.5);
    if value < 0.0 { tail } else { 1.0 - tail }
}
