//! Programs to execute: this executable again, by its first argument.

use std::fs;
use std::hint::black_box;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::exit;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, raise};
use nix::sys::time::TimeValLike as _;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{ForkResult, fork, setsid};

const MARK: &str = "steelyard-test-program";

/// The command line of a test program.
pub(crate) fn command(words: &[&str]) -> Vec<String> {
    let own = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    [own, MARK.to_owned()].into_iter().chain(words.iter().map(|word| (*word).to_owned())).collect()
}

pub(crate) fn become_program_if_asked() {
    let words: Vec<String> = std::env::args().collect();
    if words.get(1).map(String::as_str) != Some(MARK) {
        return;
    }
    let number = |index: usize| words.get(index).and_then(|word| word.parse().ok()).unwrap_or(0_u64);
    match words.get(2).map_or("", String::as_str) {
        "exit" => exit(i32::try_from(number(3)).unwrap()),
        "burn" => burn(number(3)),
        "sleep" => sleep(Duration::from_millis(number(3))),
        "outlive" => outlive(number(3)),
        "signal" => raise(Signal::try_from(i32::try_from(number(3)).unwrap()).unwrap()).unwrap(),
        "allocate" => allocate(number(3)),
        "fill-file" => fill_file(&words[3], number(4)),
        "map-file" => map_file(&words[3]),
        "fork" => fork_many(number(3)),
        "print" => print(number(3)),
        "print-forever" => print(u64::MAX),
        "daemon" => daemon(),
        "tree" => tree(number(3)),
        "fork-often" => fork_often(number(3)),
        "environment" => environment(),
        "descriptors" => descriptors(),
        "status" => {
            print!("{}", fs::read_to_string("/proc/self/status").unwrap());
        }
        "address" => println!("{:p}", &raw const words),
        "say" => say(&words[3..]),
        "cat" => drop(std::io::copy(&mut std::io::stdin(), &mut std::io::stdout()).unwrap()),
        other => panic!("no test program `{other}`"),
    }
    exit(0)
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap();
    u64::try_from(time.tv_sec()).unwrap() * 1_000_000_000 + u64::try_from(time.tv_nsec()).unwrap()
}

/// Uses CPU time and reports both clocks where a descriptor is offered.
fn burn(duration_ms: u64) {
    let (begin, cpu_begin) = (Instant::now(), cpu_ns());
    let mut state = 88_172_645_463_325_252_u64;
    while cpu_ns() - cpu_begin < duration_ms * 1_000_000 {
        for _ in 0..10_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        black_box(state);
    }
    let (wall, cpu) = (begin.elapsed().as_nanos(), cpu_ns() - cpu_begin);
    if let Some(descriptor) = metrics_descriptor() {
        // SAFETY: the launcher opened it for this program.
        let mut file = unsafe { fs::File::from_raw_fd(descriptor) };
        write!(file, "wall {wall} ns\ncpu {cpu} ns\n").unwrap();
    }
}

fn metrics_descriptor() -> Option<i32> {
    std::env::var("STEELYARD_METRICS_FD").ok()?.parse().ok()
}

fn say(lines: &[String]) {
    // SAFETY: the launcher opened it for this program.
    let mut file = unsafe { fs::File::from_raw_fd(metrics_descriptor().unwrap()) };
    for line in lines {
        writeln!(file, "{line}").unwrap();
    }
}

fn allocate(bytes: u64) {
    let mut memory = vec![0_u8; usize::try_from(bytes).unwrap()];
    for byte in memory.iter_mut().step_by(4096) {
        *byte = 1;
    }
    black_box(&memory);
}

fn fill_file(path: &str, bytes: u64) {
    let mut file = fs::File::create(path).unwrap();
    let chunk = [7_u8; 4096];
    for _ in 0..bytes / 4096 {
        file.write_all(&chunk).unwrap();
    }
}

/// Touches every page of a file as a program does with its own.
fn map_file(path: &str) {
    let file = fs::File::open(path).unwrap();
    let length = usize::try_from(file.metadata().unwrap().len()).unwrap();
    let (read, private, anywhere) = (libc::PROT_READ, libc::MAP_PRIVATE, std::ptr::null_mut());
    // SAFETY: a new mapping of a file that nobody cuts.
    let start = unsafe { libc::mmap(anywhere, length, read, private, file.as_raw_fd(), 0) };
    assert_ne!(start, libc::MAP_FAILED);
    // SAFETY: the mapping is that long.
    let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) };
    for byte in bytes.iter().step_by(4096) {
        black_box(*byte);
    }
}

/// Goes on in a second thread after the first one ended.
fn outlive(duration_ms: u64) {
    std::thread::spawn(move || {
        sleep(Duration::from_millis(duration_ms));
        exit(0)
    });
    // SAFETY: ends this thread only; nothing on its stack is used by the other.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

/// Has that many children at once; fails when one is refused.
fn fork_many(count: u64) {
    for _ in 0..count {
        // SAFETY: one thread; the child only sleeps.
        match unsafe { fork() } {
            Ok(ForkResult::Child) => {
                sleep(Duration::from_secs(20));
                exit(0)
            }
            Ok(ForkResult::Parent { .. }) => {}
            Err(_) => exit(1),
        }
    }
}

fn print(bytes: u64) {
    let chunk = [b'x'; 4096];
    let mut left = bytes;
    let mut output = std::io::stdout().lock();
    while left > 0 {
        let length = usize::try_from(left.min(4096)).unwrap();
        output.write_all(&chunk[..length]).unwrap();
        left -= length as u64;
    }
    output.flush().unwrap();
}

/// Leaves a process behind that gave up its parent, its session and its terminal.
fn daemon() {
    // SAFETY: one thread.
    if let ForkResult::Child = unsafe { fork() }.unwrap() {
        setsid().unwrap();
        // SAFETY: one thread.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => sleep(Duration::from_secs(60)),
            ForkResult::Parent { child } => println!("{child}"),
        }
        exit(0)
    }
    // Its first process must not end before the daemon exists.
    nix::sys::wait::wait().unwrap();
}

/// Burns half of its time in a child that it waits for.
fn tree(duration_ms: u64) {
    // SAFETY: one thread.
    if let ForkResult::Child = unsafe { fork() }.unwrap() {
        burn(duration_ms / 2);
        exit(0)
    }
    burn(duration_ms / 2);
    nix::sys::wait::wait().unwrap();
}

/// Forks that often, one after the other, and reports the CPU time of all where a descriptor is offered.
fn fork_often(count: u64) {
    for _ in 0..count {
        // SAFETY: one thread; the child only ends.
        match unsafe { fork() }.unwrap() {
            // SAFETY: ends the child without what the parent would do again.
            ForkResult::Child => unsafe { libc::_exit(0) },
            ForkResult::Parent { child } => drop(nix::sys::wait::waitpid(child, None).unwrap()),
        }
    }
    let of = |whose| {
        let usage = getrusage(whose).unwrap();
        let part = |time: nix::sys::time::TimeVal| time.num_nanoseconds();
        part(usage.user_time()) + part(usage.system_time())
    };
    let cpu = of(UsageWho::RUSAGE_SELF) + of(UsageWho::RUSAGE_CHILDREN);
    say(&[format!("cpu {cpu} ns")]);
}

fn environment() {
    for (name, value) in std::env::vars() {
        println!("{name}={value}");
    }
}

fn descriptors() {
    let mut open: Vec<i32> = (0..1024)
        // SAFETY: asks only.
        .filter(|descriptor| unsafe { libc::fcntl(*descriptor, libc::F_GETFD) } >= 0)
        .collect();
    open.sort_unstable();
    println!("{open:?}");
}
