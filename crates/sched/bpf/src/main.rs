//! The program of the best-effort class.

use std::io::{self, Write};
use std::process::ExitCode;

use steelyard_scheduler::{PREFIX, SchedulerError};

fn main() -> ExitCode {
    let words: Result<Vec<String>, _> =
        std::env::args_os().skip(1).map(std::ffi::OsString::into_string).collect();
    let answer = match words {
        Ok(words) => steelyard_scheduler::execute(&words, &mut io::stdout()),
        Err(word) => {
            Err(SchedulerError::usage(format!("argument {} is not UTF-8 text", word.to_string_lossy())))
        }
    };
    match answer {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let hint = error.hint().map(|hint| format!("\nhint: {hint}\n")).unwrap_or_default();
            // Nobody is left to tell when standard error is closed; the exit code still says it.
            let _ = io::stderr().write_all(format!("{PREFIX}{error}\n{hint}").as_bytes());
            ExitCode::from(error.exit_code())
        }
    }
}
