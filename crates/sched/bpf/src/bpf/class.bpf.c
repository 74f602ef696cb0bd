/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/*
 * The best-effort class: no best-effort (BE) task runs while a latency-critical (LC) one waits for a CPU that it
 * may use. What each piece is for stands in docs/decisions.
 *
 * Queues: LC tasks wait in one queue per last-level cache, ordered by virtual time; those bound to one CPU wait
 * in a queue of that CPU. BE tasks have a queue per last-level cache, too.
 */
#include "kernel.bpf.h"
#include "marker.bpf.h"
#include "state.bpf.h"

/* The kernel takes a scheduler only from a program that may be had under the GPL. */
char _license[] SEC("license") = "Dual MIT/GPL";

#define LC_QUEUE 0x10000ULL
#define PINNED_QUEUE 0x20000ULL
#define BE_QUEUE 0x30000ULL
#define RETRIES 2
#define WEIGHT_USUAL 100 /* SCX_TASK weight of nice 0 */

const volatile u32 nr_cpus = 1;
const volatile u32 nr_llcs = 1;
/* CPUs ordered so that those sharing a cache stand together; and where in it each cache's begin. */
const volatile u16 cpu_order[MAX_CPUS];
const volatile u16 llc_of[MAX_CPUS];
const volatile u16 llc_first[MAX_CPUS];
const volatile bool check_local = true;
const volatile bool check_entry = true;
const volatile bool check_exit = true;
const volatile u64 lc_slice_ns = 10000000;
const volatile u64 be_slice_ns = 10000000;

/* Moves with every LC task that is put into a queue: whoever looked before must look again. */
u64 lc_seq __attribute__((aligned(128)));

s64 exit_code;
char exit_reason[128];
char exit_message[1024];

static __always_inline u32 llc_of_cpu(s32 cpu)
{
	u64 index = (u32)cpu;

	barrier_var(index);
	return llc_of[index & (MAX_CPUS - 1)] & (MAX_CPUS - 1);
}

static __always_inline s32 nth_cpu(u32 position)
{
	u64 index = position;

	barrier_var(index);
	return cpu_order[index & (MAX_CPUS - 1)];
}

static __always_inline void set_slice(struct task_struct *p, u64 slice_ns)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice_ns);
	else
		p->scx.slice = slice_ns;
}

static __always_inline void set_vtime(struct task_struct *p, u64 vtime)
{
	if (bpf_ksym_exists(scx_bpf_task_set_dsq_vtime))
		scx_bpf_task_set_dsq_vtime(p, vtime);
	else
		p->scx.dsq_vtime = vtime;
}

/* Reads with a full barrier: pairs with the addition in `enqueue`. */
static __always_inline u64 lc_seq_now(void)
{
	return __sync_fetch_and_add(&lc_seq, 0);
}

/* A task that slept long gets no credit for it; one that came from elsewhere is not set back without bound. */
static __always_inline u64 vtime_in(const struct task_struct *p, u32 llc, bool is_be)
{
	u64 slice = is_be ? be_slice_ns : lc_slice_ns, now = llc_state(llc)->vtime[is_be];
	u64 vtime = p->scx.dsq_vtime;

	if ((s64)(vtime - now) < 0)
		return now;
	if ((s64)(vtime - now) > (s64)(slice * WEIGHT_USUAL))
		return now + slice * WEIGHT_USUAL;
	return vtime;
}

static __always_inline bool claim(s32 cpu, const struct task_struct *p)
{
	struct cpu_state *c = cpu_state(cpu);

	return c->be_running && bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
	       __sync_val_compare_and_swap(&c->be_running, 1, 0) == 1;
}

/* Entry check: a CPU that runs BE and that this LC task may use, near ones first; -1: none. */
static s32 claim_be_cpu(struct task_struct *p, s32 home)
{
	u64 start_ns = bpf_ktime_get_ns();
	u32 first = llc_of_cpu(home);
	s32 found = -1, i;
	u64 index = first;

	barrier_var(index);
	first = llc_first[index & (MAX_CPUS - 1)];
	count(COUNT_ENTRY_RUNS);
	bpf_for(i, 0, nr_cpus) {
		u32 position = first + i;
		s32 cpu;

		if (position >= nr_cpus)
			position -= nr_cpus;
		cpu = nth_cpu(position);
		if (claim(cpu, p)) {
			found = cpu;
			break;
		}
	}
	if (found >= 0)
		count(COUNT_ENTRY_SUCCESSES);
	note_duration(CHECK_ENTRY, start_ns);
	return found;
}

