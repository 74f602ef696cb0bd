//! The calibration program: its own `wall` and `cpu` run from its first to its last instruction.
//!
//! It has no C library and no start-up code: the kernel jumps to `_start`, whose first action is
//! to read the clocks by system calls, and nothing is left to do after they are read again but to
//! report them and to exit. What an observer sees beyond these times is the observer's error.
//!
//! After tens of milliseconds of work the kernel's code has left the caches, and a report takes five times as
//! long as otherwise. That would be this program's time, seen by every observer and by none of its own clocks.
//! So the clocks are read, and the report is begun, before the clocks are read for the last time.
//!
//! ```text
//! steelyard-truth --iterations N [--metrics-stdout]   a fixed amount of work
//! steelyard-truth --ms T [--metrics-stdout]           as much work as takes T ms of CPU time
//! steelyard-truth --calibrate T                       prints the N that takes T ms here
//! ```
//!
//! Profiles that unwind need the standard library for it; there it is linked and never called.
#![no_main]
#![cfg_attr(panic = "abort", no_std)]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "the program stands on bare system calls and on the stack the kernel made"
)]

use core::arch::{asm, global_asm};
use core::ptr::from_mut;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!(
    "steelyard-truth is written for x86_64 and aarch64: add `_start` and `system_call` for this one"
);

#[cfg(target_arch = "x86_64")]
global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "mov rdi, rsp",
    "and rsp, -16",
    "call {main}",
    "ud2",
    main = sym main,
);

#[cfg(target_arch = "aarch64")]
global_asm!(".globl _start", "_start:", "mov x29, #0", "mov x0, sp", "bl {main}", "brk #0", main = sym main);

#[cfg(target_arch = "x86_64")]
mod number {
    pub(super) const WRITE: usize = 1;
    pub(super) const EXIT_GROUP: usize = 231;
    pub(super) const CLOCK_GETTIME: usize = 228;
}

#[cfg(target_arch = "aarch64")]
mod number {
    pub(super) const WRITE: usize = 64;
    pub(super) const EXIT_GROUP: usize = 94;
    pub(super) const CLOCK_GETTIME: usize = 113;
}

const CLOCK_MONOTONIC: usize = 1;
const CLOCK_PROCESS_CPUTIME_ID: usize = 2;
const STANDARD_OUTPUT: usize = 1;
const STANDARD_ERROR: usize = 2;

const NS_PER_MS: u64 = 1_000_000;
/// Iterations between two looks at the clock, some 10 us.
const CHUNK: u64 = 8_192;
const USAGE: &[u8] =
    b"steelyard-truth: usage: steelyard-truth --iterations N | --ms T | --calibrate T  [--metrics-stdout]\n\
\nhint: N and T are whole numbers; T is at most 600000\n";

/// Nothing here panics; the language wants to know what would happen.
#[cfg(panic = "abort")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    exit(70)
}

/// What the program is asked to do.
enum Task {
    Iterations(u64),
    CpuTime(u64),
    Calibrate(u64),
}

/// # Safety
///
/// `stack` must be the stack pointer a Linux process starts with.
unsafe extern "C" fn main(stack: *const usize) -> ! {
    let wall_start_ns = clock_ns(CLOCK_MONOTONIC);
    let cpu_start_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    // SAFETY: the caller's promise.
    let words = unsafe { Words::of(stack) };
    let Some((task, on_stdout)) = read_arguments(&words) else {
        write(STANDARD_ERROR, USAGE);
        exit(2);
    };
    let Some(descriptor) = descriptor(&words, on_stdout) else {
        write(STANDARD_ERROR, b"steelyard-truth: STEELYARD_METRICS_FD is not the number of a descriptor\n");
        exit(2);
    };
    match task {
        Task::Iterations(count) => work(count),
        Task::CpuTime(ns) => while_time_is_left(cpu_start_ns, ns),
        Task::Calibrate(ns) => {
            let mut text = Text::new();
            text.add_number(iterations_for(ns));
            text.add(b"\n");
            exit(i32::from(!write(STANDARD_OUTPUT, text.bytes())));
        }
    }
    let has_begun = begin_report(descriptor);
    clock_ns(CLOCK_MONOTONIC);
    let cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID).wrapping_sub(cpu_start_ns);
    let wall_ns = clock_ns(CLOCK_MONOTONIC).wrapping_sub(wall_start_ns);
    exit(end_report(descriptor, has_begun, cpu_ns, wall_ns));
}

/// The work: one step of Marsaglia's xorshift after the other, which depend on each other.
fn work(iterations: u64) {
    let mut word = 88_172_645_463_325_252_u64;
    for _ in 0..iterations {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
    }
    // SAFETY: no instruction; it only makes the loop's result used.
    unsafe { asm!("/* {0} */", in(reg) word, options(nomem, nostack, preserves_flags)) };
}

