/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/*
 * Starved tasks that hold something of the kernel. A task that is in user mode holds none of the kernel's locks; one
 * that was preempted or blocked inside of the kernel may. So the class knows where each waiting task is, and gets those
 * inside out of it: after a while in any case, and at once where an LC thread waits for a lock that it holds.
 */
#ifndef STEELYARD_HOLDER_BPF_H
#define STEELYARD_HOLDER_BPF_H

#include "claim.bpf.h"

#define LENT_NS 500000ULL	       /* to the holder of a lock that LC waits for */
#define LENT_PAUSE_NS 500000ULL	       /* until its next, where that was not enough */
#define LENDING_MOST_NS 5000000000ULL  /* what takes longer gets the moments of all that starve in the kernel */
#define UNSURE_AFTER_NS 2000000ULL     /* a wait for a lock whose holder is not known may be for BE from there on */
#define KERNEL_PARKED_NS 50000000ULL   /* a task that starved inside of the kernel for so long gets moments */
#define KERNEL_PAUSE_NS 20000000ULL    /* between the moments of all such tasks */
#define KERNEL_LATER_NS 1000000000ULL  /* between those of one that many did not bring out */
#define KERNEL_MOMENTS 8

/* trace/events/lock.h */
#define LOCK_SPIN (1U << 0)
#define LOCK_READ (1U << 1)
#define LOCK_WRITE (1U << 2)
#define LOCK_RT (1U << 3)
#define LOCK_PERCPU (1U << 4)
#define LOCK_MUTEX (1U << 5)
#define MUTEX_FLAGS 7UL	   /* kernel/locking/mutex.c, in the address of the owner */
#define RWSEM_READER 1UL   /* kernel/locking/rwsem.c: the owner is one of several readers, if it still is */
#define RWSEM_FLAGS 3UL

const volatile u64 heartbeat_ns = 20000000000ULL;

/* LC threads that wait for a lock: known to be held by a BE task, and held by nobody knows whom. */
u32 sure_waits;
u32 unsure_waits;
u64 unsure_since_ns;
u64 lending_since_ns;
/* The BE task that was last found to hold one. */
u64 wanted_holder;
/* The class counts anew whenever it is attached: what began before is none of its waits. */
u32 lock_epoch;
u64 last_kernel_moment_ns;

static __always_inline bool is_lending(u64 now)
{
	if (now - lending_since_ns > LENDING_MOST_NS)
		return false;
	return sure_waits || (unsure_waits && now - unsure_since_ns > UNSURE_AFTER_NS);
}

/* The task that holds the lock; 0: unknown, or several do. */
static __always_inline u64 holder_of(void *lock, u32 flags)
{
	u64 owner;

	if (flags & LOCK_MUTEX) {
		if (!bpf_core_field_exists(((struct mutex *)0)->owner))
			return 0;
		return BPF_CORE_READ((struct mutex *)lock, owner.counter) & ~MUTEX_FLAGS;
	}
	if ((flags & (LOCK_PERCPU | LOCK_RT)) || !(flags & (LOCK_READ | LOCK_WRITE)) ||
	    !bpf_core_field_exists(((struct rw_semaphore *)0)->owner))
		return 0;
	owner = BPF_CORE_READ((struct rw_semaphore *)lock, owner.counter);
	return owner & RWSEM_READER ? 0 : owner & ~RWSEM_FLAGS;
}