SEC("struct_ops/be_select_cpu")
s32 BPF_PROG(be_select_cpu, struct task_struct *p, s32 previous, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, previous, wake_flags, &is_idle);

	if (is_idle)
		scx_bpf_dsq_insert(p, VALUE(scx_dsq_id_flags, SCX_DSQ_LOCAL),
				   is_best_effort(p) ? be_slice_ns : lc_slice_ns, 0);
	return cpu;
}

static __always_inline void enqueue_be(struct task_struct *p, s32 home)
{
	u32 llc = llc_of_cpu(home);
	s32 idle;

	scx_bpf_dsq_insert_vtime(p, BE_QUEUE + llc, be_slice_ns, vtime_in(p, llc, true), 0);
	idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (idle >= 0)
		scx_bpf_kick_cpu(idle, VALUE(scx_kick_flags, SCX_KICK_IDLE));
}

SEC("struct_ops/be_enqueue")
void BPF_PROG(be_enqueue, struct task_struct *p, u64 flags)
{
	s32 home = scx_bpf_task_cpu(p), target = -1;
	bool is_bound = p->nr_cpus_allowed == 1 || is_migration_disabled(p);
	u32 llc;

	count(COUNT_SCHEDULING_EVENTS);
	if (is_best_effort(p)) {
		enqueue_be(p, home);
		return;
	}
	if (is_bound && (p->flags & PF_KTHREAD)) {
		scx_bpf_dsq_insert(p, VALUE(scx_dsq_id_flags, SCX_DSQ_LOCAL), lc_slice_ns,
				   VALUE(scx_enq_flags, SCX_ENQ_PREEMPT));
		return;
	}
	/* Full barrier: whoever makes its CPU claimable after the search below sees that lc_seq moved. */
	__sync_fetch_and_add(&lc_seq, 1);
	if (!is_bound) {
		target = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
		if (target >= 0) {
			scx_bpf_dsq_insert(p, VALUE(scx_dsq_id_flags, SCX_DSQ_LOCAL_ON) | target, lc_slice_ns, 0);
			scx_bpf_kick_cpu(target, VALUE(scx_kick_flags, SCX_KICK_IDLE));
			return;
		}
	}
	if (claim(home, p))
		target = home;
	else if (!is_bound && check_entry)
		target = claim_be_cpu(p, home);
	llc = llc_of_cpu(target >= 0 ? target : home);
	if (is_bound || !check_exit)
		scx_bpf_dsq_insert_vtime(p, PINNED_QUEUE + (target >= 0 ? target : home), lc_slice_ns,
					 vtime_in(p, llc, false), 0);
	else
		scx_bpf_dsq_insert_vtime(p, LC_QUEUE + llc, lc_slice_ns, vtime_in(p, llc, false), 0);
	/* The kick is delivered after this CPU has let go of its run queue, hence after the insertion. */
	if (target >= 0)
		scx_bpf_kick_cpu(target, VALUE(scx_kick_flags, SCX_KICK_PREEMPT));
	else if (is_bound)
		scx_bpf_kick_cpu(home, VALUE(scx_kick_flags, SCX_KICK_IDLE));
}

/* The LC tasks of this CPU and of its cache; bound ones and others take turns. */
static __always_inline bool take_lc(struct cpu_state *c, s32 cpu, u32 llc)
{
	bool bound_first = c->last_was_shared;

	if (bound_first && scx_bpf_dsq_move_to_local(PINNED_QUEUE + cpu)) {
		c->last_was_shared = 0;
		return true;
	}
	if (scx_bpf_dsq_move_to_local(LC_QUEUE + llc)) {
		c->last_was_shared = 1;
		return true;
	}
	return !bound_first && scx_bpf_dsq_move_to_local(PINNED_QUEUE + cpu);
}