fn while_time_is_left(cpu_start_ns: u64, ns: u64) {
    while clock_ns(CLOCK_PROCESS_CPUTIME_ID).wrapping_sub(cpu_start_ns) < ns {
        work(CHUNK);
    }
}

/// Iterations that take `ns` of CPU time; the fastest of eight trials of a tenth of that.
fn iterations_for(ns: u64) -> u64 {
    let trial_ns = (ns / 10).max(NS_PER_MS);
    let mut most = 1;
    for _ in 0..8 {
        let start_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        let mut iterations: u64 = 0;
        let elapsed_ns = loop {
            work(CHUNK);
            iterations = iterations.wrapping_add(CHUNK);
            let elapsed_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID).wrapping_sub(start_ns);
            if elapsed_ns >= trial_ns {
                break elapsed_ns;
            }
        };
        most = most.max(rule_of_three(iterations, ns, elapsed_ns));
    }
    most
}

/// `count * wanted / measured` without overflow: 128-bit division would need a run-time library.
fn rule_of_three(count: u64, wanted: u64, measured: u64) -> u64 {
    // Twenty binary places: at most 600 s at some 10^9 iterations per second, 63 bits in all.
    let scaled = (count << 20).checked_div(measured).unwrap_or(1);
    scaled.wrapping_mul(wanted) >> 20
}

/// The arguments and the environment the kernel left on the stack.
struct Words {
    arguments: *const *const core::ffi::c_char,
    environment: *const *const core::ffi::c_char,
}

impl Words {
    /// # Safety
    ///
    /// `stack` must be the stack pointer a Linux process starts with.
    unsafe fn of(stack: *const usize) -> Self {
        // SAFETY: at the stack pointer lies the count, then the argument pointers, a null, the
        // environment pointers, a null (System V ABI, process initialisation).
        let (count, arguments) = unsafe { (*stack, stack.add(1).cast::<*const core::ffi::c_char>()) };
        // SAFETY: as above; the environment begins one past the null.
        let environment = unsafe { arguments.add(count).add(1) };
        Self { arguments, environment }
    }

    fn arguments(&self) -> impl Iterator<Item = &[u8]> {
        strings(self.arguments).skip(1)
    }

    fn variable(&self, name: &[u8]) -> Option<&[u8]> {
        strings(self.environment).find_map(|entry| entry.strip_prefix(name)?.strip_prefix(b"="))
    }
}

/// The strings of a null-terminated list on the initial stack.
fn strings<'a>(mut list: *const *const core::ffi::c_char) -> impl Iterator<Item = &'a [u8]> {
    core::iter::from_fn(move || {
        // SAFETY: the list ends with a null, which is never passed; it lives as long as the process.
        let first = unsafe { *list };
        if first.is_null() {
            return None;
        }
        // SAFETY: not at the end yet.
        list = unsafe { list.add(1) };
        // SAFETY: each entry is a string with a final NUL and lives as long as the process.
        Some(unsafe { string(first) })
    })
}

/// # Safety
///
/// `start` must point to a NUL-terminated string that is never changed.
unsafe fn string<'a>(start: *const core::ffi::c_char) -> &'a [u8] {
    let mut length = 0;
    // `CStr::from_ptr` would call `strlen` of a C library that was never started.
    // SAFETY: the string ends at its NUL, which is not passed.
    while unsafe { *start.add(length) } != 0 {
        length += 1;
        // Keeps the compiler from turning the loop back into that call.
        // SAFETY: no instruction.
        unsafe { asm!("/* {0} */", in(reg) length, options(nostack, preserves_flags)) };
    }
    // SAFETY: these bytes were read just now.
    unsafe { core::slice::from_raw_parts(start.cast(), length) }
}

fn read_arguments(words: &Words) -> Option<(Task, bool)> {
    let mut arguments = words.arguments();
    let (mut task, mut on_stdout) = (None, false);
    while let Some(argument) = arguments.next() {
        let chosen = match argument {
            b"--metrics-stdout" => {
                on_stdout = true;
                continue;
            }
            b"--iterations" => Task::Iterations(read_number(arguments.next()?)?),
            b"--ms" => Task::CpuTime(read_ms(arguments.next()?)?),
            b"--calibrate" => Task::Calibrate(read_ms(arguments.next()?)?),
            _ => return None,
        };
        if task.replace(chosen).is_some() {
            return None;
        }
    }
    Some((task?, on_stdout))
}

fn read_ms(text: &[u8]) -> Option<u64> {
    read_number(text).filter(|&ms| ms <= 600_000).map(|ms| ms.wrapping_mul(NS_PER_MS))
}

