/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/*
 * Functions of sched_ext that have had more than one name or form. The loader finds each name, up to the last `___`,
 * in the running kernel; the verifier then removes the calls of those that it has not. The newest comes first, as the
 * kernel keeps an old one for some versions only. `probe` (`src/features.rs`) says which are used.
 */
#ifndef STEELYARD_RENAMED_BPF_H
#define STEELYARD_RENAMED_BPF_H

struct scx_bpf_dsq_insert_vtime_args {
	u64 dsq_id;
	u64 slice;
	u64 vtime;
	u64 enq_flags;
};

struct scx_bpf_select_cpu_and_args {
	s32 prev_cpu;
	u64 wake_flags;
	u64 flags;
};

/* Linux 6.19 */
extern s32 __scx_bpf_select_cpu_and___steelyard(struct task_struct *, const struct cpumask *,
						struct scx_bpf_select_cpu_and_args *) __ksym __weak;
extern bool scx_bpf_dsq_insert___v2___steelyard(struct task_struct *, u64, u64, u64) __ksym __weak;
extern bool __scx_bpf_dsq_insert_vtime___steelyard(struct task_struct *, struct scx_bpf_dsq_insert_vtime_args *)
	__ksym __weak;
/* From everywhere; before it was for `cpu_release` alone. */
extern void scx_bpf_reenqueue_local___v2___steelyard(void) __ksym __weak;
/* Linux 7.1 */
extern bool scx_bpf_dsq_move_to_local___v2___steelyard(u64, u64) __ksym __weak;
/* Linux 6.16 */
extern s32 scx_bpf_select_cpu_and___steelyard(struct task_struct *, s32, u64, const struct cpumask *, u64) __ksym __weak;
/* Linux 6.15 */
extern s32 scx_bpf_pick_idle_cpu_node___steelyard(const struct cpumask *, int, u64) __ksym __weak;
extern int scx_bpf_cpu_node___steelyard(s32) __ksym __weak;
/* Linux 6.13 */
extern void scx_bpf_dsq_insert___steelyard(struct task_struct *, u64, u64, u64) __ksym __weak;
extern void scx_bpf_dsq_insert_vtime___steelyard(struct task_struct *, u64, u64, u64, u64) __ksym __weak;
extern bool scx_bpf_dsq_move_to_local___steelyard(u64) __ksym __weak;
extern void scx_bpf_dsq_move_set_slice___steelyard(struct bpf_iter_scx_dsq *, u64) __ksym __weak;
extern void scx_bpf_dsq_move_set_vtime___steelyard(struct bpf_iter_scx_dsq *, u64) __ksym __weak;
extern bool scx_bpf_dsq_move___steelyard(struct bpf_iter_scx_dsq *, struct task_struct *, u64, u64) __ksym __weak;
extern bool scx_bpf_dsq_move_vtime___steelyard(struct bpf_iter_scx_dsq *, struct task_struct *, u64, u64) __ksym __weak;
/* Linux 6.12 */
extern void scx_bpf_dispatch___steelyard(struct task_struct *, u64, u64, u64) __ksym __weak;
extern void scx_bpf_dispatch_vtime___steelyard(struct task_struct *, u64, u64, u64, u64) __ksym __weak;
extern bool scx_bpf_consume___steelyard(u64) __ksym __weak;
extern u32 scx_bpf_reenqueue_local___steelyard(void) __ksym __weak;
extern void scx_bpf_dispatch_from_dsq_set_slice___steelyard(struct bpf_iter_scx_dsq *, u64) __ksym __weak;
extern void scx_bpf_dispatch_from_dsq_set_vtime___steelyard(struct bpf_iter_scx_dsq *, u64) __ksym __weak;
extern bool scx_bpf_dispatch_from_dsq___steelyard(struct bpf_iter_scx_dsq *, struct task_struct *, u64, u64) __ksym __weak;
extern bool scx_bpf_dispatch_vtime_from_dsq___steelyard(struct bpf_iter_scx_dsq *, struct task_struct *, u64, u64)
	__ksym __weak;

/* An idle CPU of the memory node of another one that the task may use; below 0: none. */
static __always_inline s32 select_cpu_in_node(struct task_struct *p, const struct cpumask *allowed, s32 near,
					      u64 wake_flags)
{
	u64 flags = bpf_core_enum_value(enum scx_pick_idle_cpu_flags, SCX_PICK_IDLE_IN_NODE);

	if (bpf_ksym_exists(__scx_bpf_select_cpu_and___steelyard)) {
		struct scx_bpf_select_cpu_and_args args = {near, wake_flags, flags};

		return __scx_bpf_select_cpu_and___steelyard(p, allowed, &args);
	}
	return scx_bpf_select_cpu_and___steelyard(p, near, wake_flags, allowed, flags);
}

static __always_inline void scx_bpf_dsq_insert(struct task_struct *p, u64 queue, u64 slice_ns, u64 flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert___v2___steelyard))
		scx_bpf_dsq_insert___v2___steelyard(p, queue, slice_ns, flags);
	else if (bpf_ksym_exists(scx_bpf_dsq_insert___steelyard))
		scx_bpf_dsq_insert___steelyard(p, queue, slice_ns, flags);
	else
		scx_bpf_dispatch___steelyard(p, queue, slice_ns, flags);
}

static __always_inline void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 queue, u64 slice_ns, u64 vtime,
						     u64 flags)
{
	if (bpf_ksym_exists(__scx_bpf_dsq_insert_vtime___steelyard)) {
		struct scx_bpf_dsq_insert_vtime_args args = {queue, slice_ns, vtime, flags};

		__scx_bpf_dsq_insert_vtime___steelyard(p, &args);
	} else if (bpf_ksym_exists(scx_bpf_dsq_insert_vtime___steelyard)) {
		scx_bpf_dsq_insert_vtime___steelyard(p, queue, slice_ns, vtime, flags);
	} else {
		scx_bpf_dispatch_vtime___steelyard(p, queue, slice_ns, vtime, flags);
	}
}

static __always_inline bool scx_bpf_dsq_move_to_local(u64 queue)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v2___steelyard))
		return scx_bpf_dsq_move_to_local___v2___steelyard(queue, 0);
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___steelyard))
		return scx_bpf_dsq_move_to_local___steelyard(queue);
	return scx_bpf_consume___steelyard(queue);
}

static __always_inline void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it, u64 slice_ns)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_set_slice___steelyard))
		scx_bpf_dsq_move_set_slice___steelyard(it, slice_ns);
	else
		scx_bpf_dispatch_from_dsq_set_slice___steelyard(it, slice_ns);
}

static __always_inline void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_set_vtime___steelyard))
		scx_bpf_dsq_move_set_vtime___steelyard(it, vtime);
	else
		scx_bpf_dispatch_from_dsq_set_vtime___steelyard(it, vtime);
}

static __always_inline bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 queue, u64 flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move___steelyard))
		return scx_bpf_dsq_move___steelyard(it, p, queue, flags);
	return scx_bpf_dispatch_from_dsq___steelyard(it, p, queue, flags);
}

static __always_inline bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 queue,
						   u64 flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_vtime___steelyard))
		return scx_bpf_dsq_move_vtime___steelyard(it, p, queue, flags);
	return scx_bpf_dispatch_vtime_from_dsq___steelyard(it, p, queue, flags);
}

#endif
