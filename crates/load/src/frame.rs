//! Requests and answers as frames of fixed length, little-endian.
//!
//! A request has 16 bytes: mark, number, kind (0: usual, 1: long), zero. An answer has 40: mark, number,
//! kind, zero, and as 64-bit words when a worker took the request, when it was done (stamps), the result.

/// First word of a request.
const REQUEST_MARK: u32 = u32::from_le_bytes(*b"SLRQ");
/// First word of an answer.
const ANSWER_MARK: u32 = u32::from_le_bytes(*b"SLAN");

pub(crate) const REQUEST_BYTES: usize = 16;
pub(crate) const ANSWER_BYTES: usize = 40;

/// What a service is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) seq: u32,
    pub(crate) is_long: bool,
}

/// What a service answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) seq: u32,
    pub(crate) is_long: bool,
    pub(crate) started_ns: u64,
    pub(crate) finished_ns: u64,
    pub(crate) result: u64,
}

/// Bytes that are none of what is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// What was read of the begin of some bytes: the message and its length, or nothing yet.
pub(crate) type Parsed<T> = Result<Option<(T, usize)>, Malformed>;

fn word(bytes: &[u8], index: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[index * 4..index * 4 + 4]);
    u32::from_le_bytes(word)
}

fn long_word(bytes: &[u8], index: usize) -> u64 {
    u64::from(word(bytes, index * 2)) | u64::from(word(bytes, index * 2 + 1)) << 32
}

fn kind(bytes: &[u8]) -> Result<bool, Malformed> {
    match (word(bytes, 2), word(bytes, 3)) {
        (0, 0) => Ok(false),
        (1, 0) => Ok(true),
        _ => Err(Malformed("a frame of unknown kind")),
    }
}

impl Request {
    pub(crate) fn bytes(self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        let words = [REQUEST_MARK, self.seq, u32::from(self.is_long), 0];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Parsed<Self> {
        let Some(frame) = bytes.get(..REQUEST_BYTES) else { return Ok(None) };
        if word(frame, 0) != REQUEST_MARK {
            return Err(Malformed("a frame without the mark of a request"));
        }
        Ok(Some((Self { seq: word(frame, 1), is_long: kind(frame)? }, REQUEST_BYTES)))
    }
}

impl Answer {
    pub(crate) fn bytes(self) -> [u8; ANSWER_BYTES] {
        let mut bytes = [0; ANSWER_BYTES];
        let words = [
            u64::from(ANSWER_MARK) | u64::from(self.seq) << 32,
            u64::from(self.is_long),
            self.started_ns,
            self.finished_ns,
            self.result,
        ];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Parsed<Self> {
        let Some(frame) = bytes.get(..ANSWER_BYTES) else { return Ok(None) };
        if word(frame, 0) != ANSWER_MARK {
            return Err(Malformed("a frame without the mark of an answer"));
        }
        let answer = Self {
            seq: word(frame, 1),
            is_long: kind(frame)?,
            started_ns: long_word(frame, 2),
            finished_ns: long_word(frame, 3),
            result: long_word(frame, 4),
        };
        Ok(Some((answer, ANSWER_BYTES)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_come_back_as_they_went(seq: u32, is_long: bool, stamps: [u64; 3], rest: Vec<u8>) {
            let request = Request { seq, is_long };
            let mut bytes = request.bytes().to_vec();
            prop_assert_eq!(Request::parse(&bytes[..REQUEST_BYTES - 1]), Ok(None));
            bytes.extend(&rest);
            prop_assert_eq!(Request::parse(&bytes), Ok(Some((request, REQUEST_BYTES))));
            let [started_ns, finished_ns, result] = stamps;
            let answer = Answer { seq, is_long, started_ns, finished_ns, result };
            let mut bytes = answer.bytes().to_vec();
            prop_assert_eq!(Answer::parse(&bytes[..ANSWER_BYTES - 1]), Ok(None));
            bytes.extend(&rest);
            prop_assert_eq!(Answer::parse(&bytes), Ok(Some((answer, ANSWER_BYTES))));
        }

        #[test]
        fn other_bytes_are_refused_or_awaited(bytes: Vec<u8>) {
            if bytes.get(..4) != Some(b"SLRQ".as_slice()) {
                prop_assert!(!matches!(Request::parse(&bytes), Ok(Some(_))));
            }
            if bytes.get(..4) != Some(b"SLAN".as_slice()) {
                prop_assert!(!matches!(Answer::parse(&bytes), Ok(Some(_))));
            }
        }
    }
}
