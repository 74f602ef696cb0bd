//! The packet program.

#![cfg_attr(loom, allow(unused_imports, reason = "a model has no program"))]

use std::io::{self, Write};
use std::process::ExitCode;

#[cfg(not(loom))]
use steelyard_sync::SyncError;

#[cfg(loom)]
fn main() {}

#[cfg(not(loom))]
fn main() -> ExitCode {
    let words: Vec<String> = match std::env::args_os().skip(1).map(std::ffi::OsString::into_string).collect()
    {
        Ok(words) => words,
        Err(word) => return fail(&SyncError::not_text(&word)),
    };
    match steelyard_sync::execute(&words, &mut io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

#[cfg(not(loom))]
fn fail(error: &SyncError) -> ExitCode {
    let hint = error.hint().map(|hint| format!("\nhint: {hint}\n")).unwrap_or_default();
    // Nobody is left to tell when standard error is closed; the exit code still says it.
    let _ = io::stderr().write_all(format!("steelyard-packets: {error}\n{hint}").as_bytes());
    ExitCode::from(error.exit_code())
}
