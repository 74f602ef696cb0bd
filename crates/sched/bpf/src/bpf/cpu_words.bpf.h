/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/* Sets of CPUs, a bit for each. */
#ifndef STEELYARD_CPU_WORDS_BPF_H
#define STEELYARD_CPU_WORDS_BPF_H

#include "kernel.bpf.h"

#define MAX_CPUS 2048 /* possible ones; a power of two: indices are masked */
#define WORD_BITS 64
#define WORDS_MOST (MAX_CPUS / WORD_BITS)

/* Alone in its cache lines: changed by the CPUs that it is for. */
struct shared_word {
	u64 bits;
} __attribute__((aligned(128)));

static __always_inline u64 *shared_word(struct shared_word *words, u32 word)
{
	u64 index = word;

	barrier_var(index);
	return &words[index & (WORDS_MOST - 1)].bits;
}

static __always_inline u64 read_word(struct shared_word *words, u32 word)
{
	return *(volatile u64 *)shared_word(words, word);
}

static __always_inline u64 bit_at(u32 position)
{
	return 1ULL << (position & (WORD_BITS - 1));
}

/* The bits of a word that are for places from one on and before another. */
static __always_inline u64 bits_between(u32 word, u32 first, u32 end)
{
	u32 begin = word * WORD_BITS;
	u64 bits = ~0ULL;

	if (first >= begin + WORD_BITS || end <= begin)
		return 0;
	if (first > begin)
		bits &= ~(bit_at(first) - 1);
	if (end < begin + WORD_BITS)
		bits &= bit_at(end) - 1;
	return bits;
}

static __always_inline u32 words_of(u32 bits)
{
	return (bits + WORD_BITS - 1) / WORD_BITS;
}

/* With a full barrier. */
static __always_inline void set_bit(struct shared_word *words, u32 position)
{
	__sync_fetch_and_or(shared_word(words, position / WORD_BITS), bit_at(position));
}

/* Gives whether it was there. */
static __always_inline bool take_bit(struct shared_word *words, u32 position)
{
	u64 *word = shared_word(words, position / WORD_BITS), bit = bit_at(position);

	return (*(volatile u64 *)word & bit) && (__sync_fetch_and_and(word, ~bit) & bit);
}

/* Power of two that a number is at least; 0 of 0. */
static __always_inline u32 bucket_of(u64 number)
{
	u32 bucket = 0;

	if (number >> 16) { bucket += 16; number >>= 16; }
	if (number >> 8) { bucket += 8; number >>= 8; }
	if (number >> 4) { bucket += 4; number >>= 4; }
	if (number >> 2) { bucket += 2; number >>= 2; }
	return bucket + (number >> 1 ? 1 : 0);
}

/* The place of the lowest bit. */
static __always_inline u32 lowest_bit(u64 bits)
{
	bits &= -bits;
	return bits >> 32 ? 32 + bucket_of(bits >> 32) : bucket_of(bits);
}

#endif
