/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/*
 * Services among themselves. Units share the CPUs by virtual time, in proportion to their weights: control groups, and the
 * processes of the root group. Whoever wakes in a unit takes its turn in order of arrival, from the virtual time of the
 * unit on; who runs for longer than a turn goes on by its own virtual time, behind those that woke.
 */
#ifndef STEELYARD_UNIT_BPF_H
#define STEELYARD_UNIT_BPF_H

#include "queue.bpf.h"

#define UNITS 2048	/* a power of two: places are masked */
#define UNIT_PROBES 8
#define NO_UNIT (~0U)
#define WEIGHT_SHIFT 20 /* weights of units are fractions of their parents' */
#define GROUP_BIT (1ULL << 63) /* of an address of the kernel, never of a process's number */
#define CREDIT_NS 4000000ULL	/* of virtual time, for a unit that used less than its share */
#define AHEAD_TURNS 4		/* that a task may be set back by what it had while nobody waited */
#define LC_TURN_NS 4000000ULL	/* of a task that always runs */
#define BEGIN_NS 200000000ULL	/* of CPU time of a unit, until the next thread of a crowded process may begin */
#define LAG_MOST_NS 1000000000ULL /* of virtual time, that one that always runs is owed */
#define GATE_MOST 16
#define MARGIN_NS 1000000ULL	/* of virtual time; who is ahead by less interrupts nobody */
#define VICTIMS_MOST 16
#define USED_MOST_NS 10000000000ULL
#define TIME_MOST (1ULL << 42)
#define FIRST_MOST 8

struct unit {
	u64 key;
	u64 vtime;
	/* The place of the last that woke. */
	u64 last_place;
	/* Sum of the weights of what is ready in it, tasks or groups, and how many of them are. */
	u64 load;
	u64 above;
	u32 ready;
	/* The weights of those of its tasks that always run. */
	u32 veteran_load;
	u32 parent;
	/* Its weight, as counted in its parent's load. */
	u32 weight;
	/* Of a process, in whatever unit: how many of its threads always run, and from where on another may begin. */
	u32 veterans;
	u64 next_begin;
} __attribute__((aligned(64)));
struct unit units[UNITS];

/* When a thread of a crowded process last began: without one nobody is to be set back. */
u64 crowded_ns;
#define CROWDED_NS 1000000000ULL

/* The virtual time of whom a queue gave a CPU last. */
u64 lc_clock __attribute__((aligned(128))) = 1ULL << 40;

static __always_inline struct unit *unit_at(u32 place)
{
	u64 index = place;

	barrier_var(index);
	return &units[index & (UNITS - 1)];
}

static __always_inline bool is_before(u64 one, u64 other)
{
	return (s64)(one - other) < 0;
}

/* To the verifier what is read back is no pointer any more: only so a function that it verifies alone takes it. */
static __always_inline u64 as_number(u64 *place, const void *pointer)
{
	*(volatile u64 *)place = (u64)pointer;
	return *(volatile u64 *)place;
}

/* Not static, as all that follow pointers of the kernel: verified alone. */
__noinline u32 place_of_unit(u64 key)
{
	u32 first = key * 0x9E3779B97F4A7C15ULL >> 40, unused = NO_UNIT;
	struct unit *u;
	u64 before;
	s32 i;

	bpf_for(i, 0, UNIT_PROBES) {
		u = unit_at(first + i);
		if (u->key == key)
			return (first + i) & (UNITS - 1);
		if (!u->ready && (unused == NO_UNIT || !u->key))
			unused = first + i;
	}
	/* All are in use: it shares one with another. */
	if (unused == NO_UNIT)
		return first & (UNITS - 1);
	u = unit_at(unused);
	before = u->key;
	if (__sync_val_compare_and_swap(&u->key, before, key) == before) {
		u->vtime = lc_clock;
		u->last_place = lc_clock;
		u->next_begin = lc_clock;
		u->veterans = 0;
		u->parent = NO_UNIT;
		u->weight = 0;
	}
	return unused & (UNITS - 1);
}

static __always_inline struct task_group *group_at(u64 address)
{
	return bpf_core_cast((void *)address, struct task_group);
}

static __always_inline u32 weight_of_group(u64 address)
{
	u64 weight;

	if (!bpf_core_field_exists(((struct task_group *)0)->shares))
		return WEIGHT_USUAL;
	/* 1024 << 10 is 100. */
	weight = (group_at(address)->shares * WEIGHT_USUAL + (1 << 19)) >> 20;
	return weight ? weight : 1;
}

