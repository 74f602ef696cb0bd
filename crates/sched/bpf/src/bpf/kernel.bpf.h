/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/*
 * What the class and the meter read of the kernel, and nothing else: every field is found by name in the
 * running kernel's BTF when the program is loaded (CO-RE), so that one object fits many kernels.
 */
#ifndef STEELYARD_KERNEL_BPF_H
#define STEELYARD_KERNEL_BPF_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

enum bpf_map_type_used {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum {
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_F_TIMER_CPU_PIN = 2,
};
#define CLOCK_MONOTONIC 1

/* Sizes are part of the helpers' contract; the content is the kernel's. */
struct bpf_timer {
	__u64 opaque[2];
} __attribute__((aligned(8)));
struct bpf_iter_scx_dsq {
	__u64 opaque[6];
};
struct bpf_iter_num {
	__u64 opaque[1];
} __attribute__((aligned(8)));

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {
	unsigned long bits[1];
};

typedef struct {
	unsigned long sig[1];
} sigset_t;
typedef struct {
	s64 counter;
} atomic64_t;
typedef atomic64_t atomic_long_t;
struct mutex {
	atomic_long_t owner;
};
struct rw_semaphore {
	atomic_long_t owner;
};
struct sigpending {
	sigset_t signal;
};
struct signal_struct {
	struct sigpending shared_pending;
	unsigned int flags;
};
struct task_group {
	int idle;
	unsigned long shares;
	struct task_group *parent;
};
struct sched_ext_entity {
	u32 flags;
	u32 weight;
	u64 slice;
	u64 dsq_vtime;
};
struct thread_info {
	u32 cpu;
};
struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	unsigned int policy;
	int nr_cpus_allowed;
	unsigned short migration_disabled;
	int rcu_read_lock_nesting;
	unsigned int on_cpu; /* a byte in Linux 7.3: without a sign its size is adjusted */
	int pid;
	int tgid;
	unsigned long jobctl;
	const struct cpumask *cpus_ptr;
	struct task_group *sched_task_group;
	struct signal_struct *signal;
	struct sigpending pending;
	sigset_t blocked;
	struct sched_ext_entity scx;
};
enum scx_exit_kind {
	SCX_EXIT_ERROR = 1024,
};
struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
};
struct scx_cpu_release_args;
struct scx_init_task_args;

enum scx_enq_flags {
	SCX_ENQ_WAKEUP = 1ULL,
	SCX_ENQ_PREEMPT = 1ULL << 32,
	SCX_ENQ_REENQ = 1ULL << 40,
	SCX_ENQ_LAST = 1ULL << 41,
};
enum scx_pick_idle_cpu_flags {
	SCX_PICK_IDLE_CORE = 1,
	SCX_PICK_IDLE_IN_NODE = 2,
};
enum scx_kick_flags {
	SCX_KICK_IDLE = 1,
	SCX_KICK_PREEMPT = 2,
};
enum scx_ent_flags {
	SCX_TASK_QUEUED = 1,
};
enum scx_dsq_id_flags {
	SCX_DSQ_LOCAL = 1ULL << 63 | 2,
	SCX_DSQ_LOCAL_ON = 3ULL << 62,
};

/* Only the callbacks that are used; the loader matches them by name with the kernel's own structure. */
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *, s32, u64);
	void (*enqueue)(struct task_struct *, u64);
	void (*dispatch)(s32, struct task_struct *);
	void (*tick)(struct task_struct *);
	void (*running)(struct task_struct *);
	void (*stopping)(struct task_struct *, bool);
	bool (*yield)(struct task_struct *, struct task_struct *);
	void (*update_idle)(s32, bool);
	void (*cpu_release)(s32, struct scx_cpu_release_args *);
	s32 (*init_task)(struct task_struct *, struct scx_init_task_args *);
	void (*disable)(struct task_struct *);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

#pragma clang attribute pop

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

/* Definitions of the kernel that its BTF does not carry. */
#define POLICY_FIFO 1		    /* SCHED_FIFO, user interface */
#define POLICY_RR 2
#define POLICY_IDLE 5
#define POLICY_DEADLINE 6
#define PF_EXITING 0x00000004	    /* linux/sched.h */
#define PF_KTHREAD 0x00200000	    /* linux/sched.h */
#define SIGNAL_GROUP_EXIT 0x00000004 /* linux/sched/signal.h */
#define JOBCTL_MOMENT (1UL << 17 | 1UL << 19 | 1UL << 20 | 1UL << 23) /* linux/sched/jobctl.h: stops, freezer */
#define SIGKILL_BIT (1UL << 8)	    /* signal 9 */

extern s32 scx_bpf_select_cpu_dfl(struct task_struct *, s32, u64, bool *) __ksym;
extern s32 scx_bpf_create_dsq(u64, s32) __ksym;
extern s32 scx_bpf_pick_idle_cpu(const struct cpumask *, u64) __ksym;
extern bool scx_bpf_test_and_clear_cpu_idle(s32) __ksym;
extern void scx_bpf_kick_cpu(s32, u64) __ksym;
extern s32 scx_bpf_task_cpu(const struct task_struct *) __ksym;
extern s32 scx_bpf_dsq_nr_queued(u64) __ksym;
extern bool scx_bpf_task_set_slice(struct task_struct *, u64) __ksym __weak;
extern int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *, u64, u64) __ksym;
extern struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *) __ksym;
extern void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *) __ksym;
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
extern void *bpf_rdonly_cast(const void *, u32) __ksym;
extern bool bpf_cpumask_test_cpu(u32, const struct cpumask *) __ksym;
extern int bpf_iter_num_new(struct bpf_iter_num *, int, int) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *) __ksym;

#include "renamed.bpf.h"

/*
 * With a full barrier before and after. The compiler makes an instruction without one of an addition whose result nobody
 * uses; on x86 that is one all the same, and loads are in order there.
 */
static __always_inline u64 add_ordered(u64 *place, u64 value)
{
	u64 before = __sync_fetch_and_add(place, value);

	barrier_var(before);
	return before;
}

static __always_inline u64 read_ordered(u64 *place)
{
#ifdef __TARGET_ARCH_x86
	return *(volatile u64 *)place;
#else
	return add_ordered(place, 0);
#endif
}

/* Values that moved between kernels are read from the running kernel's BTF, never written as numbers. */
#define VALUE(kind, name) bpf_core_enum_value(enum kind, name)

#endif
