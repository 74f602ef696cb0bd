//! Nothing outlives its run, and no run outlives its pool.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pause, setgroups, setresgid, setresuid};
use steelyard_model::SandboxSpec;

use super::Case;
use crate::jail::{Jail, wait_for};

pub(super) const CASES: &[(&str, Case)] = &[
    ("each_run_has_new_files", each_run_has_new_files),
    ("each_run_has_new_ipc", each_run_has_new_ipc),
    ("an_untouched_area_is_used_again", an_untouched_area_is_used_again),
    ("runs_close_together_share_nothing", runs_close_together_share_nothing),
    ("a_daemon_is_swept", || swept("daemon", true)),
    ("a_fork_bomb_is_swept", a_fork_bomb_is_swept),
    ("a_stopped_tree_is_swept", || swept("stopped-tree", false)),
    ("a_deaf_program_is_swept", || swept("ignore-signals", false)),
    ("dropping_a_pool_ends_everything", dropping_a_pool_ends_everything),
    ("killing_the_creator_ends_the_pool", killing_the_creator_ends_the_pool),
    ("the_host_stays_as_it_was", the_host_stays_as_it_was),
    ("pools_can_follow_each_other", pools_can_follow_each_other),
    ("an_ordinary_user_gets_a_sandbox", an_ordinary_user_gets_a_sandbox),
];

fn each_run_has_new_files() {
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    jail.attack("write-own-places", &[]).must_be_contained();
    jail.attack("places-are-empty", &[]).must_be_contained();
}

fn each_run_has_new_ipc() {
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    jail.attack("leave-ipc", &[]).must_be_contained();
    jail.attack("ipc-is-empty", &[]).must_be_contained();
}

/// Processes of the host whose user is the sandbox's.
fn processes_of(user_id: u32) -> Vec<String> {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|entry| {
            let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            status.contains(&format!("\nUid:\t{user_id}\t"))
        })
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(5);
    while !holds() {
        assert!(Instant::now() < end, "{what}: not within 5 s");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// `leads`: the first process ends by itself and leaves others behind.
fn swept(attack: &str, leads: bool) {
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    let user = jail.pool.user_id();
    let (process, reader) = jail.start_attack(attack, &[]);
    if leads {
        wait_for(process, reader).must_be_contained();
        eventually("the daemon lives", || processes_of(user).len() == 1);
        assert_eq!(jail.pool.sweep().unwrap(), 1);
    } else {
        eventually("the attack lives", || !processes_of(user).is_empty());
        std::thread::sleep(Duration::from_millis(50));
        assert!(jail.pool.sweep().unwrap() >= 1);
        let status = waitpid(process, None).unwrap();
        assert!(matches!(status, WaitStatus::Signaled(_, Signal::SIGKILL, _)), "{status:?}");
    }
    eventually("everything is gone", || processes_of(user).is_empty());
    assert_eq!(jail.pool.sweep().unwrap(), 0);
    jail.execute(&["/bin/echo", "next run"]).must_say("next run");
}

fn a_fork_bomb_is_swept() {
    let mut jail = Jail::new(&SandboxSpec::default()).unwrap();
    jail.processes = 40;
    let user = jail.pool.user_id();
    let (process, _reader) = jail.start_attack("fork-bomb", &[]);
    eventually("the bomb has gone off", || processes_of(user).len() >= 40);
    assert_eq!(processes_of(user).len(), 40);
    assert!(jail.pool.sweep().unwrap() >= 39);
    waitpid(process, None).unwrap();
    eventually("everything is gone", || processes_of(user).is_empty());
}

fn dropping_a_pool_ends_everything() {
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    let user = jail.pool.user_id();
    let (process, reader) = jail.start_attack("daemon", &[]);
    wait_for(process, reader);
    eventually("the daemon lives", || processes_of(user).len() == 1);
    let start = Instant::now();
    drop(jail);
    assert!(start.elapsed() < Duration::from_secs(1));
    assert_eq!(processes_of(user), [] as [String; 0]);
}

fn killing_the_creator_ends_the_pool() {
    let user = 60_000 + 11;
    // SAFETY: this process has one thread.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let jail = Jail::of_worker(&SandboxSpec::default(), 11).unwrap();
            let _run = jail.start_attack("ignore-signals", &[]);
            loop {
                pause();
            }
        }
        ForkResult::Parent { child } => {
            eventually("the run lives", || processes_of(user).len() == 1);
            let inits = inits_below(child);
            assert_eq!(inits.len(), 1);
            kill(child, Signal::SIGKILL).unwrap();
            waitpid(child, None).unwrap();
            eventually("the run is gone", || processes_of(user).is_empty());
            eventually("the first process is gone", || inits.iter().all(|pid| !is_alive(*pid)));
        }
    }
}

