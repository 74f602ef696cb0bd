use serde::{Deserialize, Serialize};

use crate::{
    Activity, Capability, Clocks, Fingerprint, HostError, HostRoot, NoiseFact, Topology, measure_clocks,
    read_activity, read_capabilities, read_fingerprint, read_noise, read_topology,
};

/// Schema name of [`HostReport`].
pub const HOST_SCHEMA: &str = "steelyard/host/1";

/// Everything known about a host at one instant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostReport {
    /// [`HOST_SCHEMA`].
    pub schema: String,
    /// Which machine.
    pub fingerprint: Fingerprint,
    /// Which CPUs share what.
    pub topology: Topology,
    /// How fine and how dear the clocks are.
    pub clocks: Clocks,
    /// What it is doing.
    pub activity: Activity,
    /// What it can do.
    pub capabilities: Vec<Capability>,
    /// What disturbs measurements on it.
    pub noise: Vec<NoiseFact>,
}

/// Examines a host; takes at most some 100 ms.
///
/// # Errors
///
/// [`HostError`] when not even the CPUs or `/proc/stat` can be read.
pub fn read_report(root: &HostRoot) -> Result<HostReport, HostError> {
    // The load is read first: examining the host is work itself.
    let activity = read_activity(root)?;
    let topology = read_topology(root)?;
    Ok(HostReport {
        schema: HOST_SCHEMA.to_owned(),
        fingerprint: read_fingerprint(root),
        capabilities: read_capabilities(root),
        noise: read_noise(root, Some(&topology), Some(&activity)),
        clocks: measure_clocks(root),
        topology,
        activity,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A host made of the given files.
    pub(crate) fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let place = folder.path().join(path);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, content).unwrap();
        }
        folder
    }

    #[test]
    fn the_running_system_is_reported_whole_and_survives_json() {
        let report = read_report(&HostRoot::system()).unwrap();
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<HostReport>(&text).unwrap().fingerprint, report.fingerprint);
        assert!(report.capabilities.len() > 20 && report.noise.len() > 25);
    }

    #[test]
    fn a_tree_with_hostile_content_makes_nothing_panic() {
        let noise = "\u{0}\u{fffd} 99999999999999999999 - : ( ) [ ] \n\n: :\n) (\n";
        let paths = [
            "proc/loadavg",
            "proc/meminfo",
            "proc/cpuinfo",
            "proc/interrupts",
            "proc/swaps",
            "proc/vmstat",
            "proc/cmdline",
            "proc/self/status",
            "proc/self/cgroup",
            "proc/self/mountinfo",
            "proc/pressure/cpu",
            "proc/1/stat",
            "proc/1/cgroup",
            "proc/sys/kernel/osrelease",
            "proc/config.gz",
            "etc/os-release",
            "sys/devices/system/node/node0/meminfo",
            "sys/kernel/mm/transparent_hugepage/enabled",
            "sys/devices/system/cpu/cpu0/cpu_capacity",
            "sys/devices/system/cpu/cpu0/cache/index0/level",
            "sys/devices/system/cpu/cpu0/topology/physical_package_id",
        ];
        let mut files: Vec<(&str, &str)> = paths.iter().map(|path| (*path, noise)).collect();
        files.push(("proc/stat", "cpu  1 1 1 1\ncpu0 1 1 1 1\n"));
        let folder = tree(&files);
        let report = read_report(&HostRoot::at(folder.path())).unwrap();
        assert_eq!(report.topology.cpus.len(), 1);
    }
}
