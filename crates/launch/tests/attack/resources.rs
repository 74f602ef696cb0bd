//! Attempts to use up what the host has.

use std::fs::{self, File};
use std::io::Write as _;
use std::time::{Duration, Instant};

use super::{Attack, Findings};

pub(super) const ATTACKS: &[(&str, Attack)] = &[
    ("fill-disk", fill_disk),
    ("fill-inodes", fill_inodes),
    ("open-files", open_files),
    ("eat-memory", eat_memory),
    ("flood-output", flood_output),
    ("burn-cpu", burn_cpu),
    ("time-calls", time_calls),
];

/// Arguments: the limit [bytes], shared by all places.
fn fill_disk(findings: &mut Findings, arguments: &[String]) {
    let limit: u64 = arguments[0].parse().unwrap();
    let block = vec![1_u8; 1 << 16];
    let mut written = 0;
    for place in ["/tmp", "/box", "/dev/shm"] {
        let mut file = File::create(format!("{place}/filler")).unwrap();
        while let Ok(length) = file.write(&block) {
            written += length as u64;
            if length == 0 || written > 2 * limit {
                break;
            }
        }
    }
    findings.must_hold(&format!("wrote {written} of {limit} bytes"), written <= limit && written > limit / 2);
}

/// Arguments: most files there may be.
fn fill_inodes(findings: &mut Findings, arguments: &[String]) {
    let limit: u64 = arguments[0].parse().unwrap();
    let made =
        (0..=limit + 1).take_while(|index| File::create(format!("/tmp/{index}")).is_ok()).count() as u64;
    findings.must_hold(&format!("made {made} files, the limit is {limit}"), made <= limit);
    let _ = fs::remove_file("/tmp/0");
}

/// Tries to hold a million open files.
fn open_files(findings: &mut Findings, _: &[String]) {
    let mut held = Vec::new();
    while held.len() < 1_000_000 {
        match File::open("/dev/null") {
            Ok(file) => held.push(file),
            Err(error) => {
                println!("contained: {} files open: {error}", held.len());
                return;
            }
        }
    }
    findings.must_hold("a million files are open", false);
}

/// Touches memory without end.
fn eat_memory(findings: &mut Findings, _: &[String]) {
    let mut held: Vec<Vec<u8>> = Vec::new();
    while held.len() < 4096 {
        held.push(vec![1; 1 << 20]);
    }
    findings.must_hold(&format!("{} MiB are held", held.len()), false);
}

fn flood_output(_: &mut Findings, _: &[String]) {
    let block = vec![b'x'; 1 << 16];
    let mut out = std::io::stdout().lock();
    while out.write_all(&block).is_ok() {}
}

/// Argument: seconds.
fn burn_cpu(_: &mut Findings, arguments: &[String]) {
    let end = Instant::now() + Duration::from_secs(arguments[0].parse().unwrap());
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// Prints what system calls cost [ns], the best of many rounds.
fn time_calls(_: &mut Findings, _: &[String]) {
    const CALLS: u32 = 20_000;
    let time = |call: &dyn Fn()| {
        (0..50)
            .map(|_| {
                let start = Instant::now();
                (0..CALLS).for_each(|_| call());
                start.elapsed().as_nanos() / u128::from(CALLS)
            })
            .min()
            .unwrap_or_default()
    };
    // SAFETY: neither call takes a pointer the kernel reads.
    let getpid = time(&|| unsafe {
        std::hint::black_box(libc::syscall(libc::SYS_getpid));
    });
    // SAFETY: as above.
    let ioctl = time(&|| unsafe {
        std::hint::black_box(libc::ioctl(-1, 0));
    });
    println!("getpid {getpid} ns, ioctl {ioctl} ns");
}
