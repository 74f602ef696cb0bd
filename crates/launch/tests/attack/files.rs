//! Attacks on the file system.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use super::{Attack, Findings};

pub(super) const ATTACKS: &[(&str, Attack)] = &[
    ("read-secrets", read_secrets),
    ("write-outside", write_outside),
    ("symlinks", symlinks),
    ("leave-the-root", leave_the_root),
    ("device-nodes", device_nodes),
    ("mounts", mounts),
    ("poke-proc-and-sys", poke_proc_and_sys),
    ("write-own-places", write_own_places),
    ("places-are-empty", places_are_empty),
];

/// Arguments: paths of host files that hold secrets.
fn read_secrets(findings: &mut Findings, secrets: &[String]) {
    let known = [
        "/etc/shadow",
        "/etc/gshadow",
        "/etc/sudoers",
        "/etc/ssh",
        "/etc/environment",
        "/root",
        "/home",
        "/var",
        "/run",
        "/srv",
        "/mnt",
        "/boot",
        "/proc/1/environ",
        "/proc/1/maps",
        "/proc/1/mem",
        "/proc/1/fd",
        "/proc/1/root",
        "/proc/1/cwd",
        "/.steelyard",
        "/.steelyard/scratch",
    ];
    for path in known.iter().map(Path::new).chain(secrets.iter().map(Path::new)) {
        let opened = if path.is_dir() { fs::read_dir(path).map(drop) } else { fs::read(path).map(drop) };
        findings.must_fail(&format!("read {}", path.display()), opened);
    }
    let own = std::process::id().to_string();
    let others: Vec<_> = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && *name != own)
        .collect();
    findings.must_hold(&format!("no other process in /proc: {others:?}"), others.is_empty());
    let root: Vec<_> = fs::read_dir("/").unwrap().flatten().map(|entry| entry.file_name()).collect();
    let no_host = root.iter().all(|name| !name.to_string_lossy().starts_with(".host"));
    findings.must_hold("the host's root is detached", no_host);
}

fn write_outside(findings: &mut Findings, _: &[String]) {
    for place in
        ["/", "/usr", "/usr/bin", "/etc", "/bin", "/lib", "/opt", "/dev", "/proc", "/proc/self", "/sys"]
    {
        let path = Path::new(place).join("steelyard-was-here");
        findings.must_fail(&format!("create {}", path.display()), File::create(&path));
        findings.must_fail(&format!("make directory {}", path.display()), fs::create_dir(&path));
        findings.must_fail(&format!("make link {}", path.display()), symlink("/etc/passwd", &path));
        findings.must_fail(
            &format!("change mode of {place}"),
            fs::set_permissions(place, fs::Permissions::from_mode(0o777)),
        );
    }
    for file in ["/etc/passwd", "/etc/ld.so.cache", "/usr/bin/env", "/bin/sh", "/dev/stdin/../passwd"] {
        findings.must_fail(&format!("write {file}"), OpenOptions::new().write(true).open(file));
        findings
            .must_fail(&format!("truncate {file}"), OpenOptions::new().write(true).truncate(true).open(file));
        findings.must_fail(&format!("remove {file}"), fs::remove_file(file));
        findings.must_fail(&format!("rename {file}"), fs::rename(file, "/tmp/stolen"));
    }
    let own = std::env::current_exe().unwrap();
    findings.must_fail("write the program's own file", OpenOptions::new().write(true).open(own));
}

fn symlinks(findings: &mut Findings, secrets: &[String]) {
    let targets = [
        "/etc/passwd",
        "/proc/1/root/etc/shadow",
        "../../../../../../../../etc/shadow",
        "/proc/self/root/root",
    ];
    for (index, target) in targets.iter().map(ToString::to_string).chain(secrets.iter().cloned()).enumerate()
    {
        let link = format!("/tmp/link{index}");
        symlink(&target, &link).unwrap();
        findings.must_fail(
            &format!("write through a link to {target}"),
            OpenOptions::new().append(true).open(&link),
        );
        if index > 0 {
            findings.must_fail(&format!("read through a link to {target}"), fs::read(&link));
        }
    }
    findings.must_fail("hard link to a set-user-id program", fs::hard_link("/usr/bin/su", "/tmp/su"));
    findings.must_fail("replace /tmp", fs::rename("/tmp", "/box/tmp"));
    findings
        .must_fail("replace /box by a link", fs::remove_dir("/box").and_then(|()| symlink("/etc", "/box")));
}

fn leave_the_root(findings: &mut Findings, _: &[String]) {
    let here = c"/tmp";
    fs::create_dir("/tmp/jail").unwrap();
    // SAFETY: constant strings.
    unsafe {
        findings.must_filter("chroot", libc::chroot(c"/tmp/jail".as_ptr()).into());
        findings.must_filter("pivot_root", libc::syscall(libc::SYS_pivot_root, here.as_ptr(), here.as_ptr()));
    }
    let root = fs::metadata("/").unwrap();
    let up = fs::metadata("/".to_owned() + &"../".repeat(100)).unwrap();
    findings.must_hold("100 steps up end at the root", (root.dev(), root.ino()) == (up.dev(), up.ino()));
    let top = File::open("/").unwrap();
    // SAFETY: an open descriptor of a directory and a constant string.
    let answer = unsafe { libc::openat(top.as_raw_fd(), c"../../root".as_ptr(), libc::O_RDONLY) };
    findings.must_refuse("openat from a descriptor of the root", answer.into());
    // The attack known as "shocker": a guessed handle of inode 2 on the file system below.
    let mut handle = [0_u8; 16];
    handle[0] = 8;
    handle[4] = 1;
    handle[8] = 2;
    // SAFETY: the handle outlives the call.
    let answer = unsafe {
        libc::syscall(libc::SYS_open_by_handle_at, top.as_raw_fd(), handle.as_mut_ptr(), libc::O_RDONLY)
    };
    findings.must_filter("open by handle", answer);
}

