//! Trees that multiply as fast as they can, without end and without a pause.

use std::time::{Duration, Instant};

use super::{Attack, Findings};

pub(super) const ATTACKS: &[(&str, Attack)] = &[("storm", storm)];

/// Arguments: how it multiplies, and `memory` if each process is to eat memory meanwhile. Never ends and never
/// pauses, whatever is refused.
fn storm(_: &mut Findings, arguments: &[String]) {
    let eats = arguments.get(1).is_some_and(|word| word == "memory");
    if arguments[0].starts_with("endless") {
        // What has ended makes room for the next.
        // SAFETY: no handler.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    }
    blow(&arguments[0], eats)
}

fn blow(kind: &str, eats: bool) -> ! {
    let mut eaten: Vec<Vec<u8>> = Vec::new();
    loop {
        if eats {
            eaten.push(vec![1; 1 << 18]);
        }
        multiply(kind, eats);
    }
}

fn multiply(kind: &str, eats: bool) {
    let flags = libc::c_long::from(libc::CLONE_PARENT | libc::SIGCHLD);
    // SAFETY: the children go on as their parents do, or end at once; a child of `vfork` does nothing else.
    unsafe {
        match kind {
            "fork" => {
                libc::fork();
            }
            // The parent walks away, so that nothing but the newest process goes on.
            "daemons" => {
                if libc::fork() > 0 && libc::getppid() != 0 {
                    libc::_exit(0);
                }
            }
            // Siblings of the first process: children of the keeper.
            "clone-parent" => {
                if libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize) == 0 {
                    libc::_exit(0);
                }
            }
            "clone-parent-all" => {
                libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize);
            }
            "vfork" => {
                libc::fork();
                let flags = libc::c_long::from(libc::CLONE_VFORK | libc::SIGCHLD);
                if libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize) == 0 {
                    libc::_exit(0);
                }
            }
            "threads" => {
                let again = move || -> () { blow("threads", eats) };
                let _ = std::thread::Builder::new().stack_size(1 << 16).spawn(again);
            }
            "loops" => {
                libc::fork();
                for _ in 0..100_000 {
                    std::hint::spin_loop();
                }
            }
            _ => multiply_without_end(kind),
        }
    }
}

/// What is made ends at once, after little work.
fn multiply_without_end(kind: &str) {
    // SAFETY: the children do a little and end; a child of `vfork` does nothing else.
    unsafe {
        match kind {
            "fork-and-end" | "endless-fork" => {
                if libc::fork() == 0 {
                    libc::_exit(0);
                }
            }
            "endless-vfork" => {
                if vfork() == 0 {
                    libc::_exit(0);
                }
            }
            // Every process is an orphan in a session of its own.
            "endless-sessions" => {
                if libc::fork() == 0 {
                    libc::setsid();
                    if libc::fork() > 0 {
                        libc::_exit(0);
                    }
                }
            }
            // Work between two ticks of the kernel's.
            "endless-sleepers" => {
                if libc::fork() == 0 {
                    spin(Duration::from_micros(100));
                    std::thread::sleep(Duration::from_micros(100));
                    libc::_exit(0);
                }
            }
            "endless-workers" => {
                if libc::fork() == 0 {
                    spin(Duration::from_micros(300));
                    libc::_exit(0);
                }
            }
            "endless-threads" => {
                let work = || spin(Duration::from_micros(20));
                let _ = std::thread::Builder::new().stack_size(1 << 16).spawn(work);
            }
            _ => std::process::exit(1),
        }
    }
}

unsafe extern "C" {
    /// Its child has the parent's stack, so it must do nothing but end.
    fn vfork() -> libc::pid_t;
}

fn spin(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}
