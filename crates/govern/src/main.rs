//! The program that executes commands best-effort and governs them.

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    match steelyard_govern::execute(&words, &mut io::stdout()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Nobody is left to tell when standard error is closed; the exit code still says it.
            let _ = io::stderr().write_all(format!("error: {error}\n\nhint: {}\n", error.hint()).as_bytes());
            ExitCode::from(error.exit_code())
        }
    }
}
