/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/* What a CPU takes next: LC tasks of its own, of others, and BE tasks where no LC task waits. */
#ifndef STEELYARD_TAKE_BPF_H
#define STEELYARD_TAKE_BPF_H

#include "moment.bpf.h"
#include "meter.bpf.h"

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

/* The LC task that was taken will say in `running` whether it was local or came by the exit check. */
static __always_inline void note_pick(struct cpu_state *c, u32 llc, bool prev_is_be, u64 start_ns)
{
	c->pick_ns = bpf_ktime_get_ns() - start_ns;
	c->pick = prev_is_be || scx_bpf_dsq_nr_queued(BE_QUEUE + llc) > 0 ? 2 : 1;
}

#endif
