//! A ring of cells in shared memory: one process writes, one reads, no lock.
//!
//! A cell is a head of two cache lines and a body. Its sequence word, published last, says which lap it
//! belongs to, so the reader waits on the line that also carries the payload of a small message: one
//! transfer between cores. Larger messages are cut into bodies, and the reader copies one while the writer
//! fills the next. The reader publishes how many cells it has emptied in a line of its own, which the writer
//! looks at only when the ring seems full.
//!
//! ```text
//! writer:  wait tail > n - CELLS   copy payload   head[n].sequence = n + 1 (Release)   wake reader
//! reader:  wait head[n].sequence == n + 1 (Acquire)   copy payload   tail = n + 1 (Release)   wake writer
//! ```
//!
//! Numbers count cells modulo 2^32. A sequence word is only ever written by the writer, at a fixed place,
//! with a number that grows by `CELLS` each lap; so an old one is never mistaken for a new one.

use std::ptr;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};

use steelyard_memory::Mapping;
use steelyard_sync::Padded;

use super::sleep::{Lifeline, Manner, wait_for, wake};
use crate::CommError;
use crate::message::Frame;

/// Cells of a ring, a power of two, so that positions stay right when numbers wrap.
pub(crate) const CELLS: u32 = 64;
/// Bytes of a body.
///
/// SOURCE: own measurement, half a round trip [us] on two cores of one processor, quantile 0.2 over 120 to 400
/// messages, median over 6 to 8 runs of each in turn (`--transport shm`, host state "62 ns round trip of a
/// cache line"). A ring larger than the second-level cache is faster: what the reader fetches has left the
/// writer's cache.
///
/// | cells x bytes | 4 KiB | 64 KiB | 1 MB | 8 MB |
/// |---|---|---|---|---|
/// | 32 x 8192 | 0.50 | 5.4 | 102 | 948 |
/// | 64 x 8192 | 0.44 | 4.1 | 64 | 676 |
/// | 32 x 16384 | 0.42 | 4.0 | 58 | 622 |
/// | 16 x 32768 | 0.42 | 4.4 | 60 | 657 |
/// | 64 x 16384 | 0.33 | 2.6 | 35 | 321 |
/// | 32 x 32768 | 0.31 | 2.7 | 33 | 300 |
pub(crate) const BODY_BYTES: usize = 16_384;
/// Bytes of payload in a head.
pub(crate) const INLINE_BYTES: usize = 120;

#[derive(Debug)]
#[repr(C, align(128))]
struct Head {
    /// Number of the cell plus one, when it is full.
    sequence: AtomicU32,
    /// Size of the whole message.
    size: u32,
    inline: [u8; INLINE_BYTES],
}

const _: () = assert!(size_of::<Head>() == 128);
const _: () = assert!(CELLS.is_power_of_two());

/// What a ring is in memory; all zero is the empty ring.
#[derive(Debug)]
#[repr(C)]
struct Ring {
    /// Cells the reader has emptied.
    tail: Padded<AtomicU32>,
    reader_asleep: Padded<AtomicU32>,
    writer_asleep: Padded<AtomicU32>,
    heads: [Head; CELLS as usize],
    bodies: [[u8; BODY_BYTES]; CELLS as usize],
}

/// Bytes of one ring.
pub(crate) const RING_BYTES: usize = size_of::<Ring>().next_multiple_of(4096);

/// One ring of a mapping.
#[derive(Debug)]
struct Place<'a> {
    ring: *const Ring,
    memory: std::marker::PhantomData<&'a Mapping>,
}

/// Where the ring of a direction lies: 0 is written by endpoint 0.
const fn place(memory: &Mapping, direction: usize) -> Place<'_> {
    // SAFETY: the mapping holds two rings (`SharedChannel`), one behind the other.
    let ring = unsafe { memory.start().add(direction * RING_BYTES) };
    Place { ring: ring.cast(), memory: std::marker::PhantomData }
}

