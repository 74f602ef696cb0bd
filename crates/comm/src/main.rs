//! The program of both endpoints.

use std::io::{self, Write};
use std::process::ExitCode;

use steelyard_comm::CommError;

fn main() -> ExitCode {
    let words: Result<Vec<String>, _> =
        std::env::args_os().skip(1).map(std::ffi::OsString::into_string).collect();
    let answer = match words {
        Ok(words) => steelyard_comm::execute(&words, &mut io::stdout()),
        Err(word) => Err(CommError::usage(format!("argument {} is not UTF-8 text", word.display()))),
    };
    match answer {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &CommError) -> ExitCode {
    if steelyard_comm::is_silent(error) {
        return ExitCode::from(error.exit_code());
    }
    let hint = error.hint().map(|hint| format!("\nhint: {hint}\n")).unwrap_or_default();
    // Nobody is left to tell when standard error is closed; the exit code still says it.
    let _ = io::stderr().write_all(format!("steelyard-comm: {error}\n{hint}").as_bytes());
    ExitCode::from(error.exit_code())
}
