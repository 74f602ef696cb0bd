/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/* Queues and virtual time. */
#ifndef STEELYARD_QUEUE_BPF_H
#define STEELYARD_QUEUE_BPF_H

#include "kernel.bpf.h"
#include "marker.bpf.h"
#include "state.bpf.h"

#define LC_QUEUE 0x10000ULL
#define PINNED_QUEUE 0x20000ULL
#define BE_QUEUE 0x30000ULL
#define REST_QUEUE 0x50000ULL	 /* of a CPU: the BE task that was interrupted there */
#define MOMENT_QUEUE 0x40000ULL /* of a CPU: tasks that get a moment there before anything else */
#define RETRIES 2
#define LOOK_NS 20000000ULL
#define NEGLECTED_NS 100000000ULL
/*
 * A task whose turn counts several times as much, because its weight is small, takes the time of its cache ahead of that
 * of the others: they are to keep what they are owed.
 */
#define CREDIT_TURNS 5
#define SLICE_LEAST_NS 1000000ULL
#define WEIGHT_USUAL 100 /* SCX_TASK weight of nice 0 */

const volatile u32 nr_cpus = 1;
const volatile u32 nr_llcs = 1;
/* CPUs ordered so that those sharing a cache stand together; and where in it each cache's begin. */
const volatile u16 cpu_order[MAX_CPUS];
const volatile u16 llc_of[MAX_CPUS];
const volatile u16 llc_first[MAX_CPUS];
/* The same for the memory node of each cache, and where that one's end. */
const volatile u16 node_first[MAX_CPUS];
const volatile u16 node_end[MAX_CPUS];
const volatile bool check_local = true;
const volatile bool check_entry = true;
const volatile bool check_exit = true;
const volatile u64 lc_slice_ns = 12000000;
const volatile u64 be_slice_ns = 20000000;
/* The kernel keeps idle CPUs for each memory node, and is asked for those of one. */
const volatile bool has_nodes;

/* Of the arrivals at a cache: how many bits say who waits there. */
#define WAITING_BITS 24
#define WAITING (1ULL << WAITING_BITS)

static __always_inline u32 llc_of_cpu(s32 cpu)
{
	u64 index = (u32)cpu;

	barrier_var(index);
	return llc_of[index & (MAX_CPUS - 1)] & (MAX_CPUS - 1);
}

/* The place of each CPU in cpu_order: those sharing a cache stand together. */
const volatile u16 position_of[MAX_CPUS];

static __always_inline u32 position_of_cpu(s32 cpu)
{
	u64 index = (u32)cpu;

	barrier_var(index);
	return position_of[index & (MAX_CPUS - 1)] & (MAX_CPUS - 1);
}

static __always_inline u32 first_of_llc(u32 llc)
{
	u64 index = llc;

	barrier_var(index);
	return llc_first[index & (MAX_CPUS - 1)];
}

/*
 * The i-th word of a set in the order of `cpu_order`, from a place on: the word of that place comes twice, first from
 * there on, and at last what is before it.
 */
static __always_inline u64 near_word(struct shared_word *set, u32 first, u32 i, u32 *word)
{
	u32 words = words_of(nr_cpus);
	u64 bits, before = bit_at(first) - 1;

	*word = first / WORD_BITS + i;
	if (*word >= words)
		*word -= words;
	bits = read_word(set, *word);
	if (i == 0)
		bits &= ~before;
	if (i == words)
		bits &= before;
	return bits;
}

static __always_inline s32 nth_cpu(u32 position)
{
	u64 index = position;

	barrier_var(index);
	return cpu_order[index & (MAX_CPUS - 1)];
}

/* An idle CPU, those of the memory node of another one first. */
static __always_inline s32 pick_idle(const struct cpumask *allowed, s32 near, u64 flags)
{
	if (has_nodes)
		return scx_bpf_pick_idle_cpu_node___steelyard(allowed, scx_bpf_cpu_node___steelyard(near), flags);
	return scx_bpf_pick_idle_cpu(allowed, flags);
}

static __always_inline void set_slice(struct task_struct *p, u64 slice_ns)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice_ns);
	else
		p->scx.slice = slice_ns;
}

/* An LC task that may have to wait: to be called before a CPU is searched for it. Full barrier. */
static __always_inline void note_arrival(u32 llc, bool is_shared)
{
	add_ordered(&llc_state(llc)->arrivals, WAITING + is_shared);
}

/* It is not in the queue of the cache, or no longer. */
static __always_inline void note_departure(u32 llc)
{
	add_ordered(&llc_state(llc)->arrivals, -1);
}

/* It will be in the queue of another cache than the one it came to: to be called before it is. */
static __always_inline void note_detour(u32 from, u32 to)
{
	if (nr_llcs < 2 || from == to)
		return;
	add_ordered(&llc_state(to)->arrivals, 1);
	note_departure(from);
}

static __always_inline bool is_any_waiting(u32 llc)
{
	return *(volatile u64 *)&llc_state(llc)->arrivals & (WAITING - 1);
}

