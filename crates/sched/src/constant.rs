//! Constants of Linux 6.14, the kernel of the source system, and where each stands.

/// Time between two timer ticks.
/// SOURCE: `CONFIG_HZ=250`, the default of kernel/Kconfig.hz.
pub const TICK_NS: u64 = 4_000_000;

/// Slice of a fair thread.
/// SOURCE: kernel/sched/fair.c, `sysctl_sched_base_slice` = 0.70 ms, times 1 + log2(min(CPUs, 8)): 2.8 ms in a
/// machine of 8 or more CPUs, 2.1 ms with 4.
pub const SLICE_NS: u64 = 2_800_000;

/// Weight of nice 0; also the unit of virtual time.
/// SOURCE: kernel/sched/core.c, `sched_prio_to_weight[20]`.
pub const NICE_0_WEIGHT: u32 = 1024;

/// Weight of nice 19.
/// SOURCE: kernel/sched/core.c, `sched_prio_to_weight[39]`.
pub const NICE_19_WEIGHT: u32 = 15;

/// Weight of a thread in `SCHED_IDLE`, and of a control group with `cpu.idle`.
/// SOURCE: kernel/sched/sched.h, `WEIGHT_IDLEPRIO`.
pub const IDLE_WEIGHT: u32 = 3;

/// Bits a weight is scaled up by, so that a group's share of a CPU stays precise.
/// SOURCE: include/linux/sched.h, `SCHED_FIXEDPOINT_SHIFT`.
pub const WEIGHT_SHIFT: u32 = 10;

/// Smallest scaled weight of a group on a CPU.
/// SOURCE: kernel/sched/sched.h, `MIN_SHARES`.
pub const LEAST_SHARE: u32 = 2;

/// `cpu.weight` of a control group that nobody changed.
/// SOURCE: include/linux/cgroup-defs.h, `CGROUP_WEIGHT_DFL`.
pub const GROUP_WEIGHT: u32 = 100;

/// A thread that ran on its CPU less long ago is not moved by the balancer.
/// SOURCE: kernel/sched/fair.c, `sysctl_sched_migration_cost` = 500 us.
pub const HOT_NS: u64 = 500_000;

/// A busy CPU balances this many times less often than an idle one.
/// SOURCE: kernel/sched/topology.c, `sd_init`: `busy_factor` = 16.
pub const BUSY_FACTOR: u64 = 16;

/// By how many percent the load of a CPU exceeds another's before it is balanced.
/// SOURCE: kernel/sched/topology.c, `sd_init`: `imbalance_pct` = 117 where CPUs share a cache.
pub const IMBALANCE_PERCENT: u64 = 117;

/// Averages decay once in this time.
/// SOURCE: kernel/sched/pelt.c, `___update_load_sum`: periods of 1024 us.
pub const DECAY_PERIOD_NS: u64 = 1_024_000;

/// Periods after which half of an average is left.
/// SOURCE: kernel/sched/sched-pelt.h, `LOAD_AVG_PERIOD`.
pub const HALF_LIFE_PERIODS: f64 = 32.0;

/// Periods after which nothing is left of an average.
/// SOURCE: kernel/sched/pelt.c, `decay_load`: `LOAD_AVG_PERIOD` * 63.
pub const LONGEST_DECAY: u16 = 32 * 63;

/// Time real-time threads may use a CPU in each period while others want it.
/// SOURCE: kernel/sched/rt.c, `sysctl_sched_rt_runtime` = 950 ms; the fair server of 6.12 and later leaves the
/// same share (kernel/sched/deadline.c, `fair_server_init`: 50 ms of 1 s), and only to threads that wait for it.
pub const REAL_TIME_RUNTIME_NS: u64 = 950_000_000;

/// Period of [`REAL_TIME_RUNTIME_NS`].
/// SOURCE: kernel/sched/rt.c, `sysctl_sched_rt_period` = 1 s.
pub const REAL_TIME_PERIOD_NS: u64 = 1_000_000_000;

/// Turn of a thread of the service under the best-effort class, from its waking on.
/// SOURCE: crates/sched/bpf/src/bpf/queue.bpf.h, `lc_slice_ns`.
pub const CLASS_SLICE_NS: u64 = 12_000_000;

/// Slice of a thread of the service that ran for longer than a turn without sleep.
/// SOURCE: crates/sched/bpf/src/bpf/unit.bpf.h, `LC_TURN_NS`.
pub const VETERAN_SLICE_NS: u64 = 4_000_000;

