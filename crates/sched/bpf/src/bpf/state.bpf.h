/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/* What the class knows of each CPU, its switches, and what it counts. */
#ifndef STEELYARD_STATE_BPF_H
#define STEELYARD_STATE_BPF_H

#include "cpu_words.bpf.h"
#include "kernel.bpf.h"

#define BUCKETS 32   /* powers of two of nanoseconds */

enum counter {
	COUNT_SCHEDULING_EVENTS,
	COUNT_ENTRY_RUNS,
	COUNT_ENTRY_SUCCESSES,
	COUNT_EXIT_RUNS,
	COUNT_EXIT_SUCCESSES,
	COUNT_LOCAL_LC_PICKS,
	COUNT_BE_PICKS,
	COUNT_SELF_KICKS,
	COUNT_HEARTBEAT_BLINKS,
	COUNT_REENQUEUES,
	COUNT_MIGRATIONS,
	COUNT_LENT,
	COUNT_INVERSIONS,
	COUNT_HOLDER_MOMENTS,
	COUNT_BE_RETURNS,
	COUNTERS,
};
enum check { CHECK_ENTRY, CHECK_EXIT, CHECK_LOCAL, CHECKS };

struct cpu_state {
	/* Best-effort work runs here beyond a moment, and no LC task is in the run queue to take the CPU from it. */
	u32 be_running;
	/* A task has its moment here: it is not to be claimed, and cut after a while. */
	u32 is_blink;
	/* How many LC tasks had come to all caches when this CPU last looked for them everywhere. */
	u64 seen_arrivals;
	/* When the BE task that runs here got the CPU; 0: an LC task did, whose time counts without the local check only. */
	u64 run_start_ns;
	/* Without the local check: time both kinds ran here, [0] LC, [1] BE. */
	u64 kind_ns[2];
	/* How often this CPU still looks again for LC work that is on its way. */
	u32 retries;
	/* Since when the LC task here was not charged, and where it stood in its queue; 0: nobody is to interrupt it. */
	u64 lc_start_ns;
	u64 place;
	/* The LC task on its way here was taken from a queue; 2: while BE was ready; and what the search took. */
	u32 pick;
	u64 pick_ns;
	/* A service runs here; and no BE task may, because one runs on a sibling. Where siblings are not all the same only. */
	u32 has_service;
	u32 is_withheld;
	/* A moment was due here for long and not given. */
	u32 is_stuck;
	/* Since when a task waits here for its moment, as seen by the patrol; 0: none does. */
	u64 blink_wait_ns;
	/* Its queue for moments, and that of LC tasks bound to it, may hold one: to look into an empty queue costs. */
	u32 has_moment;
	u32 has_bound;
	/* The task that runs here gives its CPU to others of its kind. */
	u32 has_yielded;
	/* The BE task that rests here in the middle of its turn, the CPUs that it may use, and since when; 0: none does. */
	u64 resting;
	u64 rest_cpus;
	u64 rest_start_ns;
	/* Time that BE had here beyond moments. */
	u64 be_ns;
	u64 parked_ns;
	u64 counters[COUNTERS];
	u64 histograms[CHECKS][BUCKETS];
} __attribute__((aligned(128)));

struct cpu_state cpus[MAX_CPUS];
/* The CPUs where a BE task rests, at their places in `cpu_order`; some of them where it no longer does. */
struct shared_word resting_at[WORDS_MOST];

/* What the class knows of a task. */
struct task_state {
	/* BE: its virtual time. */
	u64 vtime;
	/* BE: since when it has been ready without a CPU; 0: it is not waiting. A moment starts it anew. */
	u64 wait_start_ns;
	/* BE: when it last had a CPU for more than a moment, or became ready. */
	u64 park_start_ns;
	/* BE: how much of its turn it had, and how many it had in a row before it. */
	u64 turn_ns;
	u32 turns;
	/* It is in the queue for moments, or has one. */
	u32 is_blink;
	/* Moments in a row that it got because it is inside of a read-side critical section. */
	u32 reader_blinks;
	/* It left its CPU inside of the kernel, and the moments that it got there since it last ran for longer. */
	u32 is_in_kernel;
	u32 kernel_moments;
	/* Its moment is one for the holder of a lock. */
	u32 is_lent;
	/* LC: the lock of the kernel that it waits for; whether its holder is known; and of which attachment. */
	u32 is_sure_wait;
	u32 lock_epoch;
	u64 awaited_lock;
	/*
	 * LC: its virtual time, where it stands or stood in the queue (0: it slept), how much of its turn it had, and by how
	 * much virtual time the next one of its process has to wait since it began.
	 */
	u64 lc_vtime;
	u64 place;
	u64 lc_turn_ns;
	u64 begin_time;
	u64 unit_key;
	/* Its unit, the weight with which it counts there (0: it is not ready). */
	u32 unit;
	u32 load;
	/* Where its process stands among the units. */
	u32 process;
	u32 is_queued;
	/* It ran for a turn without sleep. */
	u32 goes_on;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} tasks SEC(".maps");

enum kind { KIND_LC, KIND_BE, KINDS };

/* Of a last-level cache. */
struct llc_state {
	/*
	 * How many LC tasks came to its CPUs and had to be put into a queue until now: whoever looked before must look again.
	 * And in the lowest bits how many of them may be in its queue, at least those that are: where none is, nobody looks.
	 * (One that the kernel takes out of the queue itself, to change it, is counted for ever.)
	 */
	u64 arrivals;
	/* The virtual time of its BE tasks. */
	u64 be_vtime;
	/* With several caches: when the queue of a kind last gave a task away, or got one while it was empty. */
	u64 served_ns[KINDS];
	/* When its CPUs look again for tasks of a kind that are badly off elsewhere. */
	u64 look_ns[KINDS];
} __attribute__((aligned(128)));
struct llc_state llcs[MAX_CPUS];

static __always_inline struct cpu_state *cpu_state(s32 cpu)
{
	u64 index = (u32)cpu;

	barrier_var(index);
	index &= MAX_CPUS - 1;
	barrier_var(index);
	return &cpus[index & (MAX_CPUS - 1)];
}

/* A task that is made BE while it runs has had nothing until then. */
static __always_inline u64 run_ns(const struct cpu_state *c, u64 now)
{
	return c->run_start_ns ? now - c->run_start_ns : 0;
}

static __always_inline struct llc_state *llc_state(u32 llc)
{
	u64 index = llc;

	barrier_var(index);
	return &llcs[index & (MAX_CPUS - 1)];
}

static __always_inline void count(enum counter which)
{
	cpu_state(bpf_get_smp_processor_id())->counters[which]++;
}

static __always_inline void note_duration(enum check which, u64 ns)
{
	u64 bucket = bucket_of(ns);

	barrier_var(bucket);
	cpu_state(bpf_get_smp_processor_id())->histograms[which][bucket & (BUCKETS - 1)]++;
}

#endif
