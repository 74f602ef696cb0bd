use crate::{HostRoot, KernelConfig};

pub(crate) mod group;
mod kernel;
mod kvm;
mod namespace;
mod perf;
pub(crate) mod privilege;
mod statement;

pub use statement::Capability;

/// Establishes every capability, in the order of a report.
///
/// On the running system the decisive call is made wherever one is harmless (a namespace is
/// created in a child that ends at once, a perf event opened and closed). For another root only
/// its files speak, and what only a call could tell is left out.
#[must_use]
pub fn read_capabilities(root: &HostRoot) -> Vec<Capability> {
    let config = KernelConfig::read(root);
    let mut found = group::read(root);
    if root.is_system() {
        found.extend(perf::probe(root));
        found.extend(namespace::probe(root));
        found.push(kvm::probe());
    }
    found.extend(privilege::read(root));
    found.extend(kernel::read(root, &config));
    found
}

/// Whether a hypervisor says it is there.
pub(crate) fn is_virtual(root: &HostRoot) -> bool {
    let flags = root.text("/proc/cpuinfo").and_then(|text| crate::fingerprint::cpu_field(&text, "flags"));
    flags.is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
}
