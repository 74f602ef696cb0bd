use super::*;
use std::fs;
use std::path::Path;

fn fake_layout(root: &Path, controllers: &[Controller]) -> Layout {
    let v1 = controllers
        .iter()
        .map(|controller| {
            let mount = root.join(controller.as_str());
            fs::create_dir_all(&mount).unwrap();
            Hierarchy { group: mount.clone(), mount, controllers: BTreeSet::from([*controller]) }
        })
        .collect();
    Layout { v2: None, v1, root: root.to_owned() }
}

#[test]
fn a_cpuset_is_filled_from_its_parent() {
    let root = tempfile::tempdir().unwrap();
    let layout = fake_layout(root.path(), &[Controller::Cpuset]);
    let mount = &layout.v1[0].mount;
    fs::write(mount.join("cpuset.cpus"), "0-1\n").unwrap();
    fs::write(mount.join("cpuset.mems"), "0\n").unwrap();
    let group = mount.join("steelyard-7");
    let error = claim_one(&layout.v1[0], 7).unwrap_err();
    // A plain directory has no `cpuset.cpus` of its own: the attempt names the very file.
    assert!(error.to_string().contains("steelyard-7/cpuset.cpus"), "{error}");
    assert!(error.to_string().contains("0-1"), "{error}");
    assert!(group.exists());
}

#[test]
fn limits_stand_on_top_of_the_residents() {
    let root = tempfile::tempdir().unwrap();
    let layout = fake_layout(root.path(), &[Controller::Memory, Controller::Pids]);
    let (mut groups, degraded) = ResidentGroups::claim(&layout, 7);
    assert!(degraded.is_empty());
    let memory = groups.group(Controller::Memory).unwrap();
    for (name, text) in [
        ("memory.usage_in_bytes", "1000"),
        ("memory.max_usage_in_bytes", "5000"),
        ("memory.limit_in_bytes", ""),
        ("memory.memsw.limit_in_bytes", ""),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
    ] {
        fs::write(memory.join(name), text).unwrap();
    }
    let pids = groups.group(Controller::Pids).unwrap();
    fs::write(pids.join("pids.current"), "2\n").unwrap();
    fs::write(pids.join("pids.max"), "").unwrap();
    groups.files = groups.open_files();
    let limits = GroupLimits { memory_bytes: Some(4096), process_count: Some(5), ..GroupLimits::default() };
    groups.apply(&limits).unwrap();
    groups.limit_memory(limits.memory_bytes, 1000).unwrap();
    assert_eq!(fs::read_to_string(memory.join("memory.limit_in_bytes")).unwrap(), "5096");
    assert_eq!(fs::read_to_string(memory.join("memory.memsw.limit_in_bytes")).unwrap(), "5096");
    assert_eq!(fs::read_to_string(pids.join("pids.max")).unwrap(), "7");
    assert_eq!(groups.sample().oom_kills(), Some(2));
    groups.reset_peak(0);
    assert!(fs::read_to_string(memory.join("memory.max_usage_in_bytes")).unwrap().starts_with('0'));
    fs::remove_dir_all(memory).unwrap();
    fs::remove_dir_all(pids).unwrap();
}

#[test]
fn a_hierarchy_that_refuses_is_named() {
    let root = tempfile::tempdir().unwrap();
    let mut layout = fake_layout(root.path(), &[Controller::Memory]);
    layout.v1[0].mount = root.path().join("absent");
    layout.v1[0].group = root.path().join("absent");
    let (groups, degraded) = ResidentGroups::claim(&layout, 7);
    assert!(groups.is_empty());
    assert!(degraded[0].contains("absent/steelyard-7"), "{degraded:?}");
}

#[test]
fn a_grip_lets_nothing_be_forked_and_is_relaxed_afterwards() {
    let root = tempfile::tempdir().unwrap();
    let layout = fake_layout(root.path(), &[Controller::Pids, Controller::Cpu, Controller::Memory]);
    let (mut groups, _) = ResidentGroups::claim(&layout, 7);
    let [pids, cpu, memory] = [Controller::Pids, Controller::Cpu, Controller::Memory]
        .map(|controller| groups.group(controller).unwrap());
    let files = [
        (&pids, "pids.max", ""),
        (&pids, "pids.current", "2\n"),
        (&pids, "cgroup.procs", "0\n"),
        (&cpu, "cpu.shares", ""),
        (&cpu, "cpu.rt_runtime_us", ""),
        (&memory, "memory.usage_in_bytes", "5000\n"),
        (&memory, "memory.kmem.usage_in_bytes", "3000\n"),
        (&memory, "memory.limit_in_bytes", ""),
    ];
    for (group, name, text) in files {
        fs::write(group.join(name), text).unwrap();
    }
    let read = |group: &Path, name: &str| fs::read_to_string(group.join(name)).unwrap();
    groups.apply(&GroupLimits { process_count: Some(5), ..GroupLimits::default() }).unwrap();
    let mut hold = Hold::default();
    groups.add_to(&mut hold, &[]);
    let grip = crate::cgroup::Grip { residents: std::sync::Arc::new(hold), leaf: None };
    // Plain files are written from where the last write ended.
    for (group, name) in [(&pids, "pids.max"), (&cpu, "cpu.shares"), (&cpu, "cpu.rt_runtime_us")] {
        fs::write(group.join(name), "").unwrap();
    }
    assert!(!grip.end(), "0 is a process of somebody else");
    assert_eq!(read(&pids, "pids.max"), "0");
    assert_eq!(read(&cpu, "cpu.shares"), SHARES.0);
    assert_eq!(read(&cpu, "cpu.rt_runtime_us"), LAST_REAL_TIME_US.to_string());
    assert_eq!((grip.memory_bytes(), grip.kernel_memory_bytes()), (Some(5000), Some(3000)));
    for (group, name) in [(&pids, "pids.max"), (&cpu, "cpu.shares"), (&cpu, "cpu.rt_runtime_us")] {
        fs::write(group.join(name), "").unwrap();
    }
    groups.relax(false).unwrap();
    assert_eq!(read(&pids, "pids.max"), "7");
    assert_eq!(read(&cpu, "cpu.shares"), SHARES.1);
    assert_eq!(read(&cpu, "cpu.rt_runtime_us"), "0");
    for group in [pids, cpu, memory] {
        fs::remove_dir_all(group).unwrap();
    }
}
