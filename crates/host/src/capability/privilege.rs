use super::statement::Capability;
use crate::HostRoot;

// SOURCE: numbers of include/uapi/linux/capability.h.
const PRIVILEGES: [(&str, u32, &str); 8] = [
    ("CAP_SYS_ADMIN", 21, "mounts, namespaces, control groups"),
    ("CAP_SYS_RESOURCE", 24, "raising hard resource limits"),
    ("CAP_SYS_NICE", 23, "real-time classes, binding processes of others"),
    ("CAP_SYS_PTRACE", 19, "stamps by ptrace for other users' processes"),
    ("CAP_PERFMON", 38, "counting the kernel's part"),
    ("CAP_SETUID", 7, "dropping rights inside a sandbox"),
    ("CAP_KILL", 5, "ending processes of other users"),
    ("CAP_NET_ADMIN", 12, "setting up an own network"),
];

pub(super) fn read(root: &HostRoot) -> Vec<Capability> {
    let status = root.text("/proc/self/status").unwrap_or_default();
    let effective = mask(&status, "CapEff:");
    let bounding = mask(&status, "CapBnd:");
    PRIVILEGES
        .iter()
        .map(|(name, number, purpose)| {
            let look = Capability::new(name, purpose, "effective set in /proc/self/status");
            let has = |set: Option<u64>| set.is_some_and(|bits| (bits >> number) & 1 == 1);
            if has(effective) {
                look.present("held")
            } else if effective.is_none() {
                look.absent("/proc/self/status does not say", None)
            } else if has(bounding) {
                look.absent("not held", Some("run as root"))
            } else {
                let repair = format!("start the surrounding container or machine with {name}");
                look.absent("not held, and taken away for good from this process tree", Some(&repair))
            }
        })
        .collect()
}

pub(crate) fn mask(status: &str, name: &str) -> Option<u64> {
    let text = status.lines().find_map(|line| line.strip_prefix(name))?;
    u64::from_str_radix(text.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::tree;

    #[test]
    fn a_right_outside_the_bounding_set_names_the_container() {
        let status = "CapEff:\t000001fffeffffff\nCapBnd:\t000001fffeffffff\n";
        let folder = tree(&[("proc/self/status", status)]);
        let found = read(&HostRoot::at(folder.path()));
        let missing: Vec<&str> =
            found.iter().filter(|right| !right.available).map(|right| right.name.as_str()).collect();
        assert_eq!(missing, ["CAP_SYS_RESOURCE"]);
        assert!(found[1].repair.as_ref().unwrap().contains("container"));
    }
}
