"""What is done to the best-effort class in the guest: scripts that leave facts, ``name=value`` lines."""

from __future__ import annotations

from typing import Final

from steelyard.studies.colocation.guest.tasks import GuestTask
from steelyard.studies.colocation.guest.trials import trial_work_iterations

PRELUDE: Final = r"""
BE=$GROUPS_FOLDER/be
fact() { echo "$1=$2" >> "$OUT/facts"; }
now() { cut -d' ' -f1 /proc/uptime; }
# CPU time in ticks of 10 ms, one number per process.
ticks() { for p in "$@"; do sed 's/.*) //' "/proc/$p/stat" | awk '{ printf "%d ", $12 + $13 }'; done; }
# R, S, Z ...; gone, where it was reaped.
state() { sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null || echo gone; }
ended() { case $(state "$1") in Z | X | gone) true ;; *) false ;; esac; }
hog() { while :; do :; done; }
# LIMIT_S COMMAND...: execute the command every 50 ms until it holds; the time it took becomes WAITED.
# POLL_S is longer where what is waited for needs the one CPU itself: each look starts five programs.
await() {
  limit=$1 since=$(now); shift
  while true; do
    "$@" >/dev/null 2>&1 && holds=0 || holds=1
    WAITED=$(echo "$since $(now)" | awk '{ print $2 - $1 }')
    [ $holds = 0 ] && return 0
    [ "${WAITED%.*}" -lt "$limit" ] || return 1
    sleep "${POLL_S:-0.05}"
  done
}
best_effort() { ( echo 0 > "$BE/cgroup.procs"; "$@" ) & }
measure() { # NAME SECONDS PID...: ticks of each before and after
  name=$1 seconds=$2; shift 2
  fact "${name}_before" "$(ticks "$@")"; sleep "$seconds"; fact "${name}_after" "$(ticks "$@")"
}
attached() { grep -qx enabled /sys/kernel/sched_ext/state; }
detached() { grep -qx disabled /sys/kernel/sched_ext/state; }
start_class() {
  steelyard-scheduler start --foreground --counters "$OUT/scheduler.json" "$@" > "$OUT/loader.txt" 2>&1 &
  LOADER=$!
  POLL_S=1
  await 30 grep -qx ready "$OUT/loader.txt" || { cat "$OUT/loader.txt"; exit 9; }
  POLL_S=
  attached && fact attached yes
}
stop_class() {
  kill -TERM $LOADER; wait $LOADER; fact loader_status $?
  fact state_after "$(cat /sys/kernel/sched_ext/state)"; dmesg | grep -i sched_ext > "$OUT/kernel.txt"
}
# At both levels: beside tasks outside of $GROUPS_FOLDER the weight of that folder counts.
mark_idle() { echo "$1" > "$BE/cpu.idle"; echo "$1" > "$GROUPS_FOLDER/cpu.idle"; }
dmesg -c > /dev/null
mkdir -p "$BE"; mark_idle 1
"""

ATTACH: Final = r"""
start_class
best_effort hog; B=$!
sleep 0.2
steelyard-scheduler status > "$OUT/status.txt"; fact status $?
measure alone 2 $B
hog & H1=$!; hog & H2=$!
sleep 0.5
measure parked 5 $B $H1 $H2
kill $H1 $H2
sleep 0.2
measure resumed 2 $B
stop_class
measure detached 1 $B
"""

SHARE: Final = r"""
start_class
best_effort hog; B1=$!; best_effort hog; B2=$!; best_effort hog; B3=$!
sleep 1
measure three 3 $B1 $B2 $B3
hog & H=$!
sleep 1
measure beside 3 $H $B1 $B2 $B3
stop_class
"""

TURNS: Final = r"""
start_class
best_effort hog; B1=$!; best_effort hog; B2=$!
calls() { while :; do sleep 0.004; done; }
calls & T1=$!; calls & T2=$!
sleep 1
measure two 20 $B1 $B2
for job in $B1 $B2; do
  echo "$(awk '/nr_migrations/ { print $3 }' /proc/$job/sched)" >> "$OUT/moves"
  echo "$(awk '/^nonvoluntary/ { print $2 }' /proc/$job/status)" >> "$OUT/interruptions"
done
fact moves "$(tr '\n' ' ' < "$OUT/moves")"; fact interruptions "$(tr '\n' ' ' < "$OUT/interruptions")"
best_effort hog; B3=$!
sleep 1
measure three 20 $B1 $B2 $B3
renice -n 5 -p $B1
measure unlike 12 $B1 $B2 $B3
renice -n -5 -p $B1
kill $T1 $T2
taskset 1 sh -c 'while :; do sleep 0.004; done' & T=$!
sleep 1
measure beside 12 $B1 $B2 $B3
kill $T
stop_class
"""

YIELD: Final = r"""
start_class
fact turns "$(taskset 1 chrt --idle 0 hand-over 2)"
fact turns_of_services "$(taskset 1 hand-over 2)"
stop_class
"""

