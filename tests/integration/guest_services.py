"""What is done to services in the guest without jobs: scripts that leave facts, ``name=value`` lines."""

from __future__ import annotations

from typing import Final

from integration.guest_faults import EPILOGUE, PRELUDE
from steelyard.studies.colocation.guest.tasks import GuestTask

QUOTA: Final = r"""
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
