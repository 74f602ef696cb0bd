use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{CpuSet, HostError, HostRoot};

#[cfg(test)]
mod tests;

const CPU_FOLDER: &str = "/sys/devices/system/cpu";

/// Which CPUs there are and what they share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// Online CPUs in order of their number.
    pub cpus: Vec<Cpu>,
    /// Numbers of the online CPUs.
    pub online: CpuSet,
    /// CPUs this process may use.
    pub allowed: CpuSet,
    /// CPUs taken from the scheduler's load balancing (`isolcpus=` or an isolated partition).
    pub isolated: CpuSet,
    /// CPUs without a periodic tick while one task runs (`nohz_full=`).
    pub tickless: CpuSet,
    /// Sockets.
    pub socket_count: u32,
    /// Cores, each counted once however many hardware threads it has.
    pub core_count: u32,
    /// Whether any core shows more than one hardware thread.
    pub smt: bool,
    /// Memory nodes in order.
    pub memory_nodes: Vec<MemoryNode>,
    /// Groups of CPUs that share their last level of cache, in order of their first CPU.
    pub last_level_caches: Vec<CacheGroup>,
    /// What had to be assumed because the host does not say it.
    pub assumptions: Vec<String>,
}

/// One hardware thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Number.
    pub id: u32,
    /// Socket it belongs to.
    pub socket: u32,
    /// Its core, named by the smallest CPU number among the core's threads.
    pub core: u32,
    /// Position among the threads of its core; 0 for the first.
    pub thread: u32,
    /// All threads of its core, itself included.
    pub siblings: CpuSet,
    /// Memory node.
    pub memory_node: u32,
    /// Position in [`Topology::last_level_caches`].
    pub last_level_cache: u32,
    /// 0 for the most capable kind of core, then 1 and so on on hybrid processors.
    pub efficiency_class: u32,
}

/// A memory node with its CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryNode {
    /// Number.
    pub id: u32,
    /// Online CPUs near to it; empty for memory without CPUs.
    pub cpus: CpuSet,
    /// Its memory [bytes], if the host says it.
    pub memory_bytes: Option<u64>,
}

/// CPUs that share their last level of cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheGroup {
    /// Level, 0 when the host does not describe its caches.
    pub level: u32,
    /// Size [bytes], if the host says it.
    pub size_bytes: Option<u64>,
    /// Online CPUs.
    pub cpus: CpuSet,
}

/// Reads the topology.
///
/// A host that hides parts of it (containers, small boards) gets the assumption that separates
/// least: one socket, one memory node, one cache, one thread per core; each is named in
/// [`Topology::assumptions`].
///
/// # Errors
///
/// [`HostError`] when the online CPUs cannot be established or a list is damaged.
pub fn read_topology(root: &HostRoot) -> Result<Topology, HostError> {
    let mut assumptions = Vec::new();
    let online = read_online(root)?;
    let allowed = read_allowed(root)?.map_or_else(|| online.clone(), |set| set.intersection(&online));
    let memory_nodes = read_memory_nodes(root, &online, &mut assumptions)?;
    let last_level_caches = read_cache_groups(root, &online, &mut assumptions)?;
    let classes = efficiency_classes(root, &online)?;
    let mut cpus = Vec::with_capacity(online.len());
    for id in online.iter() {
        let siblings = read_siblings(root, id, &online, &mut assumptions)?;
        let position = siblings.iter().position(|sibling| sibling == id).unwrap_or(0);
        cpus.push(Cpu {
            id,
            socket: read_socket(root, id),
            core: siblings.first().unwrap_or(id),
            thread: u32::try_from(position).unwrap_or(0),
            memory_node: memory_nodes.iter().find(|node| node.cpus.contains(id)).map_or(0, |node| node.id),
            last_level_cache: position_of(&last_level_caches, id),
            efficiency_class: classes.get(&id).copied().unwrap_or(0),
            siblings,
        });
    }
    let count = |items: BTreeSet<u32>| u32::try_from(items.len()).unwrap_or(u32::MAX);
    assumptions.sort_unstable();
    assumptions.dedup();
    Ok(Topology {
        isolated: optional_list(root, &format!("{CPU_FOLDER}/isolated"))?,
        tickless: optional_list(root, &format!("{CPU_FOLDER}/nohz_full"))?,
        socket_count: count(cpus.iter().map(|cpu| cpu.socket).collect()),
        core_count: count(cpus.iter().map(|cpu| cpu.core).collect()),
        smt: cpus.iter().any(|cpu| cpu.siblings.len() > 1),
        cpus,
        online,
        allowed,
        memory_nodes,
        last_level_caches,
        assumptions,
    })
}

fn position_of(groups: &[CacheGroup], cpu: u32) -> u32 {
    let position = groups.iter().position(|group| group.cpus.contains(cpu)).unwrap_or(0);
    u32::try_from(position).unwrap_or(0)
}

fn read_online(root: &HostRoot) -> Result<CpuSet, HostError> {
    if let Some(text) = root.text(&format!("{CPU_FOLDER}/online")) {
        let set: CpuSet = text.parse()?;
        if !set.is_empty() {
            return Ok(set);
        }
    }
    let stat = root.read("/proc/stat")?;
    let numbers = |line: &str| line.strip_prefix("cpu")?.split(' ').next()?.parse::<u32>().ok();
    let set: CpuSet = stat.lines().filter_map(numbers).collect();
    if set.is_empty() {
        return Err(HostError::content(root.resolve("/proc/stat"), &stat, "a line `cpu<N>` for each CPU"));
    }
    Ok(set)
}

fn read_allowed(root: &HostRoot) -> Result<Option<CpuSet>, HostError> {
    let Some(status) = root.text("/proc/self/status") else { return Ok(None) };
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    Ok(list.map(str::parse).transpose()?)
}

