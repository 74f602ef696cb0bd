use std::hint::black_box;

use super::job::Job;
use crate::{Checksum, Stream, draw_words};

/// Lower-bound look-ups of random keys in a sorted array of random numbers.
#[derive(Debug)]
pub(super) struct LookUps {
    sorted: Vec<u32>,
    keys: Vec<u32>,
    positions: Vec<u32>,
}

impl LookUps {
    pub(super) fn new(size: usize, operations: usize, seed: u64) -> Self {
        let mut sorted = draw_words(seed, Stream::Data, size);
        sorted.sort_unstable();
        let keys = draw_words(seed, Stream::Keys, operations);
        Self { sorted, keys, positions: Vec::with_capacity(operations) }
    }
}

/// Position of the first number that is not below the key; the length if all are.
pub(super) fn lower_bound(sorted: &[u32], key: u32) -> usize {
    let (mut low, mut high) = (0, sorted.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if sorted[middle] < key {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

impl Job for LookUps {
    fn reset(&mut self) {
        self.positions.clear();
        self.positions.resize(self.keys.len(), u32::MAX);
    }

    fn execute(&mut self) {
        let (sorted, keys) = black_box((&self.sorted[..], &self.keys[..]));
        for (position, &key) in self.positions.iter_mut().zip(keys) {
            // Sizes are at most `u32::MAX`.
            *position = u32::try_from(lower_bound(sorted, key)).unwrap_or(u32::MAX);
        }
        black_box(&mut self.positions);
    }

    fn check(&self) -> Result<Checksum, String> {
        for (&key, &position) in self.keys.iter().zip(&self.positions) {
            let index = usize::try_from(position).unwrap_or(usize::MAX);
            let below = index == 0 || self.sorted.get(index - 1).is_some_and(|&number| number < key);
            let rest =
                index == self.sorted.len() || self.sorted.get(index).is_some_and(|&number| number >= key);
            if !(below && rest) {
                return Err(format!("position {position} is not the lower bound of {key}"));
            }
        }
        Ok(Checksum::of(self.positions.iter().map(|&position| u64::from(position))))
    }
}
