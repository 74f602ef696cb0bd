/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/*
 * CPUs that run best-effort work, for LC tasks that wait: a bit for each, so that a search costs the same where
 * there are many of them and none can be had. An LC task that wakes takes the bit of a CPU and is put into the run
 * queue of that one, where it takes the CPU at once; what finds nothing, or comes too late, waits in a queue.
 */
#ifndef STEELYARD_CLAIM_BPF_H
#define STEELYARD_CLAIM_BPF_H

#include "unit.bpf.h"

/* By their places in `cpu_order`. */
struct shared_word claimable[WORDS_MOST];

/* With a full barrier, so that a look at the arrivals afterwards sees what searched in vain before. */
static __always_inline void make_claimable(s32 cpu)
{
	set_bit(claimable, position_of_cpu(cpu));
}

/*
 * To ask for the CPUs of a task, and not the task: for each place where a program reads them the verifier searches the
 * types of the whole kernel.
 */
static __always_inline bool claim(s32 cpu, const struct cpumask *allowed)
{
	return bpf_cpumask_test_cpu(cpu, allowed) && take_bit(claimable, position_of_cpu(cpu));
}

static __always_inline bool is_any_claimable(void)
{
	s32 i;

	if (nr_cpus <= WORD_BITS)
		return read_word(claimable, 0);
	bpf_for(i, 0, words_of(nr_cpus))
		if (read_word(claimable, i))
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

static __always_inline u64 bits_of_node(u32 word, u32 llc)
{
	u64 index = llc;

	barrier_var(index);
	index &= MAX_CPUS - 1;
	return bits_between(word, node_first[index], node_end[index]);
}

/* Entry check: a CPU that runs BE and that this LC task may use, near ones first; -1: none. */
static s32 claim_be_cpu(const struct cpumask *allowed, s32 home, bool in_node)
{
	u64 start_ns = bpf_ktime_get_ns();
	u32 llc = llc_of_cpu(home), first = first_of_llc(llc);
	s32 found = -1, i;

	count(COUNT_ENTRY_RUNS);
	bpf_for(i, 0, words_of(nr_cpus) + 1) {
		u32 word;
		u64 bits = near_word(claimable, first, i, &word);

		if (in_node)
			bits &= bits_of_node(word, llc);
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
	claimed = is_any_claimable() ? claim_be_cpu(allowed, cpu, false) : -1;
	return claimed >= 0 ? claimed : cpu;
}

/* The same in the memory node of a CPU: one that idles comes first; -1: none. */
static __always_inline s32 claim_in_node(const struct cpumask *allowed, s32 cpu)
{
	if (claim(cpu, allowed))
		return cpu;
	return is_any_claimable() ? claim_be_cpu(allowed, cpu, true) : -1;
}

/* The CPU runs BE no more, or is about to. Under the lock of its run queue. */
static __always_inline void retract(struct cpu_state *c, s32 cpu)
{
	if (!c->be_running)
		return;
	c->be_running = 0;
	take_bit(claimable, position_of_cpu(cpu));
}

#endif