fn read_number(text: &[u8]) -> Option<u64> {
    let mut number: Option<u64> = None;
    for &digit in text {
        if !digit.is_ascii_digit() {
            return None;
        }
        let value = u64::from(digit.wrapping_sub(b'0'));
        number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(value)?);
    }
    number
}

/// Where to report: `None` in the inner place is nowhere, in the outer one a malformed variable.
#[expect(clippy::option_option, reason = "both are different from a descriptor and from each other")]
fn descriptor(words: &Words, on_stdout: bool) -> Option<Option<usize>> {
    if on_stdout {
        return Some(Some(STANDARD_OUTPUT));
    }
    match words.variable(b"STEELYARD_METRICS_FD") {
        None | Some([]) => Some(None),
        Some(text) => Some(Some(usize::try_from(read_number(text)?).ok()?)),
    }
}

/// What stands before the name of a measurement.
fn prefix(descriptor: usize) -> &'static [u8] {
    if descriptor == STANDARD_OUTPUT { b"#steelyard " } else { b"" }
}

/// Writes the first words of the report. Answers whether they were written.
fn begin_report(descriptor: Option<usize>) -> bool {
    let Some(descriptor) = descriptor else { return true };
    let mut text = Text::new();
    text.add(prefix(descriptor));
    text.add(b"cpu ");
    write(descriptor, text.bytes())
}

/// Writes the rest of it; the code to exit with.
fn end_report(descriptor: Option<usize>, has_begun: bool, cpu_ns: u64, wall_ns: u64) -> i32 {
    let Some(descriptor) = descriptor else { return 0 };
    let end: &[u8] = b" ns 1 measure\n";
    let mut text = Text::new();
    text.add_number(cpu_ns);
    text.add(end);
    text.add(prefix(descriptor));
    text.add(b"wall ");
    text.add_number(wall_ns);
    text.add(end);
    if has_begun && write(descriptor, text.bytes()) {
        return 0;
    }
    write(STANDARD_ERROR, b"steelyard-truth: cannot write to the descriptor in STEELYARD_METRICS_FD\n");
    1
}

/// Text under construction, long enough for both lines.
struct Text {
    buffer: [u8; 160],
    length: usize,
}

impl Text {
    const fn new() -> Self {
        Self { buffer: [0; 160], length: 0 }
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if let Some(place) = self.buffer.get_mut(self.length) {
                *place = byte;
                self.length = self.length.wrapping_add(1);
            }
        }
    }

    fn add_number(&mut self, number: u64) {
        let (mut rest, mut digits, mut count) = (number, [0_u8; 20], 0_usize);
        for place in digits.iter_mut().rev() {
            *place = b'0'.wrapping_add(u8::try_from(rest % 10).unwrap_or(0));
            rest /= 10;
            count = count.wrapping_add(1);
            if rest == 0 {
                break;
            }
        }
        self.add(digits.get(digits.len().wrapping_sub(count)..).unwrap_or(&[]));
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or(&[])
    }
}

fn clock_ns(clock: usize) -> u64 {
    let mut time = [0_u64; 2];
    // SAFETY: the call writes two 64-bit words to `time`; both clocks always exist.
    unsafe { system_call(number::CLOCK_GETTIME, clock, from_mut(&mut time) as usize, 0) };
    time[0].wrapping_mul(1_000_000_000).wrapping_add(time[1])
}

/// Whether everything was written.
fn write(descriptor: usize, bytes: &[u8]) -> bool {
    // SAFETY: the call reads `bytes` only.
    let answer = unsafe { system_call(number::WRITE, descriptor, bytes.as_ptr() as usize, bytes.len()) };
    answer == bytes.len()
}

fn exit(code: i32) -> ! {
    let code = usize::try_from(code).unwrap_or(70);
    // SAFETY: ends the process.
    unsafe { system_call(number::EXIT_GROUP, code, 0, 0) };
    loop {
        core::hint::spin_loop();
    }
}

/// # Safety
///
/// The kernel does what the call says with the memory the arguments point to.
#[cfg(target_arch = "x86_64")]
unsafe fn system_call(number: usize, first: usize, second: usize, third: usize) -> usize {
    let answer;
    // SAFETY: the calling convention of Linux on x86_64; `rcx` and `r11` are lost.
    unsafe {
        asm!("syscall", inlateout("rax") number => answer, in("rdi") first, in("rsi") second,
            in("rdx") third, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    answer
}

/// # Safety
///
/// The kernel does what the call says with the memory the arguments point to.
#[cfg(target_arch = "aarch64")]
unsafe fn system_call(number: usize, first: usize, second: usize, third: usize) -> usize {
    let answer;
    // SAFETY: the calling convention of Linux on aarch64.
    unsafe {
        asm!("svc #0", in("x8") number, inlateout("x0") first => answer, in("x1") second,
            in("x2") third, options(nostack));
    }
    answer
}
