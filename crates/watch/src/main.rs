//! The program that watches threads and the host while another program is executed.

use std::io::{self, Write};
use std::process::ExitCode;

use steelyard_watch::WatchError;

fn main() -> ExitCode {
    let words: Result<Vec<String>, _> =
        std::env::args_os().skip(1).map(std::ffi::OsString::into_string).collect();
    let answer = match words {
        Ok(words) => steelyard_watch::execute(&words, &mut io::stdout()),
        Err(word) => Err(WatchError::Usage(format!("argument {} is not UTF-8 text", word.display()))),
    };
    match answer {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &WatchError) -> ExitCode {
    let hint = error.hint().map(|hint| format!("\nhint: {hint}\n")).unwrap_or_default();
    // Nobody is left to tell when standard error is closed; the exit code still says it.
    let _ = io::stderr().write_all(format!("steelyard-watch: {error}\n{hint}").as_bytes());
    ExitCode::from(error.exit_code())
}
