/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/*
 * A starved task gets a moment now and then: long enough to reach user mode, where it handles signals and the
 * freezer, and cut before it costs anybody. Without moments the kernel would take the class for broken (its
 * watchdog), and nothing could kill, freeze or stop a starved task.
 */
#ifndef STEELYARD_MOMENT_BPF_H
#define STEELYARD_MOMENT_BPF_H

#include "turn.bpf.h"

#define MOMENT_NS 150000ULL
#define PATROL_NS 10000000ULL	     /* between looks while BE waits */
#define PATROL_LENDING_NS 1000000ULL /* while LC waits for what BE may hold */
#define PATROL_IDLE_NS 100000000ULL  /* while none does */
#define PATROL_FULL_NS 250000000ULL  /* a look at every waiting task, for what gives no sign: the freezer */
#define MOMENT_STUCK_NS 200000000ULL /* a CPU that gives no moment for so long is held by a real-time task */
#define READER_BLINKS 8
#define PARKED_AFTER_NS 1000000000ULL /* a wait counts as parked from there on */

const volatile u64 freeze_after_ns;

/* Something happened that a waiting BE task must react to. */
u32 attention;
/* When the next waiting task reaches the age of a heartbeat. */
u64 next_due_ns;
u64 last_full_ns;
/* Tasks that were due when the last patrol had no more moments to give. */
u32 overdue;

/* Tasks parked for longer than freeze_after_ns: the loader freezes their groups. */
#define PARKED 256
s32 parked_tgids[PARKED];
u32 parked_count;

struct patrol_timer {
	struct bpf_timer timer;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct patrol_timer);
} patrol_timers SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, u32);
	__type(value, struct patrol_timer);
} moment_timers SEC(".maps");

/* A signal that it would handle, a stop, or the freezer. */
static __always_inline bool has_to_react(struct task_struct *p)
{
	unsigned long pending = p->pending.signal.sig[0] | as_read(p)->signal->shared_pending.signal.sig[0];

	return (p->jobctl & JOBCTL_MOMENT) || (pending & ~p->blocked.sig[0]);
}

static __always_inline void count_shared(enum counter which)
{
	__sync_fetch_and_add(&cpu_state(bpf_get_smp_processor_id())->counters[which], 1);
}

/* A CPU that the task may use and that has few moments to give already; -1: none. */
static s32 moment_cpu(const struct cpumask *usable, s32 home, s32 allowed)
{
	s32 i;

	bpf_for(i, 0, nr_cpus) {
		s32 cpu = home + i;

		if (cpu >= nr_cpus)
			cpu -= nr_cpus;
		if (bpf_cpumask_test_cpu(cpu, usable) && !cpu_state(cpu)->is_stuck &&
		    scx_bpf_dsq_nr_queued(MOMENT_QUEUE + cpu) < allowed)
			return cpu;
	}
	return -1;
}

/*
 * A task is in the queue for moments of a CPU, or will be before that CPU looks. The exchange is a full barrier, as it is
 * where the mark is taken away: the look that follows that one finds what came before this one.
 */
static __always_inline void note_moment(s32 cpu)
{
	__sync_lock_test_and_set(&cpu_state(cpu)->has_moment, 1);
}

static __always_inline bool take_moment(struct cpu_state *c, s32 cpu)
{
	__sync_lock_test_and_set(&c->has_moment, 0);
	if (!scx_bpf_dsq_move_to_local(MOMENT_QUEUE + cpu))
		return false;
	note_moment(cpu);
	return true;
}

/* Counts the time without a CPU, and names the task to the loader when it is long. */
static __always_inline void note_parked(struct task_struct *p, struct task_state *t, u64 now)
{
	u32 place;

	if (!freeze_after_ns || !t->park_start_ns || now - t->park_start_ns < freeze_after_ns)
		return;
	place = __sync_fetch_and_add(&parked_count, 1);
	barrier_var(place);
	parked_tgids[place & (PARKED - 1)] = p->tgid;
}

