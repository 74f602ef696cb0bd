use std::fmt;
use std::hint::black_box;

use super::job::Job;
use crate::{Checksum, Stream, draw_words};

/// Sorting of random numbers.
pub(super) struct Sorting {
    sort: fn(&mut [u32]),
    input: Vec<u32>,
    numbers: Vec<u32>,
}

impl fmt::Debug for Sorting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sorting").field("size", &self.input.len()).finish_non_exhaustive()
    }
}

impl Sorting {
    pub(super) fn new(sort: fn(&mut [u32]), size: usize, seed: u64) -> Self {
        Self { sort, input: draw_words(seed, Stream::Data, size), numbers: Vec::with_capacity(size) }
    }
}

/// Insertion sort that moves larger numbers up by one until the place is found.
pub(super) fn insertion_sort(numbers: &mut [u32]) {
    for end in 1..numbers.len() {
        let number = numbers[end];
        let mut place = end;
        while place > 0 && numbers[place - 1] > number {
            numbers[place] = numbers[place - 1];
            place -= 1;
        }
        numbers[place] = number;
    }
}

/// Recursive quicksort, Hoare's partition around the middle element.
pub(super) fn quick_sort(numbers: &mut [u32]) {
    if numbers.len() < 2 {
        return;
    }
    let pivot = numbers[(numbers.len() - 1) / 2];
    // Everything below `left` is <= pivot, everything from `right` on is >= pivot.
    let (mut left, mut right) = (0, numbers.len());
    while left < right {
        while numbers[left] < pivot {
            left += 1;
        }
        while numbers[right - 1] > pivot {
            right -= 1;
        }
        if left < right {
            numbers.swap(left, right - 1);
            left += 1;
            right -= 1;
        }
    }
    quick_sort(&mut numbers[..right]);
    quick_sort(&mut numbers[left..]);
}

/// A sum over the numbers that ignores their order and changes when one of them changes.
fn multiset_sum(numbers: &[u32]) -> u64 {
    // SOURCE: multiplier of the 64-bit linear congruential generator of PCG; any odd number with
    // well mixed bits does.
    let mix = |number: u32| {
        let word = (u64::from(number) ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(6_364_136_223_846_793_005);
        word ^ (word >> 32)
    };
    numbers.iter().fold(0, |sum: u64, &number| sum.wrapping_add(mix(number)))
}

impl Job for Sorting {
    fn reset(&mut self) {
        self.numbers.clear();
        self.numbers.extend_from_slice(&self.input);
    }

    fn execute(&mut self) {
        (self.sort)(black_box(&mut self.numbers));
        black_box(&mut self.numbers);
    }

    fn check(&self) -> Result<Checksum, String> {
        if let Some(place) = self.numbers.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(format!("the numbers at {place} and {} are in the wrong order", place + 1));
        }
        if multiset_sum(&self.numbers) != multiset_sum(&self.input) {
            return Err("the sorted numbers are not the numbers of the input".to_owned());
        }
        Ok(Checksum::of(self.numbers.iter().map(|&number| u64::from(number))))
    }
}
