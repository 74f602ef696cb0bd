//! What a program sees.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use steelyard_model::{NetworkView, RootView, SandboxSpec};

use super::Case;
use crate::jail::{Jail, wait_for};

pub(super) const CASES: &[(&str, Case)] = &[
    ("the_host_view_is_an_allow_list", the_host_view_is_an_allow_list),
    ("paths_asked_for_are_shown_at_the_same_place", paths_asked_for_are_shown),
    ("what_is_written_to_a_writable_path_is_kept", what_is_written_is_kept),
    ("a_writable_path_keeps_its_permissions", a_writable_path_keeps_its_permissions),
    ("a_directory_can_be_the_root", a_directory_can_be_the_root),
    ("a_hostile_root_cannot_move_mounts_outside", a_hostile_root_cannot_move_mounts_outside),
    ("a_missing_mount_point_is_explained", a_missing_mount_point_is_explained),
    ("a_missing_working_directory_is_explained", a_missing_working_directory_is_explained),
    ("the_host_network_is_recorded", the_host_network_is_recorded),
    ("bad_specifications_are_refused", bad_specifications_are_refused),
    ("workers_are_different_users", workers_are_different_users),
];

fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn the_host_view_is_an_allow_list() {
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    let ended = jail.execute(&["/bin/ls", "/"]);
    ended.must_say("usr");
    let allowed = "bin box dev etc gnu lib lib32 lib64 libx32 nix opt proc sbin sys tmp usr";
    // The folder of this very program is shown too, or it could not be executed inside.
    let own = std::env::current_exe().unwrap();
    let own_top = own.components().nth(1).unwrap().as_os_str().to_str().unwrap();
    for entry in ended.output.lines() {
        let is_allowed = entry == own_top || allowed.split(' ').any(|name| name == entry);
        assert!(is_allowed, "`/{entry}` is shown");
    }
    jail.execute(&["/bin/cat", "/etc/passwd"]).must_say("sandbox:x:60007");
    jail.execute(&["/bin/sh", "-c", "id -un; hostname"]).must_say("sandbox\nsandbox");
}

fn paths_asked_for_are_shown() {
    let outer = open_folder();
    let inner = outer.path().join("a/b");
    fs::create_dir_all(&inner).unwrap();
    fs::write(outer.path().join("file"), "read me").unwrap();
    fs::write(inner.join("file"), "deep").unwrap();
    let far = tempfile::tempdir_in("/var").unwrap();
    fs::set_permissions(far.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(far.path().join("file"), "far").unwrap();
    let spec = SandboxSpec {
        read_only: vec![outer.path().join("file"), inner.clone(), far.path().to_owned()],
        ..SandboxSpec::default()
    };
    let jail = Jail::new(&spec).unwrap();
    for (path, content) in [
        (outer.path().join("file"), "read me"),
        (inner.join("file"), "deep"),
        (far.path().join("file"), "far"),
    ] {
        jail.execute(&["/bin/cat", text(&path)]).must_say(content);
        let ended = jail.execute(&["/bin/sh", "-c", &format!("echo x > {}", text(&path))]);
        assert!(ended.output.contains("Read-only") || ended.output.contains("denied"), "{}", ended.output);
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    jail.execute(&["/bin/sh", "-c", &format!("ls {}; ls -a /tmp /var", text(outer.path()))]).must_say("file");
}

fn what_is_written_is_kept() {
    let folder = open_folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let spec = SandboxSpec { writable: vec![folder.path().to_owned()], ..SandboxSpec::default() };
    let jail = Jail::new(&spec).unwrap();
    let script =
        format!("echo kept > {}/out; cp /bin/sh {0}/sh; chmod 4777 {0}/sh; ls -la {0}", text(folder.path()));
    jail.execute(&["/bin/sh", "-c", &script]).must_say("out");
    assert_eq!(fs::read_to_string(folder.path().join("out")).unwrap(), "kept\n");
    let kind = fs::metadata(folder.path().join("sh")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&kind), 60_007, "never root's");
}

fn a_writable_path_keeps_its_permissions() {
    let folder = open_folder();
    let spec = SandboxSpec { writable: vec![folder.path().to_owned()], ..SandboxSpec::default() };
    let jail = Jail::new(&spec).unwrap();
    assert!(
        jail.pool.degraded().iter().any(|text| text.contains("cannot write")),
        "{:?}",
        jail.pool.degraded()
    );
    let ended = jail.execute(&["/bin/sh", "-c", &format!("echo x > {}/out", text(folder.path()))]);
    assert!(ended.output.contains("denied"), "{}", ended.output);
}

/// A root tree made of the host's programs: `usr` is a directory of links into a copy.
fn small_root() -> Option<tempfile::TempDir> {
    if !Path::new("/bin/busybox").exists() {
        println!("skipped: needs a static busybox");
        return None;
    }
    let root = open_folder();
    for place in ["bin", "etc", "data"] {
        fs::create_dir(root.path().join(place)).unwrap();
    }
    fs::copy("/bin/busybox", root.path().join("bin/busybox")).unwrap();
    std::os::unix::fs::symlink("bin", root.path().join("sbin")).unwrap();
    fs::write(root.path().join("etc/motd"), "small root").unwrap();
    Some(root)
}

fn a_directory_can_be_the_root() {
    let Some(root) = small_root() else { return };
    let spec =
        SandboxSpec { root: RootView::Directory { path: root.path().to_owned() }, ..SandboxSpec::default() };
    let jail = Jail::new(&spec).unwrap();
    jail.execute(&["/bin/busybox", "cat", "/etc/motd"]).must_say("small root");
    let ended = jail.execute(&["/sbin/busybox", "ls", "/"]);
    ended.must_say("data");
    assert!(!ended.output.contains("usr") && !ended.output.contains("root"), "{}", ended.output);
    let ended = jail.execute(&["/bin/busybox", "touch", "/data/x"]);
    assert!(ended.output.contains("Read-only"), "{}", ended.output);
    jail.execute(&["/bin/busybox", "touch", "/tmp/x", "/box/x", "/dev/shm/x"]).must_say("");
    jail.attack("poke-proc-and-sys", &[]);
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 4, "the tree itself stays as it was");
}

