"""What is asked of the class under each kernel, and on many possible CPUs: scripts that leave facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from integration.guest_faults import EPILOGUE, FAULTS, PRELUDE
from steelyard.studies.colocation.guest.task_init import LOG
from steelyard.studies.colocation.guest.tasks import GuestTask

if TYPE_CHECKING:
    from pathlib import Path

PROBE: Final = r"""
steelyard-scheduler probe > "$OUT/probe.txt"; fact probe $?
steelyard-scheduler probe --json > "$OUT/probe.json"
fact possible "$(cat /sys/devices/system/cpu/possible)"
"""

BOUND: Final = r"""
# Work for a thread of the kernel that is bound to each CPU, a hundred times, and when the last has done it.
# Who asks for it is real-time and does not wait for a CPU itself.
refresh() {
  since=$(now)
  chrt -f 1 sh -c 'for i in $(seq 100); do echo 1 > /proc/sys/vm/stat_refresh; done' || exit 9
  fact "$1" "$(echo "$since $(now)" | awk '{ print $2 - $1 }')"
}
start_class
refresh idle
hog & H1=$!; hog & H2=$!
sleep 0.5
refresh beside_services
measure services 3 $H1 $H2
# A grace period of RCU ends although services have every CPU: the group is gone when it has.
mkdir "$GROUPS_FOLDER/gone"; rmdir "$GROUPS_FOLDER/gone"; fact grace_period yes
kill $H1 $H2
best_effort hog; best_effort hog
sleep 0.5
refresh beside_jobs
stop_class
"""


def on_kernel() -> GuestTask:
    """Give the task that asks what the class uses of a kernel, and parks a job beside services."""
    return GuestTask("kernel", PRELUDE + PROBE + FAULTS["attach"] + EPILOGUE, limit_s=120)


def bound() -> GuestTask:
    """Give the task that wakes threads of the kernel that are bound to a CPU."""
    return GuestTask("bound", PRELUDE + BOUND + EPILOGUE, limit_s=240)


def facts_of(folder: Path) -> dict[str, str]:
    """Give what a task noted; it has to have ended well."""
    lines = (folder / "facts").read_text(encoding="utf-8").splitlines()
    facts = dict(line.split("=", 1) for line in lines)
    assert facts.get("ended") == "yes", (folder / LOG).read_text(encoding="utf-8")
    assert (facts["attached"], facts["loader_status"], facts["state_after"]) == ("yes", "0", "disabled")
    return facts


def shares(facts: dict[str, str], name: str, seconds: float) -> list[float]:
    """Give the share of a CPU that each process had between two measurements [%]."""
    before, after = ([int(word) for word in facts[f"{name}_{side}"].split()] for side in ("before", "after"))
    return [(last - first) / seconds for first, last in zip(before, after, strict=True)]
