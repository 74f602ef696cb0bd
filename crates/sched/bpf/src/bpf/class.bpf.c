/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0-only) */
/*
 * The best-effort class: no best-effort (BE) task runs while a latency-critical (LC) one waits for a CPU that it
 * may use. What each piece is for stands in docs/decisions.
 *
 * Queues: LC tasks wait in one queue per last-level cache, ordered by virtual time (unit.bpf.h); those bound to one
 * CPU wait in a queue of that CPU. BE tasks have a queue per last-level cache, too.
 */
#include "on_cpu.bpf.h"
#define ON_SWITCH_FROM_BE note_parking
#define ON_SWITCH_TO note_next
#include "meter.bpf.h"

/* The kernel takes a scheduler only from a program that may be had under the GPL. */
char _license[] SEC("license") = "Dual MIT/GPL";

s32 exit_kind;
s64 exit_code;
char exit_reason[128];
char exit_message[1024];

SEC("struct_ops/be_select_cpu")
s32 BPF_PROG(be_select_cpu, struct task_struct *p, s32 previous, u64 wake_flags)
{
	bool is_idle = false, is_be = is_best_effort(p);
	s32 cpu;

	/* Not every idle CPU is one for it: its place is looked for where it comes into the queue. */
	if (is_be && siblings_policy != SIBLINGS_ALLOW)
		return previous;
	/* Better a CPU of its memory node that runs BE than an idle one of another: what it needs is here. */
	if (has_nodes && !is_be && check_local && check_entry) {
		const struct cpumask *allowed = p->cpus_ptr;

		cpu = select_cpu_in_node(p, allowed, previous, wake_flags);
		if (cpu >= 0)
			scx_bpf_dsq_insert(p, VALUE(scx_dsq_id_flags, SCX_DSQ_LOCAL), lc_slice_ns, 0);
		else
			cpu = claim_in_node(allowed, previous);
		if (cpu >= 0)
			return cpu;
	}
	cpu = scx_bpf_select_cpu_dfl(p, previous, wake_flags, &is_idle);
	if (is_idle)
		scx_bpf_dsq_insert(p, VALUE(scx_dsq_id_flags, SCX_DSQ_LOCAL), is_be ? be_slice_ns : lc_slice_ns, 0);
	else if (check_local && !is_be)
		return claim_for(p, cpu);
	return cpu;
}

static __always_inline void enqueue_be(struct task_struct *p, struct task_state *t, s32 home, u64 flags,
				       u16 trampolines)
{
	u32 llc = llc_of_cpu(home);
	u64 now = bpf_ktime_get_ns();
	bool is_wanted = has_to_react(p), has_slept = flags & VALUE(scx_enq_flags, SCX_ENQ_WAKEUP);
	s32 idle;

	if (t) {
		end_turns(t);
		t->is_blink = 0;
		t->is_lent = 0;
		/* What it waited before it slept is over, also where it was LC when it went to sleep. */
		if (has_slept || !t->park_start_ns)
			t->park_start_ns = now;
		/* It may be here again without having had a CPU, where another class took that of its moment. */
		if (has_slept || !t->wait_start_ns)
			t->wait_start_ns = now;
		/* Others, LC among them, may wait for the end of what it reads: it is to get there. */
		if (is_reader(p, trampolines) && t->reader_blinks < READER_BLINKS) {
			t->reader_blinks++;
			t->is_blink = 1;
			count(COUNT_LENT);
			note_moment(home);
			scx_bpf_dsq_insert(p, MOMENT_QUEUE + home, MOMENT_NS, 0);
			scx_bpf_kick_cpu(home, VALUE(scx_kick_flags, SCX_KICK_PREEMPT));
			return;
		}
		t->reader_blinks = 0;
	}
	if (is_wanted)
		attention = 1;
	if (!t || is_wanted || !rest(p, t, home, flags, now)) {
		if (t) {
			t->turn_ns = 0;
			t->turns = 0;
		}
		note_be_cpus(p);
		insert_shared(p, KIND_BE, llc, be_slice_ns, be_vtime_in(p, t, llc));
	}
	idle = pick_idle_for_be(p->cpus_ptr, home);
	if (idle >= 0)
		scx_bpf_kick_cpu(idle, VALUE(scx_kick_flags, SCX_KICK_IDLE));
}

