//! Attacks on and with processes.

use std::time::{Duration, Instant};

use super::{Attack, Findings};

pub(super) const ATTACKS: &[(&str, Attack)] = &[
    ("trace-others", trace_others),
    ("signal-others", signal_others),
    ("daemon", daemon),
    ("stop-self", stop_self),
    ("stopped-tree", stopped_tree),
    ("ignore-signals", ignore_signals),
    ("fork-bomb", fork_bomb),
    ("fork-and-fail", fork_and_fail),
    ("sleep", sleep),
    ("leave-ipc", leave_ipc),
    ("ipc-is-empty", ipc_is_empty),
];

/// Arguments: process numbers of the host.
fn trace_others(findings: &mut Findings, hosts: &[String]) {
    let pids = hosts.iter().map(|pid| pid.parse().unwrap()).chain([1, 2]);
    let mut buffer = [0_u8; 8];
    let own = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: 8 };
    let other = libc::iovec { iov_base: 0x40_0000 as *mut _, iov_len: 8 };
    for pid in pids {
        // SAFETY: the kernel checks the foreign address; the own buffer outlives the calls.
        unsafe {
            findings.must_filter(&format!("attach to {pid}"), libc::ptrace(libc::PTRACE_ATTACH, pid, 0, 0));
            findings.must_filter(&format!("seize {pid}"), libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0));
            let answer = libc::process_vm_readv(pid, &raw const own, 1, &raw const other, 1, 0);
            findings.must_filter(&format!("read memory of {pid}"), answer as i64);
            let answer = libc::process_vm_writev(pid, &raw const own, 1, &raw const other, 1, 0);
            findings.must_filter(&format!("write memory of {pid}"), answer as i64);
            findings.must_filter(
                &format!("take a descriptor of {pid}"),
                libc::syscall(libc::SYS_pidfd_getfd, 0, 0, 0),
            );
        }
    }
}

/// Arguments: process numbers of the host.
fn signal_others(findings: &mut Findings, hosts: &[String]) {
    // SAFETY: no pointers.
    unsafe {
        for pid in hosts.iter().map(|pid| pid.parse::<i32>().unwrap()) {
            findings.must_refuse(&format!("kill {pid}"), libc::kill(pid, libc::SIGKILL).into());
            findings.must_refuse(&format!("kill group {pid}"), libc::kill(-pid, libc::SIGKILL).into());
        }
        findings.must_refuse("kill the first process", libc::kill(1, libc::SIGKILL).into());
        findings.must_refuse("stop the first process", libc::kill(1, libc::SIGSTOP).into());
        findings.must_refuse("kill everyone", libc::kill(-1, libc::SIGKILL).into());
        findings.must_hold("the parent is outside", libc::getppid() == 0);
    }
}

/// Leaves a grandchild in a session of its own, deaf to polite signals.
fn daemon(_: &mut Findings, _: &[String]) {
    // SAFETY: one thread; the children only sleep.
    unsafe {
        if libc::fork() == 0 {
            libc::setsid();
            if libc::fork() == 0 {
                ignore_all();
                libc::close(1);
                libc::close(2);
                std::thread::sleep(Duration::from_secs(60));
            }
            libc::_exit(0);
        }
        libc::wait(std::ptr::null_mut());
    }
}

fn stop_self(_: &mut Findings, _: &[String]) {
    // SAFETY: no pointers.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Stops four children and then itself.
fn stopped_tree(_: &mut Findings, _: &[String]) {
    // SAFETY: one thread; the children only stop.
    unsafe {
        for _ in 0..4 {
            if libc::fork() == 0 {
                libc::raise(libc::SIGSTOP);
                libc::_exit(0);
            }
        }
        libc::raise(libc::SIGSTOP);
    }
}

fn ignore_signals(_: &mut Findings, _: &[String]) {
    ignore_all();
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn ignore_all() {
    for signal in 1..=64 {
        // SAFETY: no handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Forks, and its children too, without end and without a pause.
fn fork_bomb(_: &mut Findings, _: &[String]) {
    loop {
        // SAFETY: one thread.
        unsafe { libc::fork() };
    }
}

/// Argument: most processes there may be. Fails when a fork is refused, and leaves them.
fn fork_and_fail(findings: &mut Findings, arguments: &[String]) {
    let limit: u32 = arguments[0].parse().unwrap();
    for made in 0..=limit {
        // SAFETY: one thread; the children only sleep.
        match unsafe { libc::fork() } {
            0 => std::thread::sleep(Duration::from_secs(60)),
            -1 => {
                println!("contained: {made} forks");
                std::process::exit(3);
            }
            _ => {}
        }
    }
    findings.must_hold(&format!("more than {limit} processes"), false);
}

/// Argument: seconds.
fn sleep(_: &mut Findings, arguments: &[String]) {
    std::thread::sleep(Duration::from_secs(arguments[0].parse().unwrap()));
}

const KEY: libc::key_t = 0x57EE;

fn leave_ipc(findings: &mut Findings, _: &[String]) {
    // SAFETY: no pointers but a constant string.
    unsafe {
        let shared = libc::shmget(KEY, 4096, libc::IPC_CREAT | 0o666);
        findings.must_hold("shared memory can be made", shared >= 0);
        findings.must_hold("semaphores can be made", libc::semget(KEY, 1, libc::IPC_CREAT | 0o666) >= 0);
        findings.must_hold("message queues can be made", libc::msgget(KEY, libc::IPC_CREAT | 0o666) >= 0);
    }
}

fn ipc_is_empty(findings: &mut Findings, _: &[String]) {
    // SAFETY: no pointers.
    unsafe {
        findings.must_refuse("shared memory of another run", libc::shmget(KEY, 0, 0).into());
        findings.must_refuse("semaphores of another run", libc::semget(KEY, 0, 0).into());
        findings.must_refuse("message queues of another run", libc::msgget(KEY, 0).into());
    }
}
