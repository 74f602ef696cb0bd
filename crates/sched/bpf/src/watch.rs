//! The meter of strictness: the same instrument under the class and under any other policy.

use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, OpenObject};

use crate::SchedulerError;
use crate::counters::Strictness;
use crate::skeleton::watch::{WatchSkel, WatchSkelBuilder};
use crate::topology::MAX_CPUS;

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
        let mut open = WatchSkelBuilder::default().open(place).map_err(|error| refused(&error))?;
        if let Some(settings) = open.maps.rodata_data.as_deref_mut() {
            settings.watched_cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
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
        sum_up(meters.iter().map(|cpu| (cpu.violation_ns, cpu.violations, cpu.longest_ns, cpu.events)))
    }
}

/// Sum over CPUs of violation time, violations, the longest one and events.
pub(crate) fn sum_up(meters: impl Iterator<Item = (u64, u64, u64, u64)>) -> Strictness {
    meters.fold(Strictness::default(), |sum, (violation_ns, violations, longest_ns, events)| Strictness {
        violation_ns: sum.violation_ns + violation_ns,
        violations: sum.violations + violations,
        longest_ns: sum.longest_ns.max(longest_ns),
        events: sum.events + events,
    })
}

fn refused(error: &libbpf_rs::Error) -> SchedulerError {
    let message = format!("strictness cannot be measured here: {error}");
    let hint = "root (CAP_BPF, CAP_PERFMON) and a kernel with BTF are needed; `--verbose` shows what the kernel says";
    SchedulerError::Capability { message, hint: hint.to_owned() }
}
