//! Hostile programs under the whole launcher: sandbox, control groups, limits, time.
//!
//! For each attack: it is contained, the outcome names what happened, the host is as it was.
#![expect(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, reason = "this is a test")]
#![expect(clippy::multiple_unsafe_ops_per_block, reason = "attacks are lists of raw system calls")]

mod attack;
mod hostile_cases;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    attack::become_attack_if_asked();
    let mut arguments = Arguments::from_args();
    // Cases count processes, groups and mounts, and a launcher wants a creator with one thread.
    arguments.test_threads = Some(1);
    let is_root = nix::unistd::geteuid().is_root();
    if is_root {
        leave_mounts_of_others();
    }
    let trial = |name: String, case: hostile_cases::LongCase, is_long: bool| {
        Trial::test(name, move || {
            case();
            Ok::<(), Failed>(())
        })
        .with_kind(if is_root { "" } else { "needs root" })
        .with_ignored_flag(!is_root || is_long)
    };
    let daily = hostile_cases::cases().into_iter();
    let daily = daily.map(|(name, case)| trial(name.to_owned(), Box::new(case), false));
    let long = hostile_cases::long_cases().into_iter().map(|(name, case)| trial(name, case, true));
    let trials = daily.chain(long).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

/// Mounts are counted, and others on this host mount things too.
fn leave_mounts_of_others() {
    use nix::mount::{MsFlags, mount};
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).expect("root can make a mount namespace");
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .expect("root can make mounts private");
}
