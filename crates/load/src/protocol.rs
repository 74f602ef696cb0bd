//! How requests and answers are written on a connection.

use crate::frame::{Answer, Malformed, Parsed, Request};
use crate::http;

/// What a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Frames; many requests at a time on one connection, answered in any order.
    Frames,
    /// HTTP/1.1; answers of one connection come in the order of its requests.
    Http,
}

impl Protocol {
    pub(crate) const ALL: [(Self, &'static str); 2] = [(Self::Frames, "frames"), (Self::Http, "http")];

    /// As on the command line.
    pub(crate) fn name(self) -> &'static str {
        if self == Self::Http { "http" } else { "frames" }
    }

    /// Whether answers of one connection come in the order of its requests.
    pub(crate) fn is_ordered(self) -> bool {
        self == Self::Http
    }

    /// Longest request; a connection that sends more while one is handled is closed.
    pub(crate) const fn longest_request(self) -> usize {
        match self {
            Self::Frames => crate::frame::REQUEST_BYTES,
            Self::Http => http::LONGEST_BYTES,
        }
    }

    pub(crate) fn parse_request(self, bytes: &[u8]) -> Parsed<Request> {
        match self {
            Self::Frames => Request::parse(bytes),
            Self::Http => http::parse_request(bytes),
        }
    }

    pub(crate) fn parse_answer(self, bytes: &[u8]) -> Parsed<Answer> {
        match self {
            Self::Frames => Answer::parse(bytes),
            Self::Http => http::parse_answer(bytes),
        }
    }

    pub(crate) fn write_request(self, request: Request) -> Vec<u8> {
        match self {
            Self::Frames => request.bytes().to_vec(),
            Self::Http => http::write_request(request),
        }
    }

    pub(crate) fn write_answer(self, answer: Answer) -> Vec<u8> {
        match self {
            Self::Frames => answer.bytes().to_vec(),
            Self::Http => http::write_answer(answer),
        }
    }

    /// What is said before a connection is closed on which something else came.
    pub(crate) fn write_refusal(self, wrong: Malformed) -> Vec<u8> {
        match self {
            Self::Frames => Vec::new(),
            Self::Http => http::write_refusal(wrong),
        }
    }
}
