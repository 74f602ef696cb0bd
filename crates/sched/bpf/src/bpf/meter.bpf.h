/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/*
 * How strict is the policy that is active, whichever it is? For each time that an LC thread was ready and had no
 * CPU: how much of it did CPUs that it was allowed on spend on BE threads? By tracing alone, so that the class is
 * measured by the same instrument as any other policy.
 */
#ifndef STEELYARD_METER_BPF_H
#define STEELYARD_METER_BPF_H

#include "core.bpf.h"
#include "marker.bpf.h"

#define READS_MOST 4

const volatile u32 watched_cpus = 1;
/* Since when the policy that is to be judged decides; 0: it does not. */
u64 judged_since_ns;

struct cpu_meter {
	/* BE time until the last switch, and since when BE runs now; 0: it does not. */
	u64 be_ns;
	u64 be_start_ns;
	u64 violation_ns;
	u64 violations;
	u64 longest_ns;
	u64 events;
	/* What has the CPU; and since when it is BE beside an LC thread on a sibling; 0: it is not. */
	u32 kind;
	u64 beside_start_ns;
	/* Such times, as seen by the CPU that ended them. */
	u64 beside_ns;
	u64 beside_count;
	u64 longest_beside_ns;
} __attribute__((aligned(64)));
struct cpu_meter meters[MAX_CPUS];

/*
 * BE time of all CPUs together, so that a wait costs the same on any number of them: at a time t it is
 * sum_ns + running * t, where each start at s took s from the sum and each stop at e added e to it (modulo 2^64).
 * Changes are counted before and after, so that a reader knows whether it saw one half done.
 */
struct be_total {
	u64 begun;
	u64 sum_ns;
	u64 running;
	u64 done;
} __attribute__((aligned(128)));
struct be_total be_total;
/* The CPUs that BE ever ran on: where others may be used as well, their sum is that of all. */
struct shared_word be_cpus[WORDS_MOST];

/* What is seen of the CPUs that a thread may use: which they are, and their BE time. */
struct sight {
	u64 cpus;
	u64 be_ns;
};