static __always_inline void forget_wait(struct task_state *t)
{
	if (!t)
		return;
	t->is_blink = 0;
	t->is_lent = 0;
	t->wait_start_ns = 0;
	t->park_start_ns = 0;
}

SEC("struct_ops/be_enqueue")
void BPF_PROG(be_enqueue, struct task_struct *p, u64 flags)
{
	s32 home = scx_bpf_task_cpu(p), target = -1, idle = -1;
	/* Back from a CPU that is released: within the program that gives it back. */
	u16 trampolines = flags & VALUE(scx_enq_flags, SCX_ENQ_REENQ) ? 2 : 1;
	bool is_bound = p->nr_cpus_allowed == 1 || is_migration_disabled_beyond(p, trampolines);
	bool is_shared = !is_bound && check_exit;
	struct task_state *t = task_state(p);
	const struct cpumask *allowed;
	u64 place;
	u32 llc;

	count(COUNT_SCHEDULING_EVENTS);
	/* Each task has it. To ask once, and here, spares the verifier the paths on which it is not there. */
	if (!t) {
		scx_bpf_dsq_insert(p, VALUE(scx_dsq_id_flags, SCX_DSQ_LOCAL), lc_slice_ns, 0);
		return;
	}
	if (is_best_effort_within(p, trampolines)) {
		enqueue_be(p, t, home, flags, trampolines);
		return;
	}
	/* Who did not sleep may have waited as BE until now. */
	if (!(flags & VALUE(scx_enq_flags, SCX_ENQ_WAKEUP)))
		forget_wait(t);
	if (is_bound && (p->flags & PF_KTHREAD)) {
		scx_bpf_dsq_insert(p, VALUE(scx_dsq_id_flags, SCX_DSQ_LOCAL), lc_slice_of(t),
				   VALUE(scx_enq_flags, SCX_ENQ_PREEMPT));
		return;
	}
	/* Here, under the lock of this run queue, it is certain that BE has the CPU: no queue, and no look into one. */
	if (check_local && cpu_state(home)->be_running) {
		retract(cpu_state(home), home);
		scx_bpf_dsq_insert(p, VALUE(scx_dsq_id_flags, SCX_DSQ_LOCAL), lc_slice_of(t),
				   VALUE(scx_enq_flags, SCX_ENQ_PREEMPT));
		return;
	}
	/* Whoever makes its CPU claimable after the search below sees that somebody came. */
	note_arrival(llc_of_cpu(home), is_shared);
	allowed = p->cpus_ptr;
	if (!is_bound)
		idle = pick_idle(allowed, home, has_nodes ? VALUE(scx_pick_idle_cpu_flags, SCX_PICK_IDLE_IN_NODE) : 0);
	if (idle < 0) {
		if (claim(home, allowed))
			target = home;
		else if (!is_bound && check_entry)
			target = claim_be_cpu(allowed, home, has_nodes);
	}
	/* No CPU of its own node can be had. */
	if (has_nodes && !is_bound && idle < 0 && target < 0) {
		idle = pick_idle(allowed, home, 0);
		if (idle < 0 && check_entry)
			target = claim_be_cpu(allowed, home, false);
	}
	if (idle >= 0) {
		if (is_shared)
			note_departure(llc_of_cpu(home));
		scx_bpf_dsq_insert(p, VALUE(scx_dsq_id_flags, SCX_DSQ_LOCAL_ON) | idle, lc_slice_of(t), 0);
		scx_bpf_kick_cpu(idle, VALUE(scx_kick_flags, SCX_KICK_IDLE));
		return;
	}
	if (is_bound)
		cpu_state(home)->has_bound = 1;
	if (t)
		join_unit(p, t);
	place = place_from(home, t ? set_place(t) : lc_clock);
	if (target < 0 && t && !t->goes_on)
		target = interrupt_for(allowed, home, place, !is_shared);
	if (t)
		t->is_queued = 1;
	llc = llc_of_cpu(target >= 0 ? target : home);
	if (!is_shared) {
		scx_bpf_dsq_insert_vtime(p, PINNED_QUEUE + (target >= 0 ? target : home), lc_slice_of(t), place, 0);
	} else {
		note_detour(llc_of_cpu(home), llc);
		insert_shared(p, KIND_LC, llc, lc_slice_of(t), place);
	}
	/* The kick is delivered after this CPU has let go of its run queue, hence after the insertion. */
	if (target >= 0)
		scx_bpf_kick_cpu(target, VALUE(scx_kick_flags, SCX_KICK_PREEMPT));
	else if (is_bound)
		scx_bpf_kick_cpu(home, VALUE(scx_kick_flags, SCX_KICK_IDLE));
}

