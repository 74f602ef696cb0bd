use serde::{Deserialize, Serialize};

use crate::{HostRoot, KernelConfig};

pub(crate) mod group;
mod kernel;
mod kvm;
mod namespace;
mod perf;
pub(crate) mod privilege;

/// Something this host can do, or cannot and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// Stable dotted name (`perf.exec-records`, `namespace.user`).
    pub name: String,
    /// What it is good for, in a few words.
    pub purpose: String,
    /// Whether it can be used by this process.
    pub available: bool,
    /// What was tried or read to know.
    pub mechanism: String,
    /// What was seen: the variant in use, or why it is not available.
    pub reason: String,
    /// Command that makes it available, where one is known.
    pub repair: Option<String>,
}

impl Capability {
    fn new(name: &str, purpose: &str, mechanism: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            purpose: purpose.to_owned(),
            available: false,
            mechanism: mechanism.into(),
            reason: String::new(),
            repair: None,
        }
    }

    fn present(mut self, seen: impl Into<String>) -> Self {
        self.available = true;
        self.reason = seen.into();
        self
    }

    fn absent(mut self, reason: impl Into<String>, repair: Option<&str>) -> Self {
        self.reason = reason.into();
        self.repair = repair.map(str::to_owned);
        self
    }
}

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
