use std::path::{Path, PathBuf};

use super::statement::Capability;
use crate::HostRoot;
use crate::cgroup::{Controller, Hierarchy, Layout, LayoutKind};

/// Controllers a measurement can use, with their purpose.
const CONTROLLERS: [(Controller, &str); 4] = [
    (Controller::Cpu, "weight against competitors, bandwidth limits"),
    (Controller::Cpuset, "binding whole process trees to CPUs and memory nodes"),
    (Controller::Memory, "peak and limit of whole process trees"),
    (Controller::Pids, "limit on the number of processes"),
];

pub(super) fn read(root: &HostRoot) -> Vec<Capability> {
    let layout = Layout::discover(&root.resolve("/")).unwrap_or_default();
    let mut found = vec![describe(&layout)];
    found.extend(CONTROLLERS.iter().map(|what| controller(root, &layout, *what)));
    let kill = ("cgroup.kill", "cgroup.kill", "ending a process tree at once");
    found.push(unified_file(root, &layout, kill, "5.14"));
    let pressure = ("cgroup.pressure", "cpu.pressure", "waiting time of one run");
    found.push(unified_file(root, &layout, pressure, "4.20"));
    found.push(idle_groups(root, &layout));
    found
}

fn describe(layout: &Layout) -> Capability {
    let look = Capability::new("cgroup", "accounting and limits of process trees", "/proc/self/mountinfo");
    match layout.kind() {
        LayoutKind::None => look.absent(
            "no control group hierarchy is mounted; process trees are followed by other means",
            Some("mount -t cgroup2 none /sys/fs/cgroup"),
        ),
        LayoutKind::Unified => look.present("version 2"),
        LayoutKind::Legacy => look.present("version 1"),
        LayoutKind::Hybrid => {
            let names: Vec<&str> = layout
                .v1
                .iter()
                .flat_map(|hierarchy| hierarchy.controllers.iter().map(|controller| controller.as_str()))
                .collect();
            look.present(format!("hybrid: version 2 beside version 1 ({})", names.join(", ")))
        }
    }
}

fn controller(root: &HostRoot, layout: &Layout, what: (Controller, &str)) -> Capability {
    let (controller, purpose) = what;
    let name = format!("cgroup.{}", controller.as_str());
    let look = Capability::new(&name, purpose, "a writable hierarchy with this controller");
    let offers = |hierarchy: &&Hierarchy| hierarchy.controllers.contains(&controller);
    let unified = layout.v2.as_ref().filter(offers).map(|hierarchy| (hierarchy, "version 2"));
    let legacy = || layout.v1.iter().find(offers).map(|hierarchy| (hierarchy, "version 1"));
    match unified.or_else(legacy) {
        Some((hierarchy, version)) => writable(root, look, &hierarchy.group, version),
        None => look.absent(
            "no hierarchy offers it",
            Some("boot with `systemd.unified_cgroup_hierarchy=1`, or delegate the controller to this user"),
        ),
    }
}

fn writable(root: &HostRoot, look: Capability, group: &Path, version: &str) -> Capability {
    let place = shown(root, group);
    match nix::unistd::access(group, nix::unistd::AccessFlags::W_OK) {
        Ok(()) => look.present(format!("{version} at `{place}`")),
        Err(error) => look.absent(
            format!("{version}, but `{place}` cannot be written: {}", error.desc()),
            Some("run as root, or `systemd-run --user --scope -p Delegate=yes steelyard ...`"),
        ),
    }
}

/// The path as the host itself would name it.
fn shown(root: &HostRoot, path: &Path) -> String {
    let below = path.strip_prefix(root.resolve("/")).unwrap_or(path);
    Path::new("/").join(below).display().to_string()
}

fn unified_file(root: &HostRoot, layout: &Layout, what: (&str, &str, &str), since: &str) -> Capability {
    let (name, file, purpose) = what;
    let look = Capability::new(name, purpose, format!("a version 2 group with `{file}`"));
    let Some(unified) = &layout.v2 else {
        return look.absent("version 2 is not mounted", Some("mount -t cgroup2 none /sys/fs/cgroup"));
    };
    // The topmost group lacks some files; any group below shows whether the kernel offers them.
    let mut places: Vec<PathBuf> = vec![unified.group.clone(), unified.mount.clone()];
    places
        .extend(std::fs::read_dir(&unified.mount).into_iter().flatten().flatten().map(|entry| entry.path()));
    if places.iter().any(|place| place.join(file).exists()) {
        return look.present("version 2");
    }
    if release(&root.text("/proc/sys/kernel/osrelease").unwrap_or_default()) < release(since) {
        return look.absent(format!("needs Linux {since}"), None);
    }
    if file.ends_with("pressure") && !root.exists("/proc/pressure") {
        return look.absent("pressure stall information is off", Some("boot with `psi=1`"));
    }
    look.present(format!("offered since Linux {since}; no group exists yet that shows it"))
}

