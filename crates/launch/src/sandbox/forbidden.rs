//! What the filter refuses.

use libc::c_long;

use super::rule::{Rule, Test};

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
    #[cfg(any(target_arch = "x86_64", target_env = "gnu"))]
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

/// Calls refused for some arguments.
pub(super) fn forbidden_uses() -> [(c_long, Rule); 5] {
    [
        (libc::SYS_clone, clone_rule()),
        (libc::SYS_socket, socket_rule()),
        (libc::SYS_ioctl, ioctl_rule()),
        (libc::SYS_personality, personality_rule()),
        (libc::SYS_prctl, prctl_rule()),
    ]
}

/// New namespaces, by any one of their flags.
fn clone_rule() -> Rule {
    let namespaces = libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET;
    Test::of(0).masked(value(namespaces)).case([0], Rule::Allow).otherwise(Rule::Refuse)
}

/// Raw packets the old way. SOURCE: linux/net.h.
const SOCK_PACKET: u32 = 10;
/// The type of a socket shares its argument with `SOCK_NONBLOCK` and `SOCK_CLOEXEC`.
/// SOURCE: linux/net.h.
const SOCK_TYPE_MASK: u32 = 0xF;

/// Every socket but local, internet and route ones; no raw ones of the internet.
fn socket_rule() -> Rule {
    let cooked = Test::of(1)
        .masked(SOCK_TYPE_MASK)
        .case([value(libc::SOCK_RAW), SOCK_PACKET], Rule::Refuse)
        .otherwise(Rule::Allow);
    let route = Test::of(2).case([value(libc::NETLINK_ROUTE)], Rule::Allow).otherwise(Rule::Refuse);
    Test::of(0)
        .case([value(libc::AF_UNIX)], Rule::Allow)
        .case([value(libc::AF_INET), value(libc::AF_INET6)], cooked)
        .case([value(libc::AF_NETLINK)], route)
        .otherwise(Rule::Refuse)
}

/// Typing into a terminal on behalf of its user.
fn ioctl_rule() -> Rule {
    // SOURCE: asm-generic/ioctls.h: TIOCSTI; TIOCLINUX can paste into a console.
    Test::of(1).case([0x5412, 0x541C], Rule::Refuse).otherwise(Rule::Allow)
}

/// Anything but asking for the personality or having the usual one.
fn personality_rule() -> Rule {
    Test::of(0).case([0, 0xFFFF_FFFF], Rule::Allow).otherwise(Rule::Refuse)
}

/// Switching counters off and on. SOURCE: linux/prctl.h, `PR_TASK_PERF_EVENTS_*`.
fn prctl_rule() -> Rule {
    Test::of(0).case([31, 32], Rule::Refuse).otherwise(Rule::Allow)
}

fn value(constant: i32) -> u32 {
    constant.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::rule::answer;

    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
    const REFUSED: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();

    #[test]
    fn each_rule_refuses_what_it_says() {
        let unix = [value(libc::AF_UNIX), value(libc::SOCK_STREAM), 0];
        let stream = [value(libc::AF_INET6), value(libc::SOCK_STREAM | libc::SOCK_CLOEXEC), 0];
        let raw = [value(libc::AF_INET), value(libc::SOCK_RAW | libc::SOCK_NONBLOCK), 1];
        let raw6 = [value(libc::AF_INET6), value(libc::SOCK_RAW), 58];
        let route = [value(libc::AF_NETLINK), value(libc::SOCK_RAW), 0];
        let audit = [value(libc::AF_NETLINK), value(libc::SOCK_RAW), 9];
        let threads = value(libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND | libc::SIGCHLD);
        let cases = [
            (socket_rule(), unix, ALLOWED),
            (socket_rule(), stream, ALLOWED),
            (socket_rule(), raw, REFUSED),
            (socket_rule(), raw6, REFUSED),
            (socket_rule(), [value(libc::AF_INET), SOCK_PACKET, 0], REFUSED),
            (socket_rule(), route, ALLOWED),
            (socket_rule(), audit, REFUSED),
            (socket_rule(), [value(libc::AF_VSOCK), 1, 0], REFUSED),
            (socket_rule(), [value(libc::AF_PACKET), 3, 0], REFUSED),
            (clone_rule(), [threads, 0, 0], ALLOWED),
            (clone_rule(), [threads | value(libc::CLONE_NEWUSER), 0, 0], REFUSED),
            (clone_rule(), [value(libc::CLONE_NEWNET), 0, 0], REFUSED),
            (ioctl_rule(), [0, 0x5401, 0], ALLOWED),
            (ioctl_rule(), [0, 0x5412, 0], REFUSED),
            (ioctl_rule(), [0, 0x541C, 0], REFUSED),
            (personality_rule(), [0xFFFF_FFFF, 0, 0], ALLOWED),
            (personality_rule(), [0, 0, 0], ALLOWED),
            (personality_rule(), [0x0004_0000, 0, 0], REFUSED),
            (prctl_rule(), [15, 0, 0], ALLOWED),
            (prctl_rule(), [31, 0, 0], REFUSED),
            (prctl_rule(), [32, 0, 0], REFUSED),
        ];
        for (rule, arguments, expected) in cases {
            assert_eq!(answer(&rule, arguments), expected, "{rule:?} of {arguments:?}");
        }
    }
}