/* The LC task that was taken will say in `running` whether it was local or came by the exit check. */
static __always_inline void note_pick(struct cpu_state *c, u32 llc, bool prev_is_be, u64 start_ns)
{
	c->pick_ns = bpf_ktime_get_ns() - start_ns;
	c->pick = prev_is_be || c->resting || scx_bpf_dsq_nr_queued(BE_QUEUE + llc) > 0 ? 2 : 1;
}

/* The LC task that has the CPU keeps it, where nobody who waits stands before it. */
static __always_inline bool is_next(struct cpu_state *c, s32 cpu, u32 llc, struct task_struct *prev, u64 now)
{
	struct task_state *t = task_state(prev);
	u64 first;

	if (!t || !(prev->scx.flags & VALUE(scx_ent_flags, SCX_TASK_QUEUED)))
		return false;
	charge(c, t, now);
	set_place(t);
	first = first_waiting(c, cpu, llc);
	if (first && is_before(first, t->place))
		return false;
	if (first)
		note_chosen(t);
	c->place = t->place;
	set_slice(prev, lc_slice_of(t));
	return true;
}

SEC("struct_ops/be_dispatch")
void BPF_PROG(be_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_state *c = cpu_state(cpu);
	u32 llc = llc_of_cpu(cpu);
	bool prev_is_be = prev && is_best_effort(prev);
	u64 now = bpf_ktime_get_ns(), start_ns = now;

	c->pick = 0;
	if (sure_waits && is_lending(start_ns) && prev &&
	    !(prev->scx.flags & VALUE(scx_ent_flags, SCX_TASK_QUEUED)) && lend_to_holder(cpu, llc))
		return;
	if (c->has_moment && take_moment(c, cpu))
		return;
	if (!check_local) {
		c->seen_arrivals = arrivals_now();
		if (c->kind_ns[1] < c->kind_ns[0] && take_be(c, cpu, llc, prev_is_be ? prev : NULL, now)) {
			count(COUNT_BE_PICKS);
			return;
		}
	}
	if (check_exit && now - crowded_ns < CROWDED_NS && is_any_waiting(llc))
		set_back(LC_QUEUE + llc);
	if (check_exit && take_elsewhere(KIND_LC, llc, now)) {
		note_pick(c, llc, prev_is_be, start_ns);
		return;
	}
	if (prev && !prev_is_be && !c->has_yielded && is_next(c, cpu, llc, prev, now))
		return;
	if (take_lc(c, cpu, llc, now)) {
		note_pick(c, llc, prev_is_be, start_ns);
		return;
	}
	if (prev && !prev_is_be && (prev->scx.flags & VALUE(scx_ent_flags, SCX_TASK_QUEUED))) {
		c->has_yielded = 0;
		set_slice(prev, LC_TURN_NS);
		return;
	}
	/* Before the last look, so that whoever comes after that is noticed: in `offer`, or when the CPU goes idle. */
	c->seen_arrivals = arrivals_now();
	if (take_bound(c, cpu) || (check_exit && steal_lc(llc, now))) {
		note_pick(c, llc, prev_is_be, start_ns);
		return;
	}
	if (!prev_is_be && check_exit && !may_have_be(cpu))
		return;
	start_ns = bpf_ktime_get_ns() - start_ns;
	if (take_be(c, cpu, llc, prev_is_be ? prev : NULL, now)) {
		count(COUNT_BE_PICKS);
		if (check_exit) {
			count(COUNT_EXIT_RUNS);
			note_duration(CHECK_EXIT, start_ns);
		}
		return;
	}
	if (!check_exit)
		balance_lc(cpu);
}

