use std::fmt::Write;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::HostRoot;

/// Boot parameters that change timings, by the part before `=`.
const BOOT_PARAMETERS: &[&str] = &[
    "amd_pstate",
    "audit",
    "cgroup_disable",
    "cgroup_no_v1",
    "clocksource",
    "cpuidle_haltpoll.force",
    "default_hugepagesz",
    "haltpoll.guest_halt_poll_ns",
    "hugepages",
    "hugepagesz",
    "idle",
    "intel_idle.max_cstate",
    "intel_pstate",
    "irqaffinity",
    "isolcpus",
    "kthread_cpus",
    "l1tf",
    "maxcpus",
    "mce",
    "mds",
    "mitigations",
    "nmi_watchdog",
    "nohz",
    "nohz_full",
    "nopti",
    "nosmt",
    "nosoftlockup",
    "nospectre_v1",
    "nospectre_v2",
    "nowatchdog",
    "noautogroup",
    "nr_cpus",
    "numa",
    "numa_balancing",
    "page_reporting.page_reporting_order",
    "preempt",
    "processor.max_cstate",
    "psi",
    "pti",
    "rcu_nocbs",
    "retbleed",
    "sched_vcpu_pack",
    "skew_tick",
    "spec_store_bypass_disable",
    "spectre_v2",
    "swapaccount",
    "systemd.unified_cgroup_hierarchy",
    "threadirqs",
    "transparent_hugepage",
    "tsc",
    "tsx",
    "workqueue.power_efficient",
];

/// Which machine this is, as far as timings care. Holds nothing that names a person or a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The same on every start of the same machine, 16 hexadecimal digits: machine id, processor
    /// model and number of CPUs. Kernel and memory are left out, since they change in its life.
    pub host_id: String,
    /// SHA-256 of the machine id with our own salt; the id itself is never stored.
    pub machine_id_hash: Option<String>,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Vendor, family, model and stepping as one text.
    pub cpu_signature: Option<String>,
    /// Revision of the microcode.
    pub microcode: Option<String>,
    /// Kernel release.
    pub kernel_release: String,
    /// Kernel build.
    pub kernel_version: Option<String>,
    /// Machine architecture (`x86_64`, `aarch64`).
    pub architecture: String,
    /// Boot parameters that change timings, as written.
    pub boot_parameters: Vec<String>,
    /// Memory [bytes].
    pub memory_bytes: Option<u64>,
    /// Virtual machine or container around this system.
    pub virtualisation: Virtualisation,
    /// Distribution.
    pub distribution: Option<String>,
    /// C library of this process.
    pub libc: Option<String>,
}

/// What surrounds this system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Virtualisation {
    /// Name of the hypervisor (`kvm`, `vmware`, `firecracker`, ...), `unknown` if there is one
    /// without a name, nothing on bare metal.
    pub hypervisor: Option<String>,
    /// Name of the container technology, nothing outside one.
    pub container: Option<String>,
}

/// Reads the fingerprint. Fields the host does not say stay empty.
#[must_use]
pub fn read_fingerprint(root: &HostRoot) -> Fingerprint {
    let cpuinfo = root.text("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| cpu_field(&cpuinfo, name);
    let cpu_model = field("model name").or_else(|| field("Model")).or_else(|| field("cpu model"));
    let machine_id_hash = machine_identity(root).map(|id| digest(&["steelyard/machine/1", &id]));
    let cpu_count = cpuinfo.lines().filter(|line| line.starts_with("processor")).count().to_string();
    let identity =
        machine_id_hash.clone().unwrap_or_else(|| root.text("/proc/sys/kernel/hostname").unwrap_or_default());
    let parts = ["steelyard/host/1", &identity, cpu_model.as_deref().unwrap_or(""), &cpu_count];
    Fingerprint {
        host_id: digest(&parts).chars().take(16).collect(),
        machine_id_hash,
        cpu_signature: cpu_signature(&cpuinfo),
        microcode: field("microcode"),
        cpu_model,
        kernel_release: root.text("/proc/sys/kernel/osrelease").unwrap_or_default(),
        kernel_version: root.text("/proc/sys/kernel/version"),
        architecture: std::env::consts::ARCH.to_owned(),
        boot_parameters: boot_parameters(&root.text("/proc/cmdline").unwrap_or_default()),
        memory_bytes: memory_bytes(root, "MemTotal"),
        virtualisation: read_virtualisation(root, &cpuinfo),
        distribution: root.text("/etc/os-release").as_deref().and_then(pretty_name),
        libc: if root.is_system() { libc_version() } else { None },
    }
}

fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn machine_identity(root: &HostRoot) -> Option<String> {
    ["/etc/machine-id", "/var/lib/dbus/machine-id", "/sys/class/dmi/id/product_uuid"]
        .iter()
        .find_map(|path| root.text(path).filter(|id| id.len() >= 16))
}

pub(crate) fn cpu_field(cpuinfo: &str, name: &str) -> Option<String> {
    let value = |line: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    };
    cpuinfo.lines().find_map(value).filter(|text| !text.is_empty())
}

