/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/*
 * Turns of best-effort tasks. Who is interrupted before its slice is used up rests at its CPU and goes on there when the
 * services leave it again: what it has in the caches stays useful, and nobody's run queue has to be locked for it. So a
 * turn is a slice of CPU time, however often it is interrupted; between turns tasks wait in the queue of their cache, in
 * order of virtual time.
 */
#ifndef STEELYARD_TURN_BPF_H
#define STEELYARD_TURN_BPF_H

#include "holder.bpf.h"
#include "siblings.bpf.h"

#define TURN_LEAST_NS 1000000ULL /* a rest of a turn that is shorter is none */
#define TURNS_MOST 4 /* in a row, beside one that waits and weighs as much */
#define REST_MOST_NS 20000000ULL /* from there on any CPU may have it */

/* What is left of its turn after it had so much more of a CPU; 0: it is over. */
static __always_inline u64 turn_left_ns(const struct task_state *t, u64 used_ns)
{
	u64 turn_ns = t->turn_ns + used_ns;

	return turn_ns + TURN_LEAST_NS < be_slice_ns ? be_slice_ns - turn_ns : 0;
}

/*
 * Whether the first that waits in a cache is to follow on a task with so much virtual time, that had so many turns
 * in a row: it had less, or its turn has come all the same. Who is behind because services have its CPU would never
 * leave it else.
 * Not static: verified alone.
 */
__noinline bool is_anybody_due(u64 vtime, u32 turns, u32 weight, u32 llc)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, BE_QUEUE + llc, 0) {
		u32 other = p->scx.weight;

		return (s64)(p->scx.dsq_vtime - vtime) < 0 ||
		       turns * other >= TURNS_MOST * (weight > other ? weight : other);
	}
	return false;
}

/*
 * CPUs that a BE task which waits was ever allowed on, a bit for each: the others, where services have CPUs of
 * their own, need not look for one.
 */
u64 be_allowed[WORDS_MOST];

/* To be called before the task is in a queue. */
static __always_inline void note_be_cpus(const struct task_struct *p)
{
	u64 bits = as_read(p)->cpus_ptr->bits[0];
	s32 i;

	if (bits & ~be_allowed[0])
		__sync_fetch_and_or(&be_allowed[0], bits);
	if (nr_cpus <= WORD_BITS)
		return;
	bpf_for(i, 1, words_of(nr_cpus)) {
		u64 index = i & (WORDS_MOST - 1);

		if (!bpf_probe_read_kernel(&bits, sizeof(bits), (u64 *)as_read(p)->cpus_ptr + index) && (bits & ~be_allowed[index]))
			__sync_fetch_and_or(&be_allowed[index], bits);
	}
}

static __always_inline bool may_have_be(s32 cpu)
{
	u64 word = (u32)cpu / WORD_BITS;

	barrier_var(word);
	return be_allowed[word & (WORDS_MOST - 1)] & bit_at(cpu);
}

/*
 * At its CPU, if nobody rests there already. Within `enqueue`: under the lock of that CPU, as is its own look. Not where a
 * real-time task took the CPU, and not while a holder of a lock is looked for.
 */
static __always_inline bool rest(struct task_struct *p, struct task_state *t, s32 home, u64 flags, u64 now)
{
	struct cpu_state *c = cpu_state(home);
	u64 left_ns = turn_left_ns(t, 0);

	if (flags & (VALUE(scx_enq_flags, SCX_ENQ_WAKEUP) | VALUE(scx_enq_flags, SCX_ENQ_REENQ)))
		return false;
	if (c->resting || !left_ns || !t->turn_ns || is_lending(now))
		return false;
	note_be_cpus(p);
	c->rest_cpus = (u64)as_read(p)->cpus_ptr;
	c->resting = (u64)p;
	c->rest_start_ns = now;
	set_bit(resting_at, position_of_cpu(home));
	scx_bpf_dsq_insert(p, REST_QUEUE + home, left_ns, 0);
	return true;
}

/* Nobody rests at a CPU any more, unless another came in between, whose marks stay. */
static __always_inline void forget_rest(struct cpu_state *c, s32 cpu, u64 resting)
{
	take_bit(resting_at, position_of_cpu(cpu));
	if (__sync_val_compare_and_swap(&c->resting, resting, 0) != resting && c->resting)
		set_bit(resting_at, position_of_cpu(cpu));
}

/* Who rested at a CPU goes on, there or at one that has nothing else to do. */
static __always_inline bool take_rest(s32 cpu, bool is_own)
{
	struct cpu_state *c = cpu_state(cpu);
	u64 resting = c->resting;
	bool is_taken;

	if (!resting)
		return false;
	is_taken = scx_bpf_dsq_move_to_local(REST_QUEUE + cpu);
	/* What others cannot take may be bound. */
	if (is_taken || is_own)
		forget_rest(c, cpu, resting);
	return is_taken;
}

/* Whether a CPU may take who rests at another one, if that is still there: to try costs more than to ask. */
static __always_inline bool may_take_rest(s32 cpu, s32 other)
{
	struct cpu_state *c = cpu_state(other);
	u64 word = (u32)cpu / WORD_BITS, bits = 0;

	return c->resting && !bpf_probe_read_kernel(&bits, sizeof(bits), (u64 *)c->rest_cpus + word) &&
	       (bits & bit_at(cpu));
}