/// An absent list, `(null)` (older kernels without the boot parameter) and an empty one are the same.
fn optional_list(root: &HostRoot, path: &str) -> Result<CpuSet, HostError> {
    match root.text(path) {
        Some(text) if text != "(null)" => Ok(text.parse()?),
        _ => Ok(CpuSet::default()),
    }
}

fn read_siblings(
    root: &HostRoot,
    cpu: u32,
    online: &CpuSet,
    assumptions: &mut Vec<String>,
) -> Result<CpuSet, HostError> {
    for name in ["core_cpus_list", "thread_siblings_list"] {
        if let Some(text) = root.text(&format!("{CPU_FOLDER}/cpu{cpu}/topology/{name}")) {
            let siblings = text.parse::<CpuSet>()?.intersection(online);
            if siblings.contains(cpu) {
                return Ok(siblings);
            }
        }
    }
    assumptions.push("cores are not described: each CPU is taken as a core of its own".to_owned());
    Ok(std::iter::once(cpu).collect())
}

fn read_socket(root: &HostRoot, cpu: u32) -> u32 {
    // ARM boards without a described socket report -1.
    root.number::<u32>(&format!("{CPU_FOLDER}/cpu{cpu}/topology/physical_package_id")).unwrap_or(0)
}

fn read_memory_nodes(
    root: &HostRoot,
    online: &CpuSet,
    assumptions: &mut Vec<String>,
) -> Result<Vec<MemoryNode>, HostError> {
    let folder = "/sys/devices/system/node";
    let mut nodes = Vec::new();
    for id in root.numbered(folder, "node") {
        let cpus = optional_list(root, &format!("{folder}/node{id}/cpulist"))?.intersection(online);
        let memory_bytes = root.text(&format!("{folder}/node{id}/meminfo")).as_deref().and_then(node_memory);
        nodes.push(MemoryNode { id, cpus, memory_bytes });
    }
    if nodes.iter().all(|node| node.cpus.is_empty()) {
        assumptions.push("memory nodes are not described: all memory is taken as equally near".to_owned());
        nodes = vec![MemoryNode { id: 0, cpus: online.clone(), memory_bytes: None }];
    }
    Ok(nodes)
}

fn node_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.contains("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().rev().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}

fn read_cache_groups(
    root: &HostRoot,
    online: &CpuSet,
    assumptions: &mut Vec<String>,
) -> Result<Vec<CacheGroup>, HostError> {
    let mut groups: Vec<CacheGroup> = Vec::new();
    let mut undescribed = false;
    for cpu in online.iter() {
        if groups.iter().any(|group| group.cpus.contains(cpu)) {
            continue;
        }
        match read_last_cache(root, cpu, online)? {
            Some(group) => groups.push(group),
            None => undescribed = true,
        }
    }
    if undescribed {
        assumptions.push("caches are not described: CPUs without one are taken as sharing".to_owned());
        let rest = |cpu: &u32| !groups.iter().any(|group| group.cpus.contains(*cpu));
        let cpus: CpuSet = online.iter().filter(rest).collect();
        groups.push(CacheGroup { level: 0, size_bytes: None, cpus });
        groups.sort_by_key(|group| group.cpus.first());
    }
    Ok(groups)
}

fn read_last_cache(root: &HostRoot, cpu: u32, online: &CpuSet) -> Result<Option<CacheGroup>, HostError> {
    let folder = format!("{CPU_FOLDER}/cpu{cpu}/cache");
    let mut last: Option<CacheGroup> = None;
    for index in root.numbered(&folder, "index") {
        let place = format!("{folder}/index{index}");
        let Some(level) = root.number::<u32>(&format!("{place}/level")) else { continue };
        let Some(shared) = root.text(&format!("{place}/shared_cpu_list")) else { continue };
        let cpus = shared.parse::<CpuSet>()?.intersection(online);
        if cpus.contains(cpu) && last.as_ref().is_none_or(|group| level >= group.level) {
            let size_bytes = root.text(&format!("{place}/size")).as_deref().and_then(parse_size);
            last = Some(CacheGroup { level, size_bytes, cpus });
        }
    }
    Ok(last)
}

pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor = match text.get(digits.len()..)? {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// Ranks kinds of cores: by the kernel's own lists where it keeps one PMU per kind (Intel), else by
/// capacity. Capacities within 10 % are one kind: preferred cores of one kind differ by less.
fn efficiency_classes(root: &HostRoot, online: &CpuSet) -> Result<BTreeMap<u32, u32>, HostError> {
    let mut classes = BTreeMap::new();
    let kinds = ["cpu_core", "cpu_atom", "cpu_lowpower"];
    let present: Vec<&str> =
        kinds.into_iter().filter(|kind| root.exists(&format!("/sys/devices/{kind}/cpus"))).collect();
    if present.len() > 1 {
        for (class, kind) in (0u32..).zip(present) {
            let cpus = optional_list(root, &format!("/sys/devices/{kind}/cpus"))?;
            classes.extend(cpus.iter().map(|cpu| (cpu, class)));
        }
        return Ok(classes);
    }
    let capacity = |cpu: u32| root.number::<u64>(&format!("{CPU_FOLDER}/cpu{cpu}/cpu_capacity"));
    let mut capacities: Vec<(u64, u32)> =
        online.iter().filter_map(|cpu| Some((capacity(cpu)?, cpu))).collect();
    capacities.sort_unstable_by(|first, second| second.cmp(first));
    let (mut class, mut head) = (0, capacities.first().map_or(0, |entry| entry.0));
    for (value, cpu) in capacities {
        if u128::from(value) * 10 < u128::from(head) * 9 {
            class += 1;
            head = value;
        }
        classes.insert(cpu, class);
    }
    Ok(classes)
}
