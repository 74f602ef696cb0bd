//! One line, from its first sign to its last.

use crate::wanted::{Column, Wanted};

/// Objects and lists inside each other; more are read by whoever counts them.
const DEEPEST: usize = 32;
/// Members of an object, each of which is compared with those before it.
const MOST_MEMBERS: usize = 256;
/// Signs of a number: a double needs 24.
const LONGEST_NUMBER: usize = 40;
/// Digits of an exponent.
const LONGEST_EXPONENT: usize = 3;

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Not there, or null.
    Absent = 0,
    /// A text.
    Text = 1,
    /// A number.
    Number = 2,
    /// An object.
    Object = 3,
    /// A list, true or false.
    Other = 4,
}

/// A wanted member of the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    kind: Kind,
    begin: usize,
    end: usize,
    is_escaped: bool,
}

const ABSENT: Found = Found { kind: Kind::Absent, begin: 0, end: 0, is_escaped: false };

impl Found {
    /// Adds the member to its column.
    pub(crate) fn append(&self, line: &[u8], column: &mut Column) -> Option<()> {
        let text = &line[self.begin..self.end];
        match self.kind {
            Kind::Text if self.is_escaped => append_plain(text, &mut column.text)?,
            Kind::Text | Kind::Number => column.text.extend_from_slice(text),
            Kind::Absent | Kind::Object | Kind::Other => {}
        }
        column.kinds.push(self.kind as u8);
        column.ends.push(i32::try_from(column.text.len()).ok()?);
        Some(())
    }
}

/// Appends a text without its escapes, which have been looked at.
fn append_plain(text: &[u8], to: &mut Vec<u8>) -> Option<()> {
    let mut rest = text;
    while let Some(place) = rest.iter().position(|sign| *sign == b'\\') {
        to.extend_from_slice(&rest[..place]);
        let mut length = 2;
        let plain = match rest.get(place + 1)? {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                length = 6;
                let digits = std::str::from_utf8(rest.get(place + 2..place + 6)?).ok()?;
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
            }
            other => char::from(*other),
        };
        to.extend_from_slice(plain.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &rest[place + length..];
    }
    to.extend_from_slice(rest);
    Some(())
}

/// Reads lines, one after the other.
pub(crate) struct Cursor<'a> {
    wanted: &'a Wanted,
    found: Vec<Found>,
    /// Names of the members so far, of the objects that are open.
    names: Vec<(usize, usize)>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(wanted: &'a Wanted) -> Self {
        Self { wanted, found: vec![ABSENT; wanted.columns], names: Vec::new() }
    }

    /// Gives the wanted members of a line that is an object.
    pub(crate) fn read(&mut self, line: &[u8]) -> Option<&[Found]> {
        self.found.fill(ABSENT);
        self.names.clear();
        let begin = blanks(line, 0);
        if line.get(begin) != Some(&b'{') {
            return None;
        }
        let end = self.value(line, begin, Some(0), 0)?;
        (blanks(line, end) == line.len()).then_some(self.found.as_slice())
    }

    /// Reads a value, and gives where it ends.
    fn value(&mut self, line: &[u8], begin: usize, node: Option<usize>, depth: usize) -> Option<usize> {
        let mut is_escaped = false;
        let (kind, end) = match line.get(begin)? {
            b'"' => {
                let end;
                (end, is_escaped) = text_end(line, begin)?;
                (Kind::Text, end)
            }
            b'{' => (Kind::Object, self.object(line, begin, node, depth)?),
            b'[' => (Kind::Other, self.list(line, begin, depth)?),
            b't' => (Kind::Other, literal(line, begin, b"true")?),
            b'f' => (Kind::Other, literal(line, begin, b"false")?),
            b'n' => (Kind::Absent, literal(line, begin, b"null")?),
            _ => (Kind::Number, number_end(line, begin)?),
        };
        if let Some(column) = node.and_then(|node| self.wanted.nodes[node].column) {
            let quote = usize::from(kind == Kind::Text);
            self.found[column] = Found { kind, begin: begin + quote, end: end - quote, is_escaped };
        }
        Some(end)
    }

    fn object(&mut self, line: &[u8], begin: usize, node: Option<usize>, depth: usize) -> Option<usize> {
        let first = self.names.len();
        let mut place = blanks(line, begin + 1);
        if line.get(place) == Some(&b'}') {
            return (depth < DEEPEST).then_some(place + 1);
        }
        loop {
            if line.get(place) != Some(&b'"') || depth >= DEEPEST {
                return None;
            }
            let (end, is_escaped) = text_end(line, place)?;
            let name = &line[place + 1..end - 1];
            let known = &self.names[first..];
            let is_twin = known.iter().any(|(begin, end)| &line[*begin..*end] == name);
            // Two names may differ in their escapes alone.
            if is_escaped || is_twin || known.len() >= MOST_MEMBERS {
                return None;
            }
            self.names.push((place + 1, end - 1));
            place = blanks(line, end);
            if line.get(place) != Some(&b':') {
                return None;
            }
            let child = node.and_then(|node| self.wanted.child(node, name));
            place = blanks(line, self.value(line, blanks(line, place + 1), child, depth + 1)?);
            match line.get(place)? {
                b',' => place = blanks(line, place + 1),
                b'}' => break,
                _ => return None,
            }
        }
        self.names.truncate(first);
        Some(place + 1)
    }

    fn list(&mut self, line: &[u8], begin: usize, depth: usize) -> Option<usize> {
        let mut place = blanks(line, begin + 1);
        if depth >= DEEPEST {
            return None;
        }
        if line.get(place) == Some(&b']') {
            return Some(place + 1);
        }
        loop {
            place = blanks(line, self.value(line, place, None, depth + 1)?);
            match line.get(place)? {
                b',' => place = blanks(line, place + 1),
                b']' => return Some(place + 1),
                _ => return None,
            }
        }
    }
}

