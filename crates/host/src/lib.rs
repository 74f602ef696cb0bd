//! What this machine is and can do.
//!
//! Everything is read under a [`HostRoot`], `/` for the running system; probing by system call
//! happens for the running system only. Files that are absent, refused or damaged never end in a
//! panic: a fact that could not be established says so.
//!
//! | module | question |
//! |---|---|
//! | [`Topology`] | which CPUs share what |
//! | [`Clocks`] | how fine and how dear are the clocks |
//! | [`Activity`] | what is the machine doing right now |
//! | [`Capability`] | what can be used here, and how to repair what cannot |
//! | [`Fingerprint`] | which machine is this |
//! | [`NoiseFact`] | what disturbs measurements |
//! | [`cgroup`] | which control groups are here, and our own below them |

mod activity;
mod capability;
pub mod cgroup;
mod clock;
mod cpu_list;
mod error;
mod fingerprint;
#[cfg(fuzzing)]
pub mod fuzzing;
mod kernel_config;
mod noise;
mod process;
mod report;
mod root;
mod topology;

pub use activity::{Activity, CpuTicks, Pressure, PressureLine, SwapActivity, read_activity};
pub use capability::{Capability, read_capabilities};
pub use clock::{Clock, Clocks, CpuAccounting, measure_clocks};
pub use cpu_list::{CpuListError, CpuSet};
pub use error::HostError;
pub use fingerprint::{Fingerprint, Virtualisation, read_fingerprint};
pub use kernel_config::KernelConfig;
pub use noise::{NoiseFact, Verdict, read_noise};
pub use process::{Process, read_processes};
pub use report::{HOST_SCHEMA, HostReport, read_report};
pub use root::{HostRoot, Reading};
pub use topology::{CacheGroup, Cpu, MemoryNode, Topology, read_topology};