SEC("struct_ops/be_running")
void BPF_PROG(be_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_state *c = cpu_state(cpu);
	struct task_state *t = task_state(p);
	u64 now = bpf_ktime_get_ns();

	c->is_blink = 0;
	c->has_yielded = 0;
	if (is_best_effort(p)) {
		c->run_start_ns = now;
		note_be_start(c, cpu, t, now);
		return;
	}
	c->run_start_ns = check_local ? 0 : now;
	if (t)
		note_turn(c, t, p, now);
	note_lc_start(c, cpu, p);
}

SEC("struct_ops/be_stopping")
void BPF_PROG(be_stopping, struct task_struct *p, bool runnable)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_state *c = cpu_state(cpu);
	bool is_be = is_best_effort(p);
	struct task_state *t = task_state(p);
	u64 now = bpf_ktime_get_ns(), used_ns;

	retract(c, cpu);
	c->place = 0;
	if (t && !is_be) {
		charge(c, t, now);
		if (!runnable)
			end_turns(t);
	}
	c->lc_start_ns = 0;
	if (check_local && !is_be)
		return;
	used_ns = run_ns(c, now);
	if (is_be)
		note_be_stop(p, c, runnable, used_ns);
	if (!check_local) {
		c->kind_ns[is_be] += used_ns;
		/* A kind that was away for long does not come back to the CPU alone. */
		if (c->kind_ns[is_be] > c->kind_ns[!is_be] + 10 * lc_slice_ns)
			c->kind_ns[!is_be] = c->kind_ns[is_be] - 10 * lc_slice_ns;
	}
}

/* The turn of who yields is over, whoever had less; the task then waits in the queue of its cache. */
SEC("struct_ops/be_yield")
bool BPF_PROG(be_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_state *t = task_state(from);

	if (to)
		return false;
	if (t) {
		t->turn_ns = be_slice_ns;
		t->lc_turn_ns = lc_slice_ns;
	}
	cpu_state(scx_bpf_task_cpu(from))->has_yielded = 1;
	set_slice(from, 0);
	return true;
}

/* It leaves this class of the kernel for another, or ends: nobody counts it any more. */
SEC("struct_ops/be_disable")
void BPF_PROG(be_disable, struct task_struct *p)
{
	struct task_state *t = task_state(p);

	if (t)
		end_turns(t);
}

/* What the handshake could not close, because a virtual CPU was stopped in the middle of it, ends here. */
SEC("struct_ops/be_tick")
void BPF_PROG(be_tick, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_state *c = cpu_state(cpu);
	enum thread_kind kind = has_siblings ? kind_of(p) : OTHER_THREAD;

	/* It may be of another kind since it got the CPU. */
	note_kind(meter_of(cpu), cpu, kind, bpf_ktime_get_ns());
	if (siblings_policy != SIBLINGS_ALLOW) {
		set_service(c, cpu, kind == LC_THREAD);
		if (c->be_running && is_beside_service(cpu))
			set_slice(p, 0);
	}
	if (!check_local || !check_entry || !check_exit || !c->be_running)
		return;
	if (scx_bpf_dsq_nr_queued(LC_QUEUE + llc_of_cpu(cpu)) > 0 ||
	    (c->has_bound && scx_bpf_dsq_nr_queued(PINNED_QUEUE + cpu) > 0))
		set_slice(p, 0);
}

