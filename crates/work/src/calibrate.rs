use crate::kernel::Growth;
use crate::section::time;
use crate::{Kernel, Scale};

/// The scale at which an iteration takes a wanted CPU time on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calibration {
    /// Found scale; numbers that had to change are rounded to three digits.
    pub scale: Scale,
    /// CPU time of an iteration at this scale, the shortest of a few [ns].
    pub iteration_ns: u64,
}

/// Iterations per attempt; the shortest counts, since disturbances only ever add time.
const ITERATIONS: u32 = 3;
/// Attempts; one is enough where the growth rule holds exactly.
const ATTEMPTS: u32 = 4;
/// An attempt within this share of the target is accepted.
const TOLERANCE_RATIO: f64 = 0.05;

/// Searches the scale at which an iteration of a kernel takes `target_ns` of CPU time.
///
/// The search starts at the published scale and follows the kernel's growth: operations are
/// scaled in proportion for `exp_float`, `exp_double`, `bsearch` and `gray2bin`; the size of
/// `insertion_sort` by the square root; the size of `qsort` so that `n log2 n` is in proportion.
#[must_use]
pub fn calibrate(kernel: Kernel, target_ns: u64, seed: u64) -> Calibration {
    let target = as_real(target_ns.max(1));
    let mut scale = kernel.published_scale();
    let mut iteration_ns = shortest(kernel, scale, seed);
    for _ in 0..ATTEMPTS {
        let ratio = target / as_real(iteration_ns.max(1));
        if (ratio - 1.0).abs() <= TOLERANCE_RATIO {
            break;
        }
        // A first measurement far below the target is too coarse to be trusted further than this.
        let next = scale_by(kernel, scale, ratio.clamp(1e-3, 1e3));
        if next == scale {
            break;
        }
        scale = next;
        iteration_ns = shortest(kernel, scale, seed);
    }
    Calibration { scale, iteration_ns }
}

fn shortest(kernel: Kernel, scale: Scale, seed: u64) -> u64 {
    let mut job = kernel.job(scale, seed);
    (0..ITERATIONS).map(|_| time(job.as_mut()).cpu_ns).min().unwrap_or(0)
}

fn scale_by(kernel: Kernel, scale: Scale, ratio: f64) -> Scale {
    match kernel.growth() {
        Growth::Operations => {
            let operations = as_real(scale.operations.unwrap_or(scale.size));
            Scale { size: scale.size, operations: Some(round_to_three_digits(operations * ratio)) }
        }
        Growth::Square => {
            Scale { size: round_to_three_digits(as_real(scale.size) * ratio.sqrt()), operations: None }
        }
        Growth::SizeLogSize => {
            let size = invert_size_log_size(size_log_size(as_real(scale.size)) * ratio);
            Scale { size: round_to_three_digits(size), operations: None }
        }
    }
}

fn size_log_size(size: f64) -> f64 {
    size * size.max(2.0).log2()
}

/// The size whose `n log2 n` is the given number, by bisection.
fn invert_size_log_size(wanted: f64) -> f64 {
    let (mut low, mut high) = (1.0, wanted.max(2.0));
    for _ in 0..64 {
        let middle = low + (high - low) / 2.0;
        if size_log_size(middle) < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Largest size or number of operations a kernel takes.
pub(crate) const LARGEST: u64 = u32::MAX as u64;

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the range before")]
fn round_to_three_digits(number: f64) -> u64 {
    let whole = number.round().clamp(1.0, as_real(LARGEST)) as u64;
    let step = 10_u64.pow(whole.ilog10().saturating_sub(2));
    (whole + step / 2) / step * step
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds and sizes of far below 2^53")]
const fn as_real(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_keeps_three_digits() {
        assert_eq!(round_to_three_digits(3_456_789.0), 3_460_000);
        assert_eq!(round_to_three_digits(42.4), 42);
        assert_eq!(round_to_three_digits(0.2), 1);
        assert!(round_to_three_digits(1e18) <= LARGEST);
    }

    #[test]
    fn doubling_follows_the_growth_of_each_kernel() {
        let ratio_of = |kernel: Kernel, ratio| scale_by(kernel, kernel.published_scale(), ratio);
        assert_eq!(ratio_of(Kernel::BinarySearch, 2.0), Scale { size: 65_536, operations: Some(2_100_000) });
        assert_eq!(ratio_of(Kernel::InsertionSort, 4.0), Scale { size: 32_800, operations: None });
        let doubled = ratio_of(Kernel::QuickSort, 2.0).size;
        let growth = size_log_size(as_real(doubled)) / size_log_size(1_048_576.0);
        assert!((growth - 2.0).abs() < 0.01, "{doubled} gives {growth}");
    }
}
