//! Attacks that the sandbox itself stops, without a control group.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use steelyard_model::{Limits, SandboxSpec};

use super::Case;
use crate::attack::kernel::by_foreign_tables;
use crate::jail::Jail;

pub(super) const CASES: &[(&str, Case)] = &[
    ("host_secrets_cannot_be_read", host_secrets_cannot_be_read),
    ("nothing_outside_can_be_written", || plain("write-outside")),
    ("symlinks_lead_nowhere", symlinks_lead_nowhere),
    ("the_root_cannot_be_left", || plain("leave-the-root")),
    ("device_nodes_cannot_be_made", || plain("device-nodes")),
    ("mounts_are_refused", || plain("mounts")),
    ("proc_and_sys_cannot_be_poked", || plain("poke-proc-and-sys")),
    ("own_places_are_writable", || plain("write-own-places")),
    ("the_network_cannot_be_reached", the_network_cannot_be_reached),
    ("special_sockets_are_refused", || plain("special-sockets")),
    ("kernel_calls_are_refused", || plain("kernel-calls")),
    ("namespaces_are_refused", || plain("namespaces")),
    ("keyrings_are_refused", || plain("keyrings")),
    ("foreign_call_tables_end_the_program", foreign_call_tables_end_the_program),
    ("no_capability_is_left", || plain("capabilities")),
    ("set_user_id_programs_gain_nothing", set_user_id_programs_gain_nothing),
    ("limits_cannot_be_raised", || plain("raise-limits")),
    ("priority_cannot_be_raised", || plain("raise-priority")),
    ("other_processes_cannot_be_traced", || with_host_processes("trace-others")),
    ("other_processes_cannot_be_signalled", || with_host_processes("signal-others")),
    ("the_disk_cannot_be_filled", the_disk_cannot_be_filled),
    ("inodes_cannot_be_used_up", inodes_cannot_be_used_up),
    ("a_million_files_cannot_be_opened", || plain("open-files")),
];

fn plain(attack: &str) {
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    assert_eq!(jail.pool.degraded(), [] as [String; 0]);
    jail.attack(attack, &[]).must_be_contained();
}

/// A file only root should read, outside every view.
fn secret() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new_in("/root").unwrap();
    std::fs::write(file.path(), "secret").unwrap();
    file
}

fn host_secrets_cannot_be_read() {
    let (root, open) = (secret(), tempfile::NamedTempFile::new().unwrap());
    std::fs::set_permissions(open.path(), std::fs::Permissions::from_mode(0o666)).unwrap();
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    let paths = [root.path().to_str().unwrap(), open.path().to_str().unwrap()];
    jail.attack("read-secrets", &paths).must_be_contained();
}

fn symlinks_lead_nowhere() {
    let root = secret();
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    jail.attack("symlinks", &[root.path().to_str().unwrap()]).must_be_contained();
    assert_eq!(std::fs::read(root.path()).unwrap(), b"secret");
}

fn the_network_cannot_be_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = format!("steelyard-test-{}", std::process::id());
    let _local = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    jail.attack("network", &[&port, &name]).must_be_contained();
}

fn foreign_call_tables_end_the_program() {
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    for attack in by_foreign_tables() {
        let ended = jail.attack(attack, &[]);
        let killed = matches!(ended.status, WaitStatus::Signaled(_, Signal::SIGSYS, _));
        assert!(killed, "{attack}: {:?}\n{}", ended.status, ended.output);
        println!("{attack}: ended by the filter");
    }
}

fn set_user_id_programs_gain_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("copy");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o6755)).unwrap();
    let spec = SandboxSpec { writable: vec![folder.path().to_owned()], ..SandboxSpec::default() };
    let jail = Jail::new(&spec).unwrap();
    jail.attack("become-root", &[copy.to_str().unwrap()]).must_be_contained();
}

fn with_host_processes(attack: &str) {
    let hosts = [std::process::id().to_string(), std::os::unix::process::parent_id().to_string()];
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    jail.attack(attack, &[&hosts[0], &hosts[1]]).must_be_contained();
}

fn the_disk_cannot_be_filled() {
    let mut jail = Jail::new(&SandboxSpec::default()).unwrap();
    for (bytes, text) in [(None, "67108864"), (Some(1 << 20), "1048576")] {
        jail.limits = Limits { disk_bytes: bytes, ..Limits::default() };
        jail.attack("fill-disk", &[text]).must_be_contained();
    }
}

fn inodes_cannot_be_used_up() {
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    jail.attack("fill-inodes", &["16384"]).must_be_contained();
}