fn a_hostile_root_cannot_move_mounts_outside() {
    let Some(root) = small_root() else { return };
    let victim = open_folder();
    std::os::unix::fs::symlink(victim.path(), root.path().join("home")).unwrap();
    let shown = open_folder();
    let spec = SandboxSpec {
        root: RootView::Directory { path: root.path().to_owned() },
        read_only: vec![shown.path().to_owned()],
        ..SandboxSpec::default()
    };
    drop(Jail::new(&spec));
    assert_eq!(fs::read_dir(victim.path()).unwrap().count(), 0);
}

fn a_missing_mount_point_is_explained() {
    let Some(root) = small_root() else { return };
    let inside = tempfile::tempdir_in("/etc").unwrap();
    let spec = SandboxSpec {
        root: RootView::Directory { path: root.path().to_owned() },
        read_only: vec![inside.path().to_owned()],
        ..SandboxSpec::default()
    };
    let error = Jail::new(&spec).err().expect("`/etc` of the tree is read-only and lacks it");
    assert!(error.to_string().contains("read_only") && error.to_string().contains("root"), "{error}");
}

fn a_missing_working_directory_is_explained() {
    let jail = Jail::new(&SandboxSpec::default()).unwrap();
    let (process, reader) = jail.start(&["/bin/true"], Some(Path::new("/root")));
    let ended = wait_for(process, reader);
    assert!(ended.output.contains("working_directory") && ended.output.contains("/root"), "{}", ended.output);
    let (process, reader) = jail.start(&["/bin/pwd"], Some(Path::new("/usr")));
    wait_for(process, reader).must_say("/usr");
}

fn the_host_network_is_recorded() {
    let spec = SandboxSpec { network: NetworkView::Host, ..SandboxSpec::default() };
    let jail = Jail::new(&spec).unwrap();
    assert!(jail.pool.degraded().iter().any(|text| text.contains("network")), "{:?}", jail.pool.degraded());
    jail.execute(&["/bin/cat", "/proc/net/dev"]).must_say("lo:");
}

fn bad_specifications_are_refused() {
    let bad = [
        SandboxSpec { user_id: Some(0), ..SandboxSpec::default() },
        SandboxSpec { read_only: vec![PathBuf::from("/no/such/path")], ..SandboxSpec::default() },
        SandboxSpec { writable: vec![PathBuf::from("/proc")], ..SandboxSpec::default() },
        SandboxSpec { root: RootView::Directory { path: "/".into() }, ..SandboxSpec::default() },
        SandboxSpec { root: RootView::Directory { path: "/etc/passwd".into() }, ..SandboxSpec::default() },
    ];
    for spec in bad {
        let error = Jail::new(&spec).err().expect("a bad specification is refused");
        assert!(!error.hint().is_empty());
    }
}

fn workers_are_different_users() {
    for worker in [0, 3] {
        let jail = Jail::of_worker(&SandboxSpec::default(), worker).unwrap();
        jail.execute(&["/usr/bin/id", "-u"]).must_say(&(60_000 + worker).to_string());
    }
}
