use std::hint::black_box;

use super::job::{Job, passes};
use crate::{Checksum, Stream, draw_words};

/// Decoding of random Gray code words.
#[derive(Debug)]
pub(super) struct Decoding {
    codes: Vec<u32>,
    operations: usize,
    numbers: Vec<u32>,
}

impl Decoding {
    pub(super) fn new(size: usize, operations: usize, seed: u64) -> Self {
        let codes = draw_words(seed, Stream::Data, size);
        Self { codes, operations, numbers: Vec::with_capacity(size.min(operations)) }
    }
}

/// Gray code to binary, one shift and one exclusive or per bit.
pub(super) const fn decode(code: u32) -> u32 {
    let mut number = code;
    let mut mask = code >> 1;
    while mask != 0 {
        number ^= mask;
        mask >>= 1;
    }
    number
}

/// Binary to Gray code.
pub(super) const fn encode(number: u32) -> u32 {
    number ^ (number >> 1)
}

impl Job for Decoding {
    fn reset(&mut self) {
        self.numbers.clear();
        self.numbers.resize(self.codes.len().min(self.operations), 0);
    }

    fn execute(&mut self) {
        for length in passes(self.codes.len(), self.operations) {
            let codes = black_box(&self.codes[..length]);
            for (number, &code) in self.numbers.iter_mut().zip(codes) {
                *number = decode(code);
            }
            black_box(&mut self.numbers);
        }
    }

    fn check(&self) -> Result<Checksum, String> {
        for (&code, &number) in self.codes.iter().zip(&self.numbers) {
            if encode(number) != code {
                return Err(format!("{number} is not the number of Gray code {code}"));
            }
        }
        Ok(Checksum::of(self.numbers.iter().map(|&number| u64::from(number))))
    }
}