/* A unit, where it is a group, has something ready from now on, or no longer: so its parent has. */
__noinline int note_ready(u32 place, bool is_ready)
{
	s32 i;

	bpf_for(i, 0, MAX_GROUP_DEPTH) {
		struct unit *u = unit_at(place), *parent;
		u64 group = u->key;

		if (!(group & GROUP_BIT))
			break;
		if (is_ready) {
			u64 above = as_number(&u->above, group_at(group)->parent);

			u->weight = weight_of_group(group);
			u->parent = above && group_at(above)->parent ? place_of_unit(above) : NO_UNIT;
		}
		place = u->parent;
		if (place == NO_UNIT)
			break;
		parent = unit_at(place);
		__sync_fetch_and_add(&parent->load, is_ready ? (u64)u->weight : -(u64)u->weight);
		if (is_ready ? __sync_fetch_and_add(&parent->ready, 1) : __sync_fetch_and_add(&parent->ready, -1) != 1)
			break;
	}
	return 0;
}

/* The weight of a unit among all that stand below the root; weights that were changed since are looked up. */
__noinline u64 weight_of_unit(u32 place)
{
	struct unit *u = unit_at(place);
	u64 weight = 1ULL << WEIGHT_SHIFT;
	s32 i;

	if (!(u->key & GROUP_BIT))
		return (u->load ? u->load : WEIGHT_USUAL) << WEIGHT_SHIFT;
	bpf_for(i, 0, MAX_GROUP_DEPTH) {
		u32 known = u->weight, found = weight_of_group(u->key);

		if (known != found && known && __sync_val_compare_and_swap(&u->weight, known, found) == known &&
		    u->parent != NO_UNIT)
			__sync_fetch_and_add(&unit_at(u->parent)->load, (u64)found - known);
		weight *= found;
		if (u->parent == NO_UNIT)
			break;
		u = unit_at(u->parent);
		weight /= u->load ? u->load : 1;
		if (!weight)
			return 1;
	}
	return weight ? weight : 1;
}

static __always_inline u32 unit_of(const struct task_struct *p, struct task_state *t)
{
	u64 group = as_number(&t->unit_key, as_read(p)->sched_task_group);
	u64 key = group_at(group)->parent ? group : p->tgid;

	if (unit_at(t->unit)->key != key)
		t->unit = place_of_unit(key);
	return t->unit;
}

static __always_inline void count_veteran(const struct task_state *t, s32 one)
{
	__sync_fetch_and_add(&unit_at(t->unit)->veteran_load, one * t->load);
	__sync_fetch_and_add(&unit_at(t->process)->veterans, one);
}

static __always_inline void join_unit(const struct task_struct *p, struct task_state *t)
{
	struct unit *u;
	u32 place;

	if (t->load)
		return;
	place = unit_of(p, t);
	u = unit_at(place);
	t->load = p->scx.weight ? p->scx.weight : 1;
	__sync_fetch_and_add(&u->load, t->load);
	if (!__sync_fetch_and_add(&u->ready, 1))
		note_ready(place, true);
	if (unit_at(t->process)->key != p->tgid)
		t->process = place_of_unit(p->tgid);
	/* So that nobody else takes its place. */
	if (t->process != t->unit)
		__sync_fetch_and_add(&unit_at(t->process)->ready, 1);
	if (t->goes_on)
		count_veteran(t, 1);
}

static __always_inline void leave_unit(struct task_state *t)
{
	struct unit *u = unit_at(t->unit);

	t->is_queued = 0;
	if (!t->load)
		return;
	if (t->goes_on)
		count_veteran(t, -1);
	if (t->process != t->unit)
		__sync_fetch_and_add(&unit_at(t->process)->ready, -1);
	__sync_fetch_and_add(&u->load, -(u64)t->load);
	t->load = 0;
	if (__sync_fetch_and_add(&u->ready, -1) == 1)
		note_ready(t->unit, false);
}

/* Virtual time of the unit for so much of a CPU, and the task's own, which has a part of the unit. */
static __always_inline u64 unit_time(const struct task_state *t, u64 used_ns)
{
	u64 time;

	if (used_ns > USED_MOST_NS)
		used_ns = USED_MOST_NS;
	time = used_ns * (WEIGHT_USUAL << WEIGHT_SHIFT) / weight_of_unit(t->unit);
	return time < TIME_MOST ? time : TIME_MOST;
}

/* Those that always run share what they have of the unit; those that woke, and wait, have no part of that yet. */
static __always_inline u64 own_time(const struct task_state *t, u64 unit_time)
{
	u64 load = unit_at(t->unit)->veteran_load;

	return t->goes_on && t->load && load ? unit_time * load / t->load : unit_time;
}