/* Exit check beyond this CPU's cache: an LC task that waits elsewhere, near ones first. */
static __always_inline bool steal_lc(s32 cpu, u32 llc)
{
	s32 i;

	bpf_for(i, 1, nr_llcs) {
		u32 other = llc + i;

		if (other >= nr_llcs)
			other -= nr_llcs;
		if (scx_bpf_dsq_nr_queued(LC_QUEUE + other) > 0 && scx_bpf_dsq_move_to_local(LC_QUEUE + other))
			return true;
	}
	return false;
}

/* Without the exit check LC tasks wait at their CPU: the longest queue gives one away, to an idle CPU only. */
static __always_inline bool balance_lc(s32 cpu)
{
	s32 i, most = 0, from = -1;

	bpf_for(i, 0, nr_cpus) {
		s32 other = nth_cpu(i), queued = scx_bpf_dsq_nr_queued(PINNED_QUEUE + other);

		if (other != cpu && queued > most) {
			most = queued;
			from = other;
		}
	}
	return from >= 0 && scx_bpf_dsq_move_to_local(PINNED_QUEUE + from);
}

/* From here on the CPU may be claimed; if an LC task came since this CPU last looked, it looks again. */
static __always_inline void offer(struct cpu_state *c, s32 cpu)
{
	__sync_lock_test_and_set(&c->be_running, 1);
	if (lc_seq_now() != c->seen_seq)
		c->retries = RETRIES + 1;
	if (!c->retries)
		return;
	/* The one who moved lc_seq may not have finished its insertion yet: hence more than one look. */
	c->retries--;
	count(COUNT_SELF_KICKS);
	scx_bpf_kick_cpu(cpu, VALUE(scx_kick_flags, SCX_KICK_PREEMPT));
}

static __always_inline bool take_be(struct cpu_state *c, s32 cpu, u32 llc, struct task_struct *prev)
{
	s32 i;

	bpf_for(i, 0, nr_llcs) {
		u32 other = llc + i;

		if (other >= nr_llcs)
			other -= nr_llcs;
		if (scx_bpf_dsq_nr_queued(BE_QUEUE + other) > 0 && scx_bpf_dsq_move_to_local(BE_QUEUE + other))
			return true;
		if (i == 0 && prev && (prev->scx.flags & VALUE(scx_ent_flags, SCX_TASK_QUEUED))) {
			set_slice(prev, be_slice_ns);
			offer(c, cpu);
			return true;
		}
	}
	return false;
}

SEC("struct_ops/be_dispatch")
void BPF_PROG(be_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_state *c = cpu_state(cpu);
	u32 llc = llc_of_cpu(cpu);
	bool prev_is_be = prev && is_best_effort(prev), found;
	u64 start_ns = bpf_ktime_get_ns();

	c->seen_seq = lc_seq_now();
	if (!check_local && c->kind_ns[1] < c->kind_ns[0] && take_be(c, cpu, llc, prev_is_be ? prev : NULL)) {
		count(COUNT_BE_PICKS);
		return;
	}
	found = take_lc(c, cpu, llc);
	note_duration(CHECK_LOCAL, start_ns);
	if (found)
		return;
	if (prev && !prev_is_be && (prev->scx.flags & VALUE(scx_ent_flags, SCX_TASK_QUEUED))) {
		set_slice(prev, lc_slice_ns);
		return;
	}
	if (check_exit && nr_llcs > 1) {
		start_ns = bpf_ktime_get_ns();
		count(COUNT_EXIT_RUNS);
		found = steal_lc(cpu, llc);
		note_duration(CHECK_EXIT, start_ns);
		if (found) {
			count(COUNT_EXIT_SUCCESSES);
			return;
		}
	}
	if (take_be(c, cpu, llc, prev_is_be ? prev : NULL)) {
		count(COUNT_BE_PICKS);
		return;
	}
	if (!check_exit)
		balance_lc(cpu);
}

SEC("struct_ops/be_running")
void BPF_PROG(be_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_state *c = cpu_state(cpu);
	bool is_be = is_best_effort(p);
	struct llc_state *llc = llc_state(llc_of_cpu(cpu));

	c->run_start_ns = bpf_ktime_get_ns();
	if ((s64)(p->scx.dsq_vtime - llc->vtime[is_be]) > 0)
		llc->vtime[is_be] = p->scx.dsq_vtime;
	if (is_be) {
		offer(c, cpu);
	} else {
		c->be_running = 0;
		c->retries = 0;
	}
}