/// Either version has the file since the same kernel; the topmost group of version 2 lacks it.
fn idle_groups(root: &HostRoot, layout: &Layout) -> Capability {
    let purpose = "best-effort commands that yield to everything else";
    let look = Capability::new("cgroup.idle", purpose, "a group with `cpu.idle`");
    let has_cpu = |hierarchy: &&Hierarchy| hierarchy.controllers.contains(&Controller::Cpu);
    let unified = layout.v2.as_ref().filter(has_cpu).map(|hierarchy| (hierarchy, "version 2"));
    let legacy = || layout.v1.iter().find(has_cpu).map(|hierarchy| (hierarchy, "version 1"));
    let Some((hierarchy, version)) = unified.or_else(legacy) else {
        return look.absent("no hierarchy offers the cpu controller", None);
    };
    let below = std::fs::read_dir(&hierarchy.mount).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut places = [hierarchy.group.clone(), hierarchy.mount.clone()].into_iter().chain(below);
    if places.any(|place| place.join("cpu.idle").exists()) {
        return look.present(version);
    }
    if release(&root.text("/proc/sys/kernel/osrelease").unwrap_or_default()) < release("5.15") {
        return look.absent("needs Linux 5.15", None);
    }
    look.present(format!("{version}, offered since Linux 5.15; no group exists yet that shows it"))
}

pub(crate) fn release(text: &str) -> Vec<u32> {
    text.split(['.', '-']).take(2).map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::tree;

    fn named<'a>(found: &'a [Capability], name: &str) -> &'a Capability {
        found.iter().find(|capability| capability.name == name).unwrap()
    }

    #[test]
    fn a_desktop_with_version_2_and_a_delegated_session_is_understood() {
        let slice = "sys/fs/cgroup/user.slice/session.scope";
        let folder = tree(&[
            (
                "proc/self/mountinfo",
                "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
            ),
            ("proc/self/cgroup", "0::/user.slice/session.scope\n"),
            ("proc/sys/kernel/osrelease", "6.1.0-13-amd64"),
            (&format!("{slice}/cgroup.controllers"), "cpu memory pids"),
            (&format!("{slice}/cgroup.kill"), ""),
        ]);
        let found = read(&HostRoot::at(folder.path()));
        assert_eq!(named(&found, "cgroup").reason, "version 2");
        assert!(named(&found, "cgroup.memory").reason.contains("/sys/fs/cgroup/user.slice/session.scope"));
        assert!(named(&found, "cgroup.kill").available && !named(&found, "cgroup.pressure").available);
        assert!(!named(&found, "cgroup.cpuset").available && named(&found, "cgroup.cpuset").repair.is_some());
    }

    #[test]
    fn a_hybrid_host_takes_controllers_from_version_1() {
        let folder = tree(&[
            (
                "proc/self/mountinfo",
                "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                 35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                 40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n\
                 41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\ndamaged line\n",
            ),
            ("proc/self/cgroup", "4:memory:/a/b\n1:cpu:/\n0::/\n"),
            ("sys/fs/cgroup/memory/a/b/tasks", ""),
            ("sys/fs/cgroup/cpu/tasks", ""),
            ("sys/fs/cgroup/unified/cgroup.controllers", "hugetlb"),
        ]);
        let found = read(&HostRoot::at(folder.path()));
        let layout = &named(&found, "cgroup").reason;
        assert!(layout.starts_with("hybrid") && layout.contains("cpu, memory"), "{layout}");
        assert_eq!(named(&found, "cgroup.memory").reason, "version 1 at `/sys/fs/cgroup/memory/a/b`");
        assert!(named(&found, "cgroup.cpu").available && !named(&found, "cgroup.pids").available);
    }

    #[test]
    fn groups_that_yield_are_found_in_either_version() {
        let mountinfo = |kind: &str| format!("30 23 0:26 / /sys/fs/cgroup rw - {kind} {kind} rw,cpu\n");
        let idle =
            |files: &[(&str, &str)]| named(&read(&HostRoot::at(tree(files).path())), "cgroup.idle").clone();
        let (v1, v2) = (mountinfo("cgroup"), mountinfo("cgroup2"));
        let legacy = [("proc/self/mountinfo", v1.as_str()), ("proc/self/cgroup", "1:cpu:/\n")];
        let (old, new) =
            (("proc/sys/kernel/osrelease", "5.10.0-1"), ("proc/sys/kernel/osrelease", "6.1.0-1"));
        assert!(!idle(&[legacy[0], legacy[1], old]).available);
        assert_eq!(idle(&[legacy[0], legacy[1], old, ("sys/fs/cgroup/a/cpu.idle", "0")]).reason, "version 1");
        let unified = [
            ("proc/self/mountinfo", v2.as_str()),
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/cgroup.controllers", "cpu memory"),
        ];
        assert!(idle(&[unified[0], unified[1], unified[2], new]).reason.starts_with("version 2, offered"));
        let without = ("sys/fs/cgroup/cgroup.controllers", "memory");
        assert!(!idle(&[unified[0], unified[1], without, new]).available);
    }

    #[test]
    fn a_container_sees_its_own_part_of_the_hierarchy() {
        let folder = tree(&[
            ("proc/self/mountinfo", "9 8 0:9 /docker/c1 /sys/fs/cgroup ro - cgroup2 cgroup rw\n"),
            ("proc/self/cgroup", "0::/docker/c1/inner\n"),
            ("sys/fs/cgroup/inner/cgroup.controllers", "cpu"),
        ]);
        let found = read(&HostRoot::at(folder.path()));
        assert!(named(&found, "cgroup.cpu").reason.ends_with("`/sys/fs/cgroup/inner`"));
    }

    #[test]
    fn without_hierarchies_nothing_is_available() {
        let folder = tree(&[("proc/self/mountinfo", "1 1 0:1 / / rw - ext4 /dev/x rw\n")]);
        assert!(read(&HostRoot::at(folder.path())).iter().all(|capability| !capability.available));
    }
}