impl<'a> Place<'a> {
    const fn tail(&self) -> &'a AtomicU32 {
        // SAFETY: valid as long as the mapping; atomics may be shared. No reference to the bodies or to
        // the plain part of a head is ever made.
        unsafe { &(*self.ring).tail.0 }
    }

    const fn reader_asleep(&self) -> &'a AtomicU32 {
        // SAFETY: as above.
        unsafe { &(*self.ring).reader_asleep.0 }
    }

    const fn writer_asleep(&self) -> &'a AtomicU32 {
        // SAFETY: as above.
        unsafe { &(*self.ring).writer_asleep.0 }
    }

    const fn sequence(&self, cell: u32) -> &'a AtomicU32 {
        // SAFETY: the index is below the number of cells; otherwise as above.
        unsafe { &(*self.ring).heads[(cell % CELLS) as usize].sequence }
    }

    const fn size(&self, cell: u32) -> *mut u32 {
        // SAFETY: as above.
        unsafe { (&raw const (*self.ring).heads[(cell % CELLS) as usize].size).cast_mut() }
    }

    /// Where a part of so many bytes of a message of `size` bytes lies.
    const fn payload(&self, cell: u32, size: usize) -> *mut u8 {
        let index = (cell % CELLS) as usize;
        if size <= INLINE_BYTES {
            // SAFETY: as above.
            unsafe { (&raw const (*self.ring).heads[index].inline).cast_mut().cast() }
        } else {
            // SAFETY: as above.
            unsafe { (&raw const (*self.ring).bodies[index]).cast_mut().cast() }
        }
    }
}

/// The writing end.
#[derive(Debug)]
pub(crate) struct Writer {
    written: u32,
    /// The tail when it was last looked at.
    emptied: u32,
    manner: Manner,
}

impl Writer {
    pub(crate) const fn new(manner: Manner) -> Self {
        Self { written: 0, emptied: 0, manner }
    }

    /// Whether a cell is free; looks at the reader's line only when none seems to be.
    #[inline]
    fn is_free(&mut self, ring: &Place<'_>) -> bool {
        if self.written.wrapping_sub(self.emptied) < CELLS {
            return true;
        }
        // ORDERING: Acquire: pairs with the reader's Release; it has copied what was in the cells.
        self.emptied = ring.tail().load(Acquire);
        self.written.wrapping_sub(self.emptied) < CELLS
    }

    /// One look at the reader's line: is a cell free?
    #[inline]
    pub(crate) fn test(&mut self, memory: &Mapping, direction: usize) -> bool {
        // ORDERING: Acquire: as in `is_free`.
        self.emptied = place(memory, direction).tail().load(Acquire);
        self.written.wrapping_sub(self.emptied) < CELLS
    }

    #[inline]
    fn put(&mut self, ring: &Place<'_>, size: usize, part: &[u8]) {
        // SAFETY: the cell is free, so the reader does not touch it; the size word is aligned.
        unsafe { ring.size(self.written).write(u32::try_from(size).unwrap_or(u32::MAX)) };
        // SAFETY: a part is at most as long as its place, and does not overlap with the ring.
        unsafe { ptr::copy_nonoverlapping(part.as_ptr(), ring.payload(self.written, size), part.len()) };
        let sequence = ring.sequence(self.written);
        self.written = self.written.wrapping_add(1);
        // ORDERING: Release: pairs with the reader's Acquire; size and payload come before.
        sequence.store(self.written, Release);
        wake(sequence, ring.reader_asleep(), self.manner);
    }

    /// Sends parts of a message beginning at `done`, as long as cells are free, and gives how far it came.
    /// A message has one part at least.
    #[inline]
    pub(crate) fn send_some(
        &mut self,
        memory: &Mapping,
        direction: usize,
        payload: &[u8],
        done: usize,
    ) -> usize {
        let ring = place(memory, direction);
        let mut parts = done;
        while (parts < part_count(payload.len())) && self.is_free(&ring) {
            self.put(&ring, payload.len(), part(payload, parts));
            parts += 1;
        }
        parts
    }

