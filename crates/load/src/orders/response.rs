//! Answers over HTTP/1.1 (RFC 9112), read piece by piece, strict and bounded.
//!
//! Whatever can be read in two ways is refused: a length beside a transfer encoding, a length that is told
//! twice, bare carriage returns or line feeds, an encoding other than `chunked` (RFC 9112, 6.3 and 11).

use crate::frame::Malformed;
use crate::http::field;

/// SOURCE: own choices; the service of orders stays far below.
const HEAD_BYTES: usize = 16 << 10;
const MOST_FIELDS: usize = 100;
pub(crate) const BODY_BYTES: usize = 1 << 20;
/// A line that tells the size of a chunk, with its extensions.
const SIZE_BYTES: usize = 256;
const MOST_INTERIM: u32 = 8;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// Whether no other answer comes on this connection.
    pub(crate) is_last: bool,
}

/// What is awaited next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Head,
    /// So many bytes of the body are missing.
    Body(usize),
    ChunkSize,
    /// So many bytes of the chunk are missing.
    Chunk(usize),
    ChunkEnd,
    /// Lines after the last chunk; so many bytes of them are allowed.
    Trailer(usize),
    /// The body ends with the connection.
    UntilClosed,
}

/// Reads the answers of one connection.
#[derive(Debug, Default)]
pub(crate) struct ResponseReader {
    bytes: Vec<u8>,
    state: State,
    response: Response,
    interim: u32,
}

impl ResponseReader {
    /// Takes bytes in, and gives an answer that is whole with them.
    pub(crate) fn push(&mut self, received: &[u8]) -> Result<Option<Response>, Malformed> {
        self.bytes.extend_from_slice(received);
        let mut used = 0;
        let mut is_whole = false;
        while !is_whole {
            match self.step(used)? {
                Step::Wait => break,
                Step::Used(count) => used += count,
                Step::Whole(count) => {
                    used += count;
                    is_whole = true;
                }
            }
        }
        self.bytes.drain(..used);
        Ok(is_whole.then(|| self.take()))
    }

    /// The connection has ended: gives an answer whose body ends with it.
    pub(crate) fn end(&mut self) -> Option<Response> {
        (self.state == State::UntilClosed).then(|| self.take())
    }

    /// Whether nothing is left over.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.state == State::Head
    }

    fn take(&mut self) -> Response {
        self.state = State::Head;
        self.interim = 0;
        std::mem::take(&mut self.response)
    }

    fn step(&mut self, from: usize) -> Result<Step, Malformed> {
        let rest = &self.bytes[from..];
        match self.state {
            State::Head => self.head(from),
            State::Body(missing) => Ok(self.fill(from, missing, State::Body)),
            State::Chunk(missing) => Ok(self.fill(from, missing, State::Chunk)),
            State::UntilClosed => {
                let count = rest.len();
                self.check_length(count)?;
                self.response.body.extend_from_slice(&self.bytes[from..]);
                Ok(if count == 0 { Step::Wait } else { Step::Used(count) })
            }
            State::ChunkSize => {
                let Some(line) = line(rest, SIZE_BYTES)? else { return Ok(Step::Wait) };
                let (size, used) = (chunk_size(line)?, line.len() + 2);
                self.check_length(size)?;
                self.state = if size == 0 { State::Trailer(HEAD_BYTES) } else { State::Chunk(size) };
                Ok(Step::Used(used))
            }
            State::ChunkEnd => match rest {
                [] | [b'\r'] => Ok(Step::Wait),
                [b'\r', b'\n', ..] => {
                    self.state = State::ChunkSize;
                    Ok(Step::Used(2))
                }
                _ => Err(Malformed("a chunk that is longer than its size")),
            },
            State::Trailer(allowed) => {
                let Some(line) = line(rest, allowed)? else { return Ok(Step::Wait) };
                let used = line.len() + 2;
                if line.is_empty() {
                    return Ok(Step::Whole(used));
                }
                self.state = State::Trailer(allowed.saturating_sub(used));
                Ok(Step::Used(used))
            }
        }
    }

    fn check_length(&self, more: usize) -> Result<(), Malformed> {
        if more > BODY_BYTES - self.response.body.len() {
            return Err(Malformed("a body above 1 MiB"));
        }
        Ok(())
    }

    /// Moves what is there of a body or a chunk.
    fn fill(&mut self, from: usize, missing: usize, state: fn(usize) -> State) -> Step {
        let count = missing.min(self.bytes.len() - from);
        self.response.body.extend_from_slice(&self.bytes[from..from + count]);
        let is_body = matches!(state(0), State::Body(_));
        match missing - count {
            0 if is_body => Step::Whole(count),
            0 => {
                self.state = State::ChunkEnd;
                Step::Used(count)
            }
            left => {
                self.state = state(left);
                if count == 0 { Step::Wait } else { Step::Used(count) }
            }
        }
    }

    fn head(&mut self, from: usize) -> Result<Step, Malformed> {
        let rest = &self.bytes[from..];
        let window = &rest[..rest.len().min(HEAD_BYTES)];
        let Some(end) = window.windows(4).position(|four| four == b"\r\n\r\n") else {
            return if rest.len() < HEAD_BYTES {
                Ok(Step::Wait)
            } else {
                Err(Malformed("a head above 16 KiB"))
            };
        };
        let head = Head::parse(&rest[..end])?;
        let used = end + 4;
        if head.status < 200 {
            self.interim += 1;
            if head.status == 101 || self.interim > MOST_INTERIM {
                return Err(Malformed("an answer that only announces others"));
            }
            return Ok(Step::Used(used));
        }
        self.response = Response { status: head.status, body: Vec::new(), is_last: head.is_last };
        let has_body = !matches!(head.status, 204 | 304);
        self.state = match head.length {
            _ if !has_body => return Ok(Step::Whole(used)),
            Length::Known(length) => State::Body(length),
            Length::Chunked => State::ChunkSize,
            Length::UntilClosed => State::UntilClosed,
        };
        Ok(Step::Used(used))
    }
}

