/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/*
 * How strict is the policy that is active, whichever it is? For each time that an LC thread was ready and had no
 * CPU: how much of it did CPUs that it was allowed on spend on BE threads? By tracing alone, so that the class is
 * measured by the same instrument as any other policy.
 */
#ifndef STEELYARD_METER_BPF_H
#define STEELYARD_METER_BPF_H

#include "marker.bpf.h"

#ifndef MAX_CPUS
#define MAX_CPUS 512
#endif
#define WATCHED_CPUS 64 /* beyond them a wait would cost too much to note */

const volatile u32 watched_cpus = 1;

struct cpu_meter {
	/* BE time until the last switch, and since when BE runs now; 0: it does not. */
	u64 be_ns;
	u64 be_start_ns;
	u64 violation_ns;
	u64 violations;
	u64 longest_ns;
	u64 events;
} __attribute__((aligned(64)));
struct cpu_meter meters[MAX_CPUS];

/* A wait of an LC thread: its start, and the BE time of each CPU then. */
struct wait {
	u64 start_ns;
	/* It has a CPU: if it is woken now, it has not left it. */
	u64 is_running;
	u64 be_ns[WATCHED_CPUS];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wait);
} waits SEC(".maps");

static __always_inline struct cpu_meter *meter_of(u32 cpu)
{
	u64 index = cpu;

	barrier_var(index);
	return &meters[index & (MAX_CPUS - 1)];
}

static __always_inline u64 be_ns_of(u32 cpu, u64 now)
{
	struct cpu_meter *m = meter_of(cpu);
	u64 start_ns = m->be_start_ns, be_ns = m->be_ns;

	return start_ns && now > start_ns ? be_ns + (now - start_ns) : be_ns;
}

static __always_inline bool is_lc_thread(const struct task_struct *p)
{
	return p->pid && !(p->flags & PF_KTHREAD) && !is_best_effort(p);
}

static __always_inline void begin_wait(struct task_struct *p, u64 now)
{
	struct wait *w;
	s32 i;

	if (!is_lc_thread(p))
		return;
	w = bpf_task_storage_get(&waits, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!w)
		return;
	bpf_for(i, 0, watched_cpus) {
		u64 place = i;

		barrier_var(place);
		w->be_ns[place & (WATCHED_CPUS - 1)] = be_ns_of(i, now);
	}
	w->start_ns = now;
}

/* Sum over the CPUs, at most the wait itself: an upper bound, exact while BE ran on one of them at a time. */
static __always_inline void end_wait(struct task_struct *p, struct cpu_meter *m, u64 now)
{
	struct wait *w = bpf_task_storage_get(&waits, p, NULL, 0);
	u64 waited_ns, overlap_ns = 0;
	s32 i;

	if (!w)
		return;
	w->is_running = 1;
	if (!w->start_ns)
		return;
	waited_ns = now - w->start_ns;
	w->start_ns = 0;
	m->events++;
	bpf_for(i, 0, watched_cpus) {
		u64 place = i, be_ns = be_ns_of(i, now);

		barrier_var(place);
		if (be_ns != w->be_ns[place & (WATCHED_CPUS - 1)] && bpf_cpumask_test_cpu(i, p->cpus_ptr))
			overlap_ns += be_ns - w->be_ns[place & (WATCHED_CPUS - 1)];
	}
	if (!overlap_ns)
		return;
	if (overlap_ns > waited_ns)
		overlap_ns = waited_ns;
	m->violation_ns += overlap_ns;
	m->violations++;
	if (overlap_ns > m->longest_ns)
		m->longest_ns = overlap_ns;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(note_wakeup, struct task_struct *p)
{
	struct wait *w = bpf_task_storage_get(&waits, p, NULL, 0);

	if (!w || !w->is_running)
		begin_wait(p, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(note_wakeup_new, struct task_struct *p)
{
	begin_wait(p, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(note_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct cpu_meter *m = meter_of(bpf_get_smp_processor_id());
	u64 now = bpf_ktime_get_ns();
	struct wait *w;

	if (m->be_start_ns) {
		m->be_ns += now - m->be_start_ns;
		m->be_start_ns = 0;
	}
	w = bpf_task_storage_get(&waits, prev, NULL, 0);
	if (w)
		w->is_running = 0;
	if (preempt || prev_state == 0) /* TASK_RUNNING */
		begin_wait(prev, now);
	end_wait(next, m, now);
	if (next->pid && is_best_effort(next))
		m->be_start_ns = now;
	return 0;
}

#endif
