//! Attempts to get out, to look out, or to gain rights.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use steelyard_model::{Flag, Isolation, RunStatus};

use super::Case;
use super::bench::{attack, execute, exists, must_be_contained};
use crate::attack::kernel::by_foreign_tables;

pub(crate) const CASES: &[(&str, Case)] = &[
    ("reads_host_secrets", reads_host_secrets),
    ("writes_outside", || plain("write-outside")),
    ("symlink_tricks", symlink_tricks),
    ("leaves_the_root", || refused("leave-the-root")),
    ("makes_device_nodes", || plain("device-nodes")),
    ("mounts", || refused("mounts")),
    ("pokes_proc_and_sys", || plain("poke-proc-and-sys")),
    ("connects_to_the_network", connects_to_the_network),
    ("makes_special_sockets", || refused("special-sockets")),
    ("traces_the_keeper", traces_the_keeper),
    ("calls_the_kernel", || refused("kernel-calls")),
    ("makes_namespaces", || refused("namespaces")),
    ("uses_keyrings", || refused("keyrings")),
    ("uses_foreign_call_tables", uses_foreign_call_tables),
    ("has_capabilities", || plain("capabilities")),
    ("executes_set_user_id_programs", executes_set_user_id_programs),
    ("raises_limits", || plain("raise-limits")),
    ("raises_priority", || plain("raise-priority")),
];

fn plain(name: &str) {
    let outcome = execute(&attack(name, &[]));
    must_be_contained(&outcome);
    assert!(!outcome.flags.contains(&Flag::ForbiddenCall), "nothing was refused by the filter: {outcome:#?}");
}

/// Contained by the filter, and the outcome says so.
fn refused(name: &str) {
    let outcome = execute(&attack(name, &[]));
    must_be_contained(&outcome);
    assert!(outcome.flags.contains(&Flag::ForbiddenCall), "{outcome:#?}");
}

fn reads_host_secrets() {
    let file = tempfile::NamedTempFile::new_in("/root").unwrap();
    std::fs::write(file.path(), "secret").unwrap();
    must_be_contained(&execute(&attack("read-secrets", &[file.path().to_str().unwrap()])));
}

fn symlink_tricks() {
    let file = tempfile::NamedTempFile::new_in("/root").unwrap();
    std::fs::write(file.path(), "secret").unwrap();
    must_be_contained(&execute(&attack("symlinks", &[file.path().to_str().unwrap()])));
    assert_eq!(std::fs::read(file.path()).unwrap(), b"secret");
}

fn connects_to_the_network() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = format!("steelyard-hostile-{}", std::process::id());
    let _local = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    must_be_contained(&execute(&attack("network", &[&port, &name])));
}

/// The keeper is this very process; its parent is any process of the host.
fn traces_the_keeper() {
    let hosts = [std::process::id().to_string(), std::os::unix::process::parent_id().to_string()];
    must_be_contained(&execute(&attack("trace-others", &[&hosts[0], &hosts[1]])));
}

fn uses_foreign_call_tables() {
    for name in by_foreign_tables() {
        let outcome = execute(&attack(name, &[]));
        assert_eq!(
            (outcome.status, outcome.signal),
            (RunStatus::Signalled, Some(libc::SIGSYS)),
            "{outcome:#?}"
        );
    }
}

fn executes_set_user_id_programs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("copy");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o6755)).unwrap();
    let mut spec = attack("become-root", &[copy.to_str().unwrap()]);
    spec.limits.disk_bytes = Some(64 << 20);
    if let Isolation::Sandbox(sandbox) = &mut spec.isolation {
        sandbox.read_only.push(folder.path().to_owned());
    }
    assert!(exists(copy.to_str().unwrap()));
    must_be_contained(&execute(&spec));
}