fn blanks(line: &[u8], mut place: usize) -> usize {
    while matches!(line.get(place), Some(b' ' | b'\t')) {
        place += 1;
    }
    place
}

fn literal(line: &[u8], begin: usize, word: &[u8]) -> Option<usize> {
    line[begin..].starts_with(word).then_some(begin + word.len())
}

/// Gives where a text ends, behind its quote, and whether it has escapes.
fn text_end(line: &[u8], begin: usize) -> Option<(usize, bool)> {
    let mut place = begin + 1;
    let mut is_escaped = false;
    loop {
        place += line[place..].iter().position(|sign| matches!(sign, b'"' | b'\\' | 0..0x20))?;
        match line[place] {
            b'"' => return Some((place + 1, is_escaped)),
            b'\\' => place += escape_length(&line[place..])?,
            _ => return None,
        }
        is_escaped = true;
    }
}

/// Gives the signs of an escape that is a whole character.
fn escape_length(text: &[u8]) -> Option<usize> {
    match text.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => {
            let digits = text.get(2..6)?;
            let is_half = matches!(digits, [b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F', ..]);
            (digits.iter().all(u8::is_ascii_hexdigit) && !is_half).then_some(6)
        }
        _ => None,
    }
}

fn number_end(line: &[u8], begin: usize) -> Option<usize> {
    let digits = |from: usize| {
        let count = line[from..].iter().position(|sign| !sign.is_ascii_digit()).unwrap_or(line.len() - from);
        from + count
    };
    let whole = begin + usize::from(line[begin] == b'-');
    let mut end = digits(whole);
    if end == whole || (line[whole] == b'0' && end > whole + 1) {
        return None;
    }
    if line.get(end) == Some(&b'.') {
        let decimals = end + 1;
        end = digits(decimals);
        if end == decimals {
            return None;
        }
    }
    if matches!(line.get(end), Some(b'e' | b'E')) {
        let exponent = end + 1 + usize::from(matches!(line.get(end + 1), Some(b'+' | b'-')));
        end = digits(exponent);
        if end == exponent || end - exponent > LONGEST_EXPONENT {
            return None;
        }
    }
    (end - begin <= LONGEST_NUMBER).then_some(end)
}
