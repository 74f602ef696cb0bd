/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/*
 * CPUs that run best-effort work, for LC tasks that wait: a bit for each, so that a search costs the same where
 * there are many of them and none can be had. An LC task that wakes takes the bit of a CPU and is put into the run
 * queue of that one, where it takes the CPU at once; what finds nothing, or comes too late, waits in a queue.
 */
#ifndef STEELYARD_CLAIM_BPF_H
#define STEELYARD_CLAIM_BPF_H

#include "unit.bpf.h"

#define WORD_BITS 64
#define WORDS_MOST (MAX_CPUS / WORD_BITS)

/* The place of each CPU in cpu_order, which is that of its bit: those sharing a cache stand together. */
const volatile u16 position_of[MAX_CPUS];

struct claimable_word {
	u64 bits;
} __attribute__((aligned(128)));
struct claimable_word claimable[WORDS_MOST];

static __always_inline u32 position_of_cpu(s32 cpu)
{
	u64 index = (u32)cpu;

	barrier_var(index);
	return position_of[index & (MAX_CPUS - 1)] & (MAX_CPUS - 1);
}

static __always_inline u64 *claimable_word(u32 word)
{
	u64 index = word;

	barrier_var(index);
	return &claimable[index & (WORDS_MOST - 1)].bits;
}

static __always_inline u64 bit_at(u32 position)
{
	return 1ULL << (position & (WORD_BITS - 1));
}

/* The place of the lowest bit. */
static __always_inline u32 lowest_bit(u64 bits)
{
	bits &= -bits;
	return bits >> 32 ? 32 + bucket_of(bits >> 32) : bucket_of(bits);
}

/* With a full barrier, so that a look at lc_arrivals afterwards sees what searched in vain before. */
static __always_inline void make_claimable(s32 cpu)
{
	u32 position = position_of_cpu(cpu);

	__sync_fetch_and_or(claimable_word(position / WORD_BITS), bit_at(position));
}

/* Gives whether it could still be claimed. */
static __always_inline bool take_claimable(u32 position)
{
	u64 *word = claimable_word(position / WORD_BITS), bit = bit_at(position);

	return (*(volatile u64 *)word & bit) && (__sync_fetch_and_and(word, ~bit) & bit);
}

/*
 * To ask for the CPUs of a task, and not the task: for each place where a program reads them the verifier searches the
 * types of the whole kernel.
 */
static __always_inline bool claim(s32 cpu, const struct cpumask *allowed)
{
	return bpf_cpumask_test_cpu(cpu, allowed) && take_claimable(position_of_cpu(cpu));
}

static __always_inline bool is_any_claimable(void)
{
	s32 i;

	if (nr_cpus <= WORD_BITS)
		return *(volatile u64 *)&claimable[0].bits;
	bpf_for(i, 0, (nr_cpus + WORD_BITS - 1) / WORD_BITS)
		if (*(volatile u64 *)claimable_word(i))
			return true;
	return false;
}

static __always_inline s32 claim_within(u32 word, u64 bits, const struct cpumask *allowed)
{
	s32 i;

	bpf_for(i, 0, WORD_BITS) {
		u32 position;
		s32 cpu;

		if (!bits)
			break;
		position = word * WORD_BITS + lowest_bit(bits);
		cpu = nth_cpu(position);
		if (claim(cpu, allowed))
			return cpu;
		bits &= bits - 1;
	}
	return -1;
}

/* Entry check: a CPU that runs BE and that this LC task may use, near ones first; -1: none. */
static s32 claim_be_cpu(const struct cpumask *allowed, s32 home)
{
	u64 start_ns = bpf_ktime_get_ns(), index = llc_of_cpu(home);
	u32 words = (nr_cpus + WORD_BITS - 1) / WORD_BITS, first;
	s32 found = -1, i;

	barrier_var(index);
	first = llc_first[index & (MAX_CPUS - 1)];
	count(COUNT_ENTRY_RUNS);
	/* The word of the cache's first CPU twice: from that one on, and at last what is before it. */
	bpf_for(i, 0, words + 1) {
		u32 word = first / WORD_BITS + i;
		u64 bits, before = bit_at(first) - 1;

		if (word >= words)
			word -= words;
		bits = *(volatile u64 *)claimable_word(word);
		if (i == 0)
			bits &= ~before;
		if (i == words)
			bits &= before;
		if (!bits)
			continue;
		found = claim_within(word, bits, allowed);
		if (found >= 0)
			break;
	}
	if (found >= 0)
		count(COUNT_ENTRY_SUCCESSES);
	note_duration(CHECK_ENTRY, bpf_ktime_get_ns() - start_ns);
	return found;
}

/* A CPU that runs BE and is now this LC task's, which takes it in `enqueue`; else the one it would wait at. */
static __always_inline s32 claim_for(struct task_struct *p, s32 cpu)
{
	const struct cpumask *allowed = p->cpus_ptr;
	s32 claimed;

	if (!check_entry || claim(cpu, allowed))
		return cpu;
	claimed = is_any_claimable() ? claim_be_cpu(allowed, cpu) : -1;
	return claimed >= 0 ? claimed : cpu;
}

/* The CPU runs BE no more, or is about to. Under the lock of its run queue. */
static __always_inline void retract(struct cpu_state *c, s32 cpu)
{
	if (!c->be_running)
		return;
	c->be_running = 0;
	take_claimable(position_of_cpu(cpu));
}

#endif
