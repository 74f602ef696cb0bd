use std::io::Write;
use std::time::Duration;

use crate::calibrate::LARGEST;
use crate::report::Position;
use crate::{
    Kernel, Options, Report, Scale, Sections, StressKind, WorkError, calibrate, spin, stress, touch,
};

/// Text of `--help`.
pub const USAGE: &str = "\
Programs with a known answer and known behaviour, for Steelyard to measure.

Usage:
  steelyard-work kernel NAME --size N [--operations M] --seed S [--repeat R] [--warmup W] [--metrics-stdout]
  steelyard-work calibrate NAME --target-ms T [--seed S]
  steelyard-work stress cpu|memcpy [--seconds T] [--bytes N]
  steelyard-work touch --bytes N [--metrics-stdout]
  steelyard-work spin --ms T [--metrics-stdout]

Kernels:
  exp_float, exp_double   M times (1 + x/1024)^1024 over N random integers x in 0..31
  bsearch                 M lower-bound look-ups in N sorted numbers
  gray2bin                M Gray codes to binary, out of N
  insertion_sort, qsort   sorting of N numbers

A kernel prints the checksum of its result; the same seed and size give the same one in every
language. Times of its sections go to the descriptor in STEELYARD_METRICS_FD as lines
`name value unit iteration phase`, or to standard output with `--metrics-stdout`, each line behind
`#steelyard `.

Exit codes: 0 done, 1 the system refused, 2 wrong usage, 3 wrong result.

Example:
  steelyard-work kernel qsort --size 1048576 --seed 1 --repeat 3 --metrics-stdout
";

/// Most sections of one process; beyond it a typing mistake is likelier than a wish.
const MOST_SECTIONS: u64 = 1_000_000;
/// Longest time of a stressor without `--seconds` [s]: nobody wants one left behind overnight.
const DEFAULT_STRESS_S: u64 = 3600;
/// Ten days, in ms and in s.
const LONGEST_MS: u64 = 864_000_000;
const LONGEST_S: u64 = 864_000;

/// Executes one command line, given without the program's name.
///
/// # Errors
///
/// [`WorkError`] with its exit code.
pub fn execute(words: &[String], stdout: &mut dyn Write) -> Result<(), WorkError> {
    let (command, rest) = words.split_first().ok_or_else(|| WorkError::usage("no command is given"))?;
    match command.as_str() {
        "kernel" => execute_kernel(rest, stdout),
        "calibrate" => execute_calibrate(rest, stdout),
        "stress" => execute_stress(rest),
        "touch" => execute_touch(rest, stdout),
        "spin" => execute_spin(rest, stdout),
        "--help" | "-h" | "help" => Ok(stdout.write_all(USAGE.as_bytes())?),
        "--version" | "-V" => Ok(writeln!(stdout, "steelyard-work {}", env!("CARGO_PKG_VERSION"))?),
        _ => Err(WorkError::usage(format!(
            "`{command}` is not a command; known: `kernel`, `calibrate`, `stress`, `touch`, `spin`"
        ))),
    }
}

/// The first word, which must be there and be no option.
fn name<'a>(words: &'a [String], what: &str) -> Result<(&'a str, &'a [String]), WorkError> {
    match words.split_first() {
        Some((first, rest)) if !first.starts_with('-') => Ok((first, rest)),
        _ => Err(WorkError::usage(format!("the name of a {what} is missing"))),
    }
}

fn open_report(options: &Options<'_>) -> Result<Report, WorkError> {
    let variable = std::env::var_os("STEELYARD_METRICS_FD");
    let text = variable.as_deref().map(std::ffi::OsStr::to_string_lossy);
    Report::open(text.as_deref(), options.has("metrics-stdout"))
}

fn execute_kernel(words: &[String], stdout: &mut dyn Write) -> Result<(), WorkError> {
    let (name, rest) = name(words, "kernel")?;
    let kernel = Kernel::from_name(name)?;
    let options =
        Options::read(rest, &["size", "operations", "seed", "repeat", "warmup"], &["metrics-stdout"])?;
    let size = options.required("size", &(1..=LARGEST))?;
    let operations = options.number("operations", &(1..=LARGEST))?;
    if operations.is_some() && !kernel.counts_operations() {
        return Err(WorkError::usage(format!("`{name}` takes no `--operations`: its size alone decides")));
    }
    let sections = Sections {
        kernel,
        scale: Scale { size, operations },
        seed: options.required("seed", &(0..=u64::MAX))?,
        warm_up: section_count(&options, "warmup", 0)?,
        repeat: section_count(&options, "repeat", 1)?,
    };
    let mut report = open_report(&options)?;
    let checksum = sections.execute(&mut report)?;
    writeln!(stdout, "{checksum}")?;
    report.write(stdout)?;
    Ok(stdout.flush()?)
}

/// `fewest` is also the default.
fn section_count(options: &Options<'_>, name: &str, fewest: u64) -> Result<u32, WorkError> {
    let count = options.number(name, &(fewest..=MOST_SECTIONS))?.unwrap_or(fewest);
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

fn execute_calibrate(words: &[String], stdout: &mut dyn Write) -> Result<(), WorkError> {
    let (name, rest) = name(words, "kernel")?;
    let kernel = Kernel::from_name(name)?;
    let options = Options::read(rest, &["target-ms", "seed"], &[])?;
    let target_ms = options.required("target-ms", &(1..=60_000))?;
    let seed = options.number("seed", &(0..=u64::MAX))?.unwrap_or(1);
    let found = calibrate(kernel, target_ms * 1_000_000, seed);
    writeln!(stdout, "size {}", found.scale.size)?;
    if let Some(operations) = found.scale.operations {
        writeln!(stdout, "operations {operations}")?;
    }
    writeln!(stdout, "iteration_ns {}", found.iteration_ns)?;
    Ok(())
}

fn execute_stress(words: &[String]) -> Result<(), WorkError> {
    let (name, rest) = name(words, "stressor")?;
    let kind = StressKind::from_name(name)?;
    let options = Options::read(rest, &["seconds", "bytes"], &[])?;
    let seconds = options.number("seconds", &(1..=LONGEST_S))?.unwrap_or(DEFAULT_STRESS_S);
    let bytes = options.number("bytes", &(1..=1 << 40))?;
    if bytes.is_some() && kind != StressKind::Memcpy {
        return Err(WorkError::usage(format!("`{name}` takes no `--bytes`: it uses no memory")));
    }
    stress(kind, Duration::from_secs(seconds), bytes)
}

fn execute_touch(words: &[String], stdout: &mut dyn Write) -> Result<(), WorkError> {
    let options = Options::read(words, &["bytes"], &["metrics-stdout"])?;
    let bytes = options.required("bytes", &(0..=u64::MAX))?;
    let mut report = open_report(&options)?;
    let touched = touch(bytes)?;
    report.add("touched", touched, "bytes", Position::ONLY);
    writeln!(stdout, "{touched}")?;
    report.write(stdout)
}

fn execute_spin(words: &[String], stdout: &mut dyn Write) -> Result<(), WorkError> {
    let options = Options::read(words, &["ms"], &["metrics-stdout"])?;
    let ms = options.required("ms", &(0..=LONGEST_MS))?;
    let mut report = open_report(&options)?;
    report.add_times(spin(ms * 1_000_000), Position::ONLY);
    report.write(stdout)
}

#[cfg(test)]
mod tests;