fn inits_below(parent: Pid) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .filter(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "steelyard-init\n")
        })
        .collect()
}

fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z")
}

fn the_host_stays_as_it_was() {
    let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let (mounts_before, descriptors_before) = (mounts(), descriptors());
    for _ in 0..3 {
        let jail = Jail::new(&SandboxSpec::default()).unwrap();
        jail.attack("write-own-places", &[]).must_be_contained();
        jail.attack("fill-disk", &["67108864"]).must_be_contained();
    }
    assert_eq!(mounts(), mounts_before);
    assert_eq!(descriptors(), descriptors_before);
    let here = std::env::current_dir().unwrap();
    assert!(here.exists());
}

fn pools_can_follow_each_other() {
    let spec = SandboxSpec::default();
    let first = Jail::of_worker(&spec, 1).unwrap();
    let second = Jail::of_worker(&spec, 2).unwrap();
    second.execute(&["/usr/bin/id", "-u"]).must_say("60002");
    drop(second);
    first.pool.enter_pid_namespace().unwrap();
    first.execute(&["/usr/bin/id", "-u"]).must_say("60001");
}

/// The same without being root, in a user namespace.
fn an_ordinary_user_gets_a_sandbox() {
    if std::fs::read_to_string("/proc/sys/user/max_user_namespaces").is_ok_and(|text| text.trim() == "0") {
        println!("skipped: needs user namespaces");
        return;
    }
    // SAFETY: this process has one thread.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let passed = std::panic::catch_unwind(as_ordinary_user).is_ok();
            // SAFETY: ends the child without the test harness's exit handlers.
            unsafe { libc::_exit(i32::from(!passed)) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
        }
    }
}

fn as_ordinary_user() {
    let user = 54_321;
    setgroups(&[]).unwrap();
    setresgid(user.into(), user.into(), user.into()).unwrap();
    setresuid(user.into(), user.into(), user.into()).unwrap();
    nix::sys::prctl::set_dumpable(true).unwrap();
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    let said = jail.pool.degraded().iter().any(|text| text.contains("user namespace"));
    assert!(said, "{:?}", jail.pool.degraded());
    jail.execute(&["/usr/bin/id", "-u"]).must_say("60007");
    for attack in [
        "write-outside",
        "leave-the-root",
        "device-nodes",
        "mounts",
        "poke-proc-and-sys",
        "write-own-places",
        "places-are-empty",
        "special-sockets",
        "kernel-calls",
        "namespaces",
        "keyrings",
        "capabilities",
    ] {
        jail.attack(attack, &[]).must_be_contained();
    }
    let (process, reader) = jail.start_attack("daemon", &[]);
    wait_for(process, reader).must_be_contained();
    eventually("the daemon is swept", || jail.pool.sweep().unwrap() == 0);
}

/// One child prepared in a pool; prints the file system behind `/tmp` while it is inside.
fn area_of_next_run(jail: &Jail) -> String {
    let ended = jail.execute(&["/bin/sh", "-c", "grep ' /tmp ' /proc/self/mountinfo | cut -d' ' -f3"]);
    ended.must_say(":");
    ended.output
}

fn an_untouched_area_is_used_again() {
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    // The first process needs a moment to mount one, and to notice the end of each run.
    let settle = || std::thread::sleep(Duration::from_millis(50));
    settle();
    let first = area_of_next_run(&jail);
    settle();
    assert_eq!(area_of_next_run(&jail), first, "nothing was written, so it is the same");
    jail.execute(&["/bin/sh", "-c", "echo > /dev/shm/x; rm /dev/shm/x; mkdir /box/y"]).must_say("");
    settle();
    jail.execute(&["/bin/sh", "-c", "ls -A /tmp /box /dev/shm | grep -v tmp"])
        .must_say("/box:\n\n/dev/shm:\n");
}

fn runs_close_together_share_nothing() {
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    for _ in 0..50 {
        jail.attack("write-own-places", &[]).must_be_contained();
        jail.attack("places-are-empty", &[]).must_be_contained();
    }
}
