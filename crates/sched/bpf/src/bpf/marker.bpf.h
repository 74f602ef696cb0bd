/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/* Who is best-effort. The class and the meter ask the same question, and get the same answer. */
#ifndef STEELYARD_MARKER_BPF_H
#define STEELYARD_MARKER_BPF_H

#include "kernel.bpf.h"

#define MAX_GROUP_DEPTH 16

/*
 * The task, to follow pointers from it: the kernel searches the types of all its parts, some hundred thousand, whenever
 * its verifier comes to a place where one is read from a task that it trusts.
 */
static __always_inline const struct task_struct *as_read(const struct task_struct *p)
{
	return bpf_core_cast(p, struct task_struct);
}

/* A group is best-effort if it or one above it has cpu.idle = 1, as in the fair class. */
static __always_inline bool is_idle_group(const struct task_struct *p)
{
	struct task_group *group = as_read(p)->sched_task_group;
	int depth;

	for (depth = 0; depth < MAX_GROUP_DEPTH && group; depth++) {
		if (group->idle > 0)
			return true;
		group = group->parent;
	}
	return false;
}

/*
 * The trampoline of a BPF program itself disables migration of the task that executes it; where one program makes the
 * kernel call another, each does. Since Linux 6.18 not where RCU is not preemptible, since nothing can move it there
 * anyway: what one of them adds is found out when the class is attached.
 */
u16 trampoline_depth = 1;

static __always_inline bool is_migration_disabled_beyond(const struct task_struct *p, u16 trampolines)
{
	u16 depth = p->migration_disabled;

	return depth && depth > (bpf_get_current_task_btf() == p ? trampolines * trampoline_depth : 0);
}

/*
 * Inside of a read-side critical section; the trampolines again are some of their own. Where RCU is not preemptible
 * nobody loses its CPU there.
 */
static __always_inline bool is_reader(const struct task_struct *p, int trampolines)
{
	if (!bpf_core_field_exists(p->rcu_read_lock_nesting))
		return false;
	return p->rcu_read_lock_nesting > (bpf_get_current_task_btf() == p ? trampolines : 0);
}

/*
 * Kernel threads, tasks on their way out, killed tasks and tasks that cannot leave their CPU at the moment are
 * never best-effort: others wait for what they hold.
 */
static __always_inline bool is_best_effort_within(const struct task_struct *p, u16 trampolines)
{
	if (p->flags & (PF_KTHREAD | PF_EXITING))
		return false;
	if (p->policy != POLICY_IDLE && !is_idle_group(p))
		return false;
	if ((as_read(p)->signal->flags & SIGNAL_GROUP_EXIT) || (p->pending.signal.sig[0] & SIGKILL_BIT))
		return false;
	return !is_migration_disabled_beyond(p, trampolines);
}

static __always_inline bool is_best_effort(const struct task_struct *p)
{
	return is_best_effort_within(p, 1);
}

enum thread_kind { OTHER_THREAD, LC_THREAD, BE_THREAD }; /* others: those of the kernel, and who is idle */

static __always_inline enum thread_kind kind_of(const struct task_struct *p)
{
	if (!p->pid || (p->flags & PF_KTHREAD))
		return OTHER_THREAD;
	return is_best_effort(p) ? BE_THREAD : LC_THREAD;
}

#endif
