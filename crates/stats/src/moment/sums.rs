//! Resamples of rows, added up.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_mm512_and_si512, _mm512_set1_epi64, _mm512_srli_epi64};

#[cfg(target_arch = "x86_64")]
use crate::lanes::{Lanes, as_words};
#[cfg(target_arch = "x86_64")]
use crate::registers::LANES;
use crate::registers::Registers;
use crate::sample::Plan;
use crate::stream::{Indices, STEP, stream};

/// What one value adds to the sums.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct Row(pub(super) [f64; 4]);

/// Draws resamples and adds their rows.
pub(super) struct Sums<'a> {
    rows: &'a [Row],
    indices: Indices,
    registers: Registers,
    buffer: Vec<u32>,
    #[cfg(target_arch = "x86_64")]
    ahead: Ahead,
}

/// Indices drawn at a time: 4 KiB stay in the first-level cache whatever the sample's size.
const BLOCK: usize = 1024;

impl<'a> Sums<'a> {
    pub(super) fn new(rows: &'a [Row], plan: &Plan, chunk: usize) -> Self {
        Self::with(rows, Registers::widest(), plan, chunk)
    }

    pub(super) fn with(rows: &'a [Row], registers: Registers, plan: &Plan, chunk: usize) -> Self {
        let bound = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let indices = Indices::new(&mut stream(plan.seed, plan.cell, chunk), bound);
        let length = rows.len().next_multiple_of(STEP).min(BLOCK);
        Self {
            rows,
            indices,
            registers,
            buffer: vec![0; length],
            #[cfg(target_arch = "x86_64")]
            ahead: Ahead::default(),
        }
    }

    /// Sums of the rows of the next resample, in a fixed order: the same bits with any registers.
    pub(super) fn next(&mut self) -> [f64; 4] {
        let totals = match self.registers {
            Registers::Plain => self.draw(),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Registers` names only what the processor reports.
            Registers::Avx2 => unsafe { self.draw_avx2() },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Registers` names only what the processor reports.
            Registers::Avx512 => unsafe { self.draw_avx512() },
        };
        let [a, b, c, d] = totals;
        [0, 1, 2, 3].map(|power| (a[power] + c[power]) + (b[power] + d[power]))
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn draw_avx2(&mut self) -> Totals {
        self.draw()
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
    fn draw(&mut self) -> Totals {
        let mut totals = [[0.0_f64; 4]; 4];
        let mut left = self.rows.len();
        while left > 0 {
            let take = left.min(BLOCK);
            let filled = take.next_multiple_of(STEP);
            self.indices.fill_inlined(&mut self.buffer[..filled]);
            let rows = self.rows;
            let row = |&index: &u32| {
                debug_assert!((index as usize) < rows.len());
                // SAFETY: `Indices` gives numbers below its bound, which is the number of rows (multiply-high of a
                // 32-bit word); a checked access costs a fifth of the whole bootstrap.
                unsafe { rows.get_unchecked(index as usize) }
            };
            add_all(&mut totals, &self.buffer[..take], row);
            left -= take;
        }
        totals
    }

    /// Indices are drawn some steps before they are used: a narrow load from a register that was just stored waits until the
    /// store has left the processor's queue.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the function exists where addresses have 64 bits only"
    )]
    fn draw_avx512(&mut self) -> Totals {
        let bound = self.indices.bound();
        let mut lanes = Lanes::load(&self.indices.state);
        if !self.ahead.is_filled {
            (0..DEPTH - 1).for_each(|place| self.ahead.steps[place].draw(&mut lanes, bound));
            self.ahead.is_filled = true;
        }
        let mut totals = [[0.0_f64; 4]; 4];
        let mut left = self.rows.len();
        while left > 0 {
            let place = self.ahead.place;
            self.ahead.steps[(place + DEPTH - 1) % DEPTH].draw(&mut lanes, bound);
            self.ahead.place = (place + 1) % DEPTH;
            let rows = self.rows;
            let row = |&offset: &u64| {
                debug_assert!((offset as usize) < size_of_val(rows));
                // SAFETY: the upper half of the product of a 32-bit word and the number of rows is below that number.
                let place = unsafe { rows.as_ptr().byte_add(offset as usize) };
                // SAFETY: it is the place of a row, as above.
                unsafe { &*place }
            };
            let step = &self.ahead.steps[place].0;
            if left < STEP {
                add_all(&mut totals, &step[..left], row);
                break;
            }
            add_all(&mut totals, step, row);
            left -= STEP;
        }
        lanes.store(&mut self.indices.state);
        totals
    }
}

/// Steps that are held, including the one in use.
#[cfg(target_arch = "x86_64")]
const DEPTH: usize = 4;

/// Steps drawn before they are used; each resample begins with a fresh one.
#[cfg(target_arch = "x86_64")]
#[derive(Default)]
struct Ahead {
    steps: [Step; DEPTH],
    place: usize,
    is_filled: bool,
}

/// Where rows lie, in bytes after the first.
#[cfg(target_arch = "x86_64")]
#[derive(Default)]
#[repr(align(64))]
struct Step([u64; STEP]);

#[cfg(target_arch = "x86_64")]
impl Step {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn draw(&mut self, lanes: &mut Lanes, bound: u32) {
        const { assert!(size_of::<Row>() == 32, "the shift below is that of 32 bytes") };
        let whole = _mm512_set1_epi64(!31);
        let (halves, _) = self.0.as_chunks_mut::<LANES>();
        for (half, product) in halves.iter_mut().zip(lanes.products(bound)) {
            *half = as_words(_mm512_and_si512(_mm512_srli_epi64::<27>(product), whole));
        }
    }
}

/// Four accumulators, by place modulo 4.
type Totals = [[f64; 4]; 4];

#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
fn add_all<'a, T: 'a>(totals: &mut Totals, drawn: &'a [T], row: impl Fn(&T) -> &'a Row) {
    let quads = drawn.chunks_exact(4);
    let rest = quads.remainder();
    for quad in quads {
        for (total, place) in totals.iter_mut().zip(quad) {
            add(total, row(place));
        }
    }
    for place in rest {
        add(&mut totals[0], row(place));
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled inside the caller's instruction set")]
fn add(total: &mut [f64; 4], row: &Row) {
    for (sum, term) in total.iter_mut().zip(row.0) {
        *sum += term;
    }
}
