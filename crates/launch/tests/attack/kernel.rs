//! Attacks on the kernel: calls a program has no business with.

use std::ffi::CStr;
use std::process::Command;

use nix::sys::memfd::{MFdFlags, memfd_create};

use super::{Attack, Findings, MARK};

pub(super) const ATTACKS: &[(&str, Attack)] = &[
    ("kernel-calls", kernel_calls),
    ("namespaces", namespaces),
    ("keyrings", keyrings),
    ("call-by-x32", call_by_x32),
    ("call-by-i386", call_by_i386),
    ("call-by-arm", call_by_arm),
];

/// Attacks by the call tables that this kernel has beside its own.
pub(crate) fn by_foreign_tables() -> &'static [&'static str] {
    if cfg!(target_arch = "x86_64") {
        return &["call-by-x32", "call-by-i386"];
    }
    let own = std::env::current_exe().expect("an executable has a path");
    let outside = Command::new(own).args([MARK, "call-by-arm"]).status().expect("it can be started");
    // Many processors of 64-bit ARM know no programs of 32-bit ARM.
    if outside.code() == Some(ARM_CODE) { &["call-by-arm"] } else { &[] }
}

fn kernel_calls(findings: &mut Findings, _: &[String]) {
    for (name, call) in [
        ("bpf", libc::SYS_bpf),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("io_uring_enter", libc::SYS_io_uring_enter),
        ("userfaultfd", libc::SYS_userfaultfd),
        ("init_module", libc::SYS_init_module),
        ("finit_module", libc::SYS_finit_module),
        ("delete_module", libc::SYS_delete_module),
        ("kexec_load", libc::SYS_kexec_load),
        ("kexec_file_load", libc::SYS_kexec_file_load),
        ("reboot", libc::SYS_reboot),
        ("swapon", libc::SYS_swapon),
        ("swapoff", libc::SYS_swapoff),
        ("settimeofday", libc::SYS_settimeofday),
        ("clock_settime", libc::SYS_clock_settime),
        ("adjtimex", libc::SYS_adjtimex),
        ("quotactl", libc::SYS_quotactl),
        ("acct", libc::SYS_acct),
        ("syslog", libc::SYS_syslog),
        ("name_to_handle_at", libc::SYS_name_to_handle_at),
        ("kcmp", libc::SYS_kcmp),
        ("lookup_dcookie", libc::SYS_lookup_dcookie),
        ("fanotify_init", libc::SYS_fanotify_init),
        ("sethostname", libc::SYS_sethostname),
        #[cfg(target_arch = "x86_64")]
        ("iopl", libc::SYS_iopl),
        #[cfg(target_arch = "x86_64")]
        ("ioperm", libc::SYS_ioperm),
        #[cfg(target_arch = "x86_64")]
        ("modify_ldt", libc::SYS_modify_ldt),
    ] {
        // SAFETY: all arguments are zero, so a call that passes the filter does nothing.
        findings.must_filter(name, unsafe { libc::syscall(call, 0, 0, 0, 0, 0, 0) });
    }
    // SAFETY: no pointers but a constant byte.
    unsafe {
        findings.must_filter("type into the terminal", libc::ioctl(0, libc::TIOCSTI, c"x".as_ptr()).into());
        findings.must_filter("no randomisation", libc::personality(0x0004_0000).into());
        findings.must_hold("asking for the personality works", libc::personality(0xFFFF_FFFF) >= 0);
        findings.must_filter("switch counters off", libc::prctl(31, 0, 0, 0, 0).into());
    }
}

fn namespaces(findings: &mut Findings, _: &[String]) {
    for (name, flag) in [
        ("mount", libc::CLONE_NEWNS),
        ("user", libc::CLONE_NEWUSER),
        ("pid", libc::CLONE_NEWPID),
        ("network", libc::CLONE_NEWNET),
        ("ipc", libc::CLONE_NEWIPC),
        ("uts", libc::CLONE_NEWUTS),
        ("cgroup", libc::CLONE_NEWCGROUP),
    ] {
        // SAFETY: a clone without CLONE_VM is a fork; were it made, the child would end at once.
        unsafe {
            findings.must_filter(&format!("unshare a {name} namespace"), libc::unshare(flag).into());
            let flags = libc::c_long::from(flag | libc::SIGCHLD);
            let answer = libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0);
            if answer == 0 {
                libc::_exit(0);
            }
            findings.must_filter(&format!("clone into a {name} namespace"), answer);
        }
    }
    // SAFETY: a null structure of size zero.
    let answer = unsafe { libc::syscall(libc::SYS_clone3, 0, 0) };
    let errno = std::io::Error::last_os_error().raw_os_error();
    findings.must_hold("clone3 does not exist", answer < 0 && errno == Some(libc::ENOSYS));
    // SAFETY: no pointers.
    findings.must_filter("setns", unsafe { libc::setns(0, 0) }.into());
    let threads = std::thread::spawn(|| 1).join().is_ok();
    findings.must_hold("threads still work", threads);
}

fn keyrings(findings: &mut Findings, _: &[String]) {
    let (kind, name) = (c"user".as_ptr(), c"steelyard".as_ptr());
    // SAFETY: constant strings.
    unsafe {
        findings.must_filter("add_key", libc::syscall(libc::SYS_add_key, kind, name, name, 1, -3));
        findings.must_filter("request_key", libc::syscall(libc::SYS_request_key, kind, name, 0, -3));
        findings.must_filter("keyctl", libc::syscall(libc::SYS_keyctl, 0, -3, 1));
    }
}

/// Must end the program.
fn call_by_x32(findings: &mut Findings, _: &[String]) {
    // SAFETY: the number of `getpid` in the x32 table.
    let answer = unsafe { libc::syscall(0x4000_0027) };
    findings.must_hold(&format!("alive after an x32 call: {answer}"), false);
}

/// Must end the program.
fn call_by_i386(findings: &mut Findings, _: &[String]) {
    let mut answer: i64 = 20;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: `getpid` of the 32-bit table: no pointers; the kernel clobbers what is named.
    unsafe {
        std::arch::asm!("int 0x80", inout("rax") answer, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    findings.must_hold(&format!("alive after a 32-bit call: {answer}"), false);
    answer += 1;
    let _ = answer;
}

/// `getpid`, then `exit` with `ARM_CODE`, of 32-bit ARM.
/// SOURCE: ELF-32 object file format: type EXEC, machine 40, ABI version 5, one segment.
#[rustfmt::skip]
const ARM_PROGRAM: [u32; 26] = [
    0x464C_457F, 0x0001_0101, 0, 0, 0x0028_0002, 1, 0x0001_0054, 52, 0, 0x0500_0000, 0x0020_0034, 1, 0,
    1, 0, 0x0001_0000, 0x0001_0000, 104, 104, 5, 0x1000,
    0xE3A0_7014, 0xEF00_0000, 0xE3A0_7001, 0xE3A0_0007, 0xEF00_0000,
];
const ARM_CODE: i32 = 7;

/// Must end the program. A 64-bit program of ARM has no such call: it becomes one that has.
fn call_by_arm(findings: &mut Findings, _: &[String]) {
    let program = ARM_PROGRAM.map(u32::to_le_bytes).concat();
    let file = memfd_create(c"arm", MFdFlags::empty()).expect("a memory file can be made");
    nix::unistd::write(&file, &program).expect("a memory file can be written");
    let environment: [&CStr; 0] = [];
    let Err(error) = nix::unistd::fexecve(file, &[c"arm"], &environment);
    findings.must_hold(&format!("it starts: {error}"), false);
}
