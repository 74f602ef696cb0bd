//! `steelyard-launch`: the launcher as a program.

mod arguments;
mod command;

use std::io::Write;
use std::process::ExitCode;

use arguments::{Command, USAGE};
use steelyard_launch::guard::LAUNCHER_FAILED;
use steelyard_launch::{LaunchError, Tracepoints};

pub(crate) fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let code = match Command::parse(&words) {
        Ok(command) => execute(&command),
        Err(error) => {
            command::complain(&error, Some("`steelyard-launch --help` shows every command"));
            LAUNCHER_FAILED
        }
    };
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

fn execute(command: &Command) -> i32 {
    let result = match command {
        Command::Help => print(USAGE),
        Command::Version => print(concat!("steelyard-launch ", env!("CARGO_PKG_VERSION"), "\n")),
        Command::Once(options) => command::once::execute(*options),
        Command::Serve(options) => command::serve::execute(*options),
        Command::Agent(device) => command::agent::execute(device),
        Command::Probe => command::probe::execute(),
        Command::Tracepoints => tracepoints(),
        Command::Calibrate(options, wanted) => command::calibrate::execute(*options, wanted),
    };
    result.unwrap_or_else(|error| {
        match error.downcast_ref::<LaunchError>() {
            Some(own) => command::complain_of(own),
            None => command::complain(&format!("{error:#}"), None),
        }
        LAUNCHER_FAILED
    })
}

fn tracepoints() -> anyhow::Result<i32> {
    use anyhow::Context;
    let found = Tracepoints::find().context("the kernel's tracepoints cannot be looked up")?;
    print(&format!("{found}\n"))
}

fn print(text: &str) -> anyhow::Result<i32> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(0)
}
