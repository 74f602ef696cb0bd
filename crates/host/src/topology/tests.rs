use super::*;
use crate::report::tests::tree;

fn cpu_files(cpu: u32, socket: u32, siblings: &str, cache: &str) -> Vec<(String, String)> {
    let place = format!("sys/devices/system/cpu/cpu{cpu}");
    vec![
        (format!("{place}/topology/physical_package_id"), socket.to_string()),
        (format!("{place}/topology/core_cpus_list"), siblings.into()),
        (format!("{place}/cache/index0/level"), "1".into()),
        (format!("{place}/cache/index0/shared_cpu_list"), siblings.into()),
        (format!("{place}/cache/index3/level"), "3".into()),
        (format!("{place}/cache/index3/size"), "25600K".into()),
        (format!("{place}/cache/index3/shared_cpu_list"), cache.into()),
    ]
}

fn build(files: &[(String, String)]) -> tempfile::TempDir {
    let borrowed: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    tree(&borrowed)
}

/// Even CPUs on socket 0, odd ones on socket 1; threads 20-39 are the second ones.
fn two_sockets() -> tempfile::TempDir {
    let mut files = vec![
        ("sys/devices/system/cpu/online".into(), "0-39\n".into()),
        ("sys/devices/system/cpu/isolated".into(), "38-39\n".into()),
        ("sys/devices/system/cpu/nohz_full".into(), "(null)\n".into()),
        ("proc/self/status".into(), "Name:\tx\nCpus_allowed_list:\t0-35\n".into()),
        ("sys/devices/system/node/node0/cpulist".into(), "0-38:1/2".into()),
        ("sys/devices/system/node/node0/meminfo".into(), "Node 0 MemTotal:  1024 kB\n".into()),
        ("sys/devices/system/node/node1/cpulist".into(), "1-39:1/2".into()),
    ];
    for cpu in 0..40u32 {
        let cache = if cpu % 2 == 0 { "0-38:1/2" } else { "1-39:1/2" };
        files.extend(cpu_files(cpu, cpu % 2, &format!("{},{}", cpu % 20, cpu % 20 + 20), cache));
    }
    build(&files)
}

#[test]
fn two_sockets_with_ten_cores_and_two_threads_are_understood() {
    let folder = two_sockets();
    let topology = read_topology(&HostRoot::at(folder.path())).unwrap();
    assert_eq!((topology.socket_count, topology.core_count, topology.smt), (2, 20, true));
    assert_eq!(topology.last_level_caches.len(), 2);
    assert_eq!(topology.last_level_caches[1].size_bytes, Some(25600 << 10));
    assert_eq!(topology.memory_nodes[0].memory_bytes, Some(1 << 20));
    assert_eq!((topology.allowed.len(), topology.isolated.to_string().as_str()), (36, "38-39"));
    assert!(topology.tickless.is_empty() && topology.assumptions.is_empty());
    let cpu = &topology.cpus[25];
    assert_eq!((cpu.core, cpu.thread, cpu.socket, cpu.memory_node, cpu.last_level_cache), (5, 1, 1, 1, 1));
}

#[test]
fn an_offline_sibling_does_not_count() {
    let mut files = vec![("sys/devices/system/cpu/online".into(), "0".into())];
    files.extend(cpu_files(0, 0, "0-1", "0-1"));
    let topology = read_topology(&HostRoot::at(build(&files).path())).unwrap();
    assert_eq!((topology.core_count, topology.smt), (1, false));
}

#[test]
fn kinds_of_cores_come_from_the_lists_of_the_kernel() {
    let mut files = vec![
        ("sys/devices/system/cpu/online".into(), "0-7".into()),
        ("sys/devices/cpu_core/cpus".into(), "0-3".into()),
        ("sys/devices/cpu_atom/cpus".into(), "4-7".into()),
    ];
    for cpu in 0..8 {
        let siblings = if cpu < 4 { format!("{}-{}", cpu / 2 * 2, cpu / 2 * 2 + 1) } else { cpu.to_string() };
        files.extend(cpu_files(cpu, 0, &siblings, "0-7"));
    }
    let topology = read_topology(&HostRoot::at(build(&files).path())).unwrap();
    let classes: Vec<u32> = topology.cpus.iter().map(|cpu| cpu.efficiency_class).collect();
    assert_eq!(classes, [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!((topology.core_count, topology.smt), (6, true));
}

#[test]
fn kinds_of_cores_come_from_capacities_and_small_differences_are_none() {
    let mut files = vec![("sys/devices/system/cpu/online".into(), "0-5".into())];
    for (cpu, capacity) in ["1024", "1000", "1024", "450", "446", "160"].iter().enumerate() {
        files.push((format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity"), (*capacity).into()));
    }
    let topology = read_topology(&HostRoot::at(build(&files).path())).unwrap();
    let classes: Vec<u32> = topology.cpus.iter().map(|cpu| cpu.efficiency_class).collect();
    assert_eq!(classes, [0, 0, 0, 1, 1, 2]);
}

#[test]
fn a_host_that_says_nothing_gets_named_assumptions() {
    let folder = tree(&[("proc/stat", "cpu  1 1 1 1\ncpu0 1 1 1 1\ncpu1 1 1 1 1\n")]);
    let topology = read_topology(&HostRoot::at(folder.path())).unwrap();
    assert_eq!((topology.socket_count, topology.core_count, topology.last_level_caches.len()), (1, 2, 1));
    assert_eq!(topology.assumptions.len(), 3);
}

#[test]
fn damaged_lists_and_an_empty_tree_are_errors() {
    let folder = tree(&[("sys/devices/system/cpu/online", "0-banana")]);
    assert!(read_topology(&HostRoot::at(folder.path())).unwrap_err().to_string().contains("banana"));
    let empty = tree(&[]);
    assert!(read_topology(&HostRoot::at(empty.path())).unwrap_err().to_string().contains("proc/stat"));
}

#[test]
fn the_running_system_is_consistent() {
    let topology = read_topology(&HostRoot::system()).unwrap();
    assert!(!topology.cpus.is_empty() && topology.core_count >= topology.socket_count);
    assert!(topology.allowed.iter().all(|cpu| topology.online.contains(cpu)));
}
