/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/*
 * What best-effort tasks may do on a hardware thread of a core on which a service runs, too. Each CPU says whether a
 * service has it, and reads that of its siblings: nothing of the whole machine is asked.
 */
#ifndef STEELYARD_SIBLINGS_BPF_H
#define STEELYARD_SIBLINGS_BPF_H

#include "claim.bpf.h"
#include "core.bpf.h"

enum siblings_policy {
	SIBLINGS_ALLOW,
	SIBLINGS_AVOID,	 /* not where another core is idle */
	SIBLINGS_FORBID, /* not at all */
};
const volatile u32 siblings_policy = SIBLINGS_ALLOW;

/* A service has another hardware thread of the core. */
static __always_inline bool is_beside_service(s32 cpu)
{
	s32 sibling, i;

	for_each_sibling(i, sibling, cpu)
		if (*(volatile u32 *)&cpu_state(sibling)->has_service)
			return true;
	return false;
}

/*
 * An idle CPU of a core that runs best-effort work and no service: where siblings may not be used, the others of the idle
 * ones are none for it.
 */
static __always_inline s32 pick_idle_beside_be(const struct cpumask *allowed, s32 home)
{
	u32 first = first_of_llc(llc_of_cpu(home));
	s32 i, j, k, sibling;

	bpf_for(i, 0, words_of(nr_cpus) + 1) {
		u32 word;
		u64 bits = near_word(claimable, first, i, &word);

		bpf_for(j, 0, WORD_BITS) {
			s32 cpu;

			if (!bits)
				break;
			cpu = nth_cpu(word * WORD_BITS + lowest_bit(bits));
			bits &= bits - 1;
			if (is_beside_service(cpu))
				continue;
			for_each_sibling(k, sibling, cpu)
				if (bpf_cpumask_test_cpu(sibling, allowed) && scx_bpf_test_and_clear_cpu_idle(sibling))
					return sibling;
		}
	}
	return -1;
}

/* An idle CPU for a best-effort task, one whose whole core is idle first. */
static __always_inline s32 pick_idle_for_be(const struct cpumask *allowed, s32 home)
{
	s32 idle;

	if (!has_siblings)
		return pick_idle(allowed, home, 0);
	idle = pick_idle(allowed, home, VALUE(scx_pick_idle_cpu_flags, SCX_PICK_IDLE_CORE));
	if (idle >= 0)
		return idle;
	return siblings_policy == SIBLINGS_FORBID ? pick_idle_beside_be(allowed, home) : pick_idle(allowed, home, 0);
}

/*
 * Whether the CPU may go on to a best-effort task, or with the one that has it. Whoever makes the last service leave the core
 * sees that this one waits for it: both write first, and then look.
 */
static __always_inline bool may_run_be(struct cpu_state *c, s32 cpu, struct task_struct *prev)
{
	s32 idle;

	if (siblings_policy == SIBLINGS_ALLOW)
		return true;
	c->is_withheld = 0;
	if (!is_beside_service(cpu))
		return true;
	if (siblings_policy == SIBLINGS_AVOID) {
		if (!prev)
			return true;
		idle = pick_idle(prev->cpus_ptr, cpu, VALUE(scx_pick_idle_cpu_flags, SCX_PICK_IDLE_CORE));
		if (idle >= 0)
			scx_bpf_kick_cpu(idle, VALUE(scx_kick_flags, SCX_KICK_IDLE));
		return idle < 0;
	}
	__sync_lock_test_and_set(&c->is_withheld, 1);
	return !is_beside_service(cpu);
}

/* A service has the CPU from now on, or no longer. */
static __always_inline void set_service(struct cpu_state *c, s32 cpu, bool has_service)
{
	s32 sibling, i;

	if (c->has_service == has_service)
		return;
	__sync_lock_test_and_set(&c->has_service, has_service);
	if (siblings_policy != SIBLINGS_FORBID)
		return;
	for_each_sibling(i, sibling, cpu) {
		struct cpu_state *other = cpu_state(sibling);

		if (has_service) {
			if (*(volatile u32 *)&other->be_running)
				scx_bpf_kick_cpu(sibling, VALUE(scx_kick_flags, SCX_KICK_PREEMPT));
		} else if ((*(volatile u32 *)&other->is_withheld ||
			    scx_bpf_dsq_nr_queued(BE_QUEUE + llc_of_cpu(sibling)) > 0) &&
			   !is_beside_service(sibling)) {
			scx_bpf_kick_cpu(sibling, VALUE(scx_kick_flags, SCX_KICK_IDLE));
		}
	}
}

/*
 * Threads of the kernel change nothing: they come and go in the middle of a service's work. One that stays is seen at a
 * tick, as is a task that became another kind while it ran.
 */
static __always_inline void note_service(const struct task_struct *next, s32 cpu, enum thread_kind taken)
{
	if (siblings_policy != SIBLINGS_ALLOW && (taken != OTHER_THREAD || !next->pid))
		set_service(cpu_state(cpu), cpu, taken == LC_THREAD);
}

#endif
