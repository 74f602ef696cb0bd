//! JSON lines read by column: the members that are wanted, as kinds and texts.
//!
//! What is accepted is JSON that every reader takes for the same. Of anything else (two members of one name,
//! half a character, `NaN`, numbers and objects of unusual size) nothing is given: a reader that looks at one
//! line after the other says what it is.

mod cursor;
mod wanted;

pub use cursor::Kind;
pub use wanted::{Column, Wanted};

/// Reads lines, each of which is an object or blank, or gives nothing.
///
/// The content is whole lines in UTF-8, of less than 2 GiB.
#[must_use]
pub fn read_lines(content: &[u8], wanted: &Wanted) -> Option<Vec<Column>> {
    let text = std::str::from_utf8(content).ok()?;
    // Python ends a line at these too.
    let is_cut = |text: &str| text.contains(['\u{85}', '\u{2028}', '\u{2029}']);
    if i32::try_from(content.len()).is_err() || (!text.is_ascii() && is_cut(text)) {
        return None;
    }
    let new = || Column { kinds: Vec::new(), ends: vec![0], text: Vec::new() };
    let mut columns: Vec<Column> = std::iter::repeat_with(new).take(wanted.columns).collect();
    let mut cursor = cursor::Cursor::new(wanted);
    for line in content.split(|sign| *sign == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.iter().all(|sign| matches!(sign, b' ' | b'\t')) {
            continue;
        }
        for (found, column) in cursor.read(line)?.iter().zip(&mut columns) {
            found.append(line, column)?;
        }
    }
    Some(columns)
}

#[cfg(test)]
mod tests;
