//! Which CPUs share a core, a last-level cache, and a memory node.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Most possible CPUs that the class and the meter know; `MAX_CPUS` in `cpu_words.bpf.h`.
pub const MAX_CPUS: usize = 2048;

/// Most hardware threads of a core; `THREADS_MOST` in `core.bpf.h`.
pub const THREADS_MOST: usize = 8;

/// Where a CPU is; equal names, one place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Its memory node.
    pub node: usize,
    /// Its last-level cache.
    pub cache: String,
    /// Its core, among all of the machine.
    pub core: String,
}

/// The machine's CPUs, grouped by memory node, last-level cache and core.
///
/// # Examples
///
/// ```
/// use steelyard_scheduler::topology::{Place, Topology};
/// let place = |core: &str| Place { node: 0, cache: "cache 0-3".to_owned(), core: core.to_owned() };
/// let topology = Topology::from_places(&["0,2", "1,3", "0,2", "1,3"].map(place));
/// assert_eq!(topology.cpu_order, [0, 2, 1, 3]);
/// assert_eq!(topology.next_sibling, [2, 3, 0, 1]);
/// assert_eq!((topology.llc_first, topology.nodes), (vec![0], 1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// CPUs so ordered that those of one node stand together, in it those of one cache, in it those of one core;
    /// shape (possible CPUs,).
    pub cpu_order: Vec<u16>,
    /// Cache of each CPU, numbered from 0 in that order; shape (possible CPUs,).
    pub llc_of: Vec<u16>,
    /// Where in `cpu_order` each cache's CPUs begin; shape (caches,).
    pub llc_first: Vec<u16>,
    /// Where in `cpu_order` the CPUs of each cache's node begin, and where they end; shape (caches,).
    pub node_range: Vec<(u16, u16)>,
    /// Memory nodes that have CPUs.
    pub nodes: usize,
    /// The next CPU of the same core, around; itself where it is alone; shape (possible CPUs,).
    pub next_sibling: Vec<u16>,
}

impl Topology {
    /// Read `/sys/devices/system/cpu` below a given root; `cpus` is the number of possible CPUs, at most
    /// [`MAX_CPUS`]. A CPU that says nothing of its caches counts to its package, else to the first one; one that
    /// says nothing of its core is alone there, as those that are off line are.
    #[must_use]
    pub fn read(root: &Path, cpus: usize) -> Self {
        let places: Vec<Place> = (0..cpus).map(|cpu| place_of(root, cpu)).collect();
        Self::from_places(&places)
    }

    /// Group CPUs by where they are. A cache belongs to the node of its first CPU.
    #[must_use]
    pub fn from_places(places: &[Place]) -> Self {
        let mut caches: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (cpu, place) in places.iter().enumerate() {
            caches.entry(&place.cache).or_insert((place.node, cpu));
        }
        let mut firsts: Vec<(usize, usize)> = caches.values().copied().collect();
        firsts.sort_unstable();
        let cache_of =
            |cpu: usize| firsts.partition_point(|first| *first < caches[places[cpu].cache.as_str()]);
        let mut cores: BTreeMap<(usize, &str), Vec<usize>> = BTreeMap::new();
        for (cpu, place) in places.iter().enumerate() {
            cores.entry((cache_of(cpu), &place.core)).or_default().push(cpu);
        }
        let mut next_sibling = vec![0; places.len()];
        let mut order: Vec<(usize, usize, usize)> = Vec::with_capacity(places.len());
        for ((cache, _), threads) in &cores {
            for (cpu, next) in threads.iter().zip(threads.iter().cycle().skip(1)) {
                next_sibling[*cpu] = *next;
                order.push((*cache, threads[0], *cpu));
            }
        }
        order.sort_unstable();
        let first = |cache| order.partition_point(|(other, ..)| *other < cache);
        let node_of = |cache: usize| firsts[cache].0;
        let range = |cache: usize| {
            let begin = firsts.partition_point(|(node, _)| *node < node_of(cache));
            let end = firsts.partition_point(|(node, _)| *node <= node_of(cache));
            (short(first(begin)), short(first(end)))
        };
        let mut nodes: Vec<usize> = (0..firsts.len()).map(node_of).collect();
        nodes.dedup();
        Self {
            cpu_order: order.iter().map(|(.., cpu)| short(*cpu)).collect(),
            llc_of: (0..places.len()).map(|cpu| short(cache_of(cpu))).collect(),
            llc_first: (0..firsts.len()).map(|cache| short(first(cache))).collect(),
            node_range: (0..firsts.len()).map(range).collect(),
            nodes: nodes.len(),
            next_sibling: next_sibling.into_iter().map(short).collect(),
        }
    }

    /// The CPUs of each core.
    #[must_use]
    pub fn cores(&self) -> Vec<Vec<usize>> {
        let next = |cpu: &usize| Some(usize::from(self.next_sibling[*cpu]));
        (0..self.next_sibling.len())
            .map(|first| {
                let others = std::iter::successors(next(&first), next).take_while(|cpu| *cpu != first);
                std::iter::once(first).chain(others).collect::<Vec<usize>>()
            })
            .filter(|core| core.iter().min() == core.first())
            .collect()
    }

    /// Whether a core has several hardware threads.
    #[must_use]
    pub fn has_siblings(&self) -> bool {
        self.next_sibling.iter().enumerate().any(|(cpu, next)| usize::from(*next) != cpu)
    }
}

/// Whether cores may have several hardware threads: those that are on line, or any that may come on line.
#[must_use]
pub fn may_have_siblings(root: &Path, topology: &Topology) -> bool {
    let control = fs::read_to_string(root.join("sys/devices/system/cpu/smt/control")).unwrap_or_default();
    topology.has_siblings() || matches!(control.trim(), "on" | "off")
}