/* Gives moments to the tasks of one queue that need one; 0: none is left that does. */
static __always_inline int give_moments(u32 llc, s32 allowed, u64 now, bool is_full)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, BE_QUEUE + llc, 0) {
		/* Asked for once, before anything is decided: the verifier takes long for each path to it. */
		const struct cpumask *usable = p->cpus_ptr;
		bool lending = is_lending(now), is_urgent = has_to_react(p), is_early;
		struct task_state *t = task_state(p);
		s32 home = scx_bpf_task_cpu(p), cpu;
		u64 due_ns;

		if (!t)
			continue;
		if (!is_best_effort(p)) {
			/* Killed or relabelled: it goes where LC tasks wait, and CPUs that run BE see it at a tick. */
			scx_bpf_dsq_move_set_slice(&___it, lc_slice_of(t));
			scx_bpf_dsq_move_set_vtime(&___it, place_from(home, lc_clock));
			note_arrival(llc, true);
			if (!scx_bpf_dsq_move_vtime(&___it, p, LC_QUEUE + llc, 0)) {
				note_departure(llc);
			} else {
				t->wait_start_ns = 0;
				scx_bpf_kick_cpu(home, claim(home, usable) ? VALUE(scx_kick_flags, SCX_KICK_PREEMPT) :
									     VALUE(scx_kick_flags, SCX_KICK_IDLE));
			}
			continue;
		}
		if (is_full)
			note_parked(p, t, now);
		due_ns = due_ns_of(t, lending);
		if (due_ns <= now && is_rationed(t, now, lending))
			due_ns = last_kernel_moment_ns + KERNEL_PAUSE_NS;
		if (due_ns > now && !is_urgent) {
			if (due_ns < next_due_ns)
				next_due_ns = due_ns;
			continue;
		}
		/* Before its heartbeat: never more than one at a time, so that services have as much of each CPU. */
		is_early = now - t->wait_start_ns < heartbeat_ns && !is_urgent;
		cpu = moment_cpu(usable, home, is_early ? 1 : allowed);
		if (cpu < 0 && is_early) {
			next_due_ns = now;
			continue;
		}
		if (cpu < 0)
			return 1;
		t->is_blink = 1;
		t->is_lent = lending && t->is_in_kernel;
		scx_bpf_dsq_move_set_slice(&___it, t->is_lent ? LENT_NS : MOMENT_NS);
		if (scx_bpf_dsq_move(&___it, p, MOMENT_QUEUE + cpu, 0)) {
			count_shared(t->is_lent ? COUNT_HOLDER_MOMENTS : COUNT_HEARTBEAT_BLINKS);
			note_kernel_moment(t, now);
			note_moment(cpu);
			scx_bpf_kick_cpu(cpu, VALUE(scx_kick_flags, SCX_KICK_PREEMPT));
		} else {
			t->is_blink = 0;
			t->is_lent = 0;
		}
	}
	return 0;
}

/* Moments that a CPU does not give, because a real-time task holds it, are given elsewhere. */
static __always_inline int spread_moments(s32 cpu, u64 now)
{
	struct cpu_state *c = cpu_state(cpu);
	struct task_struct *p;

	if (!c->has_moment || scx_bpf_dsq_nr_queued(MOMENT_QUEUE + cpu) <= 0) {
		c->blink_wait_ns = 0;
		return 0;
	}
	if (!c->blink_wait_ns)
		c->blink_wait_ns = now;
	scx_bpf_kick_cpu(cpu, VALUE(scx_kick_flags, SCX_KICK_PREEMPT));
	if (now - c->blink_wait_ns < MOMENT_STUCK_NS)
		return 0;
	c->is_stuck = 1;
	c->blink_wait_ns = now;
	bpf_for_each(scx_dsq, p, MOMENT_QUEUE + cpu, 0) {
		s32 other = moment_cpu(p->cpus_ptr, scx_bpf_task_cpu(p), 64);

		if (other >= 0 && other != cpu && scx_bpf_dsq_move(&___it, p, MOMENT_QUEUE + other, 0)) {
			note_moment(other);
			scx_bpf_kick_cpu(other, VALUE(scx_kick_flags, SCX_KICK_PREEMPT));
		}
	}
	return 0;
}

/*
 * Not static: the kernel verifies such functions alone, and not anew in each path to them.
 * It takes them for part of the program that starts the timer, which may sleep.
 */
__noinline int look_after(u32 llc, s32 allowed, u64 now, bool is_full)
{
	int left;

	bpf_rcu_read_lock();
	left = give_moments(llc, allowed, now, is_full);
	bpf_rcu_read_unlock();
	return left;
}

