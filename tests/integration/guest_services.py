"""What services get among themselves in the guest: one script for the class and for the kernel's own."""

from __future__ import annotations

from typing import Final

from integration.guest_faults import EPILOGUE, PRELUDE
from steelyard.studies.colocation.guest.tasks import GuestTask

PROGRAM: Final = r"""
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 100000
static long due[MOST], took[MOST], work[MOST];
static int count, next;
static sem_t ready;

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void wait_until(long ns)
{
	struct timespec t = { ns / 1000000000L, ns % 1000000000L };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
}

static void spin(long iterations)
{
	unsigned long x = 1;

	for (long i = 0; i < iterations; i++)
		__asm__ volatile("imul $3, %0, %0" : "+r"(x));
}

static int compare(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return x < y ? -1 : x > y;
}

/* Prints mean, median, 99th percentile and largest [us]. */
static void print(long *values, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += values[i];
	qsort(values, n, sizeof(*values), compare);
	printf("%.0f %ld ", sum / n / 1000, values[n / 2] / 1000);
	printf("%ld %ld\n", values[n * 99 / 100] / 1000, values[n - 1] / 1000);
}

/* Wakes every 20 ms, off the tick; how late it is. */
static void wake(int seconds)
{
	int n = seconds * 50;
	long start = now_ns() + 1300000;

	for (int i = 0; i < n; i++) {
		long at = start + i * 20100000L;

		wait_until(at);
		took[i] = now_ns() - at;
		spin(1000);
	}
	print(took, n);
}

static void *serve(void *unused)
{
	for (;;) {
		int mine;

		while (sem_wait(&ready))
			;
		mine = __atomic_fetch_add(&next, 1, __ATOMIC_SEQ_CST);
		if (mine >= count)
			return unused;
		spin(work[mine]);
		took[mine] = now_ns() - due[mine];
	}
}

/* Threads of one process that serve a queue in order; requests come at random, from a real-time thread. */
static void serve_queue(int threads, int seconds, long iterations, long gap_ns, int long_percent,
			int long_factor, unsigned long seed)
{
	struct sched_param first = { .sched_priority = 50 };
	pthread_t ids[256];
	long at = 0;
	int shorts = 0;

	while (count < MOST && at < seconds * 1000000000L) {
		seed = seed * 6364136223846793005UL + 1442695040888963407UL;
		at += -log(((seed >> 11) + 0.5) / 9007199254740992.0) * gap_ns;
		due[count] = at;
		work[count] = count % 100 < long_percent ? iterations * long_factor : iterations;
		count++;
	}
	sem_init(&ready, 0, 0);
	for (int i = 0; i < threads; i++)
		pthread_create(&ids[i], NULL, serve, NULL);
	sched_setscheduler(0, SCHED_FIFO, &first);
	at = now_ns() + 50000000;
	for (int i = 0; i < count; i++) {
		due[i] += at;
		wait_until(due[i]);
		sem_post(&ready);
	}
	for (int i = 0; i < threads; i++)
		sem_post(&ready);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	for (int i = 0; i < count; i++)
		if (work[i] == iterations)
			took[shorts++] = took[i];
	print(took, shorts);
}

int main(int words, char **word)
{
	long n[8] = { 0 };

	for (int i = 2; i < words; i++)
		n[i - 2] = atol(word[i]);
	if (!strcmp(word[1], "wake"))
		wake(n[0]);
	else
		serve_queue(n[0], n[1], n[2], n[3], n[4], n[5], n[6] + 12345);
	return 0;
}
"""

HELPERS: Final = r"""
# Everything here is a service.
mark_idle 0
A=$GROUPS_FOLDER/a B=$GROUPS_FOLDER/b
mkdir -p "$A" "$B"
inside() { group=$1; shift; ( echo 0 > "$group/cgroup.procs"; exec "$@" ) & }
spinner() { inside "$1" $2 sh -c 'while :; do :; done'; }
used_ns() { for p in "$@"; do cut -d' ' -f1 "/proc/$p/schedstat"; done | tr '\n' ' '; }
shares() { # NAME SECONDS PID...
  name=$1 seconds=$2; shift 2
  fact "${name}_before" "$(used_ns "$@")"; sleep "$seconds"; fact "${name}_after" "$(used_ns "$@")"
}
"""