fn short(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

fn place_of(root: &Path, cpu: usize) -> Place {
    let folder = root.join(format!("sys/devices/system/cpu/cpu{cpu}"));
    let siblings = |name| fs::read_to_string(folder.join("topology").join(name)).ok();
    let core = siblings("core_cpus_list").or_else(|| siblings("thread_siblings_list"));
    let node = fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .find_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok());
    Place {
        node: node.unwrap_or(0),
        cache: cache_of(root, cpu),
        core: core.map_or_else(|| format!("alone {cpu}"), |list| list.trim().to_owned()),
    }
}

fn cache_of(root: &Path, cpu: usize) -> String {
    let folder = root.join(format!("sys/devices/system/cpu/cpu{cpu}"));
    let mut best: Option<(u32, String)> = None;
    for entry in fs::read_dir(folder.join("cache")).into_iter().flatten().flatten() {
        let read = |name| fs::read_to_string(entry.path().join(name)).map(|text| text.trim().to_owned());
        let (Ok(level), Ok(shared)) = (read("level"), read("shared_cpu_list")) else { continue };
        let Ok(level) = level.parse::<u32>() else { continue };
        if best.as_ref().is_none_or(|(known, _)| level > *known) {
            best = Some((level, shared));
        }
    }
    let package = || fs::read_to_string(folder.join("topology/physical_package_id"));
    match best {
        // A cache of the first level alone says nothing of who is near.
        Some((level, shared)) if level >= 2 => format!("cache {shared}"),
        _ => package().map_or_else(|_| "none".to_owned(), |id| format!("package {}", id.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(root: &Path, name: &str, text: &str) {
        let path = root.join("sys/devices/system/cpu").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_highest_cache_counts() {
        let host = tempfile::tempdir().unwrap();
        for (cpu, shared) in [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")] {
            place(host.path(), &format!("cpu{cpu}/cache/index0/level"), "1\n");
            place(host.path(), &format!("cpu{cpu}/cache/index0/shared_cpu_list"), &format!("{cpu}\n"));
            place(host.path(), &format!("cpu{cpu}/cache/index3/level"), "3\n");
            place(host.path(), &format!("cpu{cpu}/cache/index3/shared_cpu_list"), &format!("{shared}\n"));
        }
        let topology = Topology::read(host.path(), 4);
        assert_eq!(topology.llc_of, [0, 1, 0, 1]);
        assert_eq!(topology.cpu_order, [0, 2, 1, 3]);
        assert_eq!(topology.llc_first, [0, 2]);
        assert_eq!(topology.next_sibling, [0, 1, 2, 3]);
        assert!(!topology.has_siblings() && !may_have_siblings(host.path(), &topology));
        place(host.path(), "smt/control", "off\n");
        assert!(may_have_siblings(host.path(), &topology));
    }

    #[test]
    fn without_caches_a_package_is_one() {
        let host = tempfile::tempdir().unwrap();
        for (cpu, package) in [(0, 0), (1, 1)] {
            place(host.path(), &format!("cpu{cpu}/topology/physical_package_id"), &format!("{package}\n"));
        }
        assert_eq!(Topology::read(host.path(), 2).llc_of, [0, 1]);
        assert_eq!(Topology::read(Path::new("/nowhere"), 3).llc_of, [0, 0, 0]);
    }

    #[test]
    fn nodes_caches_and_cores_stand_together_however_cpus_are_numbered() {
        let host = tempfile::tempdir().unwrap();
        // Two nodes of two caches, a cache of a core of two threads and one of a single thread; numbered in turns.
        for cpu in 0..12 {
            let (node, cache, within) = (cpu % 2, cpu % 4, cpu / 4);
            let core = if within < 2 { format!("{cache},{}", cache + 4) } else { cpu.to_string() };
            place(host.path(), &format!("cpu{cpu}/topology/core_cpus_list"), &format!("{core}\n"));
            place(host.path(), &format!("cpu{cpu}/cache/index3/level"), "3\n");
            place(host.path(), &format!("cpu{cpu}/cache/index3/shared_cpu_list"), &format!("{cache}+\n"));
            place(host.path(), &format!("cpu{cpu}/node{node}/cpulist"), "\n");
        }
        let topology = Topology::read(host.path(), 12);
        assert_eq!(topology.cpu_order, [0, 4, 8, 2, 6, 10, 1, 5, 9, 3, 7, 11]);
        assert_eq!(topology.llc_of, [0, 2, 1, 3, 0, 2, 1, 3, 0, 2, 1, 3]);
        assert_eq!(topology.llc_first, [0, 3, 6, 9]);
        assert_eq!(topology.node_range, [(0, 6), (0, 6), (6, 12), (6, 12)]);
        assert_eq!(topology.next_sibling, [4, 5, 6, 7, 0, 1, 2, 3, 8, 9, 10, 11]);
        assert_eq!(topology.nodes, 2);
        assert!(topology.has_siblings());
        let cores = [vec![0, 4], vec![1, 5], vec![2, 6], vec![3, 7], vec![8], vec![9], vec![10], vec![11]];
        assert_eq!(topology.cores(), cores);
    }

    #[test]
    fn limits_are_those_of_the_class() {
        let text = [include_str!("bpf/cpu_words.bpf.h"), include_str!("bpf/core.bpf.h")].concat();
        for (name, limit) in [("MAX_CPUS", MAX_CPUS), ("THREADS_MOST", THREADS_MOST)] {
            assert!(text.contains(&format!("#define {name} {limit} ")), "{name}");
        }
    }
}
