use proptest::prelude::*;

use super::exponential::power;
use super::gray::{decode, encode};
use super::job::passes;
use super::search::lower_bound;
use super::sort::{insertion_sort, quick_sort};
use super::*;
use crate::Checksum;

/// Checksums computed by `tests/golden/workload-checksums/make.py`, which shares no code with us.
const GOLDEN: &str = include_str!("../../../../tests/golden/workload-checksums/table.csv");

#[test]
fn checksums_are_those_of_the_independent_implementation() {
    let mut compared = 0;
    for line in GOLDEN.lines().skip(1) {
        let [name, size, operations, seed, checksum] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("`{line}` has not five columns");
        };
        let kernel = Kernel::from_name(name).unwrap();
        let scale = Scale { size: size.parse().unwrap(), operations: operations.parse().ok() };
        let mut job = kernel.job(scale, seed.parse().unwrap());
        job.reset();
        job.execute();
        assert_eq!(job.check().unwrap().to_string(), checksum, "{line}");
        compared += 1;
    }
    assert!(compared >= 2 * Kernel::ALL.len(), "only {compared} golden checksums");
}

#[test]
fn a_job_gives_the_same_result_every_time() {
    for kernel in Kernel::ALL {
        let operations = kernel.counts_operations().then_some(700);
        let mut job = kernel.job(Scale { size: 300, operations }, 11);
        let mut sums = (0..2).map(|_| {
            job.reset();
            job.execute();
            job.check().unwrap()
        });
        assert_eq!(sums.next(), sums.next(), "{kernel:?}");
    }
}

#[test]
fn a_job_that_was_not_executed_fails_its_check() {
    for kernel in Kernel::ALL {
        let mut job = kernel.job(kernel.published_scale(), 11);
        job.reset();
        assert!(job.check().is_err(), "{kernel:?}");
    }
}

#[test]
fn another_seed_gives_another_result() {
    for kernel in Kernel::ALL {
        let sums: Vec<Checksum> = (1..=2)
            .map(|seed| {
                let mut job = kernel.job(Scale { size: 100, operations: None }, seed);
                job.reset();
                job.execute();
                job.check().unwrap()
            })
            .collect();
        assert_ne!(sums[0], sums[1], "{kernel:?}");
    }
}

#[test]
fn the_power_approaches_the_exponential_function() {
    for exponent in 0..32_u16 {
        let x = f64::from(exponent);
        let (n, approximation) = (1024.0, power::<f64>(exponent));
        // n ln(1 + x/n) lies between x - x^2/2n and x - x^2/2n + x^3/3n^2.
        let (low, high) =
            ((x - x * x / (2.0 * n)).exp(), (x - x * x / (2.0 * n) + x.powi(3) / (3.0 * n * n)).exp());
        assert!(approximation >= low * (1.0 - 1e-12) && approximation <= high * (1.0 + 1e-12), "{exponent}");
        let single = f64::from(power::<f32>(exponent));
        assert!((single / approximation - 1.0).abs() < 2e-4, "{exponent}: {single} for {approximation}");
    }
}

#[test]
fn the_last_pass_is_as_long_as_what_is_left() {
    assert_eq!(passes(4, 10).collect::<Vec<_>>(), [4, 4, 2]);
    assert_eq!(passes(4, 3).collect::<Vec<_>>(), [3]);
    assert_eq!(passes(4, 8).collect::<Vec<_>>(), [4, 4]);
}

#[test]
fn names_are_unique_and_found() {
    for kernel in Kernel::ALL {
        assert_eq!(Kernel::from_name(kernel.name()).unwrap(), kernel);
    }
    assert!(Kernel::from_name("bogosort").unwrap_err().to_string().contains("`insertion_sort`"));
}

proptest! {
    #[test]
    fn sorts_agree_with_the_standard_library(numbers in prop::collection::vec(any::<u32>(), 0..300)) {
        let mut expected = numbers.clone();
        expected.sort_unstable();
        for sort in [insertion_sort as fn(&mut [u32]), quick_sort] {
            let mut sorted = numbers.clone();
            sort(&mut sorted);
            prop_assert_eq!(&sorted, &expected);
        }
    }

    #[test]
    fn sorts_cope_with_many_equal_numbers(numbers in prop::collection::vec(0_u32..4, 0..300)) {
        let mut expected = numbers.clone();
        expected.sort_unstable();
        for sort in [insertion_sort as fn(&mut [u32]), quick_sort] {
            let mut sorted = numbers.clone();
            sort(&mut sorted);
            prop_assert_eq!(&sorted, &expected);
        }
    }

    #[test]
    fn decoding_inverts_encoding(number in any::<u32>()) {
        prop_assert_eq!(decode(encode(number)), number);
        prop_assert_eq!(encode(decode(number)), number);
    }

    #[test]
    fn the_lower_bound_is_the_partition_point(
        mut numbers in prop::collection::vec(0_u32..1000, 0..200), key in 0_u32..1000,
    ) {
        numbers.sort_unstable();
        prop_assert_eq!(lower_bound(&numbers, key), numbers.partition_point(|&number| number < key));
    }
}
