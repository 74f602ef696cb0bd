//! Small files of the kernel and of the state folder.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::GovernError;

/// The content without surrounding white space, or nothing for whatever reason.
pub(crate) fn look(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Writes a value into a file of the kernel, in one call.
pub(crate) fn put(path: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// Replaces a file of ours so that a reader sees the old content or the new, and the new one outlives
/// a kill.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), GovernError> {
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let attempt = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    attempt().map_err(|source| GovernError::writing(path, source))
}

/// The value of `key` in lines `key value`.
pub(crate) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.trim().parse().ok())?
    })
}
