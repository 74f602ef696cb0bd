//! Which CPUs share a last-level cache.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Most possible CPUs that the class and the meter know; `MAX_CPUS` in `cpu_words.bpf.h`.
pub const MAX_CPUS: usize = 2048;

/// The machine's CPUs, grouped by last-level cache.
///
/// # Examples
///
/// ```
/// let topology = steelyard_scheduler::topology::Topology::from_caches(&["0-1", "0-1", "2-3", "2-3"]);
/// assert_eq!(topology.llc_of, [0, 0, 1, 1]);
/// assert_eq!(topology.llc_first, [0, 2]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// CPUs so ordered that those of one cache stand together; shape (possible CPUs,).
    pub cpu_order: Vec<u16>,
    /// Cache of each CPU, numbered from 0; shape (possible CPUs,).
    pub llc_of: Vec<u16>,
    /// Where in `cpu_order` each cache's CPUs begin; shape (caches,).
    pub llc_first: Vec<u16>,
}

impl Topology {
    /// Read `/sys/devices/system/cpu` below a given root; `cpus` is the number of possible CPUs, at most
    /// [`MAX_CPUS`]. A CPU that says nothing of its caches counts to its package, else to the first one.
    #[must_use]
    pub fn read(root: &Path, cpus: usize) -> Self {
        let names: Vec<String> = (0..cpus).map(|cpu| cache_of(root, cpu)).collect();
        Self::from_caches(&names)
    }

    /// Group CPUs by the name of their last-level cache: equal names, one cache.
    #[must_use]
    pub fn from_caches<T: AsRef<str>>(names: &[T]) -> Self {
        let mut numbers: BTreeMap<&str, u16> = BTreeMap::new();
        let mut llc_of = Vec::with_capacity(names.len());
        for name in names {
            let next = u16::try_from(numbers.len()).unwrap_or(u16::MAX);
            llc_of.push(*numbers.entry(name.as_ref()).or_insert(next));
        }
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by_key(|&cpu| (llc_of[cpu], cpu));
        let caches = u16::try_from(numbers.len()).unwrap_or(u16::MAX);
        let first = |llc| order.iter().position(|&cpu| llc_of[cpu] == llc).unwrap_or(0);
        let llc_first = (0..caches).map(|llc| u16::try_from(first(llc)).unwrap_or(0)).collect();
        let cpu_order = order.iter().map(|&cpu| u16::try_from(cpu).unwrap_or(0)).collect();
        Self { cpu_order, llc_of, llc_first }
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
}
