//! HTTP/1.1 between programs on one machine: strict, bounded, and no more than is needed.
//!
//! A message has a head of at most 8 KiB and 64 fields and a body of at most 64 KiB, whose length is told by
//! `Content-Length`. Whatever can be read in two ways is refused: folded lines, bare carriage returns or
//! line feeds, blanks before a colon, a length that is told twice, a transfer encoding (RFC 9112, 11).

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::frame::{Answer, Malformed, Parsed, Request};

const HEAD_BYTES: usize = 8 << 10;
const BODY_BYTES: usize = 64 << 10;
const MOST_FIELDS: usize = 64;
/// Longest message.
pub(crate) const LONGEST_BYTES: usize = HEAD_BYTES + BODY_BYTES;

/// Where messages are posted, and what they say.
const MESSAGES: &str = "/messages";
const BODY: &str = "A message of a user, of which it is to be decided whether it may be shown.";

/// A message that was read: its first line, and what counts of the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Message<'bytes> {
    start: [&'bytes str; 3],
    fields: Vec<(&'bytes str, &'bytes str)>,
    body: &'bytes [u8],
}

fn bad(_: std::str::Utf8Error) -> Malformed {
    Malformed("400 Bad Request: a head that is not text")
}

/// RFC 9110, 5.6.2.
pub(crate) fn is_token(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_allowed)
}

/// RFC 9110, 5.5: visible ASCII, blanks and tabs; other bytes have no meaning here.
fn is_value(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
}

impl<'bytes> Message<'bytes> {
    fn parse(bytes: &'bytes [u8]) -> Parsed<Self> {
        let window = &bytes[..bytes.len().min(HEAD_BYTES)];
        let Some(end) = window.windows(4).position(|four| four == b"\r\n\r\n") else {
            if bytes.len() < HEAD_BYTES {
                return Ok(None);
            }
            return Err(Malformed("431 Request Header Fields Too Large: a head above 8 KiB"));
        };
        let head = std::str::from_utf8(&bytes[..end]).map_err(bad)?;
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().splitn(3, ' ');
        let start = [(); 3].map(|()| words.next().unwrap_or_default());
        if start.iter().any(|word| word.is_empty() || !is_value(word)) {
            return Err(Malformed("400 Bad Request: a first line that is none"));
        }
        let fields = lines.map(field).collect::<Result<Vec<_>, _>>()?;
        if fields.len() > MOST_FIELDS {
            return Err(Malformed("431 Request Header Fields Too Large: more than 64 fields"));
        }
        let mut message = Self { start, fields, body: &[] };
        let length = message.body_length()?;
        let whole = end + 4 + length;
        let Some(body) = bytes.get(end + 4..whole) else { return Ok(None) };
        message.body = body;
        Ok(Some((message, whole)))
    }

    /// The value of a field that stands there at most once.
    fn field(&self, name: &str) -> Result<Option<&'bytes str>, Malformed> {
        let mut found = self.fields.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let first = found.next().map(|(_, value)| *value);
        match found.next() {
            None => Ok(first),
            Some(_) => Err(Malformed("400 Bad Request: a field that stands there twice")),
        }
    }

    fn body_length(&self) -> Result<usize, Malformed> {
        if self.field("transfer-encoding")?.is_some() {
            return Err(Malformed("501 Not Implemented: a transfer encoding"));
        }
        let Some(text) = self.field("content-length")? else { return Ok(0) };
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Malformed("400 Bad Request: a length that is not a number"));
        }
        match text.parse() {
            Ok(length) if length <= BODY_BYTES => Ok(length),
            _ => Err(Malformed("413 Content Too Large: a body above 64 KiB")),
        }
    }
}

pub(crate) fn field(line: &str) -> Result<(&str, &str), Malformed> {
    let wrong = Malformed("400 Bad Request: a field that is none");
    let (name, value) = line.split_once(':').ok_or(wrong)?;
    if !is_token(name) || !is_value(value) {
        return Err(wrong);
    }
    Ok((name, value.trim_matches([' ', '\t'])))
}

/// Reads a request for work: `POST /messages`, and `?moderate=1` where a long one is asked for.
pub(crate) fn parse_request(bytes: &[u8]) -> Parsed<Request> {
    let Some((message, length)) = Message::parse(bytes)? else { return Ok(None) };
    let [method, target, version] = message.start;
    if version != "HTTP/1.1" {
        return Err(Malformed("505 HTTP Version Not Supported: only HTTP/1.1"));
    }
    if message.field("host")?.is_none() {
        return Err(Malformed("400 Bad Request: the field `Host` is missing"));
    }
    let is_long = match target.split_once('?').unwrap_or((target, "")) {
        (MESSAGES, "") => false,
        (MESSAGES, "moderate=1") => true,
        _ => return Err(Malformed("404 Not Found: only /messages is here")),
    };
    if method != "POST" {
        return Err(Malformed("405 Method Not Allowed: only POST"));
    }
    let seq = message.field("x-request")?.map_or(Ok(0), str::parse);
    let seq = seq.map_err(|_| Malformed("400 Bad Request: `X-Request` is not a number"))?;
    Ok(Some((Request { seq, is_long }, length)))
}

/// Writes a request for work.
pub(crate) fn write_request(request: Request) -> Vec<u8> {
    let query = if request.is_long { "?moderate=1" } else { "" };
    format!(
        "POST {MESSAGES}{query} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nX-Request: {}\r\nContent-Length: {}\r\n\r\n{BODY}",
        request.seq,
        BODY.len(),
    )
    .into_bytes()
}

/// Writes an answer.
pub(crate) fn write_answer(answer: Answer) -> Vec<u8> {
    let body = json!({
        "seq": answer.seq, "is_long": answer.is_long, "started_ns": answer.started_ns,
        "finished_ns": answer.finished_ns, "result": answer.result,
    })
    .to_string();
    respond("200 OK", "application/json", &body, true)
}

/// Writes the answer to bytes that were refused; the connection ends with it.
pub(crate) fn write_refusal(wrong: Malformed) -> Vec<u8> {
    let status = wrong.0.split_once(':').map_or(wrong.0, |(status, _)| status);
    respond(status, "text/plain", wrong.0, false)
}

fn respond(status: &str, kind: &str, body: &str, is_kept: bool) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
    if !is_kept {
        text.push_str("Connection: close\r\n");
    }
    // Writing to a string cannot fail.
    let _ = write!(text, "\r\n{body}");
    text.into_bytes()
}

/// Reads an answer.
pub(crate) fn parse_answer(bytes: &[u8]) -> Parsed<Answer> {
    let Some((message, length)) = Message::parse(bytes)? else { return Ok(None) };
    if message.start[0] != "HTTP/1.1" || message.start[1] != "200" {
        return Err(Malformed("an answer other than `HTTP/1.1 200`"));
    }
    let body: Value =
        serde_json::from_slice(message.body).map_err(|_| Malformed("an answer that is not JSON"))?;
    let number = |name: &str| body[name].as_u64().ok_or(Malformed("an answer that lacks a number"));
    let answer = Answer {
        seq: u32::try_from(number("seq")?).map_err(|_| Malformed("an answer with an unknown number"))?,
        is_long: body["is_long"].as_bool().ok_or(Malformed("an answer without its kind"))?,
        started_ns: number("started_ns")?,
        finished_ns: number("finished_ns")?,
        result: number("result")?,
    };
    Ok(Some((answer, length)))
}

#[cfg(test)]
mod tests;
