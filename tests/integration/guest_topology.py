"""What runs on which CPU of a guest with cores of two threads, or two memory nodes: scripts, and traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from integration.guest_faults import EPILOGUE, PRELUDE
from steelyard.studies.colocation.guest.tasks import GuestTask

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SWITCHES: Final = "switches"
JOB, SERVICE, OTHER = "job", "service", "other"

PROGRAM: Final = r"""
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static long cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* NAME [WORK_US SLEEP_US]: uses a CPU for so long, and sleeps, again and again; or never sleeps. */
int main(int count, char **words)
{
	long work_ns = count > 2 ? atol(words[2]) * 1000 : 0, end;
	struct timespec rest = { 0, count > 3 ? atol(words[3]) * 1000 : 0 };

	prctl(PR_SET_NAME, words[1]);
	for (;;) {
		for (end = cpu_ns() + work_ns; !work_ns || cpu_ns() < end;)
			for (volatile int i = 0; i < 500; i++)
				;
		nanosleep(&rest, NULL);
	}
}
"""

TOPOLOGY_PRELUDE: Final = r"""
T=/sys/kernel/tracing
# Here: a kernel thread on each CPU makes room, and services that find no CPU would move to the other node.
echo 8192 > $T/buffer_size_kb
fact siblings "$(cat /sys/devices/system/cpu/cpu*/topology/core_cpus_list | sort -u | tr '\n' ' ')"
fact nodes "$(cat /sys/devices/system/node/has_cpu)"
# CPUS [WORK_US SLEEP_US]
job() { ( echo 0 > "$BE/cgroup.procs"; exec taskset -c "$1" busy job ) & }
service() { cpus=$1; shift; taskset -c "$cpus" busy service "$@" & }
ends() { kill "$@"; wait "$@" 2>/dev/null; }
# NAME SECONDS: who got which CPU when [us], a line each.
trace() {
  echo 0 > $T/tracing_on; echo > $T/trace
  echo 1 > $T/events/sched/sched_switch/enable
  echo 1 > $T/tracing_on; sleep "$2"; echo end > $T/trace_marker
  # What had its CPU all the time is known when it loses it.
  for cpu in $(seq 0 $(($(nproc) - 1))); do chrt -f 1 taskset -c $cpu true; done
  echo 0 > $T/tracing_on
  awk '{ match($0, /[0-9]+\.[0-9]+:/); split(substr($0, RSTART, RLENGTH - 1), at, ".") }
    /: end$/ { print "end", at[1] at[2] }
    /sched_switch:/ {
      match($0, /\[[0-9]+\]/); cpu = substr($0, RSTART + 1, RLENGTH - 2) + 0
      match($0, /next_comm=[^ ]+/); next_one = substr($0, RSTART + 10, RLENGTH - 10)
      match($0, /prev_comm=[^ ]+/); print cpu, at[1] at[2], next_one, substr($0, RSTART + 10, RLENGTH - 10)
    }' $T/trace > "$OUT/$1.switches"
}
# What was counted until now, for what comes is not the doing of the class alone.
counted() { sleep 1.2; cp "$OUT/scheduler.json" "$OUT/counted.json"; }
"""

SIBLINGS: Final = r"""
start_class --siblings $POLICY
# A service that always runs, on a thread of the first core, and a job for each of four CPUs.
service 0; S=$!
for _ in 1 2 3 4; do job 0-3; JOBS="$JOBS $!"; done
sleep 0.3
trace full 0.5
ends $S; sleep 0.2
trace alone 0.3
ends $JOBS
# One job, which runs on the sibling of the CPU where a service then starts; the other core is idle.
job 1; J=$!
sleep 0.1
service 0; S=$!
sleep 0.1
taskset -pc 0-3 $J
sleep 0.1
trace one 0.3
ends $S $J
"""

FAULTS: Final = r"""
# Services at 70 % of each CPU, which sleep and wake, beside a job for each.
JOBS=
for _ in 1 2 3 4; do job 0-3; JOBS="$JOBS $!"; done
for rest in 1100 1200 1300 1400; do service 0-3 3000 $rest; BUSY="$BUSY $!"; done
sleep 0.3
trace busy 1
ends $BUSY
# Services on a thread of each core: jobs get moments alone, and go on when one leaves.
service 0; S=$!; service 2; S2=$!
sleep 0.3
measure none 1 $S $S2 $JOBS
kill -9 ${JOBS##* }; await 5 ended ${JOBS##* }; fact killed "$WAITED"
ends $S2; sleep 0.2
trace again 0.5
counted
# A sibling goes, comes back, and is a sibling again.
echo 0 > /sys/devices/system/cpu/cpu1/online; await 20 attached; sleep 0.5
trace unplugged 0.5
echo 1 > /sys/devices/system/cpu/cpu1/online; await 20 attached; sleep 1
trace plugged 0.5
attached && fact still_attached yes
"""

NODES: Final = r"""
start_class --siblings $POLICY
# Jobs have the CPUs of the first node; a service that slept there finds one of the second idle.
for _ in 1 2 3 4; do job 0-3; done
service 0 2000 4000; S=$!
sleep 0.3
taskset -pc 0-7 $S
sleep 0.2
trace near 0.5
# Where services have all of the first node, it moves to the second.
for cpu in 0 1 2 3; do service $cpu; done
sleep 0.3
trace other 0.5
"""


def topology_task(name: str, script: str, **values: object) -> GuestTask:
    """Give a task of a script above; values are its variables."""
    variables = "".join(f"{key}={value}\n" for key, value in values.items())
    return GuestTask(
        name, PRELUDE + TOPOLOGY_PRELUDE + variables + script + "\nstop_class\n" + EPILOGUE, limit_s=200
    )


class Span(NamedTuple):
    """A CPU had a kind of thread from one time to another [us]."""

    cpu: int
    kind: str
    start_us: int
    end_us: int


@dataclass(frozen=True, slots=True)
class Trace:
    """What had each CPU.

    Parameters
    ----------
    spans : tuple of Span
        Of jobs and services; a service that a thread of the kernel interrupts has two.
    us : int
        Length of the trace.
    """

    spans: tuple[Span, ...]
    us: int

    def share(self, kind: str, cpus: set[int]) -> float:
        """Give the CPUs' worth of time that a kind of thread had on some CPUs."""
        return sum(s.end_us - s.start_us for s in self.spans if s.kind == kind and s.cpu in cpus) / self.us

    def beside_us(self, cores: list[set[int]]) -> Iterator[int]:
        """Give how long each time that a job had a CPU a service had a sibling with it."""
        for core in cores:
            jobs = [span for span in self.spans if span.cpu in core and span.kind == JOB]
            services = [span for span in self.spans if span.cpu in core and span.kind == SERVICE]
            for job in jobs:
                together = (
                    min(job.end_us, other.end_us) - max(job.start_us, other.start_us) for other in services
                )
                yield sum(us for us in together if us > 0)


def read_trace(folder: Path, name: str) -> Trace:
    """Read what `trace` left."""
    rows = [line.split() for line in (folder / f"{name}.{SWITCHES}").read_text(encoding="utf-8").splitlines()]
    begin, end = int(rows[0][1]), next(int(row[1]) for row in rows if row[0] == "end")
    spans, last = [], {}
    for cpu, at, comm, before in (row for row in rows if row[0] != "end"):
        kind, start = last.get(cpu, (before, begin))
        until = min(int(at), end)
        if kind in {JOB, SERVICE} and until > start:
            spans.append(Span(int(cpu), kind, start, until))
        last[cpu] = (comm, until)
    return Trace(tuple(spans), end - begin)
