//! Attempts to gain rights.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::{Attack, Findings, MARK};

pub(super) const ATTACKS: &[(&str, Attack)] = &[
    ("capabilities", capabilities),
    ("become-root", become_root),
    ("say-user", say_user),
    ("raise-limits", raise_limits),
    ("raise-priority", raise_priority),
];

fn capabilities(findings: &mut Findings, _: &[String]) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("missing").trim().to_owned()
    };
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        findings.must_hold(&format!("{set} is empty: {}", field(set)), field(set) == "0000000000000000");
    }
    findings.must_hold("no new privileges", field("NoNewPrivs:") == "1");
    findings.must_hold("a filter is loaded", field("Seccomp:") == "2");
    findings.must_hold(&format!("no groups: {}", field("Groups:")), field("Groups:").is_empty());
    // SAFETY: no pointers.
    unsafe {
        findings.must_hold("not root", libc::getuid() != 0 && libc::geteuid() != 0 && libc::getgid() != 0);
        findings.must_refuse("setuid 0", libc::setuid(0).into());
        findings.must_refuse("setgid 0", libc::setgid(0).into());
        findings.must_refuse("setresuid 0", libc::setresuid(0, 0, 0).into());
        findings.must_refuse("setgroups", libc::setgroups(0, std::ptr::null()).into());
    }
}

/// Argument: a set-user-id copy of this executable that belongs to root.
fn become_root(findings: &mut Findings, arguments: &[String]) {
    let said = Command::new(&arguments[0]).args([MARK, "say-user"]).output();
    match said {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            // SAFETY: no pointers.
            let own = unsafe { libc::getuid() }.to_string();
            findings.must_hold(&format!("a set-user-id program is user {text}"), text == own);
        }
        Err(error) => println!("contained: a set-user-id program does not start: {error}"),
    }
    std::fs::copy(std::env::current_exe().unwrap(), "/box/copy").unwrap();
    findings.must_fail("give a file to root", std::os::unix::fs::chown("/box/copy", Some(0), Some(0)));
    std::fs::set_permissions("/box/copy", std::fs::Permissions::from_mode(0o6755)).unwrap();
    let said = Command::new("/box/copy").args([MARK, "say-user"]).output().unwrap();
    findings.must_hold("an own set-user-id program gains nothing", said.stdout != b"0\n");
}

fn say_user(_: &mut Findings, _: &[String]) {
    // SAFETY: no pointers.
    println!("{}", unsafe { libc::geteuid() });
}

fn raise_limits(findings: &mut Findings, _: &[String]) {
    for (name, resource) in [
        ("open files", libc::RLIMIT_NOFILE),
        ("processes", libc::RLIMIT_NPROC),
        ("core size", libc::RLIMIT_CORE),
    ] {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the structure outlives both calls.
        unsafe {
            libc::getrlimit(resource, &raw mut limit);
            if limit.rlim_max == libc::RLIM_INFINITY {
                println!("contained: {name} has no limit here");
                continue;
            }
            limit.rlim_max += 1;
            findings.must_refuse(
                &format!("raise the limit of {name}"),
                libc::setrlimit(resource, &raw const limit).into(),
            );
        }
    }
    let limit = libc::rlimit { rlim_cur: 1, rlim_max: 1 };
    // SAFETY: the structure outlives the call.
    let answer = unsafe { libc::prlimit(1, libc::RLIMIT_NOFILE, &raw const limit, std::ptr::null_mut()) };
    findings.must_refuse("change a limit of the first process", answer.into());
}

fn raise_priority(findings: &mut Findings, _: &[String]) {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the structure outlives the calls.
    unsafe {
        findings.must_refuse(
            "real-time class",
            libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters).into(),
        );
        findings.must_refuse("negative nice", libc::setpriority(libc::PRIO_PROCESS, 0, -20).into());
        findings.must_refuse("real-time I/O", libc::syscall(libc::SYS_ioprio_set, 1, 0, 1 << 13));
        findings.must_refuse("lower the first process", libc::setpriority(libc::PRIO_PROCESS, 1, 19).into());
    }
}