    /// Sends all parts of a message from number `done` on.
    #[inline]
    pub(crate) fn send_all(
        &mut self,
        memory: &Mapping,
        direction: usize,
        (payload, done): (&[u8], usize),
        lifeline: &impl Lifeline,
    ) -> Result<(), CommError> {
        let ring = place(memory, direction);
        let mut parts = done;
        loop {
            parts = self.send_some(memory, direction, payload, parts);
            if parts == part_count(payload.len()) {
                return Ok(());
            }
            let written = self.written;
            self.emptied = wait_for(ring.tail(), ring.writer_asleep(), self.manner, lifeline, |emptied| {
                written.wrapping_sub(emptied) < CELLS
            })?;
        }
    }
}

/// The reading end.
#[derive(Debug)]
pub(crate) struct Reader {
    read: u32,
    manner: Manner,
}

impl Reader {
    pub(crate) const fn new(manner: Manner) -> Self {
        Self { read: 0, manner }
    }

    /// Receives a message of exactly `payload.len()` bytes; `number` is its number for the error.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        memory: &Mapping,
        direction: usize,
        (payload, number): (&mut [u8], u32),
        lifeline: &impl Lifeline,
    ) -> Result<(), CommError> {
        let ring = place(memory, direction);
        let size = payload.len();
        for index in 0..part_count(size) {
            self.wait(&ring, lifeline)?;
            // SAFETY: the cell is full, so the writer does not touch it; the size word is aligned.
            let found = unsafe { ring.size(self.read).read() };
            let expected = Frame { number, size: u32::try_from(size).unwrap_or(u32::MAX) };
            Frame { number, size: found }.require(expected)?;
            let target = part_mut(payload, index);
            let source = ring.payload(self.read, size);
            // SAFETY: a part is at most as long as its place, and does not overlap with the ring.
            unsafe { ptr::copy_nonoverlapping(source, target.as_mut_ptr(), target.len()) };
            self.read = self.read.wrapping_add(1);
            // ORDERING: Release: pairs with the writer's Acquire; the payload was copied before.
            ring.tail().store(self.read, Release);
            wake(ring.tail(), ring.writer_asleep(), self.manner);
        }
        Ok(())
    }

    #[inline]
    fn wait(&self, ring: &Place<'_>, lifeline: &impl Lifeline) -> Result<(), CommError> {
        let wanted = self.read.wrapping_add(1);
        let sequence = ring.sequence(self.read);
        wait_for(sequence, ring.reader_asleep(), self.manner, lifeline, |found| found == wanted).map(|_| ())
    }

    /// Waits for the next cell.
    pub(crate) fn wait_for_arrival(
        &self,
        memory: &Mapping,
        direction: usize,
        lifeline: &impl Lifeline,
    ) -> Result<(), CommError> {
        self.wait(&place(memory, direction), lifeline)
    }

    /// Full cells that were not read.
    #[inline]
    pub(crate) fn arrived(&self, memory: &Mapping, direction: usize) -> u64 {
        let ring = place(memory, direction);
        let is_full = |offset: &u32| {
            let cell = self.read.wrapping_add(*offset);
            // ORDERING: Acquire: as in `wait`, though nothing is read on its strength.
            ring.sequence(cell).load(Acquire) == cell.wrapping_add(1)
        };
        (0..CELLS).take_while(is_full).map(|_| 1).sum()
    }

    /// One look at the next cell.
    #[inline]
    pub(crate) fn has_arrived(&self, memory: &Mapping, direction: usize) -> bool {
        // ORDERING: Acquire: as in `arrived`.
        place(memory, direction).sequence(self.read).load(Acquire) == self.read.wrapping_add(1)
    }
}

/// Cells of a message; one of 0 bytes has one.
#[inline]
const fn part_count(size: usize) -> usize {
    if size <= BODY_BYTES { 1 } else { size.div_ceil(BODY_BYTES) }
}

#[inline]
fn part(payload: &[u8], index: usize) -> &[u8] {
    let start = index * BODY_BYTES;
    &payload[start..payload.len().min(start + BODY_BYTES)]
}

#[inline]
fn part_mut(payload: &mut [u8], index: usize) -> &mut [u8] {
    let start = index * BODY_BYTES;
    let end = payload.len().min(start + BODY_BYTES);
    &mut payload[start..end]
}

#[cfg(test)]
mod tests;