/* It slept, or is no LC task any more. */
static __always_inline void end_turns(struct task_state *t)
{
	if (t->goes_on && t->load)
		count_veteran(t, -1);
	/* It did not become one that always runs: another may begin. */
	if (t->begin_time)
		__sync_fetch_and_add(&unit_at(t->process)->next_begin, -t->begin_time);
	t->begin_time = 0;
	t->goes_on = 0;
	t->place = 0;
	t->lc_turn_ns = 0;
}

static __always_inline void charge(struct cpu_state *c, struct task_state *t, u64 now)
{
	u64 used_ns = c->lc_start_ns ? now - c->lc_start_ns : 0, used;

	c->lc_start_ns = now;
	if (!used_ns)
		return;
	used = unit_time(t, used_ns);
	__sync_fetch_and_add(&unit_at(t->unit)->vtime, used);
	t->lc_vtime += own_time(t, used);
	t->lc_turn_ns += used_ns;
}

static __always_inline u64 near_clock(u64 vtime, u64 most_behind)
{
	u64 least = lc_clock - most_behind;

	return is_before(vtime, least) ? least : vtime;
}

static __always_inline bool has_turn(const struct task_state *t)
{
	return !t->goes_on && t->lc_turn_ns + SLICE_LEAST_NS < lc_slice_ns;
}

static __always_inline u64 lc_slice_of(const struct task_state *t)
{
	if (!t || !t->place)
		return lc_slice_ns;
	if (has_turn(t))
		return lc_slice_ns - t->lc_turn_ns;
	return t->goes_on ? LC_TURN_NS : lc_slice_ns;
}

/* Threads of its process that always run have all CPUs. */
static __always_inline bool is_crowded(const struct unit *process)
{
	return process->veterans >= nr_cpus;
}

/* In a crowded process a thread that woke begins only now and then. */
static __always_inline u64 not_before_begin(const struct task_state *t, u64 place)
{
	const struct unit *process = unit_at(t->process);
	u64 next = process->next_begin;

	/* What is much later was said of another unit. */
	return is_crowded(process) && is_before(place, next) && next - place <= unit_time(t, 2 * BEGIN_NS) ? next : place;
}

/* Where a task stands in the queue: by its virtual time, but for the lowest bits, which say from which CPU it comes. */
static __always_inline u64 set_place(struct task_state *t)
{
	struct unit *u = unit_at(t->unit);

	if (!t->place) {
		u64 place = near_clock(u->vtime, CREDIT_NS);

		if (is_before(lc_clock, place)) {
			u64 most = lc_clock + AHEAD_TURNS * unit_time(t, LC_TURN_NS);

			place = is_before(most, place) ? most : place;
		}
		u->vtime = place;
		/* Never before one of its unit that is not done. */
		if (u->ready > 1 && !is_before(u->last_place, place))
			place = u->last_place + MAX_CPUS;
		u->last_place = place;
		t->place = not_before_begin(t, place);
	} else if (!has_turn(t)) {
		u64 turn, most;

		if (!t->goes_on) {
			t->goes_on = 1;
			t->begin_time = 0;
			t->lc_vtime = u->vtime;
			if (t->load)
				count_veteran(t, 1);
		}
		turn = unit_time(t, LC_TURN_NS);
		most = lc_clock + own_time(t, AHEAD_TURNS * turn);
		t->lc_vtime = near_clock(t->lc_vtime, LAG_MOST_NS);
		if (is_before(most, t->lc_vtime))
			t->lc_vtime = most;
		/* Behind those that woke by what the unit has in a turn of theirs. */
		t->place = t->lc_vtime + (turn >> 10) * (lc_slice_ns / (LC_TURN_NS >> 10));
	}
	return t->place;
}

static __always_inline u64 place_from(s32 home, u64 place)
{
	return (place & ~(u64)(MAX_CPUS - 1)) | ((u32)home & (MAX_CPUS - 1));
}

/* It has a CPU while others wait: so late it is now. */
static __always_inline void note_chosen(struct task_state *t)
{
	struct unit *u = unit_at(t->unit);
	u64 vtime = t->goes_on ? t->lc_vtime : t->place;

	if (is_before(lc_clock, vtime))
		lc_clock = vtime;
	/* It was its turn, so that the unit is not ahead of it. */
	if (t->goes_on && is_before(vtime, u->vtime))
		u->vtime = vtime;
}