PARTS: Final = {
    "wake": r"""
hog & H1=$!; hog & H2=$!; hog & H3=$!; hog & H4=$!
sleep 0.5
for n in 1 2 3 4 5; do fact wake_beside_hogs_$n "$(services wake 4)"; done
for p in $H1 $H2 $H3 $H4; do echo $p > "$A/cgroup.procs"; done
sleep 0.2
for n in 1 2 3 4 5; do
  fact wake_beside_group_$n "$(services wake 4)"
  fact wake_in_group_$n "$( echo 0 > "$A/cgroup.procs"; services wake 4)"
done
kill $H1 $H2 $H3 $H4
""",
    "weights": r"""
spinner "$A"; A1=$!; spinner "$A"; A2=$!; spinner "$B"; B1=$!; spinner "$B"; B2=$!
sleep 0.5
shares equal 4 $A1 $A2 $B1 $B2
echo 10000 > "$A/cpu.weight"; sleep 0.5
shares weights 16 $A1 $A2 $B1 $B2
echo 300 > "$A/cpu.weight"; sleep 0.5
shares three 6 $A1 $A2 $B1 $B2
kill $A1 $A2 $B1 $B2
echo 100 > "$A/cpu.weight"
spinner "$A" "taskset 1"; A1=$!; spinner "$A" "taskset 1"; A2=$!
renice -n 5 -p $A2
sleep 0.5
shares nice 8 $A1 $A2
kill $A1 $A2
""",
    # Two CPUs of 125 million instructions a second; 4 ms a request.
    "pools": r"""
for seed in 1 2 3 4 5; do
  fact pool_$seed "$(services serve 16 10 125000 2700000 0 1 $seed)"
  fact mixed_$seed "$(services serve 16 10 125000 3200000 2 10 $seed)"
done
for seed in 1 2 3 4 5; do
  inside "$A" services serve 16 10 125000 5400000 0 1 $seed > "$OUT/pool_a"; PA=$!
  ( echo 0 > "$B/cgroup.procs"; exec services serve 16 10 125000 5400000 0 1 $((seed + 5)) ) > "$OUT/pool_b"
  wait $PA
  fact pool_a_$seed "$(cat "$OUT/pool_a")"; fact pool_b_$seed "$(cat "$OUT/pool_b")"
done
""",
}


def among(name: str, part: str, *, with_class: bool, switches: str = "") -> GuestTask:
    """Give the task that measures a part of what services get, with the class started or without it."""
    start, stop = (f"start_class {switches}\n", "\nstop_class") if with_class else ("", "")
    script = PRELUDE + HELPERS + start + PARTS[part] + stop + EPILOGUE
    return GuestTask(name, script, limit_s=400)


QUOTA: Final = r"""
mark_idle 0
A=$GROUPS_FOLDER/a; mkdir -p "$A"
echo "20000 100000" > "$A/cpu.max"
steelyard-scheduler start --foreground > "$OUT/refused.txt" 2>&1; fact refused $?
fact state_refused "$(cat /sys/kernel/sched_ext/state)"
echo max > "$A/cpu.max"
start_class
echo "20000 100000" > "$A/cpu.max"
await 20 detached; fact detached_after "$WAITED"
wait $LOADER; fact loader_status $?
( echo 0 > "$A/cgroup.procs"; exec sh -c 'while :; do :; done' ) & H=$!
measure limited 3 $H
"""


def quota() -> GuestTask:
    """Give the task that sets a quota before the class is started, and another one while it is attached."""
    return GuestTask("quota", PRELUDE + QUOTA + EPILOGUE, limit_s=120)
