//! Attaching the class and reading what it counts.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, OpenObject};

use crate::SchedulerError;
use crate::counters::{Counters, Strictness};
use crate::features::{Types, has_idle_of_nodes, has_reenqueue_everywhere};
use crate::kernel::RunningKernel;
use crate::options::{Siblings, StartOptions};
use crate::skeleton::class::{ClassSkel, ClassSkelBuilder, OpenClassSkel};
use crate::topology::{MAX_CPUS, Topology, may_have_siblings};
use crate::watch::{monotonic_ns, strictness_of, sum_up};

/// In the exit code: attach again, nothing is wrong; the number of CPUs changed.
///
/// SOURCE: `SCX_ECODE_ACT_RESTART`, `kernel/sched/ext_internal.h`.
const EXIT_CODE_RESTART: i64 = 1 << 48;

/// How the kernel ended the class.
#[derive(Debug)]
pub(crate) struct Ended {
    /// What it said.
    pub(crate) said: String,
    /// Whether it asks to be attached again.
    pub(crate) is_restart: bool,
}

/// The class while it is loaded; dropped: the kernel goes back to its own.
pub(crate) struct LoadedClass<'object> {
    skeleton: ClassSkel<'object>,
    /// The class itself; `None` while the kernel has it not.
    link: Option<Link>,
    /// The tracing programs beside it.
    _tracing: Vec<Link>,
    cpus: usize,
    siblings: Siblings,
    parked_seen: u32,
}

impl<'object> LoadedClass<'object> {
    /// Load it, without attaching it.
    pub(crate) fn load(
        place: &'object mut MaybeUninit<OpenObject>,
        options: &StartOptions,
    ) -> Result<Self, SchedulerError> {
        let mut open =
            ClassSkelBuilder::default().open(place).map_err(|error| refused("be opened", &error))?;
        let cpus = configure(&mut open, options)?;
        let skeleton = open.load().map_err(|error| refused("be loaded", &error))?;
        let programs = &skeleton.progs;
        // Without this one a signal is seen a little later.
        let mut tracing: Vec<Link> = programs.note_signal.attach().ok().into_iter().collect();
        for inversion in [&programs.note_switch, &programs.note_lock_wait, &programs.note_lock_got] {
            tracing.push(inversion.attach().map_err(|error| refused("see who holds locks", &error))?);
        }
        for meter in [&programs.note_wakeup, &programs.note_wakeup_new] {
            tracing.push(meter.attach().map_err(|error| refused("be watched", &error))?);
        }
        Ok(Self { skeleton, link: None, _tracing: tracing, cpus, siblings: options.siblings, parked_seen: 0 })
    }

    /// Give it to the kernel; again after the kernel ended it.
    pub(crate) fn attach(&mut self) -> Result<(), SchedulerError> {
        self.link = None;
        if let Some(bss) = self.skeleton.maps.bss_data.as_deref_mut() {
            bss.exit_kind = 0;
            // A core whose CPUs came on line or went is another one than before.
            let siblings = Topology::read(Path::new("/"), self.cpus).next_sibling;
            bss.next_sibling[..self.cpus].copy_from_slice(&siblings);
        }
        let link = self.skeleton.maps.steelyard_be.attach_struct_ops();
        self.link = Some(link.map_err(|error| refused("be attached", &error))?);
        self.judge_since(monotonic_ns());
        Ok(())
    }

    /// Take it from the kernel, which goes back to its own.
    pub(crate) fn detach(&mut self) {
        self.judge_since(0);
        self.link = None;
    }

    /// From when on what is seen is the doing of the class \[ns\]; 0: it is not.
    fn judge_since(&mut self, since_ns: u64) {
        if let Some(bss) = self.skeleton.maps.bss_data.as_deref_mut() {
            bss.judged_since_ns = since_ns;
        }
    }

    /// The strictness metric, of the time in which it was attached.
    pub(crate) fn strictness(&self) -> Option<Strictness> {
        let bss = self.skeleton.maps.bss_data.as_deref()?;
        let meters = bss.meters[..self.cpus].iter();
        Some(sum_up(meters.map(|cpu| strictness_of!(cpu))))
    }

    /// How the class ended, if the kernel ended it.
    pub(crate) fn ended(&self) -> Option<Ended> {
        let bss = self.skeleton.maps.bss_data.as_deref()?;
        if bss.exit_kind == 0 {
            return None;
        }
        let (reason, message) = (text(&bss.exit_reason), text(&bss.exit_message));
        let said = if message.is_empty() { reason } else { format!("{reason}: {message}") };
        Some(Ended { said, is_restart: bss.exit_code & EXIT_CODE_RESTART != 0 })
    }

    /// Processes that have starved for long, as found since the last call.
    pub(crate) fn newly_parked(&mut self) -> BTreeSet<i32> {
        let seen = &mut self.parked_seen;
        let Some(bss) = self.skeleton.maps.bss_data.as_deref() else { return BTreeSet::new() };
        let new = bss.parked_count.wrapping_sub(*seen) as usize;
        let first = *seen as usize;
        *seen = bss.parked_count;
        let places = bss.parked_tgids.len();
        (first..first + new.min(places)).map(|place| bss.parked_tgids[place % places]).collect()
    }

    /// Time that BE tasks had so far, moments not counted \[ns\].
    pub(crate) fn be_ns(&self) -> u64 {
        self.skeleton
            .maps
            .bss_data
            .as_deref()
            .map_or(0, |bss| bss.cpus[..self.cpus].iter().map(|cpu| cpu.be_ns).sum())
    }

