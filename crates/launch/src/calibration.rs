//! A program that knows its own truth, to measure the launcher's error with.
//!
//! It reads the clocks as its first and last actions and has no run-time library: what a C library
//! does before `main` (0.4 ms where `cpuid` traps) would count as the launcher's error.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use nix::sys::memfd::{MFdFlags, memfd_create};
use steelyard_model::{Isolation, Metric, OutputStream, RunSpec, RunStatus, SandboxSpec};

use crate::control::NoControl;
use crate::error::{During, LaunchError};
use crate::keeper::{Launcher, Report};

/// Rounds that tell how fast this CPU is.
const TRIAL_ROUNDS: u64 = 10_000_000;
/// Where the program is loaded.
const LOAD_ADDRESS: u64 = 0x0040_0000;
const HEADER_BYTES: usize = 64 + 56;
/// What the program says: eight words of 16 digits.
const TOLD_BYTES: usize = 8 * 16;

/// One calibration run: what was seen from outside against what the program knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalibrationRun {
    /// Launcher's wall time minus the program's [ns].
    pub wall_error_ns: i64,
    /// Launcher's CPU time minus the program's [ns].
    pub cpu_error_ns: i64,
    /// Everything the run cost beside the program [ns].
    pub overhead_ns: i64,
}

/// Executes a CPU-bound program of about `target_ns` some times and compares the clocks.
///
/// # Errors
///
/// [`LaunchError`] when the program cannot be written, executed or understood.
pub fn calibrate(
    launcher: &mut Launcher,
    isolation: &Isolation,
    target_ns: u64,
    runs: u32,
) -> Result<Vec<CalibrationRun>, LaunchError> {
    let path = std::env::temp_dir().join(format!("steelyard-busy-{}", std::process::id()));
    let result = measure(launcher, isolation, &path, (target_ns, runs));
    let _ = fs::remove_file(&path);
    result
}

fn measure(
    launcher: &mut Launcher,
    isolation: &Isolation,
    path: &Path,
    (target_ns, runs): (u64, u32),
) -> Result<Vec<CalibrationRun>, LaunchError> {
    let trial = execute(launcher, isolation, path, (TRIAL_ROUNDS, 5))?;
    let fastest = trial.iter().map(|(_, own)| own.wall_ns).min().unwrap_or(1).max(1);
    let rounds = TRIAL_ROUNDS * target_ns / fastest;
    let measured = execute(launcher, isolation, path, (rounds, runs))?;
    Ok(measured.iter().map(|(report, own)| compare(report, own)).collect())
}

fn compare(report: &Report, own: &Own) -> CalibrationRun {
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let outside = |metric| signed(report.outcome.value(metric).unwrap_or(0));
    CalibrationRun {
        wall_error_ns: outside(Metric::WallNs) - signed(own.wall_ns),
        cpu_error_ns: outside(Metric::CpuNs) - signed(own.cpu_ns),
        overhead_ns: outside(Metric::TotalNs) - signed(own.wall_ns),
    }
}

fn execute(
    launcher: &mut Launcher,
    isolation: &Isolation,
    path: &Path,
    (rounds, runs): (u64, u32),
) -> Result<Vec<(Report, Own)>, LaunchError> {
    write_program(path, rounds)?;
    // As programs report to a study: into memory. A pipe would wake its reader in the time measured.
    let told =
        File::from(memfd_create(c"steelyard-busy", MFdFlags::MFD_CLOEXEC).during("make a memory file")?);
    let mut spec = RunSpec::of("calibration", [path.to_string_lossy()]);
    spec.iterations = runs;
    spec.standard_output = OutputStream::File { path: format!("/proc/self/fd/{}", told.as_raw_fd()).into() };
    spec.placement.maximal_weight = true;
    spec.isolation = isolation.clone();
    if let Isolation::Sandbox(SandboxSpec { read_only, .. }) = &mut spec.isolation {
        read_only.push(path.to_owned());
    }
    launcher.prepare(&spec)?;
    let mut reports = Vec::new();
    launcher.execute(&mut NoControl, &mut |report| reports.push(report))?;
    let words = |index: u64| {
        let mut text = [0; TOLD_BYTES];
        // One that said nothing is told apart by its status.
        let _ = told.read_at(&mut text, index * TOLD_BYTES as u64);
        text
    };
    let mut pairs = Vec::with_capacity(reports.len());
    for (index, report) in (0..).zip(reports) {
        let own = Own::of(&report, &words(index))?;
        pairs.push((report, own));
    }
    Ok(pairs)
}