HAND_OVER: Final = r"""
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Two processes take turns for some seconds; who waits for the other yields. Prints how many turns. */
int main(int count, char **words)
{
	volatile long *turn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	time_t end = time(NULL) + atoi(words[count - 1]);
	long mine = fork() == 0;

	while (time(NULL) < end)
		if (*turn % 2 == mine)
			++*turn;
		else
			sched_yield();
	if (!mine)
		printf("%ld\n", *turn);
	return 0;
}
"""

KILL: Final = r"""
start_class
best_effort hog; B=$!
chrt --idle 0 sh -c 'while :; do :; done' & C=$!
sleep 0.5
hog & H1=$!; hog & H2=$!
sleep 3
for victim in $B $C; do
  kill -9 $victim; await 40 ended $victim; fact "killed_$victim" "$WAITED"
done
kill $H1 $H2
stop_class
"""

LOADER_KILLED: Final = r"""
start_class
best_effort hog; B=$!
hog & H1=$!; hog & H2=$!
sleep 2
kill -9 $LOADER
await 5 detached; fact detached_after "$WAITED"
measure without 3 $B $H1 $H2
kill $H1 $H2
dmesg | grep -i sched_ext > "$OUT/kernel.txt"
# And it can be attached again.
rm "$OUT/loader.txt"; start_class
measure again 1 $B
stop_class
"""

RT_INTRUDER: Final = r"""
start_class
best_effort hog; B=$!
hog & H=$!
sleep 0.5
chrt --fifo 50 taskset 1 sh -c 'while :; do :; done' & R=$!
measure intruder 4 $R $H $B
kill -9 $R
sleep 0.2
measure after 2 $H $B
attached && fact still_attached yes
stop_class
"""

CPU_OFFLINE: Final = r"""
start_class
best_effort hog; B1=$!; best_effort hog; B2=$!
hog & H=$!
sleep 1
echo 0 > /sys/devices/system/cpu/cpu1/online; fact offline "$(cat /sys/devices/system/cpu/online)"
measure one 3 $H $B1 $B2
echo 1 > /sys/devices/system/cpu/cpu1/online; fact online "$(cat /sys/devices/system/cpu/online)"
await 20 attached; fact attached_after "$WAITED"
measure two 3 $H $B1 $B2
attached && fact still_attached yes
stop_class
"""

PINNED: Final = r"""
start_class
best_effort hog; B=$!
taskset 1 sh -c 'while :; do :; done' & P1=$!
taskset 1 sh -c 'while :; do :; done' & P2=$!
sleep 0.5
measure pinned 4 $P1 $P2 $B
stop_class
"""

FREEZER: Final = r"""
start_class
best_effort hog; B=$!
hog & H1=$!; hog & H2=$!
sleep 2
echo 1 > "$BE/cgroup.freeze"; await 30 grep -qx 'frozen 1' "$BE/cgroup.events"; fact froze_in "$WAITED"
measure frozen 1 $B
kill $H1 $H2
echo 0 > "$BE/cgroup.freeze"; sleep 0.5
measure thawed 1 $B
stop_class
"""

INVERSION: Final = r"""
# A job that writes megabytes at a time is nearly always inside of the kernel, with the lock of its file.
mkdir -p /tmp
rewrite() { while :; do dd if=/dev/zero of=/tmp/shared bs=4M count=1 conv=notrunc 2>/dev/null; done; }
append() { dd if=/dev/zero of=/tmp/shared bs=4k count=1 conv=notrunc 2>/dev/null; }
lasts() { # FILE COMMAND...
  file=$1 since=$(now); shift; "$@"; echo "$since $(now)" | awk '{ print $2 - $1 }' >> "$OUT/$file"
}
start_class
best_effort rewrite
for trial in 1 2 3 4 5 6; do
  sleep 0.2
  hog & H1=$!; hog & H2=$!
  sleep 0.3
  lasts writes append
  kill $H1 $H2
done
fact longest_write "$(sort -n "$OUT/writes" | tail -n 1)"
# And jobs that join their group beside services: with a lock that every new process waits for.
hog & H1=$!; hog & H2=$!
for trial in 1 2 3 4 5 6; do best_effort hog; lasts forks true; done
fact longest_fork "$(sort -n "$OUT/forks" | tail -n 1)"
kill $H1 $H2
stop_class
"""

WEIGHTS: Final = r"""
# Without the class: what the kernel's own means do on one CPU.
LC=$GROUPS_FOLDER/lc; mkdir "$LC"
echo 0 > "$GROUPS_FOLDER/cpu.idle"
in_service() { ( echo 0 > "$LC/cgroup.procs"; exec "$@" ) & }
in_service taskset 1 sh -c 'while :; do :; done'; H=$!
( echo 0 > "$BE/cgroup.procs"; exec taskset 1 sh -c 'while :; do :; done' ) & B=$!
sleep 0.5
measure cpu_idle 3 $H $B
echo 0 > "$BE/cpu.idle"
measure equal 3 $H $B
echo 10000 > "$LC/cpu.weight"; echo 1000 > "$BE/cpu.weight"
measure weights 3 $H $B
"""

