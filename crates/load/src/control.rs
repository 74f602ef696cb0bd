//! Orders of a conductor: lines on standard input, answered on standard output.
//!
//! A part of a trial does nothing before the line `begin`: until then it has one thread, and the conductor
//! sets its class, nice value, CPUs and group, which all later threads inherit.

use std::io::{self, BufRead, Write};

use crate::LoadError;

/// Waits for a line that begins with `word`, and gives the rest of it.
pub(crate) fn wait_for(word: &str) -> Result<String, LoadError> {
    let mut line = String::new();
    let count = io::stdin().lock().read_line(&mut line);
    crate::signal::check()?;
    match (count, line.trim_end().strip_prefix(word)) {
        (Ok(1..), Some(rest)) => Ok(rest.trim_start().to_owned()),
        _ => Err(LoadError::Failed(format!("standard input ended without `{word}`"))),
    }
}

/// Says a line.
pub(crate) fn say(line: &str) -> Result<(), LoadError> {
    let mut stdout = io::stdout().lock();
    let told = stdout.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdout.flush());
    told.map_err(|error| LoadError::system("writing to standard output", error))
}