/// What the program knows of itself.
#[derive(Debug, Clone, Copy)]
struct Own {
    wall_ns: u64,
    cpu_ns: u64,
}

impl Own {
    fn of(report: &Report, told: &[u8]) -> Result<Self, LaunchError> {
        let outcome = &report.outcome;
        let text = std::str::from_utf8(told).unwrap_or("");
        let word = |index: usize| u64::from_str_radix(text.get(index * 16..(index + 1) * 16)?, 16).ok();
        let words: Option<Vec<u64>> = (0..8).map(word).collect();
        match words {
            Some(words) if outcome.status == RunStatus::Completed => {
                // Each clock is two words: wall and CPU before, CPU and wall after.
                let clock = |index: usize| words[2 * index] * 1_000_000_000 + words[2 * index + 1];
                Ok(Self {
                    wall_ns: clock(3).saturating_sub(clock(0)),
                    cpu_ns: clock(2).saturating_sub(clock(1)),
                })
            }
            _ => Err(LaunchError::Capability {
                what: "calibration".into(),
                reason: format!("the program ended as {:?}: {:?}", outcome.status, outcome.message),
                hint: None,
            }),
        }
    }
}

fn write_program(path: &Path, rounds: u64) -> Result<(), LaunchError> {
    let program = program(rounds).during("make the calibration program")?;
    fs::write(path, program).during("write the calibration program")?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .during("make the calibration program executable")
}

/// An executable of one segment: its header, the code, and the number of rounds behind it.
fn program(rounds: u64) -> io::Result<Vec<u8>> {
    let code = code()
        .ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "it exists for x86_64 and aarch64 only"))?;
    let size = (HEADER_BYTES + code.len() + 8) as u64;
    let mut file = Vec::with_capacity(HEADER_BYTES + code.len() + 8);
    // SOURCE: ELF-64 object file format: identification, type EXEC, machine 62 (x86_64) or 183 (aarch64).
    file.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0");
    file.extend_from_slice(if cfg!(target_arch = "aarch64") { b"\xb7\0" } else { b"\x3e\0" });
    file.extend_from_slice(b"\x01\0\0\0");
    for word in [LOAD_ADDRESS + HEADER_BYTES as u64, 64, 0] {
        file.extend_from_slice(&u64::to_le_bytes(word));
    }
    file.extend_from_slice(b"\0\0\0\0\x40\0\x38\0\x01\0\0\0\0\0\0\0");
    // One program header: LOAD, read and execute.
    file.extend_from_slice(b"\x01\0\0\0\x05\0\0\0");
    for word in [0, LOAD_ADDRESS, LOAD_ADDRESS, size, size, 4096] {
        file.extend_from_slice(&u64::to_le_bytes(word));
    }
    file.extend_from_slice(code);
    file.extend_from_slice(&rounds.to_le_bytes());
    Ok(file)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn code() -> Option<&'static [u8]> {
    None
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[expect(clippy::unnecessary_wraps, reason = "other architectures have none")]
fn code() -> Option<&'static [u8]> {
    unsafe extern "C" {
        static steelyard_busy_begin: u8;
        static steelyard_busy_end: u8;
    }
    let (begin, end) = (&raw const steelyard_busy_begin, &raw const steelyard_busy_end);
    // SAFETY: both labels bound the read-only bytes assembled below.
    Some(unsafe { std::slice::from_raw_parts(begin, end as usize - begin as usize) })
}

