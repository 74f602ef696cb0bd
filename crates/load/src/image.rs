//! Scaling an image: the work of a best-effort job.
//!
//! The image is resampled with a triangle filter that grows with the reduction, first along rows, then along
//! columns, in whole numbers: the result is the same on every machine.

use rand_core::Rng;

use crate::schedule::generator;

/// Bits of a weight's fraction.
const WEIGHT_BITS: u32 = 14;
const CHANNELS: usize = 3;

/// Width and height [pixels].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl Size {
    const fn bytes(self) -> usize {
        self.width * self.height * CHANNELS
    }
}

/// An image of 8 bits for each of red, green, blue, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    size: Size,
    pixels: Vec<u8>,
}

impl Image {
    /// Makes an image of slopes, edges and noise.
    ///
    /// # Panics
    ///
    /// If a side is 0.
    #[must_use]
    pub fn synthetic(size: Size, seed: u64) -> Self {
        assert!(size.width > 0 && size.height > 0, "an image has pixels");
        let mut noise = generator(seed, 0x69_6d61_6765);
        let mut pixels = Vec::with_capacity(size.bytes());
        for row in 0..size.height {
            for column in 0..size.width {
                let bits = noise.next_u64();
                let edge = if (row / 16 + column / 16) % 2 == 0 { 64 } else { 0 };
                let slopes = [row * 127 / size.height, column * 127 / size.width, (row ^ column) % 128];
                for (channel, slope) in slopes.into_iter().enumerate() {
                    let grain = (bits >> (channel * 8)) & 63;
                    pixels.push(u8::try_from(slope as u64 + edge + grain).unwrap_or(u8::MAX));
                }
            }
        }
        Self { size, pixels }
    }

    /// Width and height.
    #[must_use]
    pub const fn size(&self) -> Size {
        self.size
    }

    /// A number that changes with every byte: FNV-1a, 64 bits.
    #[must_use]
    pub fn checksum(&self) -> u64 {
        // SOURCE: draft-eastlake-fnv: offset basis and prime.
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        self.pixels.iter().fold(0xcbf2_9ce4_8422_2325, step)
    }
}

/// What one place of the result takes from the source.
#[derive(Debug)]
struct Taps {
    first: usize,
    weights: Vec<i32>,
}

/// Weights of the triangle filter for every place along one side; each sums to 2^14.
fn taps(from: usize, to: usize) -> Vec<Taps> {
    #[expect(clippy::cast_precision_loss, reason = "sides of images")]
    let scale = from as f64 / to as f64;
    let reach = scale.max(1.0);
    (0..to)
        .map(|place| {
            #[expect(clippy::cast_precision_loss, reason = "sides of images")]
            let centre = (place as f64 + 0.5) * scale;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "cut to the sides of an image"
            )]
            let (first, last) =
                ((centre - reach).floor().max(0.0) as usize, ((centre + reach).ceil() as usize).min(from));
            #[expect(clippy::cast_precision_loss, reason = "sides of images")]
            let raw: Vec<f64> = (first..last)
                .map(|index| (1.0 - (index as f64 + 0.5 - centre).abs() / reach).max(0.0))
                .collect();
            Taps { first, weights: in_whole_numbers(&raw) }
        })
        .collect()
}

fn in_whole_numbers(raw: &[f64]) -> Vec<i32> {
    let total: f64 = raw.iter().sum();
    #[expect(clippy::cast_possible_truncation, reason = "at most 2^14")]
    let mut weights: Vec<i32> =
        raw.iter().map(|weight| (weight / total * f64::from(1 << WEIGHT_BITS)).round() as i32).collect();
    // What rounding has lost or gained goes to the largest: an even area stays even.
    let rest = (1 << WEIGHT_BITS) - weights.iter().sum::<i32>();
    if let Some(largest) = weights.iter_mut().max() {
        *largest += rest;
    }
    weights
}

/// Scales images of one size to another, again and again, without asking for memory.
#[derive(Debug)]
pub struct Scaler {
    from: Size,
    columns: Vec<Taps>,
    rows: Vec<Taps>,
    between: Vec<u8>,
    result: Image,
}

