//! The command line. Few words, so read by hand: the program is copied into containers and virtual
//! machines, and every library in it goes along.

use std::path::PathBuf;

use steelyard_launch::{LauncherOptions, NoTracepoints};
use steelyard_model::{Isolation, SandboxSpec};

pub(crate) const USAGE: &str = "\
usage: steelyard-launch COMMAND [OPTION]...

Executes programs and measures them.

commands:
  once              read one RunSpec (JSON) from standard input, print one RunOutcome per iteration
  serve             speak the line protocol on standard input and output until `quit`
  agent DEVICE      be the first process of a virtual machine and serve on a serial line
  probe             print which mechanisms work here (JSON)
  calibrate         print this launcher's own error on this host (JSON)
  tracepoints       print the kernel's numbers of exec, exit and signal, for launchers in containers

options:
  --worker N        tells parallel workers apart (once, serve)
  --tracepoints T   what `tracepoints` printed, where the launcher may not look it up (serve)
  --isolation NAME  `bare` or `sandbox` (calibrate; default sandbox)
  --runs N          number of runs (calibrate; default 60)
  --duration-ms N   length of the calibration program (calibrate; default 50)
  --help, --version

exit codes of `once`: 0 an outcome was written, whatever the program did;
  125 the launcher failed; 126 the program is not executable; 127 it was not found

example:
  echo '{\"schema\":\"steelyard/run-spec/1\",\"id\":\"r1\",\"command\":[\"/bin/true\"]}' | steelyard-launch once
";

const COMMANDS: &str = "`once`, `serve`, `agent`, `probe`, `calibrate`, `tracepoints`";

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    Once(LauncherOptions),
    Serve(LauncherOptions),
    Agent(PathBuf),
    Probe,
    Tracepoints,
    Calibrate(LauncherOptions, CalibrateOptions),
    Help,
    Version,
}

/// Options of `calibrate`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CalibrateOptions {
    pub(crate) isolation: Isolation,
    pub(crate) runs: u32,
    pub(crate) duration_ns: u64,
}

/// Words that are not a command line of this program, with what would be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ArgumentError(String);

impl Command {
    pub(crate) fn parse(words: &[String]) -> Result<Self, ArgumentError> {
        let (name, rest) =
            words.split_first().ok_or_else(|| ArgumentError(format!("no command; allowed: {COMMANDS}")))?;
        let mut options = Options::default();
        match name.as_str() {
            "--help" | "-h" | "help" => return Ok(Self::Help),
            "--version" | "-V" => return Ok(Self::Version),
            "agent" => return device(rest).map(Self::Agent),
            "once" => options.read(rest, &["--worker"])?,
            "serve" => options.read(rest, &["--worker", "--tracepoints"])?,
            "probe" | "tracepoints" => options.read(rest, &[])?,
            "calibrate" => options.read(rest, &["--worker", "--isolation", "--runs", "--duration-ms"])?,
            other => {
                return Err(ArgumentError(format!("unknown command `{other}`; allowed: {COMMANDS}")));
            }
        }
        if options.is_help {
            return Ok(Self::Help);
        }
        Ok(match name.as_str() {
            "once" => Self::Once(options.launcher),
            "serve" => Self::Serve(options.launcher),
            "probe" => Self::Probe,
            "tracepoints" => Self::Tracepoints,
            _ => Self::Calibrate(options.launcher, options.calibrate),
        })
    }
}

fn device(rest: &[String]) -> Result<PathBuf, ArgumentError> {
    match rest {
        [device] => Ok(device.into()),
        // The kernel hands its own unknown parameters to the first process: the last word is ours.
        [.., device] if device.starts_with('/') => Ok(device.into()),
        _ => Err(ArgumentError("`agent` needs a serial device, for example `/dev/ttyS0`".into())),
    }
}

struct Options {
    launcher: LauncherOptions,
    calibrate: CalibrateOptions,
    is_help: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            launcher: LauncherOptions::default(),
            calibrate: CalibrateOptions {
                isolation: Isolation::Sandbox(SandboxSpec::default()),
                runs: 60,
                duration_ns: 50_000_000,
            },
            is_help: false,
        }
    }
}

impl Options {
    fn read(&mut self, words: &[String], allowed: &[&str]) -> Result<(), ArgumentError> {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--help" || word == "-h" {
                self.is_help = true;
                continue;
            }
            if !allowed.contains(&word.as_str()) {
                let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
                return Err(ArgumentError(format!("unknown option `{word}`; allowed: {allowed}")));
            }
            let value = words.next().ok_or_else(|| ArgumentError(format!("`{word}` needs a value")))?;
            self.set(word, value)?;
        }
        Ok(())
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), ArgumentError> {
        match option {
            "--worker" => self.launcher.worker = number(option, value)?,
            "--tracepoints" => {
                let told = value.parse().map_err(|error: NoTracepoints| {
                    ArgumentError(format!("`{option}` is `{value}`: {error}"))
                })?;
                self.launcher.tracepoints = Some(told);
            }
            "--runs" => self.calibrate.runs = number(option, value)?.max(2),
            "--duration-ms" => {
                self.calibrate.duration_ns = u64::from(number(option, value)?.max(1)) * 1_000_000;
            }
            _ => self.calibrate.isolation = isolation(option, value)?,
        }
        Ok(())
    }
}

fn isolation(option: &str, value: &str) -> Result<Isolation, ArgumentError> {
    match value {
        "bare" => Ok(Isolation::Bare),
        "sandbox" => Ok(Isolation::Sandbox(SandboxSpec::default())),
        other => Err(ArgumentError(format!("`{option}` is `{other}`; allowed: `bare`, `sandbox`"))),
    }
}

fn number(option: &str, value: &str) -> Result<u32, ArgumentError> {
    value.parse().map_err(|_| ArgumentError(format!("`{option}` is `{value}`; allowed: a whole number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Command::parse(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn commands_and_their_options_are_read() {
        assert!(matches!(parse("once --worker 3"), Ok(Command::Once(options)) if options.worker == 3));
        assert!(matches!(parse("calibrate --isolation bare --runs 5"), Ok(Command::Calibrate(_, options))
            if options.isolation == Isolation::Bare && options.runs == 5));
        assert_eq!(parse("agent /dev/ttyS0"), Ok(Command::Agent("/dev/ttyS0".into())));
        let told = Some("365:369:199:-".parse().unwrap());
        assert!(matches!(parse("serve --tracepoints 365:369:199:-"), Ok(Command::Serve(options))
            if options.tracepoints == told));
        assert_eq!(parse("serve --help"), Ok(Command::Help));
    }

    #[test]
    fn mistakes_are_named_with_what_is_allowed() {
        assert!(parse("").unwrap_err().contains("no command"));
        assert!(parse("measure").unwrap_err().contains("unknown command `measure`"));
        assert!(parse("once --worker x").unwrap_err().contains("`--worker` is `x`"));
        assert!(parse("once --worker").unwrap_err().contains("needs a value"));
        assert!(parse("probe --runs 3").unwrap_err().contains("allowed: none"));
        assert!(parse("calibrate --isolation docker").unwrap_err().contains("`bare`, `sandbox`"));
        assert!(parse("serve --tracepoints 3").unwrap_err().contains("EXEC:EXIT:SIGNAL:OFFSET"));
        assert!(parse("agent").unwrap_err().contains("/dev/ttyS0"));
    }
}