// Reads CLOCK_MONOTONIC and CLOCK_PROCESS_CPUTIME_ID, shifts a register for as many rounds as the
// word behind the code says, reads both again, prints the eight words in hexadecimal, ends.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .rodata.steelyard_busy,\"a\"",
    ".globl steelyard_busy_begin",
    ".globl steelyard_busy_end",
    "steelyard_busy_begin:",
    "sub rsp, 256",
    "mov eax, 228",
    "mov edi, 1",
    "mov rsi, rsp",
    "syscall",
    "mov eax, 228",
    "mov edi, 2",
    "lea rsi, [rsp + 16]",
    "syscall",
    "mov rcx, [rip + steelyard_busy_end]",
    "movabs rax, 88172645463325252",
    "2:",
    "mov rdx, rax",
    "shl rdx, 13",
    "xor rax, rdx",
    "mov rdx, rax",
    "shr rdx, 7",
    "xor rax, rdx",
    "mov rdx, rax",
    "shl rdx, 17",
    "xor rax, rdx",
    "dec rcx",
    "jnz 2b",
    "mov eax, 228",
    "mov edi, 2",
    "lea rsi, [rsp + 32]",
    "syscall",
    "mov eax, 228",
    "mov edi, 1",
    "lea rsi, [rsp + 48]",
    "syscall",
    "xor r8d, r8d",
    "3:",
    "mov rax, [rsp + r8 * 8]",
    "mov r9, r8",
    "shl r9, 4",
    "lea rdi, [rsp + r9 + 64]",
    "mov ecx, 16",
    "4:",
    "rol rax, 4",
    "mov edx, eax",
    "and edx, 15",
    "add edx, 48",
    "cmp edx, 58",
    "jb 5f",
    "add edx, 39",
    "5:",
    "mov [rdi], dl",
    "inc rdi",
    "dec ecx",
    "jnz 4b",
    "inc r8",
    "cmp r8, 8",
    "jb 3b",
    "mov eax, 1",
    "mov edi, 1",
    "lea rsi, [rsp + 64]",
    "mov edx, 128",
    "syscall",
    "mov eax, 231",
    "xor edi, edi",
    "syscall",
    "steelyard_busy_end:",
    ".popsection",
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".pushsection .rodata.steelyard_busy,\"a\"",
    ".globl steelyard_busy_begin",
    ".globl steelyard_busy_end",
    ".balign 4",
    "steelyard_busy_begin:",
    "sub sp, sp, #256",
    "mov x8, #113",
    "mov x0, #1",
    "mov x1, sp",
    "svc #0",
    "mov x0, #2",
    "add x1, sp, #16",
    "svc #0",
    "ldr x9, 9f",
    "movz x10, #31300",
    "movk x10, #52159, lsl #16",
    "movk x10, #16525, lsl #32",
    "movk x10, #313, lsl #48",
    "2:",
    "eor x10, x10, x10, lsl #13",
    "eor x10, x10, x10, lsr #7",
    "eor x10, x10, x10, lsl #17",
    "subs x9, x9, #1",
    "b.ne 2b",
    "mov x0, #2",
    "add x1, sp, #32",
    "svc #0",
    "mov x0, #1",
    "add x1, sp, #48",
    "svc #0",
    "mov x11, #0",
    "3:",
    "ldr x12, [sp, x11, lsl #3]",
    "add x13, sp, #64",
    "add x13, x13, x11, lsl #4",
    "mov x14, #16",
    "4:",
    "ror x12, x12, #60",
    "and x15, x12, #15",
    "add x15, x15, #48",
    "cmp x15, #58",
    "b.lo 5f",
    "add x15, x15, #39",
    "5:",
    "strb w15, [x13], #1",
    "subs x14, x14, #1",
    "b.ne 4b",
    "add x11, x11, #1",
    "cmp x11, #8",
    "b.lo 3b",
    "mov x8, #64",
    "mov x0, #1",
    "add x1, sp, #64",
    "mov x2, #128",
    "svc #0",
    "mov x8, #94",
    "mov x0, #0",
    "svc #0",
    "9:",
    "steelyard_busy_end:",
    ".popsection",
);

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;

    #[test]
    fn the_program_runs_and_prints_its_clocks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("busy");
        write_program(&path, 1_000_000).unwrap();
        let output = std::process::Command::new(&path).output().unwrap();
        assert!(output.status.success());
        assert_eq!(output.stdout.len(), 128);
        assert!(output.stdout.iter().all(u8::is_ascii_hexdigit));
    }
}
