use crate::{Activity, HostRoot, KernelConfig, Topology};

mod fact;
mod kernel;
mod memory;
mod processor;
pub(crate) mod surroundings;

use fact::Surroundings;
#[cfg(fuzzing)]
pub(crate) use fact::chosen;
pub use fact::{NoiseFact, Verdict};

#[cfg(test)]
mod tests;

/// Judges everything known to disturb measurements, in the order of a report.
#[must_use]
pub fn read_noise(
    root: &HostRoot,
    topology: Option<&Topology>,
    activity: Option<&Activity>,
) -> Vec<NoiseFact> {
    let config = KernelConfig::read(root);
    let host = Surroundings { root, config: &config, topology, activity };
    let mut facts = processor::read(&host);
    facts.extend(kernel::read(&host));
    facts.extend(memory::read(&host));
    facts.extend(surroundings::read(&host));
    facts
}