fn device_nodes(findings: &mut Findings, _: &[String]) {
    for (name, kind, major, minor) in [
        ("disk", libc::S_IFBLK, 254, 0),
        ("memory", libc::S_IFCHR, 1, 1),
        ("kernel log", libc::S_IFCHR, 1, 11),
    ] {
        let path = CString::new(format!("/tmp/{}", name.replace(' ', "-"))).unwrap();
        // SAFETY: a valid string.
        let answer = unsafe { libc::mknod(path.as_ptr(), kind | 0o666, libc::makedev(major, minor)) };
        findings.must_refuse(&format!("make a device node for the {name}"), answer.into());
    }
    for path in
        ["/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/tty", "/dev/console", "/dev/kvm", "/dev/fuse"]
    {
        findings.must_fail(&format!("open {path}"), File::open(path));
    }
    for path in ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/full"] {
        findings.must_hold(&format!("{path} works"), File::open(path).is_ok());
    }
}

fn mounts(findings: &mut Findings, _: &[String]) {
    let (tmp, usr, none) = (c"/tmp".as_ptr(), c"/usr".as_ptr(), std::ptr::null());
    // SAFETY: constant strings and null pointers where the kernel allows them.
    unsafe {
        let mount = |source, target, kind, flags| libc::mount(source, target, kind, flags, std::ptr::null());
        findings.must_filter("mount a tmpfs", mount(none, tmp, c"tmpfs".as_ptr(), 0).into());
        findings.must_filter("mount proc", mount(none, tmp, c"proc".as_ptr(), 0).into());
        findings.must_filter("bind /usr", mount(usr, tmp, none, libc::MS_BIND).into());
        let writable = libc::MS_REMOUNT | libc::MS_BIND;
        findings.must_filter("make /usr writable", mount(none, usr, none, writable).into());
        findings.must_filter("unmount /proc", libc::umount2(c"/proc".as_ptr(), libc::MNT_DETACH).into());
        findings.must_filter("unmount /tmp", libc::umount2(tmp, 0).into());
        findings.must_filter("fsopen", libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0));
        findings.must_filter("open_tree", libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, usr, 1));
        findings.must_filter("move_mount", libc::syscall(libc::SYS_move_mount, -1, none, -1, none, 0));
        findings.must_filter("mount_setattr", libc::syscall(libc::SYS_mount_setattr, -1, none, 0, none, 0));
    }
}

fn poke_proc_and_sys(findings: &mut Findings, _: &[String]) {
    for path in [
        "/proc/sysrq-trigger",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/ns_last_pid",
        "/proc/sys/vm/drop_caches",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/self/oom_score_adj",
        "/proc/self/clear_refs",
        "/proc/self/uid_map",
        "/proc/irq/default_smp_affinity",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/devices/system/cpu/cpu1/online",
        "/sys/fs/cgroup/cgroup.procs",
        "/sys/power/state",
    ] {
        let written = OpenOptions::new().write(true).open(path);
        let harmless = path == "/proc/sysrq-trigger" && is_covered(path);
        findings.must_hold(&format!("cannot write {path}"), written.is_err() || harmless);
    }
    for path in
        ["/proc/kcore", "/proc/kmsg", "/proc/kallsyms", "/proc/keys", "/proc/timer_list", "/proc/iomem"]
    {
        let empty = fs::read(path).map_or(true, |content| content.is_empty());
        findings.must_hold(&format!("nothing to read in {path}"), empty);
    }
    for path in ["/sys/fs/cgroup", "/sys/kernel/debug", "/sys/kernel/security", "/sys/class", "/sys/firmware"]
    {
        findings.must_fail(&format!("list {path}"), fs::read_dir(path));
    }
}

/// Whether the null device lies over a path.
fn is_covered(path: &str) -> bool {
    fs::metadata(path).is_ok_and(|found| found.rdev() == libc::makedev(1, 3))
}

/// What must work: the program's own places.
fn write_own_places(findings: &mut Findings, _: &[String]) {
    for place in ["/tmp", "/box", "/dev/shm", "."] {
        let path = Path::new(place).join("own");
        let works = fs::write(&path, "x").is_ok() && fs::read(&path).is_ok_and(|content| content == b"x");
        findings.must_hold(&format!("can write in {place}"), works);
    }
    let directory = std::env::current_dir().unwrap();
    findings.must_hold("starts in /box", directory == Path::new("/box"));
}

/// What an earlier run wrote must be gone.
fn places_are_empty(findings: &mut Findings, _: &[String]) {
    for place in ["/box", "/dev/shm"] {
        findings.must_hold(&format!("{place} is empty"), fs::read_dir(place).unwrap().count() == 0);
    }
    findings.must_hold("/tmp/own is gone", !Path::new("/tmp/own").exists());
}
