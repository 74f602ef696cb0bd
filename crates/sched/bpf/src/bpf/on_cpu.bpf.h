/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/* What is noted when a task gets a CPU, and when it leaves it. */
#ifndef STEELYARD_ON_CPU_BPF_H
#define STEELYARD_ON_CPU_BPF_H

#include "moment.bpf.h"

static __always_inline void note_lc_start(struct cpu_state *c, s32 cpu, const struct task_struct *p)
{
	c->retries = 0;
	if (!c->pick)
		return;
	if (home_of(p->scx.dsq_vtime) == cpu) {
		count(COUNT_LOCAL_LC_PICKS);
		note_duration(CHECK_LOCAL, c->pick_ns);
	} else {
		count(COUNT_MIGRATIONS);
		if (c->pick == 2) {
			count(COUNT_EXIT_RUNS);
			count(COUNT_EXIT_SUCCESSES);
			note_duration(CHECK_EXIT, c->pick_ns);
		}
	}
	c->pick = 0;
}

static __always_inline void note_be_start(struct cpu_state *c, s32 cpu, struct task_state *t, u64 now)
{
	struct llc_state *llc = llc_state(llc_of_cpu(cpu));

	if (!t) {
		offer(c, cpu);
		return;
	}
	if ((s64)(t->vtime - llc->be_vtime) > 0)
		llc->be_vtime = t->vtime;
	if (t->wait_start_ns && now - t->wait_start_ns > PARKED_AFTER_NS)
		c->parked_ns += now - t->wait_start_ns;
	t->wait_start_ns = 0;
	if (t->is_blink) {
		start_moment(c, cpu, t->is_lent ? LENT_NS : MOMENT_NS);
		return;
	}
	t->park_start_ns = 0;
	t->kernel_moments = 0;
	offer(c, cpu);
}

static __always_inline void note_be_stop(struct task_struct *p, struct cpu_state *c, bool runnable, u64 used_ns)
{
	struct task_state *t = task_state(p);

	if (t) {
		t->vtime += vtime_of_use(p, used_ns);
		t->turn_ns = runnable && !c->is_blink ? t->turn_ns + used_ns : 0;
		if (!runnable)
			t->park_start_ns = 0;
	}
	if (!c->is_blink)
		c->be_ns += used_ns;
	c->is_blink = 0;
}

/* A real-time task takes the CPU: what waits for it alone goes back to the queues. */
static __always_inline void release(const struct task_struct *next, s32 cpu)
{
	s32 waiting;

	if (!bpf_ksym_exists(scx_bpf_reenqueue_local___v2___steelyard))
		return;
	if (next->policy != POLICY_FIFO && next->policy != POLICY_RR && next->policy != POLICY_DEADLINE)
		return;
	waiting = scx_bpf_dsq_nr_queued(VALUE(scx_dsq_id_flags, SCX_DSQ_LOCAL_ON) | cpu);
	if (waiting <= 0)
		return;
	cpu_state(cpu)->counters[COUNT_REENQUEUES] += waiting;
	scx_bpf_reenqueue_local___v2___steelyard();
}

static __always_inline void note_next(const struct task_struct *next, s32 cpu, enum thread_kind taken)
{
	release(next, cpu);
	note_service(next, cpu, taken);
}

#endif
