/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/* Which CPUs are hardware threads of one core: its siblings. The class and the meter ask the same question. */
#ifndef STEELYARD_CORE_BPF_H
#define STEELYARD_CORE_BPF_H

#include "cpu_words.bpf.h"

#define THREADS_MOST 8 /* of a core */

/* A core has several hardware threads, or may have when they come on line: else the verifier removes what asks for them. */
const volatile bool has_siblings;
/* The next one of the same core, around; its own number where it is alone. CPUs come on line: the loader writes it anew. */
u16 next_sibling[MAX_CPUS];

static __always_inline s32 next_sibling_of(s32 cpu)
{
	u64 index = (u32)cpu;

	barrier_var(index);
	return next_sibling[index & (MAX_CPUS - 1)];
}

/* The siblings of a CPU, one after the other. */
#define for_each_sibling(i, sibling, cpu)                                                                              \
	for (i = 1, sibling = next_sibling_of(cpu); i < THREADS_MOST && sibling != (cpu);                             \
	     i++, sibling = next_sibling_of(sibling))

#endif