/* Arrivals at all caches. After a full barrier: pairs with the addition in `note_arrival`. */
static __always_inline u64 arrivals_now(void)
{
	u64 sum = 0;
	s32 i;

	if (nr_llcs < 2)
		return read_ordered(&llcs[0].arrivals) >> WAITING_BITS;
	bpf_for(i, 0, nr_llcs)
		sum += read_ordered(&llc_state(i)->arrivals) >> WAITING_BITS;
	return sum;
}

static __always_inline struct task_state *task_state(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, NULL, 0);
}

/* The lowest bits of an LC task's place in a queue. */
static __always_inline s32 home_of(u64 place)
{
	return place & (MAX_CPUS - 1);
}

static __always_inline u64 vtime_of_use(const struct task_struct *p, u64 used_ns)
{
	u32 weight = p->scx.weight;

	return used_ns * WEIGHT_USUAL / (weight ? weight : 1);
}

/* A task that slept long gets little credit for it; one that came from elsewhere is set back by two turns at most. */
static __always_inline u64 be_vtime_in(const struct task_struct *p, struct task_state *t, u32 llc)
{
	u64 now = llc_state(llc)->be_vtime, most = vtime_of_use(p, 2 * be_slice_ns);

	if (!t)
		return now;
	if ((s64)(t->vtime + CREDIT_TURNS * be_slice_ns - now) < 0)
		t->vtime = now - CREDIT_TURNS * be_slice_ns;
	if ((s64)(t->vtime - now) > (s64)most)
		t->vtime = now + most;
	return t->vtime;
}

static __always_inline u64 queue_of(enum kind kind, u32 llc)
{
	return (kind == KIND_BE ? BE_QUEUE : LC_QUEUE) + llc;
}

/* The queue of a kind gave a task away, or is about to get its first. */
static __always_inline void note_served(enum kind kind, u32 llc, u64 now)
{
	if (nr_llcs > 1)
		llc_state(llc)->served_ns[kind] = now;
}

static __always_inline void insert_shared(struct task_struct *p, enum kind kind, u32 llc, u64 slice_ns, u64 vtime)
{
	u64 queue = queue_of(kind, llc);

	if (nr_llcs > 1 && !scx_bpf_dsq_nr_queued(queue))
		note_served(kind, llc, bpf_ktime_get_ns());
	scx_bpf_dsq_insert_vtime(p, queue, slice_ns, vtime, 0);
}

static __always_inline bool take_from(enum kind kind, u32 llc, u64 now)
{
	if (!scx_bpf_dsq_move_to_local(queue_of(kind, llc)))
		return false;
	if (kind == KIND_LC)
		note_departure(llc);
	note_served(kind, llc, now);
	return true;
}

/* The cache so many places behind another one, around. */
static __always_inline u32 nth_llc(u32 llc, u32 places)
{
	u32 other = llc + places;

	return other < nr_llcs ? other : other - nr_llcs;
}

/*
 * A cache whose CPUs have other things to do, for good, would keep the tasks in its queue from the CPUs of others, which
 * are never without work of their own. Once in a slice a cache looks for a queue that is longer than its own or was
 * given nothing for long, and takes one task, which stays.
 */
static __always_inline bool take_elsewhere(enum kind kind, u32 llc, u64 now)
{
	s32 i, own;

	if (nr_llcs < 2 || (s64)(now - llc_state(llc)->look_ns[kind]) < 0)
		return false;
	llc_state(llc)->look_ns[kind] = now + LOOK_NS;
	own = scx_bpf_dsq_nr_queued(queue_of(kind, llc));
	bpf_for(i, 1, nr_llcs) {
		u32 other = nth_llc(llc, i);
		bool is_longer = scx_bpf_dsq_nr_queued(queue_of(kind, other)) > own;

		if ((is_longer || (s64)(now - llc_state(other)->served_ns[kind]) > (s64)NEGLECTED_NS) &&
		    take_from(kind, other, now))
			return true;
	}
	return false;
}

/*
 * The LC tasks bound to this CPU. Whoever is bound is put into the queue under the lock of the CPU that dispatch has
 * here, with the mark; without the exit check others are put there as well, from anywhere.
 */
static __always_inline bool take_bound(struct cpu_state *c, s32 cpu)
{
	if (check_exit && !c->has_bound)
		return false;
	c->has_bound = 0;
	if (!scx_bpf_dsq_move_to_local(PINNED_QUEUE + cpu))
		return false;
	c->has_bound = 1;
	return true;
}

/* Exit check: an LC task that came to this CPU's cache since it looked, or waits elsewhere, near ones first. */
static __always_inline bool steal_lc(u32 llc, u64 now)
{
	s32 i;

	if (nr_llcs < 2)
		return is_any_waiting(llc) && take_from(KIND_LC, llc, now);
	bpf_for(i, 0, nr_llcs) {
		u32 other = nth_llc(llc, i);

		if (is_any_waiting(other) && take_from(KIND_LC, other, now))
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

#endif