REGROUP: Final = r"""
# Best-effort only from a moment on at which they run or wait, and back.
start_class
mark_idle 0
best_effort hog; B1=$!; best_effort hog; B2=$!; best_effort hog; B3=$!
sleep 0.5
mark_idle 1
sleep 0.5
measure alone 3 $B1 $B2 $B3
mark_idle 0
hog & H=$!
sleep 0.5
measure equals 3 $H $B1 $B2 $B3
hog & H2=$!
mark_idle 1
sleep 0.5
measure parked 3 $H $H2 $B1 $B2 $B3
kill $H $H2
stop_class
"""

PARK: Final = r"""
start_class --freeze-after-s 0
steelyard-load park --seconds 150 --unit-iterations $UNIT --out "$OUT/park.json"; fact park_status $?
attached && fact still_attached yes
steelyard-load park --seconds 10 --unit-iterations $UNIT --kill 3 --out "$OUT/killed.json"
stop_class
"""

THOUSAND: Final = r"""
start_class
# A process each, which waits for the start and then for nothing.
mkfifo /start
best_effort sh -c 'n=0
while [ $n -lt 1000 ]; do { : < /start; while :; do :; done; } & n=$((n+1)); done
echo $n > /made; wait'
await 30 test -s /made
hog & H1=$!; hog & H2=$!
sleep 0.5
: > /start
# All of them were woken inside of the kernel, and each gets out of it.
sleep 25
used_ns() { cat "$@" | awk '{ s += $1 } END { printf "%.0f", s }'; }
jobs_ns() { used_ns $(sed 's#.*#/proc/&/schedstat#' "$BE/cgroup.procs"); }
services_ns() { used_ns /proc/$H1/schedstat /proc/$H2/schedstat; }
fact jobs "$(wc -l < "$BE/cgroup.procs")"
# A thousand files are read outside of the time that the services are held against.
fact jobs_ns_before "$(jobs_ns)"
since=$(now); fact services_ns_before "$(services_ns)"
sleep 22
fact services_ns_after "$(services_ns)"; end=$(now)
fact jobs_ns_after "$(jobs_ns)"
fact seconds "$(echo "$since $end" | awk '{ print $2 - $1 }')"
attached && fact still_attached yes
echo 1 > "$BE/cgroup.freeze"; await 60 grep -qx 'frozen 1' "$BE/cgroup.events"; fact froze_in "$WAITED"
echo 0 > "$BE/cgroup.freeze"
nobody() { ! [ -s "$BE/cgroup.procs" ]; }
kill -TERM $(cat "$BE/cgroup.procs"); await 60 nobody; fact ended_in "$WAITED"
kill $H1 $H2
stop_class
"""

LIMIT_S: Final = 120.0
CACHES: Final = r"""
fact caches "$(cat /sys/devices/system/cpu/cpu*/cache/index3/shared_cpu_list | sort -u | wc -l)"
start_class
best_effort hog; JOBS=$!
for _ in 2 3 4; do best_effort hog; JOBS="$JOBS $!"; done
sleep 0.5
measure alone 2 $JOBS
hog & A=$!; hog & B=$!; hog & C=$!
for h in $A $B $C; do taskset -pc 0-1 $h; done
sleep 0.5
measure first_cache 3 $A $B $C $JOBS
hog & D=$!; hog & E=$!
sleep 0.5
measure both_caches 3 $A $B $C $D $E $JOBS
for h in $A $B $C; do taskset -pc 0-3 $h; done
sleep 0.5
measure uneven 6 $A $B $C $D $E $JOBS
kill $E
sleep 0.5
measure full 3 $A $B $C $D $JOBS
kill $A $B $C $D
sleep 0.5
measure resumed 2 $JOBS
stop_class
"""

EPILOGUE: Final = "\nfact ended yes\n"

FAULTS: Final = {
    "attach": ATTACH,
    "share": SHARE,
    "turns": TURNS,
    "yield": YIELD,
    "kill": KILL,
    "loader-killed": LOADER_KILLED,
    "rt-intruder": RT_INTRUDER,
    "cpu-offline": CPU_OFFLINE,
    "pinned": PINNED,
    "freezer": FREEZER,
    "inversion": INVERSION,
    "weights": WEIGHTS,
    "regroup": REGROUP,
}


def park() -> GuestTask:
    """Give the task that parks three kinds of work for 150 s, and kills others; for a guest of one CPU."""
    unit = f"UNIT={trial_work_iterations(1000, 1)}\n"
    return GuestTask("park", PRELUDE + unit + PARK + EPILOGUE, limit_s=400)


def caches() -> GuestTask:
    """Give the task that binds services to one of two caches; for a guest of four CPUs on two sockets."""
    return GuestTask("caches", PRELUDE + CACHES + EPILOGUE, limit_s=LIMIT_S)


def thousand() -> GuestTask:
    """Give the task that parks a thousand processes, freezes and ends them."""
    return GuestTask("thousand", PRELUDE + THOUSAND + EPILOGUE, limit_s=300)


def fault(name: str) -> GuestTask:
    """Give the task of a fault by its name."""
    return GuestTask(name, PRELUDE + FAULTS[name] + EPILOGUE, limit_s=LIMIT_S)