__noinline int look_after_moments(s32 cpu, u64 now)
{
	int left;

	bpf_rcu_read_lock();
	left = spread_moments(cpu, now);
	bpf_rcu_read_unlock();
	return left;
}

/*
 * A CPU that may not have the task when it comes may have it later, without being told: one for the first that waits. Not
 * static: verified alone.
 */
__noinline int wake_for_waiting(u32 llc)
{
	struct task_struct *p;
	s32 idle;

	/* It is verified although nobody calls it. */
	if (siblings_policy == SIBLINGS_ALLOW)
		return 0;
	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, BE_QUEUE + llc, 0) {
		idle = pick_idle_for_be(p->cpus_ptr, scx_bpf_task_cpu(p));
		if (idle >= 0)
			scx_bpf_kick_cpu(idle, VALUE(scx_kick_flags, SCX_KICK_IDLE));
		break;
	}
	bpf_rcu_read_unlock();
	return 0;
}

static int patrol(void *map, u32 *key, struct bpf_timer *timer)
{
	u64 now = bpf_ktime_get_ns(), period_ns = PATROL_IDLE_NS;
	u32 left = 0;
	s32 i, allowed = 1 + overdue;
	bool is_full;

	bpf_for(i, 0, nr_llcs) {
		if (scx_bpf_dsq_nr_queued(BE_QUEUE + i) <= 0)
			continue;
		period_ns = PATROL_NS;
		if (siblings_policy != SIBLINGS_ALLOW)
			wake_for_waiting(i);
	}
	bpf_for(i, 0, nr_cpus) {
		s32 cpu = nth_cpu(i);
		struct cpu_state *c = cpu_state(cpu);

		if (c->has_moment || c->blink_wait_ns)
			look_after_moments(cpu, now);
		if (c->resting && look_after_rest(cpu, now, attention || is_lending(now)))
			period_ns = PATROL_NS;
	}
	is_full = now - last_full_ns > PATROL_FULL_NS;
	/* Also where none waits: the holder has its moment. */
	if (is_lending(now))
		period_ns = PATROL_LENDING_NS;
	if (period_ns < PATROL_NS || (period_ns == PATROL_NS && (attention || is_full || now >= next_due_ns))) {
		attention = 0;
		next_due_ns = now + heartbeat_ns;
		if (is_full)
			last_full_ns = now;
		bpf_for(i, 0, nr_llcs) {
			left |= look_after(i, allowed, now, is_full);
		}
		if (left) {
			next_due_ns = now;
			overdue = overdue < 32 ? overdue + 1 : 32;
		} else {
			overdue = 0;
		}
	}
	bpf_timer_start(timer, period_ns, 0);
	return 0;
}

/* A moment is over: the CPU picks again. */
static int end_moment(void *map, u32 *key, struct bpf_timer *timer)
{
	if (cpu_state(*key)->is_blink)
		scx_bpf_kick_cpu(*key, VALUE(scx_kick_flags, SCX_KICK_PREEMPT));
	return 0;
}

static __always_inline void start_moment(struct cpu_state *c, s32 cpu, u64 length_ns)
{
	u32 key = cpu;
	struct patrol_timer *moment = bpf_map_lookup_elem(&moment_timers, &key);

	c->is_blink = 1;
	c->is_stuck = 0;
	/* Where the timer cannot be had the slice ends the moment, at the next tick. */
	if (moment)
		bpf_timer_start(&moment->timer, length_ns, BPF_F_TIMER_CPU_PIN);
}

static __always_inline s32 start_patrol(void)
{
	u32 key = 0;
	struct patrol_timer *timer = bpf_map_lookup_elem(&patrol_timers, &key);
	s32 i;

	bpf_for(i, 0, nr_cpus) {
		struct patrol_timer *moment;

		key = nth_cpu(i);
		moment = bpf_map_lookup_elem(&moment_timers, &key);
		if (!moment)
			return -1;
		bpf_timer_init(&moment->timer, &moment_timers, CLOCK_MONOTONIC);
		bpf_timer_set_callback(&moment->timer, end_moment);
	}
	if (!timer)
		return -1;
	bpf_timer_init(&timer->timer, &patrol_timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&timer->timer, patrol);
	return bpf_timer_start(&timer->timer, PATROL_IDLE_NS, 0);
}

#endif