pub(crate) fn cpu_signature(cpuinfo: &str) -> Option<String> {
    let names = ["vendor_id", "cpu family", "model", "stepping", "CPU implementer", "CPU part"];
    let parts: Vec<String> = names.iter().filter_map(|name| cpu_field(cpuinfo, name)).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

pub(crate) fn boot_parameters(cmdline: &str) -> Vec<String> {
    let matters = |word: &&str| {
        let name = word.split('=').next().unwrap_or(word).replace('-', "_");
        BOOT_PARAMETERS.iter().any(|known| known.replace('-', "_") == name)
    };
    cmdline.split_whitespace().take_while(|word| *word != "--").filter(matters).map(str::to_owned).collect()
}

pub(crate) fn memory_bytes(root: &HostRoot, name: &str) -> Option<u64> {
    let meminfo = root.text("/proc/meminfo")?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

fn pretty_name(os_release: &str) -> Option<String> {
    let value = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches(['"', '\'']).to_owned())
}

fn read_virtualisation(root: &HostRoot, cpuinfo: &str) -> Virtualisation {
    let virtual_machine =
        cpu_field(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor"));
    let hypervisor = root
        .text("/sys/hypervisor/type")
        .or_else(|| hypervisor_by_firmware(root))
        .or_else(|| if virtual_machine { hypervisor_by_cpuid(root) } else { None })
        .or_else(|| virtual_machine.then(|| "unknown".to_owned()));
    Virtualisation { hypervisor, container: read_container(root) }
}

/// SOURCE: the strings systemd-detect-virt compares in `/sys/class/dmi/id`.
fn hypervisor_by_firmware(root: &HostRoot) -> Option<String> {
    let known = [
        ("KVM", "kvm"),
        ("Amazon EC2", "amazon"),
        ("QEMU", "qemu"),
        ("VMware", "vmware"),
        ("VMW", "vmware"),
        ("innotek", "oracle"),
        ("VirtualBox", "oracle"),
        ("Xen", "xen"),
        ("Bochs", "bochs"),
        ("Parallels", "parallels"),
        ("BHYVE", "bhyve"),
        ("Hyper-V", "microsoft"),
        ("Google Compute Engine", "google"),
        ("Firecracker", "firecracker"),
        ("Apple Virtualization", "apple"),
    ];
    ["product_name", "sys_vendor", "board_vendor", "bios_vendor", "product_version"].iter().find_map(|file| {
        let text = root.text(&format!("/sys/class/dmi/id/{file}"))?;
        known.iter().find(|(start, _)| text.starts_with(start)).map(|(_, name)| (*name).to_owned())
    })
}

#[cfg(target_arch = "x86_64")]
fn hypervisor_by_cpuid(root: &HostRoot) -> Option<String> {
    if !root.is_system() {
        return None;
    }
    // SOURCE: leaf 0x40000000 gives the hypervisor's name in EBX, ECX, EDX when CPUID.1:ECX[31] is set.
    let leaf = core::arch::x86_64::__cpuid(0x4000_0000);
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|word| word.to_le_bytes()).collect();
    let name = String::from_utf8_lossy(&bytes).trim_matches(['\0', ' ']).to_owned();
    let known = match name.as_str() {
        "KVMKVMKVM" => "kvm",
        "Microsoft Hv" => "microsoft",
        "VMwareVMware" => "vmware",
        "XenVMMXenVMM" => "xen",
        "TCGTCGTCGTCG" => "qemu",
        "" => return None,
        other => other,
    };
    Some(known.to_owned())
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor_by_cpuid(_root: &HostRoot) -> Option<String> {
    None
}

/// SOURCE: number of the first process namespace, `PROC_PID_INIT_INO` of `include/linux/proc_ns.h`.
const FIRST_PROCESS_NAMESPACE: &str = "pid:[4026531836]";

fn read_container(root: &HostRoot) -> Option<String> {
    // The root file system of a virtual machine is often made from a container image, marks included.
    let namespace = std::fs::read_link(root.resolve("/proc/self/ns/pid"));
    if namespace.is_ok_and(|link| link.as_os_str() == FIRST_PROCESS_NAMESPACE) {
        return None;
    }
    if root.exists("/.dockerenv") {
        return Some("docker".to_owned());
    }
    if root.exists("/run/.containerenv") {
        return Some("podman".to_owned());
    }
    root.text("/run/systemd/container").or_else(|| {
        let environment = root.text("/proc/1/environ")?;
        environment.split('\0').find_map(|entry| entry.strip_prefix("container=").map(str::to_owned))
    })
}

#[cfg(target_env = "gnu")]
fn libc_version() -> Option<String> {
    // SAFETY: the function takes nothing and returns a constant text of the library.
    let version = unsafe { libc::gnu_get_libc_version() };
    if version.is_null() {
        return None;
    }
    // SAFETY: not null, NUL-terminated and valid for the life of the process.
    let version = unsafe { std::ffi::CStr::from_ptr(version) };
    Some(format!("glibc {}", version.to_string_lossy()))
}

#[cfg(not(target_env = "gnu"))]
fn libc_version() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::tree;

    const CPUINFO: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n\
        model name\t: Some Processor\nmicrocode\t: 0x1\nflags\t: fpu hypervisor sse\n\nprocessor\t: 1\n";

    fn host(kernel: &str, id: &str) -> Fingerprint {
        let folder = tree(&[
            ("proc/cpuinfo", CPUINFO),
            ("proc/cmdline", "root=/dev/vda secret=yes mitigations=off isolcpus=2-3 nohz_full=2-3 -- nosmt"),
            ("proc/sys/kernel/osrelease", kernel),
            ("proc/meminfo", "MemTotal:       24684084 kB\n"),
            ("etc/machine-id", id),
            ("etc/os-release", "PRETTY_NAME=\"Debian GNU/Linux 12\"\n"),
            ("sys/class/dmi/id/sys_vendor", "QEMU"),
        ]);
        read_fingerprint(&HostRoot::at(folder.path()))
    }

    #[test]
    fn the_fields_are_read_and_only_parameters_that_matter_are_kept() {
        let print = host("6.1", "0123456789abcdef0123456789abcdef");
        assert_eq!(print.boot_parameters, ["mitigations=off", "isolcpus=2-3", "nohz_full=2-3"]);
        assert_eq!(print.cpu_model.as_deref(), Some("Some Processor"));
        assert_eq!(print.cpu_signature.as_deref(), Some("GenuineIntel 6 85"));
        assert_eq!(print.memory_bytes, Some(24_684_084 << 10));
        assert_eq!(print.virtualisation.hypervisor.as_deref(), Some("qemu"));
        assert_eq!(print.distribution.as_deref(), Some("Debian GNU/Linux 12"));
    }

    #[test]
    fn a_host_keeps_its_id_over_a_new_kernel_and_another_host_has_another() {
        let id = "0123456789abcdef0123456789abcdef";
        let first = host("6.1", id);
        assert_eq!(first.host_id, host("6.2", id).host_id);
        assert_ne!(first.host_id, host("6.1", "1123456789abcdef0123456789abcdef").host_id);
        assert_eq!(first.host_id.len(), 16);
        assert!(!serde_json::to_string(&first).unwrap().contains(id));
    }

    #[test]
    fn an_empty_tree_gives_an_empty_fingerprint() {
        let folder = tree(&[]);
        let print = read_fingerprint(&HostRoot::at(folder.path()));
        assert_eq!((print.cpu_model, print.memory_bytes), (None, None));
    }
}