/// What came of the next bytes.
#[derive(Debug, Clone, Copy)]
enum Step {
    Wait,
    Used(usize),
    Whole(usize),
}

/// A line without its end, or nothing as long as the end has not come.
fn line(bytes: &[u8], longest: usize) -> Result<Option<&[u8]>, Malformed> {
    let window = &bytes[..bytes.len().min(longest)];
    match window.windows(2).position(|two| two == b"\r\n") {
        Some(end) if window[..end].iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) => {
            Err(Malformed("a line that is none"))
        }
        Some(end) => Ok(Some(&window[..end])),
        None if bytes.len() < longest => Ok(None),
        None => Err(Malformed("a line that is too long")),
    }
}

/// Size of a chunk; extensions mean nothing here (RFC 9112, 7.1.1).
fn chunk_size(line: &[u8]) -> Result<usize, Malformed> {
    let wrong = Malformed("a size of a chunk that is none");
    let line = std::str::from_utf8(line).map_err(|_| wrong)?;
    let digits = line.split(';').next().unwrap_or_default().trim_end_matches([' ', '\t']);
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong);
    }
    usize::from_str_radix(digits, 16).map_err(|_| wrong)
}

/// How the length of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Known(usize),
    Chunked,
    UntilClosed,
}

/// What counts of a head.
#[derive(Debug)]
struct Head {
    status: u16,
    length: Length,
    is_last: bool,
}

impl Head {
    fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(bytes).map_err(|_| Malformed("a head that is not text"))?;
        let mut lines = text.split("\r\n");
        let (status, is_old) = status(lines.next().unwrap_or_default())?;
        let fields = lines.map(field).collect::<Result<Vec<_>, _>>()?;
        if fields.len() > MOST_FIELDS {
            return Err(Malformed("more than 100 fields"));
        }
        let values = |name: &'static str| {
            fields.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
        };
        let tokens: Vec<&str> =
            values("connection").flat_map(|value| value.split(',')).map(str::trim).collect();
        let says = |token: &str| tokens.iter().any(|known| known.eq_ignore_ascii_case(token));
        let length = length(
            &values("content-length").collect::<Vec<_>>(),
            &values("transfer-encoding").collect::<Vec<_>>(),
        )?;
        let is_last = says("close") || (is_old && !says("keep-alive")) || length == Length::UntilClosed;
        Ok(Self { status, length, is_last })
    }
}

fn status(line: &str) -> Result<(u16, bool), Malformed> {
    let wrong = Malformed("a first line that is none");
    let (version, rest) = line.split_once(' ').ok_or(wrong)?;
    let is_old = match version {
        "HTTP/1.1" => false,
        "HTTP/1.0" => true,
        _ => return Err(wrong),
    };
    let (digits, reason) = rest.split_once(' ').unwrap_or((rest, ""));
    let is_text = reason.bytes().all(|byte| byte == b'\t' || byte >= b' ');
    let is_status = digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    match digits.parse() {
        Ok(status @ 100..=599) if is_status && is_text => Ok((status, is_old)),
        _ => Err(wrong),
    }
}

fn length(lengths: &[&str], encodings: &[&str]) -> Result<Length, Malformed> {
    match (lengths, encodings) {
        ([], []) => Ok(Length::UntilClosed),
        ([], [encoding]) if encoding.eq_ignore_ascii_case("chunked") => Ok(Length::Chunked),
        ([], _) => Err(Malformed("a transfer encoding other than chunked")),
        ([text], []) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            match text.parse() {
                Ok(length) if length <= BODY_BYTES => Ok(Length::Known(length)),
                _ => Err(Malformed("a body above 1 MiB")),
            }
        }
        ([_], []) => Err(Malformed("a length that is not a number")),
        _ => Err(Malformed("a length that is told twice")),
    }
}

#[cfg(test)]
mod tests;