/* Is called on the way to sleep, and again where a thread that first span goes to sleep after all. */
SEC("tp_btf/contention_begin")
int BPF_PROG(note_lock_wait, void *lock, unsigned int flags)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_state *t;
	u64 holder;

	if (((flags & LOCK_SPIN) && !(flags & LOCK_MUTEX)) || is_best_effort(p))
		return 0;
	t = task_state(p);
	if (!t || (t->awaited_lock && t->lock_epoch == lock_epoch))
		return 0;
	holder = holder_of(lock, flags);
	if (holder && !is_best_effort(bpf_rdonly_cast((void *)holder, bpf_core_type_id_kernel(struct task_struct))))
		return 0;
	if (!sure_waits && !unsure_waits)
		lending_since_ns = bpf_ktime_get_ns();
	t->awaited_lock = (u64)lock;
	t->is_sure_wait = holder != 0;
	t->lock_epoch = lock_epoch;
	if (holder) {
		wanted_holder = holder;
		__sync_fetch_and_add(&sure_waits, 1);
		count(COUNT_INVERSIONS);
	} else if (!__sync_fetch_and_add(&unsure_waits, 1)) {
		unsure_since_ns = bpf_ktime_get_ns();
	}
	return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(note_lock_got, void *lock, int status)
{
	struct task_state *t;

	if (!sure_waits && !unsure_waits)
		return 0;
	t = task_state(bpf_get_current_task_btf());
	if (!t || t->awaited_lock != (u64)lock)
		return 0;
	t->awaited_lock = 0;
	if (t->lock_epoch == lock_epoch)
		__sync_fetch_and_add(t->is_sure_wait ? &sure_waits : &unsure_waits, -1);
	return 0;
}

/* Who leaves its CPU on the way back to user mode is out of the kernel; who blocks or is preempted elsewhere is not. */
static __always_inline void note_parking(struct task_struct *prev, bool is_in_kernel)
{
	struct task_state *t = task_state(prev);

	if (!t)
		return;
	t->is_in_kernel = is_in_kernel;
	if (!is_in_kernel)
		t->kernel_moments = 0;
}

/* When a waiting BE task is to get its next moment. */
static __always_inline u64 due_ns_of(const struct task_state *t, bool lending)
{
	u64 wait_ns = heartbeat_ns, sooner_ns;

	if (!t->is_in_kernel)
		return t->wait_start_ns + wait_ns;
	if (lending)
		sooner_ns = LENT_PAUSE_NS;
	else if (!t->kernel_moments)
		sooner_ns = KERNEL_PARKED_NS;
	else
		sooner_ns = t->kernel_moments < KERNEL_MOMENTS ? KERNEL_PAUSE_NS : KERNEL_LATER_NS;
	return t->wait_start_ns + (sooner_ns < wait_ns ? sooner_ns : wait_ns);
}

/* Tasks inside of the kernel share the moments that they get for that, so that many of them cost no more than one. */
static __always_inline bool is_rationed(const struct task_state *t, u64 now, bool lending)
{
	return t->is_in_kernel && !lending && now - t->wait_start_ns < heartbeat_ns &&
	       now - last_kernel_moment_ns < KERNEL_PAUSE_NS;
}

static __always_inline void note_kernel_moment(struct task_state *t, u64 now)
{
	if (!t->is_in_kernel)
		return;
	t->kernel_moments++;
	last_kernel_moment_ns = now;
}

static __always_inline bool lend_from(u64 queue, s32 cpu, u64 holder)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task_state *t;

		if ((u64)p != holder || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		t = task_state(p);
		if (!t)
			return false;
		t->is_blink = 1;
		t->is_lent = 1;
		scx_bpf_dsq_move_set_slice(&___it, LENT_NS);
		if (scx_bpf_dsq_move(&___it, p, VALUE(scx_dsq_id_flags, SCX_DSQ_LOCAL), 0)) {
			count(COUNT_HOLDER_MOMENTS);
			return true;
		}
		t->is_blink = 0;
		t->is_lent = 0;
		return false;
	}
	return false;
}

/* The CPU of an LC thread that goes to sleep is the holder's, who lets it go on. Not static: verified alone. */
__noinline int lend_to_holder(s32 cpu, u32 llc)
{
	u64 holder = wanted_holder;
	const struct task_struct *p = bpf_core_cast((void *)holder, struct task_struct);
	s32 home = p->thread_info.cpu;

	return lend_from(cpu_state(home)->resting == holder ? REST_QUEUE + home : BE_QUEUE + llc, cpu, holder);
}

#endif
