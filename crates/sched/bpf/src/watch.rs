//! The meter of strictness: the same instrument under the class and under any other policy.

use std::mem::MaybeUninit;
use std::path::Path;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, OpenObject};

use crate::SchedulerError;
use crate::counters::Strictness;
use crate::skeleton::watch::{WatchSkel, WatchSkelBuilder};
use crate::topology::{MAX_CPUS, Topology};

/// The meter while it is attached.
pub(crate) struct Meter<'object> {
    skeleton: WatchSkel<'object>,
    _links: [Link; 3],
}

impl<'object> Meter<'object> {
    pub(crate) fn attach(place: &'object mut MaybeUninit<OpenObject>) -> Result<Self, SchedulerError> {
        let cpus = libbpf_rs::num_possible_cpus().map_err(|error| refused(&error))?;
        if cpus > MAX_CPUS {
            let message = format!(
                "strictness cannot be measured on {cpus} possible CPUs; the meter knows at most {MAX_CPUS}"
            );
            return Err(SchedulerError::Capability { message, hint: "measure on a smaller machine".into() });
        }
        let topology = Topology::read(Path::new("/"), cpus);
        let mut open = WatchSkelBuilder::default().open(place).map_err(|error| refused(&error))?;
        if let Some(settings) = open.maps.rodata_data.as_deref_mut() {
            settings.watched_cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
            settings.has_siblings = topology.has_siblings();
        }
        if let Some(state) = open.maps.bss_data.as_deref_mut() {
            state.next_sibling[..cpus].copy_from_slice(&topology.next_sibling);
            state.judged_since_ns = monotonic_ns();
        }
        let skeleton = open.load().map_err(|error| refused(&error))?;
        let links = [
            skeleton.progs.note_switch.attach().map_err(|error| refused(&error))?,
            skeleton.progs.note_wakeup.attach().map_err(|error| refused(&error))?,
            skeleton.progs.note_wakeup_new.attach().map_err(|error| refused(&error))?,
        ];
        Ok(Self { skeleton, _links: links })
    }

    /// What was measured since the meter was attached.
    pub(crate) fn strictness(&self) -> Strictness {
        let meters = self.skeleton.maps.bss_data.as_deref().map(|bss| &bss.meters[..]).unwrap_or_default();
        sum_up(meters.iter().map(|cpu| strictness_of!(cpu)))
    }
}

/// The clock of the programs \[ns\].
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the structure, which outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap_or(0)
}

/// Sum over CPUs.
pub(crate) fn sum_up(meters: impl Iterator<Item = Strictness>) -> Strictness {
    meters.fold(Strictness::default(), |sum, one| Strictness {
        violation_ns: sum.violation_ns + one.violation_ns,
        violations: sum.violations + one.violations,
        longest_ns: sum.longest_ns.max(one.longest_ns),
        events: sum.events + one.events,
        beside_ns: sum.beside_ns + one.beside_ns,
        beside_count: sum.beside_count + one.beside_count,
        longest_beside_ns: sum.longest_beside_ns.max(one.longest_beside_ns),
    })
}

/// What the meter of a CPU holds; each program has a type of its own for it.
macro_rules! strictness_of {
    ($cpu:expr) => {
        $crate::counters::Strictness {
            violation_ns: $cpu.violation_ns,
            violations: $cpu.violations,
            longest_ns: $cpu.longest_ns,
            events: $cpu.events,
            beside_ns: $cpu.beside_ns,
            beside_count: $cpu.beside_count,
            longest_beside_ns: $cpu.longest_beside_ns,
        }
    };
}
pub(crate) use strictness_of;

fn refused(error: &libbpf_rs::Error) -> SchedulerError {
    let message = format!("strictness cannot be measured here: {error}");
    let hint = "root (CAP_BPF, CAP_PERFMON) and a kernel with BTF are needed; `--verbose` shows what the kernel says";
    SchedulerError::Capability { message, hint: hint.to_owned() }
}
