use super::*;

fn place(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn stat(tid: u32, policy: u32) -> String {
    let before: Vec<String> = (4..=40).map(|field| field.to_string()).collect();
    format!("{tid} (a ) name) S {} {policy} 0 0\n", before.join(" "))
}

/// A host with one process in the group `jobs`.
fn host(idle: &str, policy: u32) -> tempfile::TempDir {
    let host = tempfile::tempdir().unwrap();
    let root = host.path();
    place(root, "proc/mounts", "none /cg cgroup2 rw 0 0\n");
    place(root, "proc/7/cgroup", "0::/jobs\n");
    place(root, "proc/7/stat", &stat(7, policy));
    place(root, "cg/jobs/cpu.idle", idle);
    place(root, "cg/jobs/cgroup.freeze", "0\n");
    place(root, "cg/jobs/cgroup.threads", "7\n");
    host
}

fn is_frozen(host: &tempfile::TempDir) -> bool {
    fs::read_to_string(host.path().join("cg/jobs/cgroup.freeze")).unwrap().trim() == "1"
}

fn freezer(host: &tempfile::TempDir) -> Freezer {
    let mut freezer = Freezer::new(host.path(), &host.path().join("state"));
    // The guard is the installed program; here nobody kills anybody.
    freezer.guard = Command::new("true").stdin(Stdio::piped()).spawn().ok();
    freezer
}

#[test]
fn a_group_of_idle_threads_is_frozen_and_thawed() {
    let host = host("0\n", 5);
    let mut freezer = freezer(&host);
    assert_eq!(freezer.freeze_group_of(7), Some(host.path().join("cg/jobs")));
    assert!(is_frozen(&host) && freezer.has_frozen());
    freezer.thaw_all();
    assert!(!is_frozen(&host) && !freezer.has_frozen());
}

#[test]
fn a_group_marked_idle_is_frozen_whatever_its_threads_are() {
    let host = host("1\n", 0);
    let mut freezer = freezer(&host);
    assert_eq!(freezer.freeze_all(), 1);
    assert!(is_frozen(&host));
}

#[test]
fn a_group_with_one_usual_thread_is_never_frozen() {
    let host = host("0\n", 5);
    place(host.path(), "proc/8/stat", &stat(8, 0));
    place(host.path(), "cg/jobs/below/cgroup.threads", "8\n");
    let mut freezer = freezer(&host);
    assert_eq!(freezer.freeze_group_of(7), None);
    assert_eq!(freezer.freeze_all(), 0);
    assert!(!is_frozen(&host));
}

#[test]
fn the_root_group_is_never_frozen() {
    let host = host("1\n", 5);
    place(host.path(), "proc/7/cgroup", "0::/\n");
    place(host.path(), "cg/cgroup.freeze", "0\n");
    place(host.path(), "cg/cpu.idle", "1\n");
    assert_eq!(freezer(&host).freeze_group_of(7), None);
}

#[test]
fn a_group_that_another_froze_is_left_alone() {
    let host = host("1\n", 5);
    place(host.path(), "cg/jobs/cgroup.freeze", "1\n");
    let mut freezer = freezer(&host);
    assert_eq!(freezer.freeze_group_of(7), None);
    drop(freezer);
    assert!(is_frozen(&host));
}

#[test]
fn groups_left_frozen_by_a_killed_scheduler_are_thawed() {
    let host = host("1\n", 5);
    let mut killed = freezer(&host);
    killed.freeze_all();
    std::mem::forget(killed);
    assert!(is_frozen(&host));
    assert_eq!(thaw_left(&host.path().join("state"), false), 1);
    assert!(!is_frozen(&host));
    assert_eq!(thaw_left(&host.path().join("state"), false), 0);
}
