use nix::errno::Errno;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};

use super::statement::Capability;
use crate::HostRoot;

/// Namespaces in the order they are tried: the user namespace last, because it changes the rights
/// of whatever is tried behind it.
const KINDS: [(&str, i32, &str); 8] = [
    ("pid", libc::CLONE_NEWPID, "process trees that cannot escape"),
    ("mount", libc::CLONE_NEWNS, "an own view of the file system"),
    ("network", libc::CLONE_NEWNET, "no network inside a run"),
    ("ipc", libc::CLONE_NEWIPC, "no shared memory with others"),
    ("uts", libc::CLONE_NEWUTS, "an own host name"),
    ("cgroup", libc::CLONE_NEWCGROUP, "an own view of the control groups"),
    // SOURCE: CLONE_NEWTIME of include/uapi/linux/sched.h, which libc lacks on some targets.
    ("time", 0x80, "an own clock offset"),
    ("user", libc::CLONE_NEWUSER, "isolation without the rights of root"),
];

pub(super) fn probe(root: &HostRoot) -> Vec<Capability> {
    let answers = try_all();
    KINDS
        .iter()
        .enumerate()
        .map(|(index, (kind, _, purpose))| {
            let look = Capability::new(
                &format!("namespace.{kind}"),
                purpose,
                "unshare in a child that ends at once",
            );
            match answers.as_ref().map(|codes| codes[index]) {
                Ok(0) => look.present("created"),
                Ok(code) => explain(root, look, kind, Errno::from_raw(code)),
                Err(error) => look.absent(format!("no child could be made: {}", error.desc()), None),
            }
        })
        .collect()
}

fn explain(root: &HostRoot, look: Capability, kind: &str, error: Errno) -> Capability {
    let number = |path: &str| root.number::<u64>(path);
    if kind == "user" {
        for (path, repair) in [
            ("/proc/sys/kernel/unprivileged_userns_clone", "sysctl kernel.unprivileged_userns_clone=1"),
            ("/proc/sys/user/max_user_namespaces", "sysctl user.max_user_namespaces=15000"),
        ] {
            if number(path) == Some(0) {
                return look.absent(format!("switched off by `{path}`"), Some(repair));
            }
        }
        if number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
            let repair = "sysctl kernel.apparmor_restrict_unprivileged_userns=0";
            return look.absent("switched off by AppArmor for programs without a profile", Some(repair));
        }
    }
    match error {
        Errno::EPERM => look.absent("refused to this user", Some("run as root")),
        Errno::EINVAL | Errno::ENOSYS => look.absent("not known to this kernel", None),
        other => look.absent(other.desc(), None),
    }
}

/// Error numbers by kind, 0 for success, from one child that tries them all.
fn try_all() -> Result<[i32; KINDS.len()], Errno> {
    let (answer, question) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    // SAFETY: the child calls nothing but unshare, write and _exit, which are safe in the copy of
    // a process that may have had other threads.
    match unsafe { fork() }? {
        ForkResult::Child => {
            for (_, flag, _) in KINDS {
                // SAFETY: changes nothing but the child itself, which is about to end.
                let refused = unsafe { libc::unshare(flag) } != 0;
                let code = if refused { Errno::last_raw() } else { 0 };
                let _ = nix::unistd::write(&question, &code.to_ne_bytes());
            }
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            drop(question);
            let mut codes = [libc::ECHILD; KINDS.len()];
            for code in &mut codes {
                let mut bytes = [0; 4];
                if nix::unistd::read(&answer, &mut bytes) == Ok(bytes.len()) {
                    *code = i32::from_ne_bytes(bytes);
                }
            }
            while waitpid(child, None) == Err(Errno::EINTR) {}
            Ok(codes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_answered_and_this_process_is_unchanged() {
        let before = std::fs::read_link("/proc/self/ns/uts").unwrap();
        let found = probe(&HostRoot::system());
        assert_eq!(found.len(), KINDS.len());
        assert!(found.iter().all(|capability| !capability.reason.is_empty()));
        assert_eq!(std::fs::read_link("/proc/self/ns/uts").unwrap(), before);
    }
}
