//! What the filter refuses.

use libc::c_long;
use seccompiler::SeccompCmpArgLen::Dword;
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{BackendError, SeccompCmpOp, SeccompCondition, SeccompRule};

/// Calls refused whatever their arguments.
pub(super) fn forbidden_calls() -> impl Iterator<Item = c_long> {
    let groups: [&[c_long]; 9] = [
        OTHER_PROCESSES,
        MOUNTS,
        NAMESPACES,
        KERNEL_CODE,
        KEYS,
        NEW_INTERFACES,
        MACHINE,
        BY_HANDLE,
        MACHINE_X86,
    ];
    groups.into_iter().flatten().copied()
}

/// Looking into and writing to other processes.
const OTHER_PROCESSES: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
];

const MOUNTS: &[c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    OPEN_TREE_ATTR,
];

/// SOURCE: linux 6.15, the same number on every architecture.
const OPEN_TREE_ATTR: c_long = 467;

const NAMESPACES: &[c_long] =
    &[libc::SYS_unshare, libc::SYS_setns, libc::SYS_sethostname, libc::SYS_setdomainname];

/// Code and events inside the kernel.
const KERNEL_CODE: &[c_long] = &[
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    libc::SYS_lookup_dcookie,
];

const KEYS: &[c_long] = &[libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key];

/// Interfaces with a wide surface that programs can do without.
const NEW_INTERFACES: &[c_long] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
];

/// Clocks, log, accounting and power of the machine.
const MACHINE: &[c_long] = &[
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
];

/// Files past their path.
const BY_HANDLE: &[c_long] = &[libc::SYS_name_to_handle_at, libc::SYS_open_by_handle_at];

#[cfg(target_arch = "x86_64")]
const MACHINE_X86: &[c_long] =
    &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_uselib, libc::SYS__sysctl];
#[cfg(not(target_arch = "x86_64"))]
const MACHINE_X86: &[c_long] = &[];

/// Calls refused for some arguments: each rule alone refuses.
pub(super) fn forbidden_uses() -> Result<Vec<(c_long, Vec<SeccompRule>)>, BackendError> {
    Ok(vec![
        (libc::SYS_clone, clone_rules()?),
        (libc::SYS_socket, socket_rules()?),
        (libc::SYS_ioctl, ioctl_rules()?),
        (libc::SYS_personality, personality_rules()?),
        (libc::SYS_prctl, prctl_rules()?),
    ])
}

/// New namespaces, by any one of their flags.
fn clone_rules() -> Result<Vec<SeccompRule>, BackendError> {
    [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ]
    .into_iter()
    .map(|flag| u64::from(flag.unsigned_abs()))
    .map(|flag| rule(vec![on(0, MaskedEq(flag), flag)?]))
    .collect()
}

/// Raw packets the old way. SOURCE: linux/net.h.
const SOCK_PACKET: u64 = 10;

/// Every socket but local, internet and route ones; no raw ones of the internet.
fn socket_rules() -> Result<Vec<SeccompRule>, BackendError> {
    // The type shares its argument with SOCK_NONBLOCK and SOCK_CLOEXEC.
    let raw = || on(1, MaskedEq(0xF), value(libc::SOCK_RAW));
    let packet = || on(1, MaskedEq(0xF), SOCK_PACKET);
    let family = |comparison: SeccompCmpOp, family: i32| on(0, comparison, value(family));
    Ok(vec![
        rule(vec![
            family(Ne, libc::AF_UNIX)?,
            family(Ne, libc::AF_INET)?,
            family(Ne, libc::AF_INET6)?,
            family(Ne, libc::AF_NETLINK)?,
        ])?,
        rule(vec![family(Eq, libc::AF_INET)?, raw()?])?,
        rule(vec![family(Eq, libc::AF_INET6)?, raw()?])?,
        rule(vec![family(Eq, libc::AF_INET)?, packet()?])?,
        rule(vec![family(Eq, libc::AF_NETLINK)?, on(2, Ne, value(libc::NETLINK_ROUTE))?])?,
    ])
}

/// Typing into a terminal on behalf of its user.
fn ioctl_rules() -> Result<Vec<SeccompRule>, BackendError> {
    // SOURCE: asm-generic/ioctls.h; TIOCLINUX can paste into a console.
    [0x5412_u64, 0x541C].into_iter().map(|request| rule(vec![on(1, Eq, request)?])).collect()
}

/// Anything but asking for the personality or having the usual one.
fn personality_rules() -> Result<Vec<SeccompRule>, BackendError> {
    Ok(vec![rule(vec![on(0, Ne, 0)?, on(0, Ne, 0xFFFF_FFFF)?])?])
}

/// Switching counters off and on. SOURCE: linux/prctl.h, `PR_TASK_PERF_EVENTS_*`.
fn prctl_rules() -> Result<Vec<SeccompRule>, BackendError> {
    [31_u64, 32].into_iter().map(|option| rule(vec![on(0, Eq, option)?])).collect()
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions)
}

/// The kernel reads these arguments as 32 bits, so the filter does too.
fn on(argument: u8, comparison: SeccompCmpOp, against: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, Dword, comparison, against)
}

fn value(constant: i32) -> u64 {
    u64::from(constant.unsigned_abs())
}
