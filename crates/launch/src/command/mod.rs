//! The sub-commands of the program.

pub(crate) mod agent;
pub(crate) mod calibrate;
pub(crate) mod once;
pub(crate) mod probe;
pub(crate) mod serve;

use std::fmt::Display;
use std::io::Write;

use steelyard_launch::LaunchError;

/// Writes an error for people: what happened, and what to do next.
pub(crate) fn complain(error: &dyn Display, hint: Option<&str>) {
    let mut text = format!("error: {error}\n");
    if let Some(hint) = hint {
        text.extend(["\nhint: ", hint, "\n"]);
    }
    // Nothing can be done about a closed standard error.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

pub(crate) fn complain_of(error: &LaunchError) {
    complain(error, error.hint().as_deref());
}
