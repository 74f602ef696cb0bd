//! Numerical kernels: resampling, quantiles, exact sums, tests that need many passes.
//!
//! Every function is a pure function of its arguments. Random numbers come from one stream per
//! (seed, cell, chunk of resamples), never per thread, and every sum is either exact or taken in a
//! fixed order, so that the same call gives the same bits with any number of threads. Elementary functions are
//! those of `libm`, which are the same code on every machine.

mod ascending;
mod beta;
mod block;
mod bootstrap;
mod change;
mod cluster;
mod column;
mod convex;
mod correlation;
mod double;
mod error;
mod interval;
mod kolmogorov;
mod lanes;
mod level;
mod linear;
mod moment;
mod noise;
mod order;
mod order_interval;
mod permutation;
mod rank;
#[cfg(test)]
mod recorded_bits;
mod registers;
mod replicate;
mod resample;
mod sample;
mod scheme;
mod segment;
mod shift;
mod special;
mod split;
mod statistic;
mod stream;
mod sum;
mod tail;
mod tally;
mod unit_moment;
mod ziggurat;

pub use ascending::ascending;
pub use block::block_length;
pub use bootstrap::{Bootstrapped, Contrast, Question, SampleOf, bootstrap, contrast_bootstrap};
pub use change::{ChangeOptions, change_points, noise_scale};
pub use cluster::{ClusterOptions, cluster_bootstrap};
pub use column::{Leading, count_between, middle, value_of_key};
pub use convex::convex_corners;
pub use correlation::{autocorrelation, dependence, effective_size};
pub use error::StatsError;
pub use interval::{Interval, Intervals};
pub use kolmogorov::{Kolmogorov, kolmogorov_smirnov};
pub use level::{Effect, LevelChange, Results, level_change, level_looks, newest_change};
pub use linear::{Intercept, LinearFit, LinearRows, fit_linear, linear_rows};
pub use moment::{MomentIntervals, moment_bootstrap, moment_bootstrap_groups};
pub use noise::{
    CurveError, Law, LawFit, LawKind, NoiseFit, NoiseSetting, ParetoTail, Simulation, fit_noise, pareto_tail,
};
pub use order::{median, median_absolute_deviation, quantile};
pub use order_interval::{OrderInterval, order_interval};
pub use permutation::{Permutation, permutation_test};
pub use rank::quantile_bootstrap;
pub use resample::{Spread, deviation_bootstrap, quantile_resampling};
pub use sample::Plan;
pub use scheme::Scheme;
pub use segment::{
    NoiseScale, Piece, PieceKind, SegmentOptions, Segmentation, break_intervals, fit_scaled_segments,
    fit_segments,
};
pub use shift::{Shift, shift_interval};
pub use special::{normal_cdf, normal_quantile};
pub use split::{Split, measure_split, simulated_splits};
pub use statistic::Statistic;
pub use sum::{exact_sum, mean, standard_deviation};
pub use tail::{f_upper, student_two_sided};
pub use tally::{Ranks, TALLY_LIMIT, Tally};
