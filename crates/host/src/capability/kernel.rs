use super::statement::Capability;
use crate::{HostRoot, KernelConfig, Reading};

pub(super) fn read(root: &HostRoot, config: &KernelConfig) -> Vec<Capability> {
    vec![
        pressure(root),
        seccomp(root, config),
        ptrace(root),
        sched_ext(root, config),
        type_information(root),
        nice(root),
        real_time_groups(root, config),
        overlay(root),
        frequency(root),
        idle_states(root),
        cache_partition(root),
        tracing(root),
    ]
}

fn pressure(root: &HostRoot) -> Capability {
    let look = Capability::new("pressure", "how long work waited for CPU, memory, I/O", "/proc/pressure/cpu");
    match root.look("/proc/pressure/cpu") {
        Reading::Value(_) => look.present("offered"),
        Reading::Absent => look.absent("pressure stall information is off", Some("boot with `psi=1`")),
        Reading::Refused(reason) => look.absent(reason, Some("boot with `psi=1`")),
    }
}

fn seccomp(root: &HostRoot, config: &KernelConfig) -> Capability {
    let path = "/proc/sys/kernel/seccomp/actions_avail";
    let look = Capability::new("seccomp", "refusing dangerous system calls", path);
    match root.text(path) {
        Some(actions) if actions.contains("errno") => look.present(format!("filters with {actions}")),
        _ if config.has("SECCOMP_FILTER") == Some(true) => look.present("built in"),
        _ => look.absent("the kernel was built without system call filters", None),
    }
}

fn ptrace(root: &HostRoot) -> Capability {
    let path = "/proc/sys/kernel/yama/ptrace_scope";
    let look = Capability::new("ptrace", "stamps of exec and exit without perf events", path);
    match root.number::<u32>(path) {
        None => look.present("no restriction beyond ownership"),
        Some(scope @ 0..=1) => look.present(format!("scope {scope}: own children")),
        Some(2) => {
            look.absent("scope 2: only with CAP_SYS_PTRACE", Some("sysctl kernel.yama.ptrace_scope=1"))
        }
        Some(scope) => {
            look.absent(format!("scope {scope}: switched off until the next boot"), Some("reboot"))
        }
    }
}

fn sched_ext(root: &HostRoot, config: &KernelConfig) -> Capability {
    let look = Capability::new("sched_ext", "schedulers as loadable programs", "/sys/kernel/sched_ext");
    match (root.text("/sys/kernel/sched_ext/state"), config.has("SCHED_CLASS_EXT")) {
        (Some(state), _) => look.present(format!("state `{state}`")),
        (None, Some(true)) => look.present("built in"),
        (None, Some(false)) => look.absent("the kernel was built without CONFIG_SCHED_CLASS_EXT", None),
        (None, None) => look.absent("needs Linux 6.12 with CONFIG_SCHED_CLASS_EXT", None),
    }
}

fn type_information(root: &HostRoot) -> Capability {
    let path = "/sys/kernel/btf/vmlinux";
    let look = Capability::new("btf", "loading the best-effort class into this kernel", path);
    if root.exists(path) {
        return look.present("the kernel describes its types");
    }
    look.absent("the kernel was built without CONFIG_DEBUG_INFO_BTF", None)
}

fn nice(root: &HostRoot) -> Capability {
    let path = "/proc/sys/kernel/sched_autogroup_enabled";
    let look = Capability::new("nice", "priorities between all processes", path);
    if root.text(path).as_deref() == Some("1") {
        return look.absent(
            "autogroup scheduling is on: nice acts inside a session only; group weights are used instead",
            Some("sysctl kernel.sched_autogroup_enabled=0"),
        );
    }
    look.present("acts between all processes")
}

fn real_time_groups(root: &HostRoot, config: &KernelConfig) -> Capability {
    let look =
        Capability::new("real-time-in-groups", "SCHED_FIFO inside a control group", "CONFIG_RT_GROUP_SCHED");
    let file = root.exists("/sys/fs/cgroup/cpu/cpu.rt_runtime_us");
    if file || config.has("RT_GROUP_SCHED") == Some(true) {
        let repair = "echo 950000 > cpu.rt_runtime_us of the group and of all above it";
        return look
            .absent("real-time tasks need a share of their group's real-time bandwidth first", Some(repair));
    }
    look.present("not restricted by groups")
}

