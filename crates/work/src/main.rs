//! The workload program.

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = match std::env::args_os().skip(1).map(std::ffi::OsString::into_string).collect()
    {
        Ok(words) => words,
        Err(word) => return fail(&steelyard_work::WorkError::not_text(&word), 2),
    };
    match steelyard_work::execute(&words, &mut io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, error.exit_code()),
    }
}

fn fail(error: &steelyard_work::WorkError, exit_code: u8) -> ExitCode {
    let hint = error.hint().map(|hint| format!("\nhint: {hint}\n")).unwrap_or_default();
    // Nobody is left to tell when standard error is closed; the exit code still says it.
    let _ = io::stderr().write_all(format!("steelyard-work: {error}\n{hint}").as_bytes());
    ExitCode::from(exit_code)
}
