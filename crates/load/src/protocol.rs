//! How requests and answers are written on a connection.

use crate::frame::{Answer, Parsed, Request};

/// What a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Frames; many requests at a time on one connection, answered in any order.
    Frames,
}

impl Protocol {
    pub(crate) const ALL: [(Self, &'static str); 1] = [(Self::Frames, "frames")];

    /// Longest request; a connection that sends more without end of request is closed.
    pub(crate) const fn longest_request(self) -> usize {
        match self {
            Self::Frames => crate::frame::REQUEST_BYTES,
        }
    }

    pub(crate) fn parse_request(self, bytes: &[u8]) -> Parsed<Request> {
        match self {
            Self::Frames => Request::parse(bytes),
        }
    }

    pub(crate) fn parse_answer(self, bytes: &[u8]) -> Parsed<Answer> {
        match self {
            Self::Frames => Answer::parse(bytes),
        }
    }

    pub(crate) fn write_request(self, request: Request) -> Vec<u8> {
        match self {
            Self::Frames => request.bytes().to_vec(),
        }
    }

    pub(crate) fn write_answer(self, answer: Answer) -> Vec<u8> {
        match self {
            Self::Frames => answer.bytes().to_vec(),
        }
    }
}