fn overlay(root: &HostRoot) -> Capability {
    let look = Capability::new("overlayfs", "a writable view of a read-only root", "/proc/filesystems");
    let text = root.text("/proc/filesystems").unwrap_or_default();
    if text.split_whitespace().any(|word| word == "overlay") {
        return look.present("offered");
    }
    look.absent("the kernel does not offer it", Some("modprobe overlay"))
}

fn frequency(root: &HostRoot) -> Capability {
    let folder = "/sys/devices/system/cpu/cpufreq";
    let look = Capability::new("frequency-control", "a fixed clock rate", folder);
    let policies = root.numbered(folder, "policy");
    let Some(first) = policies.first() else {
        return look.absent("no interface: the firmware or the hypervisor decides", None);
    };
    let driver = root.text(&format!("{folder}/policy{first}/scaling_driver")).unwrap_or_default();
    look.present(format!("driver `{driver}`, {} policies", policies.len()))
}

fn idle_states(root: &HostRoot) -> Capability {
    let path = "/dev/cpu_dma_latency";
    let look = Capability::new("idle-state-control", "no deep sleep between runs", path);
    match nix::unistd::access(&root.resolve(path), nix::unistd::AccessFlags::W_OK) {
        Ok(()) => look.present("the device can be opened"),
        Err(nix::errno::Errno::ENOENT) => look.absent("the kernel has no such device", None),
        Err(error) => look.absent(error.desc(), Some("run as root")),
    }
}

fn cache_partition(root: &HostRoot) -> Capability {
    let purpose = "parts of the last-level cache and of memory bandwidth";
    let look = Capability::new("resctrl", purpose, "/sys/fs/resctrl");
    let flags = root.text("/proc/cpuinfo").and_then(|text| crate::fingerprint::cpu_field(&text, "flags"));
    let able = |flags: String| flags.split(' ').any(|flag| matches!(flag, "cat_l3" | "mba" | "cqm_llc"));
    if root.exists("/sys/fs/resctrl/schemata") {
        look.present("mounted")
    } else if flags.is_some_and(able) {
        look.absent("not mounted", Some("mount -t resctrl resctrl /sys/fs/resctrl"))
    } else {
        look.absent("the processor does not offer it to this system", None)
    }
}

fn tracing(root: &HostRoot) -> Capability {
    let look = Capability::new("tracefs", "tracepoints of the scheduler", "/sys/kernel/tracing/events");
    if root.exists("/sys/kernel/tracing/events") || root.exists("/sys/kernel/debug/tracing/events") {
        return look.present("mounted");
    }
    look.absent("not mounted or not readable", Some("mount -t tracefs tracefs /sys/kernel/tracing"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::tree;

    fn named(files: &[(&str, &str)], name: &str) -> Capability {
        let root = tree(files);
        let found = read(&HostRoot::at(root.path()), &KernelConfig::default());
        found.into_iter().find(|capability| capability.name == name).unwrap()
    }

    #[test]
    fn autogroup_makes_nice_void() {
        let path = "proc/sys/kernel/sched_autogroup_enabled";
        assert!(!named(&[(path, "1")], "nice").available);
        assert!(named(&[(path, "0")], "nice").available);
    }

    #[test]
    fn a_strict_ptrace_scope_names_its_repair() {
        let path = "proc/sys/kernel/yama/ptrace_scope";
        assert!(named(&[], "ptrace").available && named(&[(path, "1")], "ptrace").available);
        assert!(named(&[(path, "2")], "ptrace").repair.unwrap().contains("sysctl"));
        assert!(!named(&[(path, "3")], "ptrace").available);
    }

    #[test]
    fn a_kernel_without_type_information_says_which_option_it_lacks() {
        assert!(named(&[], "btf").reason.contains("CONFIG_DEBUG_INFO_BTF"));
        assert!(named(&[("sys/kernel/btf/vmlinux", "x")], "btf").available);
    }

    #[test]
    fn a_missing_pressure_interface_names_the_boot_parameter() {
        assert_eq!(named(&[], "pressure").repair.as_deref(), Some("boot with `psi=1`"));
    }
}