/* A wait of an LC thread: its start, and what was seen then. */
struct wait {
	u64 start_ns;
	struct sight sight;
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

/* BE runs on one CPU more, or on one less, since `now`. */
static __always_inline void note_be_change(u32 cpu, bool is_start, u64 now)
{
	if (!(read_word(be_cpus, cpu / WORD_BITS) & bit_at(cpu)))
		set_bit(be_cpus, cpu);
	add_ordered(&be_total.begun, 1);
	add_ordered(&be_total.sum_ns, is_start ? -now : now);
	add_ordered(&be_total.running, is_start ? 1 : -1);
	add_ordered(&be_total.done, 1);
}

/* All changes that had begun when the last word was read were done when the first one was: none was half seen. */
static __always_inline bool read_be_total(u64 now, u64 *be_ns)
{
	u64 done = read_ordered(&be_total.done);
	u64 sum_ns = read_ordered(&be_total.sum_ns), running = read_ordered(&be_total.running);

	*be_ns = sum_ns + running * now;
	return read_ordered(&be_total.begun) == done;
}

/* A number for a set of CPUs, which is the set itself where one word holds it. */
static __always_inline u64 with_word(u64 cpus, u64 bits)
{
	return watched_cpus <= WORD_BITS ? bits : (cpus ^ bits) * 0x9e3779b97f4a7c15ULL;
}

static __always_inline u64 be_ns_in_word(u32 word, u64 bits, u64 now)
{
	u64 be_ns = 0;
	s32 i;

	bpf_for(i, 0, WORD_BITS) {
		if (!bits)
			break;
		be_ns += be_ns_of(word * WORD_BITS + lowest_bit(bits), now);
		bits &= bits - 1;
	}
	return be_ns;
}

static __noinline int look_at(const struct cpumask *mask, u64 now, struct sight *sight)
{
	u64 allowed[WORDS_MOST] = {}, cpus = 0, be_ns = 0;
	u32 words = words_of(watched_cpus);
	bool is_any = false, is_all = true;
	s32 i;

	if (words > 1)
		bpf_probe_read_kernel(allowed, words * sizeof(u64), mask);
	else
		allowed[0] = mask->bits[0];
	bpf_for(i, 0, words) {
		u64 bits = allowed[i & (WORDS_MOST - 1)], be = read_word(be_cpus, i);

		cpus = with_word(cpus, bits);
		is_any |= (bits & be) != 0;
		is_all &= !(be & ~bits);
	}
	sight->cpus = cpus;
	sight->be_ns = 0;
	if (!is_any)
		return 0;
	if (is_all) {
		bpf_for(i, 0, READS_MOST) {
			if (read_be_total(now, &be_ns)) {
				sight->be_ns = be_ns;
				return 0;
			}
		}
		be_ns = 0;
	}
	bpf_for(i, 0, words)
		be_ns += be_ns_in_word(i, allowed[i & (WORDS_MOST - 1)] & read_word(be_cpus, i), now);
	sight->be_ns = be_ns;
	return 0;
}

static __always_inline void look(const struct task_struct *p, u64 now, struct sight *sight)
{
	look_at(as_read(p)->cpus_ptr, now, sight);
}

/* Of an LC thread. */
static __always_inline void begin_wait(struct task_struct *p, u64 now)
{
	struct wait *w = bpf_task_storage_get(&waits, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!w)
		return;
	look(p, now, &w->sight);
	w->start_ns = now;
}

/*
 * Sum over the CPUs, at most the wait itself: an upper bound, exact while BE ran on one of them at a time. What a thread
 * waited for while it was given other CPUs is not known, and not counted.
 */
static __always_inline void end_wait(struct task_struct *p, struct cpu_meter *m, u64 now)
{
	struct wait *w = bpf_task_storage_get(&waits, p, NULL, 0);
	struct sight sight = {};
	u64 waited_ns, overlap_ns;
	bool is_judged;

	if (!w || !w->start_ns)
		return;
	waited_ns = now - w->start_ns;
	is_judged = judged_since_ns && w->start_ns >= judged_since_ns;
	w->start_ns = 0;
	if (!is_judged)
		return;
	m->events++;
	look(p, now, &sight);
	if (w->sight.cpus != sight.cpus)
		return;
	overlap_ns = sight.be_ns - w->sight.be_ns;
	/* Less than nothing: clocks of two CPUs that differ by some nanoseconds. */
	if ((s64)overlap_ns <= 0)
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
	/* Not one that was woken before it left its CPU. */
	if (!p->on_cpu && kind_of(p) == LC_THREAD)
		begin_wait(p, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(note_wakeup_new, struct task_struct *p)
{
	if (kind_of(p) == LC_THREAD)
		begin_wait(p, bpf_ktime_get_ns());
	return 0;
}

/* Not static: verified alone. */
__noinline bool is_beside_lc(s32 cpu)
{
	s32 sibling, i;

	for_each_sibling(i, sibling, cpu)
		if (*(volatile u32 *)&meter_of(sibling)->kind == LC_THREAD)
			return true;
	return false;
}

static __always_inline void end_beside(struct cpu_meter *m, struct cpu_meter *of, u64 now)
{
	u64 start_ns = __sync_lock_test_and_set(&of->beside_start_ns, 0), since_ns = judged_since_ns, beside_ns;

	if (!start_ns || !since_ns)
		return;
	beside_ns = now - (start_ns < since_ns ? since_ns : start_ns);
	if ((s64)beside_ns <= 0)
		return;
	m->beside_ns += beside_ns;
	m->beside_count++;
	if (beside_ns > m->longest_beside_ns)
		m->longest_beside_ns = beside_ns;
}

/* BE has the CPU and LC a sibling. Whoever ended that meanwhile did not see that it had begun. */
static __always_inline void begin_beside(u32 cpu, u64 now)
{
	struct cpu_meter *m = meter_of(cpu);

	__sync_val_compare_and_swap(&m->beside_start_ns, 0, now);
	if (*(volatile u32 *)&m->kind != BE_THREAD || !is_beside_lc(cpu))
		__sync_lock_test_and_set(&m->beside_start_ns, 0);
}

/* Each side writes what it runs before it looks at the other. */
static __always_inline void note_kind(struct cpu_meter *m, u32 cpu, enum thread_kind kind, u64 now)
{
	enum thread_kind before = m->kind;
	s32 sibling, i;

	if (!has_siblings || before == kind)
		return;
	__sync_lock_test_and_set(&m->kind, kind);
	if (before == BE_THREAD)
		end_beside(m, m, now);
	if (kind == BE_THREAD && is_beside_lc(cpu))
		begin_beside(cpu, now);
	if (before != LC_THREAD && kind != LC_THREAD)
		return;
	for_each_sibling(i, sibling, (s32)cpu) {
		struct cpu_meter *other = meter_of(sibling);

		if (*(volatile u32 *)&other->kind != BE_THREAD)
			continue;
		if (kind == LC_THREAD)
			begin_beside(sibling, now);
		else if (!is_beside_lc(sibling))
			end_beside(m, other, now);
	}
}

static __always_inline void note_be(struct cpu_meter *m, u32 cpu, bool is_be, u64 now)
{
	bool was_be = m->be_start_ns;

	if (was_be)
		m->be_ns += now - m->be_start_ns;
	m->be_start_ns = is_be ? now : 0;
	if (was_be != is_be)
		note_be_change(cpu, is_be, now);
}

/* A CPU goes from one thread to another: as that happens so often, all who want to know of it are told here. */
SEC("tp_btf/sched_switch")
int BPF_PROG(note_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	enum thread_kind left = kind_of(prev), taken = kind_of(next);
	bool is_ready = preempt || prev_state == 0; /* TASK_RUNNING */
	u32 cpu = bpf_get_smp_processor_id();
	u64 now = bpf_ktime_get_ns();

	note_be(meter_of(cpu), cpu, taken == BE_THREAD, now);
	note_kind(meter_of(cpu), cpu, taken, now);
	if (is_ready && left == LC_THREAD)
		begin_wait(prev, now);
	if (taken != OTHER_THREAD)
		end_wait(next, meter_of(cpu), now);
#ifdef ON_SWITCH_TO
	ON_SWITCH_TO(next, cpu, taken);
#endif
#ifdef ON_SWITCH_FROM_BE
	if (left == BE_THREAD)
		ON_SWITCH_FROM_BE(prev, preempt || prev_state != 0);
#endif
	return 0;
}

#endif