static __always_inline bool take_rest_elsewhere(s32 cpu, u32 llc)
{
	u32 first = first_of_llc(llc);
	s32 i, j;

	bpf_for(i, 0, words_of(nr_cpus) + 1) {
		u32 word;
		u64 bits = near_word(resting_at, first, i, &word);

		bpf_for(j, 0, WORD_BITS) {
			s32 other;

			if (!bits)
				break;
			other = nth_cpu(word * WORD_BITS + lowest_bit(bits));
			bits &= bits - 1;
			if (other != cpu && may_take_rest(cpu, other) && take_rest(other, false))
				return true;
		}
	}
	return false;
}

/* From here on the CPU may be claimed; if an LC task came since this CPU last looked, it looks again. */
static __always_inline void offer(struct cpu_state *c, s32 cpu)
{
	c->be_running = 1;
	make_claimable(cpu);
	if (siblings_policy == SIBLINGS_FORBID && is_beside_service(cpu))
		scx_bpf_kick_cpu(cpu, VALUE(scx_kick_flags, SCX_KICK_PREEMPT));
	if (c->seen_arrivals != arrivals_now())
		c->retries = RETRIES + 1;
	if (!c->retries)
		return;
	/* The one who came may not have finished its insertion yet: hence more than one look. */
	c->retries--;
	count(COUNT_SELF_KICKS);
	scx_bpf_kick_cpu(cpu, VALUE(scx_kick_flags, SCX_KICK_PREEMPT));
}

static __always_inline void keep(struct cpu_state *c, s32 cpu, struct task_struct *prev, u64 slice_ns)
{
	set_slice(prev, slice_ns);
	offer(c, cpu);
}

/* BE tasks that wait in the queues of other caches, or rest at other CPUs. */
static __always_inline bool take_be_elsewhere(s32 cpu, u32 llc, u64 now)
{
	s32 i;

	if (nr_llcs > 1) {
		bpf_for(i, 1, nr_llcs)
			if (take_from(KIND_BE, nth_llc(llc, i), now))
				return true;
	}
	return take_rest_elsewhere(cpu, llc);
}

static __always_inline bool take_be(struct cpu_state *c, s32 cpu, u32 llc, struct task_struct *prev, u64 now)
{
	struct task_state *t;

	if (prev && !(prev->scx.flags & VALUE(scx_ent_flags, SCX_TASK_QUEUED)))
		prev = NULL;
	if ((!prev && !may_have_be(cpu)) || !may_run_be(c, cpu, prev))
		return false;
	if (take_elsewhere(KIND_BE, llc, now))
		return true;
	t = prev && !c->is_blink && !c->has_yielded ? task_state(prev) : NULL;
	c->has_yielded = 0;
	if (t) {
		u64 used_ns = run_ns(c, now), left_ns = turn_left_ns(t, used_ns);

		/* An LC task until now. */
		if (!c->run_start_ns)
			c->run_start_ns = now;
		if (left_ns) {
			keep(c, cpu, prev, left_ns);
			return true;
		}
		/* Its next turn begins now, unless another one is due. */
		if (!c->resting && !is_anybody_due(t->vtime + vtime_of_use(prev, used_ns), t->turns + 1,
						   prev->scx.weight, llc)) {
			t->turn_ns = -used_ns;
			t->turns++;
			keep(c, cpu, prev, be_slice_ns);
			return true;
		}
	}
	if (take_rest(cpu, true)) {
		count(COUNT_BE_RETURNS);
		return true;
	}
	if (take_from(KIND_BE, llc, now))
		return true;
	if (prev) {
		keep(c, cpu, prev, be_slice_ns);
		return true;
	}
	return take_be_elsewhere(cpu, llc, now);
}

/*
 * Who rested for long, where services stay, goes to the others of its cache; so does who may have to react at once. Gives
 * whether somebody rested there.
 */
static __always_inline bool end_rest(s32 cpu, u64 now, bool is_urgent)
{
	struct cpu_state *c = cpu_state(cpu);
	u64 resting = c->resting;
	u32 llc = llc_of_cpu(cpu);
	struct task_struct *p;

	if (!resting)
		return false;
	if (!is_urgent && now - c->rest_start_ns < REST_MOST_NS)
		return true;
	bpf_for_each(scx_dsq, p, REST_QUEUE + cpu, 0) {
		struct task_state *t = task_state(p);

		if (t) {
			t->turn_ns = 0;
			t->turns = 0;
		}
		scx_bpf_dsq_move_set_slice(&___it, be_slice_ns);
		scx_bpf_dsq_move_set_vtime(&___it, be_vtime_in(p, t, llc));
		scx_bpf_dsq_move_vtime(&___it, p, BE_QUEUE + llc, 0);
	}
	forget_rest(c, cpu, resting);
	return true;
}

/* Not static: verified alone. */
__noinline int look_after_rest(s32 cpu, u64 now, bool is_urgent)
{
	int has_rested;

	bpf_rcu_read_lock();
	has_rested = end_rest(cpu, now, is_urgent);
	bpf_rcu_read_unlock();
	return has_rested;
}

#endif