impl Scaler {
    /// Prepares.
    ///
    /// # Panics
    ///
    /// If a side is 0.
    #[must_use]
    pub fn new(from: Size, to: Size) -> Self {
        assert!(from.bytes() > 0 && to.bytes() > 0, "an image has pixels");
        Self {
            from,
            columns: taps(from.width, to.width),
            rows: taps(from.height, to.height),
            between: vec![0; to.width * from.height * CHANNELS],
            result: Image { size: to, pixels: vec![0; to.bytes()] },
        }
    }

    /// Scales an image.
    ///
    /// # Panics
    ///
    /// If the image has another size than was prepared for.
    ///
    /// # Examples
    ///
    /// ```
    /// use steelyard_load::{Image, Scaler, Size};
    ///
    /// let source = Image::synthetic(Size { width: 64, height: 48 }, 1);
    /// let mut scaler = Scaler::new(source.size(), Size { width: 20, height: 15 });
    /// let first = scaler.scale(&source).checksum();
    /// assert_eq!(scaler.scale(&source).checksum(), first);
    /// ```
    pub fn scale(&mut self, source: &Image) -> &Image {
        assert_eq!(source.size, self.from, "an image of another size");
        let width = self.result.size.width;
        for row in 0..self.from.height {
            let line = &source.pixels[row * self.from.width * CHANNELS..];
            let target = &mut self.between[row * width * CHANNELS..(row + 1) * width * CHANNELS];
            for (pixel, taps) in target.chunks_exact_mut(CHANNELS).zip(&self.columns) {
                weigh(pixel, line, taps, CHANNELS);
            }
        }
        let stride = width * CHANNELS;
        let lines = self.result.pixels.chunks_exact_mut(stride);
        for (line, taps) in lines.zip(&self.rows) {
            for (column, pixel) in line.chunks_exact_mut(CHANNELS).enumerate() {
                weigh(pixel, &self.between[column * CHANNELS..], taps, stride);
            }
        }
        &self.result
    }
}

/// One pixel: the weighted sum of the pixels that lie `stride` bytes apart.
#[inline]
fn weigh(pixel: &mut [u8], source: &[u8], taps: &Taps, stride: usize) {
    let mut sums = [1_i32 << (WEIGHT_BITS - 1); CHANNELS];
    for (index, weight) in taps.weights.iter().enumerate() {
        let start = (taps.first + index) * stride;
        for (sum, value) in sums.iter_mut().zip(&source[start..start + CHANNELS]) {
            *sum += weight * i32::from(*value);
        }
    }
    for (value, sum) in pixel.iter_mut().zip(sums) {
        *value = u8::try_from((sum >> WEIGHT_BITS).clamp(0, 255)).unwrap_or(u8::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn size(width: usize, height: usize) -> Size {
        Size { width, height }
    }

    #[test]
    fn halving_gives_what_the_triangle_says() {
        // By hand: a row of 0 0 0 0 128 0 0 0 halved; the third place has its centre at 5, weights
        // 1/8 3/8 3/8 1/8 of the places 3 to 6, so 3/8 of 128; the second reaches place 4 with 1/8.
        let mut pixels = vec![0; 24];
        pixels[12] = 128;
        let source = Image { size: size(8, 1), pixels };
        let mut scaler = Scaler::new(size(8, 1), size(4, 1));
        let result: Vec<u8> = scaler.scale(&source).pixels.chunks(3).map(|pixel| pixel[0]).collect();
        assert_eq!(result, [0, 16, 48, 0]);
    }

    #[test]
    fn the_same_size_gives_the_same_image() {
        let source = Image::synthetic(size(33, 17), 4);
        assert_eq!(*Scaler::new(source.size, source.size).scale(&source), source);
    }

    proptest! {
        #[test]
        fn an_even_area_stays_even_and_values_stay_within(
            (width, height, to_width, to_height) in (1_usize..40, 1_usize..40, 1_usize..40, 1_usize..40),
            value: u8,
            seed: u64,
        ) {
            let from = size(width, height);
            let to = size(to_width, to_height);
            let even = Image { size: from, pixels: vec![value; from.bytes()] };
            let mut scaler = Scaler::new(from, to);
            prop_assert!(scaler.scale(&even).pixels.iter().all(|pixel| *pixel == value));
            let source = Image::synthetic(from, seed);
            let (low, high) = (source.pixels.iter().min(), source.pixels.iter().max());
            let result = scaler.scale(&source);
            prop_assert_eq!(result.pixels.len(), to.bytes());
            prop_assert!(result.pixels.iter().min() >= low && result.pixels.iter().max() <= high);
        }
    }
}