/* An idle CPU is as free as one that runs BE, and is lost in the same way between search and sleep. */
SEC("struct_ops/be_update_idle")
void BPF_PROG(be_update_idle, s32 cpu, bool is_idle)
{
	struct cpu_state *c = cpu_state(cpu);

	if (is_idle && c->seen_arrivals != arrivals_now())
		scx_bpf_kick_cpu(cpu, 0);
}

/* A real-time task took the CPU, before Linux 6.19; later on `release` says so, and the loader leaves this out. */
SEC("struct_ops/be_cpu_release")
void BPF_PROG(be_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	if (bpf_ksym_exists(scx_bpf_reenqueue_local___steelyard))
		cpu_state(cpu)->counters[COUNT_REENQUEUES] += scx_bpf_reenqueue_local___steelyard();
}

SEC("struct_ops/be_init_task")
s32 BPF_PROG(be_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	/* Nothing but the trampoline has disabled the migration of who attaches the class or makes a task. */
	u16 depth = bpf_get_current_task_btf()->migration_disabled;

	if (trampoline_depth != depth)
		trampoline_depth = depth;
	return bpf_task_storage_get(&tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE) ? 0 : -12; /* ENOMEM */
}

/* A signal for a waiting BE task: the patrol need not wait for its next full look. */
SEC("tp_btf/signal_generate")
int BPF_PROG(note_signal, int signal, void *info, struct task_struct *p)
{
	if (p->policy == POLICY_IDLE || is_idle_group(p))
		attention = 1;
	return 0;
}

SEC("struct_ops.s/be_init")
s32 BPF_PROG(be_init)
{
	s32 i, error;

	lock_epoch++;
	sure_waits = 0;
	unsure_waits = 0;
	bpf_for(i, 0, nr_cpus) {
		error = scx_bpf_create_dsq(PINNED_QUEUE + nth_cpu(i), -1);
		if (!error)
			error = scx_bpf_create_dsq(MOMENT_QUEUE + nth_cpu(i), -1);
		if (!error)
			error = scx_bpf_create_dsq(REST_QUEUE + nth_cpu(i), -1);
		if (error)
			return error;
	}
	bpf_for(i, 0, nr_llcs) {
		error = scx_bpf_create_dsq(LC_QUEUE + i, -1);
		if (!error)
			error = scx_bpf_create_dsq(BE_QUEUE + i, -1);
		if (error)
			return error;
	}
	return start_patrol();
}

SEC("struct_ops/be_exit")
void BPF_PROG(be_exit, struct scx_exit_info *info)
{
	judged_since_ns = 0;
	exit_kind = info->kind;
	exit_code = info->exit_code;
	bpf_probe_read_kernel_str(exit_reason, sizeof(exit_reason), info->reason);
	bpf_probe_read_kernel_str(exit_message, sizeof(exit_message), info->msg);
}

SEC(".struct_ops.link")
struct sched_ext_ops steelyard_be = {
	.select_cpu = (void *)be_select_cpu,
	.enqueue = (void *)be_enqueue,
	.dispatch = (void *)be_dispatch,
	.tick = (void *)be_tick,
	.yield = (void *)be_yield,
	.running = (void *)be_running,
	.stopping = (void *)be_stopping,
	.update_idle = (void *)be_update_idle,
	.init_task = (void *)be_init_task,
	.disable = (void *)be_disable,
	.cpu_release = (void *)be_cpu_release,
	.init = (void *)be_init,
	.exit = (void *)be_exit,
	/*
	 * SCX_OPS_KEEP_BUILTIN_IDLE: the kernel's own search for idle CPUs stays. SCX_OPS_ENQ_EXITING: a thread that ends
	 * waits where all do, and not for the one CPU that it was interrupted on.
	 */
	.flags = 1 | 4,
	.timeout_ms = 30000,
	.name = "steelyard_be",
};