SEC("struct_ops/be_stopping")
void BPF_PROG(be_stopping, struct task_struct *p, bool runnable)
{
	struct cpu_state *c = cpu_state(scx_bpf_task_cpu(p));
	u64 used_ns = bpf_ktime_get_ns() - c->run_start_ns;
	bool is_be = is_best_effort(p);
	u32 weight = p->scx.weight;

	c->be_running = 0;
	set_vtime(p, p->scx.dsq_vtime + used_ns * WEIGHT_USUAL / (weight ? weight : 1));
	if (!check_local) {
		c->kind_ns[is_be] += used_ns;
		/* A kind that was away for long does not come back to the CPU alone. */
		if (c->kind_ns[is_be] > c->kind_ns[!is_be] + 10 * lc_slice_ns)
			c->kind_ns[!is_be] = c->kind_ns[is_be] - 10 * lc_slice_ns;
	}
}

/* What the handshake could not close, because a virtual CPU was stopped in the middle of it, ends here. */
SEC("struct_ops/be_tick")
void BPF_PROG(be_tick, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);

	if (!check_local || !check_exit || !cpu_state(cpu)->be_running)
		return;
	if (scx_bpf_dsq_nr_queued(LC_QUEUE + llc_of_cpu(cpu)) > 0 || scx_bpf_dsq_nr_queued(PINNED_QUEUE + cpu) > 0)
		set_slice(p, 0);
}

/* An idle CPU is as free as one that runs BE, and is lost in the same way between search and sleep. */
SEC("struct_ops/be_update_idle")
void BPF_PROG(be_update_idle, s32 cpu, bool is_idle)
{
	struct cpu_state *c = cpu_state(cpu);

	if (is_idle && lc_seq_now() != c->seen_seq)
		scx_bpf_kick_cpu(cpu, 0);
}

SEC("struct_ops/be_enable")
void BPF_PROG(be_enable, struct task_struct *p)
{
	set_vtime(p, llc_state(llc_of_cpu(scx_bpf_task_cpu(p)))->vtime[is_best_effort(p)]);
}

/* A real-time task took the CPU: what waits for it alone goes back to the queues. */
SEC("struct_ops/be_cpu_release")
void BPF_PROG(be_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	u32 moved = scx_bpf_reenqueue_local();

	cpu_state(cpu)->counters[COUNT_REENQUEUES] += moved;
}

SEC("struct_ops.s/be_init")
s32 BPF_PROG(be_init)
{
	s32 i, error;

	bpf_for(i, 0, nr_cpus) {
		error = scx_bpf_create_dsq(PINNED_QUEUE + nth_cpu(i), -1);
		if (error)
			return error;
	}
	bpf_for(i, 0, nr_llcs) {
		error = scx_bpf_create_dsq(LC_QUEUE + i, -1);
		if (!error)
			error = scx_bpf_create_dsq(BE_QUEUE + i, -1);
		if (error)
			return error;
	}
	return 0;
}

SEC("struct_ops/be_exit")
void BPF_PROG(be_exit, struct scx_exit_info *info)
{
	exit_code = info->exit_code;
	bpf_probe_read_kernel_str(exit_reason, sizeof(exit_reason), info->reason);
	bpf_probe_read_kernel_str(exit_message, sizeof(exit_message), info->msg);
}

SEC(".struct_ops.link")
struct sched_ext_ops steelyard_be = {
	.select_cpu = (void *)be_select_cpu,
	.enqueue = (void *)be_enqueue,
	.dispatch = (void *)be_dispatch,
	.tick = (void *)be_tick,
	.running = (void *)be_running,
	.stopping = (void *)be_stopping,
	.update_idle = (void *)be_update_idle,
	.enable = (void *)be_enable,
	.cpu_release = (void *)be_cpu_release,
	.init = (void *)be_init,
	.exit = (void *)be_exit,
	.flags = 1, /* SCX_OPS_KEEP_BUILTIN_IDLE: the kernel's own search for idle CPUs stays */
	.timeout_ms = 30000,
	.name = "steelyard_be",
};
