//! Shared memory: a ring in each direction, in a file that has no name.

use std::ffi::c_char;
use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use steelyard_memory::Mapping;

use super::ring::{BODY_BYTES, CELLS, INLINE_BYTES, RING_BYTES, Reader, Writer};
use super::sleep::{Barrier, Manner, Patience, SPIN_NS};
use super::{Channel, Parameters};
use crate::CommError;
use crate::message::Message;

/// Bytes of the file: both rings.
const BYTES: usize = 2 * RING_BYTES;

/// Both directions.
#[derive(Debug)]
pub(crate) struct SharedChannel {
    memory: Mapping,
    own: usize,
    writer: Writer,
    reader: Reader,
    manner: Manner,
    received: u32,
    lifeline: UnixStream,
}

impl SharedChannel {
    /// Makes the memory; it is gone when nobody maps it any more.
    pub(crate) fn create() -> Result<OwnedFd, CommError> {
        const NAME: &std::ffi::CStr = c"steelyard-comm";
        let name: *const c_char = NAME.as_ptr();
        // SAFETY: the name ends with a zero byte.
        let fd = unsafe { libc::memfd_create(name, libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(CommError::system("memfd_create", io::Error::last_os_error()));
        }
        // SAFETY: the call has just given this descriptor, which nobody else owns.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        file.set_len(BYTES as u64).map_err(|error| CommError::system("making shared memory", error))?;
        Ok(file.into())
    }

    /// Joins as endpoint `rank`. The lifeline is a socket whose other end only the other endpoint has.
    pub(crate) fn join(
        memory: OwnedFd,
        rank: u32,
        lifeline: UnixStream,
        patience: Patience,
    ) -> Result<Self, CommError> {
        let mut memory = Mapping::of_file(&File::from(memory), BYTES)?;
        if rank == 0 {
            // Nobody else is there yet.
            memory.touch();
        }
        // Both endpoints run on the same kernel with the same filters, so they come to the same answer.
        let barrier = Barrier::register();
        let manner = Manner { barrier, patience };
        Ok(Self {
            memory,
            own: usize::from(rank != 0),
            writer: Writer::new(manner),
            reader: Reader::new(manner),
            manner,
            received: 0,
            lifeline,
        })
    }

    const fn other(&self) -> usize {
        1 - self.own
    }
}

impl Channel for SharedChannel {
    #[inline]
    fn send(&mut self, message: &mut Message, size: usize) -> Result<(), CommError> {
        self.writer.send_all(&self.memory, self.own, (message.payload(size), 0), &self.lifeline)
    }

    #[inline]
    fn begin_send(&mut self, message: &mut Message, size: usize) -> Result<usize, CommError> {
        Ok(self.writer.send_some(&self.memory, self.own, message.payload(size), 0))
    }

    #[inline]
    fn finish_send(&mut self, message: &mut Message, size: usize, done: usize) -> Result<(), CommError> {
        self.writer.send_all(&self.memory, self.own, (message.payload(size), done), &self.lifeline)
    }

    #[inline]
    fn receive(&mut self, message: &mut Message, size: usize) -> Result<(), CommError> {
        let number = self.received;
        self.received = number.wrapping_add(1);
        let (other, target) = (self.other(), (message.payload(size), number));
        self.reader.receive(&self.memory, other, target, &self.lifeline)
    }

    #[inline]
    fn is_free(&mut self) -> Result<bool, CommError> {
        Ok(self.writer.test(&self.memory, self.own))
    }

    #[inline]
    fn has_arrived(&mut self) -> Result<bool, CommError> {
        Ok(self.reader.has_arrived(&self.memory, self.other()))
    }

    fn wait_for_arrival(&mut self) -> Result<(), CommError> {
        self.reader.wait_for_arrival(&self.memory, self.other(), &self.lifeline)
    }

    #[inline]
    fn arrived(&mut self) -> Result<u64, CommError> {
        Ok(self.reader.arrived(&self.memory, self.other()))
    }

    fn parameters(&self) -> Parameters {
        vec![
            ("inline_bytes", INLINE_BYTES as u64),
            ("cell_bytes", BODY_BYTES as u64),
            ("cells", u64::from(CELLS)),
            ("spin_ns", if self.manner.patience == Patience::None { 0 } else { SPIN_NS }),
            ("offers_cpu", u64::from(self.manner.patience == Patience::Offer)),
            ("barrier_per_message", u64::from(self.manner.barrier == Barrier::Both)),
        ]
    }
}