    /// Whether cores have several hardware threads, or may have.
    pub(crate) fn has_siblings(&self) -> bool {
        self.skeleton.maps.rodata_data.as_deref().is_some_and(|settings| settings.has_siblings)
    }

    /// The CPUs on line, in groups of which BE tasks may have one only where no service has another.
    pub(crate) fn cores_of_jobs(&self) -> Vec<Vec<usize>> {
        let topology = Topology::read(Path::new("/"), self.cpus);
        if self.siblings == Siblings::Forbid {
            return topology.cores();
        }
        (0..self.cpus).map(|cpu| vec![cpu]).collect()
    }

    /// Add what was counted since this class was loaded.
    pub(crate) fn add_to(&self, counters: &mut Counters) {
        let Some(bss) = self.skeleton.maps.bss_data.as_deref() else { return };
        for cpu in &bss.cpus[..self.cpus] {
            for (sum, count) in counters.counts.iter_mut().zip(cpu.counters) {
                *sum += count;
            }
            counters.parked_ns += cpu.parked_ns;
            for (sums, counts) in counters.histograms_ns.iter_mut().zip(cpu.histograms) {
                for (sum, count) in sums.iter_mut().zip(counts) {
                    *sum += count;
                }
            }
        }
    }
}

/// Set what the class is told before it is loaded; gives the number of CPUs.
fn configure(open: &mut OpenClassSkel<'_>, options: &StartOptions) -> Result<usize, SchedulerError> {
    let possible = libbpf_rs::num_possible_cpus().map_err(|error| refused("count the CPUs", &error))?;
    if possible > MAX_CPUS {
        let message =
            format!("this machine has {possible} possible CPUs; the class knows at most {MAX_CPUS}");
        return Err(SchedulerError::Capability {
            message,
            hint: "SCHED_IDLE and cpu.idle without the class".into(),
        });
    }
    // Else the kernel keeps a task that a real-time task interrupted on that CPU: the program that gives it back
    // executes on its behalf and disables its migration.
    if let Some(flag) = RunningKernel.enumerator("scx_ops_flags", "SCX_OPS_ENQ_MIGRATION_DISABLED") {
        open.struct_ops.steelyard_be_mut().flags |= flag;
    }
    if has_reenqueue_everywhere(&RunningKernel) {
        open.struct_ops.steelyard_be_mut().cpu_release = std::ptr::null_mut();
    }
    let topology = Topology::read(Path::new("/"), possible);
    let has_siblings = may_have_siblings(Path::new("/"), &topology);
    let siblings = if has_siblings { options.siblings } else { Siblings::Allow };
    // Where a BE task may not run although nobody else wants to, the kernel is not to keep it.
    if siblings != Siblings::Allow {
        open.struct_ops.steelyard_be_mut().flags |=
            RunningKernel.enumerator("scx_ops_flags", "SCX_OPS_ENQ_LAST").unwrap_or(0);
    }
    let has_nodes = topology.nodes > 1 && has_idle_of_nodes(&RunningKernel);
    if has_nodes {
        open.struct_ops.steelyard_be_mut().flags |=
            RunningKernel.enumerator("scx_ops_flags", "SCX_OPS_BUILTIN_IDLE_PER_NODE").unwrap_or(0);
    }
    let Some(settings) = open.maps.rodata_data.as_deref_mut() else {
        return Err(SchedulerError::Capability {
            message: "the class has no settings: it was built incompletely".into(),
            hint: "build it again: `make scheduler`".into(),
        });
    };
    settings.watched_cpus = u32::try_from(possible).unwrap_or(u32::MAX);
    settings.nr_cpus = u32::try_from(possible).unwrap_or(u32::MAX);
    settings.nr_llcs = u32::try_from(topology.llc_first.len()).unwrap_or(u32::MAX);
    settings.cpu_order[..possible].copy_from_slice(&topology.cpu_order);
    for (position, &cpu) in (0u16..).zip(&topology.cpu_order) {
        settings.position_of[usize::from(cpu)] = position;
    }
    settings.llc_of[..possible].copy_from_slice(&topology.llc_of);
    settings.llc_first[..topology.llc_first.len()].copy_from_slice(&topology.llc_first);
    settings.has_siblings = has_siblings;
    settings.siblings_policy = siblings as u32;
    settings.has_nodes = has_nodes;
    for (llc, (first, end)) in topology.node_range.iter().enumerate() {
        (settings.node_first[llc], settings.node_end[llc]) = (*first, *end);
    }
    settings.lc_slice_ns = nanoseconds(options.lc_slice);
    settings.be_slice_ns = nanoseconds(options.be_slice);
    settings.heartbeat_ns = nanoseconds(options.heartbeat);
    settings.freeze_after_ns = options.freeze_after.map_or(0, nanoseconds);
    settings.check_local = options.switches.local;
    settings.check_entry = options.switches.entry;
    settings.check_exit = options.switches.exit;
    Ok(possible)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn refused(what: &str, error: &libbpf_rs::Error) -> SchedulerError {
    let message = format!("the class cannot {what}: {error}");
    let hint = "root (CAP_SYS_ADMIN, CAP_BPF, CAP_PERFMON) is needed; `--verbose` shows what the kernel says";
    SchedulerError::Capability { message, hint: hint.to_owned() }
}

fn text(bytes: &[std::ffi::c_char]) -> String {
    let known: Vec<u8> =
        bytes.iter().take_while(|byte| **byte != 0).map(|byte| byte.cast_unsigned()).collect();
    String::from_utf8_lossy(&known).into_owned()
}
