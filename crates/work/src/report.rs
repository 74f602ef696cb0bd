use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;

use crate::{Times, WorkError};

/// What the program says of itself: lines `name value unit iteration phase`.
///
/// They are collected and written at the end by a single call, so that no timed section contains
/// a system call of ours.
#[derive(Debug)]
pub struct Report {
    target: Target,
    lines: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Nowhere,
    StandardOutput,
    Descriptor(i32),
}

/// Marks a line of the report on standard output.
const PREFIX: &str = "#steelyard ";

impl Report {
    /// Chooses where to write: standard output if `on_stdout` or if the variable names descriptor
    /// 1, the descriptor named by the variable, or nowhere.
    ///
    /// # Errors
    ///
    /// [`WorkError::Usage`] if `variable`, the value of `STEELYARD_METRICS_FD`, is not a
    /// descriptor's number.
    pub fn open(variable: Option<&str>, on_stdout: bool) -> Result<Self, WorkError> {
        let target = match variable {
            _ if on_stdout => Target::StandardOutput,
            None | Some("") => Target::Nowhere,
            Some("1") => Target::StandardOutput,
            Some(text) => match text.parse::<i32>() {
                Ok(descriptor) if descriptor >= 0 => Target::Descriptor(descriptor),
                _ => {
                    return Err(WorkError::usage(format!(
                        "STEELYARD_METRICS_FD is `{text}`; allowed: the number of an open descriptor"
                    )));
                }
            },
        };
        Ok(Self { target, lines: String::new() })
    }

    /// Adds one line.
    pub fn add(&mut self, name: &str, value: u64, unit: &str, position: Position) {
        let prefix = if self.target == Target::StandardOutput { PREFIX } else { "" };
        let Position { iteration, phase } = position;
        // Writing to a String cannot fail.
        let _ = writeln!(self.lines, "{prefix}{name} {value} {unit} {iteration} {phase}");
    }

    /// Adds the lines `cpu` and `wall` of a timed section.
    pub fn add_times(&mut self, times: Times, position: Position) {
        self.add("cpu", times.cpu_ns, "ns", position);
        self.add("wall", times.wall_ns, "ns", position);
    }

    /// Writes everything.
    ///
    /// # Errors
    ///
    /// [`WorkError::Metrics`] or [`WorkError::Output`] if the target does not take it.
    pub fn write(self, stdout: &mut dyn Write) -> Result<(), WorkError> {
        match self.target {
            Target::Nowhere => Ok(()),
            Target::StandardOutput => Ok(stdout.write_all(self.lines.as_bytes())?),
            Target::Descriptor(descriptor) => write_to(descriptor, self.lines.as_bytes())
                .map_err(|source| WorkError::Metrics { descriptor, source }),
        }
    }
}

/// Where a measurement belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Timed section of this process, from 1, warm-up included.
    pub iteration: u32,
    /// `warmup` or `measure`.
    pub phase: &'static str,
}

impl Position {
    /// The only section of a program that has one.
    pub const ONLY: Self = Self { iteration: 1, phase: "measure" };
}

fn write_to(descriptor: i32, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the number was given to this process as its own open descriptor; nothing else in it
    // uses that descriptor, and ManuallyDrop leaves it open. A wrong number fails with EBADF.
    let mut file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(variable: Option<&str>, on_stdout: bool) -> String {
        let mut report = Report::open(variable, on_stdout).unwrap();
        report.add_times(Times { cpu_ns: 12, wall_ns: 34 }, Position::ONLY);
        let mut stdout = Vec::new();
        report.write(&mut stdout).unwrap();
        String::from_utf8(stdout).unwrap()
    }

    #[test]
    fn lines_on_standard_output_carry_the_prefix() {
        let expected = "#steelyard cpu 12 ns 1 measure\n#steelyard wall 34 ns 1 measure\n";
        assert_eq!(written(None, true), expected);
        assert_eq!(written(Some("1"), false), expected);
        assert_eq!(written(Some("9"), true), expected);
    }

    #[test]
    fn without_a_descriptor_nothing_is_written() {
        assert_eq!(written(None, false), "");
        assert_eq!(written(Some(""), false), "");
    }

    #[test]
    fn a_descriptor_gets_plain_lines() {
        let (mut reader, writer) = io::pipe().unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&writer).to_string();
        assert_eq!(written(Some(&number), false), "");
        drop(writer);
        let mut text = String::new();
        io::Read::read_to_string(&mut reader, &mut text).unwrap();
        assert_eq!(text, "cpu 12 ns 1 measure\nwall 34 ns 1 measure\n");
    }

    #[test]
    fn a_closed_descriptor_is_named() {
        let mut report = Report::open(Some("1000000"), false).unwrap();
        report.add("cpu", 1, "ns", Position::ONLY);
        let error = report.write(&mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("descriptor 1000000"), "{error}");
        assert_eq!(error.exit_code(), 1);
    }

    #[test]
    fn a_word_instead_of_a_number_is_a_usage_error() {
        assert_eq!(Report::open(Some("three"), false).unwrap_err().exit_code(), 2);
        assert_eq!(Report::open(Some("-3"), false).unwrap_err().exit_code(), 2);
    }
}