/// Slices of these that a thread may be ahead of the others because nobody waited.
/// SOURCE: crates/sched/bpf/src/bpf/unit.bpf.h, `AHEAD_TURNS`.
pub const AHEAD_TURNS: u64 = 4;

/// Virtual time that a thread of the service which wakes may be behind the others.
/// SOURCE: crates/sched/bpf/src/bpf/unit.bpf.h, `CREDIT_NS`.
pub const SERVICE_CREDIT_NS: u64 = 4_000_000;

/// Virtual time that a thread of the service which always runs is owed at most.
/// SOURCE: crates/sched/bpf/src/bpf/unit.bpf.h, `LAG_MOST_NS`.
pub const LAG_MOST_NS: u64 = 1_000_000_000;

/// Distance of the places of two threads that wake at the same virtual time.
/// SOURCE: `crates/sched/bpf/src/bpf/cpu_words.bpf.h`, `MAX_CPUS`: the bits below say from which CPU a thread comes.
pub const PLACE_STEP_NS: u64 = 2048;

/// CPU time of the service until the next thread may begin while threads that always run have all CPUs.
/// SOURCE: crates/sched/bpf/src/bpf/unit.bpf.h, `BEGIN_NS`.
pub const BEGIN_NS: u64 = 200_000_000;

/// Threads that are set back at once because they may not begin yet.
/// SOURCE: crates/sched/bpf/src/bpf/unit.bpf.h, `GATE_MOST`.
pub const GATE_MOST: u32 = 16;

/// A thread of the service that is behind by no more is not interrupted by one that wakes.
/// SOURCE: crates/sched/bpf/src/bpf/unit.bpf.h, `MARGIN_NS`.
pub const MARGIN_NS: u64 = 1_000_000;

/// CPUs that one that wakes looks at for whom to interrupt.
/// SOURCE: crates/sched/bpf/src/bpf/unit.bpf.h, `VICTIMS_MOST`.
pub const VICTIMS_MOST: u32 = 16;

/// Slice of a job under the best-effort class.
/// SOURCE: crates/sched/bpf/src/bpf/queue.bpf.h, `be_slice_ns`.
pub const JOB_SLICE_NS: u64 = 20_000_000;

/// A rest of a turn that is shorter is none.
/// SOURCE: crates/sched/bpf/src/bpf/turn.bpf.h, `TURN_LEAST_NS`; queue.bpf.h, `SLICE_LEAST_NS`.
pub const LEAST_TURN_NS: u64 = 1_000_000;

/// Turns of a job in a row while another one waits.
/// SOURCE: crates/sched/bpf/src/bpf/turn.bpf.h, `TURNS_MOST`.
pub const MOST_TURNS: u64 = 4;

/// From there on a job that rests may go on anywhere; seen at a tick here, by a timer every 10 ms there.
/// SOURCE: crates/sched/bpf/src/bpf/turn.bpf.h, `REST_MOST_NS`.
pub const MOST_REST_NS: u64 = 20_000_000;

/// Time between two looks of a cache at the queues of others.
/// SOURCE: crates/sched/bpf/src/bpf/queue.bpf.h, `LOOK_NS`.
pub const LOOK_NS: u64 = 20_000_000;

/// A queue that was given nothing for so long is helped by others.
/// SOURCE: crates/sched/bpf/src/bpf/queue.bpf.h, `NEGLECTED_NS`.
pub const NEGLECTED_NS: u64 = 100_000_000;

/// Turns that a sleeper keeps the credit of.
/// SOURCE: crates/sched/bpf/src/bpf/queue.bpf.h, `CREDIT_TURNS`.
pub const CREDIT_TURNS: u64 = 5;

/// Weight of nice 0 in the class.
/// SOURCE: crates/sched/bpf/src/bpf/queue.bpf.h, `WEIGHT_USUAL`.
pub const CLASS_USUAL_WEIGHT: u64 = 100;

/// Weight of `SCHED_IDLE` in the class: 3 of 1024, on its scale of 1 to 10000.
/// SOURCE: kernel/sched/sched.h, `sched_weight_to_cgroup`.
pub const CLASS_JOB_WEIGHT: u64 = 1;

/// A wait of a job counts as parked from there on.
/// SOURCE: crates/sched/bpf/src/bpf/moment.bpf.h, `PARKED_AFTER_NS`.
pub const PARKED_AFTER_NS: u64 = 1_000_000_000;

/// Time between two samples of a trial.
pub const SAMPLE_NS: u64 = 100_000_000;