/* An LC task got a CPU. */
static __always_inline void note_turn(struct cpu_state *c, struct task_state *t, const struct task_struct *p, u64 now)
{
	if (t->is_queued) {
		t->is_queued = 0;
		note_chosen(t);
	} else if (!t->place) {
		unit_of(p, t);
		set_place(t);
	}
	if (!t->goes_on && !t->lc_turn_ns && !t->begin_time && is_crowded(unit_at(t->process))) {
		crowded_ns = now;
		t->begin_time = unit_time(t, BEGIN_NS);
		unit_at(t->process)->next_begin = unit_at(t->unit)->vtime + t->begin_time;
	}
	c->lc_start_ns = now;
	c->place = t->place;
}

/*
 * Of a pool, all threads but few wait for a CPU and have no request yet, while those that run take one after the other:
 * the more of them begin, the longer takes each request. So whoever woke before its process was crowded is set back to
 * where it may begin. In the kernel's own class all begin at once.
 */
__noinline int set_back(u64 queue)
{
	struct task_struct *p;
	u32 seen = 0;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task_state *t = task_state(p);
		u64 place = p->scx.dsq_vtime, later;

		if (!t || t->goes_on || t->lc_turn_ns || seen++ == GATE_MOST)
			break;
		later = not_before_begin(t, place | (MAX_CPUS - 1));
		if (later == (place | (MAX_CPUS - 1)))
			break;
		t->place = later;
		scx_bpf_dsq_move_set_slice(&___it, lc_slice_ns);
		scx_bpf_dsq_move_set_vtime(&___it, place_from(home_of(place), later + MAX_CPUS));
		scx_bpf_dsq_move_vtime(&___it, p, queue, 0);
	}
	return 0;
}

/* The first of a queue that this CPU may take; 0: none is. */
__noinline u64 first_place(u64 queue, s32 cpu)
{
	struct task_struct *p;
	u32 seen = 0;

	if (scx_bpf_dsq_nr_queued(queue) <= 0)
		return 0;
	bpf_for_each(scx_dsq, p, queue, 0) {
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			return p->scx.dsq_vtime;
		if (++seen == FIRST_MOST)
			break;
	}
	return 0;
}

/* The first that waits for this CPU; 0: nobody does. */
static __always_inline u64 first_waiting(struct cpu_state *c, s32 cpu, u32 llc)
{
	u64 first = is_any_waiting(llc) ? first_place(LC_QUEUE + llc, cpu) : 0, bound;

	if (check_exit && !c->has_bound)
		return first;
	bound = first_place(PINNED_QUEUE + cpu, cpu);
	return bound && (!first || is_before(bound, first)) ? bound : first;
}

/* The LC tasks of this CPU and of its cache: whoever stands before the other. */
static __always_inline bool take_lc(struct cpu_state *c, s32 cpu, u32 llc, u64 now)
{
	bool is_waiting = is_any_waiting(llc), bound_first = false;

	if (is_waiting && (!check_exit || c->has_bound)) {
		u64 bound = first_place(PINNED_QUEUE + cpu, cpu), shared = first_place(LC_QUEUE + llc, cpu);

		bound_first = bound && (!shared || is_before(bound, shared));
	}
	if (bound_first && take_bound(c, cpu))
		return true;
	if (is_waiting && take_from(KIND_LC, llc, now))
		return true;
	return !bound_first && take_bound(c, cpu);
}

/* A CPU whose LC task stands behind one that woke, that one's own first; -1: none. */
static s32 interrupt_for(const struct cpumask *allowed, s32 home, u64 place, bool is_home_only)
{
	u32 llc = llc_of_cpu(home), count = nr_cpus < VICTIMS_MOST ? nr_cpus : VICTIMS_MOST;
	u64 latest = place + MARGIN_NS, running = *(volatile u64 *)&cpu_state(home)->place;
	s32 found = -1, i;

	if (running && is_before(latest, running) && bpf_cpumask_test_cpu(home, allowed)) {
		found = home;
		latest = running;
	} else if (!is_home_only) {
		bpf_for(i, 0, count) {
			u32 position = first_of_llc(llc) + i;
			s32 cpu = nth_cpu(position < nr_cpus ? position : position - nr_cpus);

			running = *(volatile u64 *)&cpu_state(cpu)->place;
			if (running && is_before(latest, running) && bpf_cpumask_test_cpu(cpu, allowed)) {
				found = cpu;
				latest = running;
			}
		}
	}
	/* One at a time. */
	if (found >= 0 && __sync_val_compare_and_swap(&cpu_state(found)->place, latest, 0) != latest)
		found = -1;
	return found;
}

#endif
