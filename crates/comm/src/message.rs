//! A message buffer with room for the frame in front of the payload.

use steelyard_memory::Mapping;

use crate::CommError;

/// Bytes in front of every payload on a byte stream: number of the message and size of the payload, both
/// `u32` little-endian. It makes messages of 0 bytes possible and shows when the endpoints disagree.
pub const FRAME_BYTES: usize = 8;

/// Largest message [bytes]: what fits the frame.
pub const LARGEST_BYTES: u64 = u32::MAX as u64;

/// The payload begins on a cache line.
const PAYLOAD_AT: usize = 64;
const FRAME_AT: usize = PAYLOAD_AT - FRAME_BYTES;

/// What stands in front of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Messages sent before in this direction, modulo 2^32.
    pub(crate) number: u32,
    /// Bytes of the payload.
    pub(crate) size: u32,
}

impl Frame {
    pub(crate) fn to_bytes(self) -> [u8; FRAME_BYTES] {
        (u64::from(self.size) << 32 | u64::from(self.number)).to_le_bytes()
    }

    pub(crate) fn from_bytes(bytes: [u8; FRAME_BYTES]) -> Self {
        let word = u64::from_le_bytes(bytes);
        // Both halves fit by construction.
        Self { number: (word & 0xffff_ffff) as u32, size: (word >> 32) as u32 }
    }

    /// Fails unless this is the frame that was expected.
    #[inline]
    pub(crate) fn require(self, expected: Self) -> Result<(), CommError> {
        if self == expected {
            return Ok(());
        }
        Err(CommError::Disagreement(format!(
            "message {} of {} bytes came where message {} of {} bytes was expected",
            self.number, self.size, expected.number, expected.size
        )))
    }
}

/// A buffer for the largest message of a plan, used for sending and receiving.
#[derive(Debug)]
pub(crate) struct Message {
    memory: Mapping,
}

impl Message {
    /// A buffer for payloads of up to `largest` bytes; every page is there and holds data of its own.
    pub(crate) fn with_capacity(largest: usize) -> Result<Self, CommError> {
        let mut memory = Mapping::anonymous(PAYLOAD_AT + largest)?;
        // Pages that were never written are all the same page of zeros, which is always in the cache.
        memory.bytes_mut().fill(0xa5);
        Ok(Self { memory })
    }

    /// The payload.
    #[inline]
    pub(crate) fn payload(&mut self, size: usize) -> &mut [u8] {
        &mut self.memory.bytes_mut()[PAYLOAD_AT..PAYLOAD_AT + size]
    }

    /// Frame and payload, one after the other.
    #[inline]
    pub(crate) fn framed(&mut self, size: usize) -> &mut [u8] {
        &mut self.memory.bytes_mut()[FRAME_AT..PAYLOAD_AT + size]
    }

    /// Puts a frame in front of the payload.
    #[inline]
    pub(crate) fn set_frame(&mut self, frame: Frame) {
        self.memory.bytes_mut()[FRAME_AT..PAYLOAD_AT].copy_from_slice(&frame.to_bytes());
    }

    /// The frame in front of the payload.
    #[inline]
    pub(crate) fn frame(&mut self) -> Frame {
        let mut bytes = [0; FRAME_BYTES];
        bytes.copy_from_slice(&self.memory.bytes_mut()[FRAME_AT..PAYLOAD_AT]);
        Frame::from_bytes(bytes)
    }

    /// Writes numbers to the begin of the payload.
    pub(crate) fn set_words(&mut self, words: &[u64]) {
        for (place, word) in self.payload(words.len() * 8).chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Reads numbers from the begin of the payload.
    pub(crate) fn words<const N: usize>(&mut self) -> [u64; N] {
        let mut words = [0; N];
        for (word, place) in words.iter_mut().zip(self.payload(N * 8).chunks_exact(8)) {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(place);
            *word = u64::from_le_bytes(bytes);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_frame_reads_as_it_was_written(number: u32, size: u32) {
            let frame = Frame { number, size };
            prop_assert_eq!(Frame::from_bytes(frame.to_bytes()), frame);
        }
    }

    #[test]
    fn frame_and_payload_are_neighbours() {
        let mut message = Message::with_capacity(100).unwrap();
        message.set_words(&[7, u64::MAX]);
        message.set_frame(Frame { number: 3, size: 16 });
        assert_eq!(message.words::<2>(), [7, u64::MAX]);
        assert_eq!(message.frame(), Frame { number: 3, size: 16 });
        let framed = message.framed(16).to_vec();
        assert_eq!(framed.len(), 24);
        assert_eq!(framed[..8], [3, 0, 0, 0, 16, 0, 0, 0]);
        assert_eq!(framed[8..16], [7, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn another_frame_than_expected_is_an_error() {
        let expected = Frame { number: 1, size: 5 };
        assert!(expected.require(expected).is_ok());
        let error = Frame { number: 1, size: 6 }.require(expected).unwrap_err();
        assert!(error.to_string().contains("1 of 6 bytes"), "{error}");
    }

    #[test]
    fn a_buffer_for_empty_messages_is_possible() {
        assert!(Message::with_capacity(0).unwrap().payload(0).is_empty());
    }
}
