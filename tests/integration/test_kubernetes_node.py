"""Class and governor on the control groups that a kubelet makes, with either of its drivers, in a guest.

There is no kubelet in the guest: its groups are made, and what it writes to them is written, by a shell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from fixtures.guest_needs import class_in_guest
from integration.guest_faults import EPILOGUE, PRELUDE
from steelyard.run.programs import govern_program
from steelyard.studies.colocation.guest.task_init import LOG
from steelyard.studies.colocation.guest.tasks import Guest, GuestTask, execute_tasks
from steelyard.studies.colocation.guest.trials import SCHEDULER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.needs_sched_ext_guest, pytest.mark.slow, pytest.mark.timeout(900)]

DRIVERS: Final = ("systemd", "cgroupfs")
TICKS_PER_S: Final = 100

# SOURCE: names of `cgroup_manager_linux.go` of the kubelet, and of containerd's plug-in for it.
LAYOUT: Final = r"""
R=/sys/fs/cgroup
case $DRIVER in
  systemd)
    PODS=$R/kubepods.slice
    BEST_EFFORT=$PODS/kubepods-besteffort.slice BURSTABLE=$PODS/kubepods-burstable.slice
    best_effort_pod() { echo "$BEST_EFFORT/kubepods-besteffort-pod$1.slice"; }
    burstable_pod() { echo "$BURSTABLE/kubepods-burstable-pod$1.slice"; }
    guaranteed_pod() { echo "$PODS/kubepods-pod$1.slice"; }
    CONTAINER=cri-containerd-4f1d.scope ;;
  cgroupfs)
    PODS=$R/kubepods BEST_EFFORT=$R/kubepods/besteffort BURSTABLE=$R/kubepods/burstable
    best_effort_pod() { echo "$BEST_EFFORT/pod$1"; }
    burstable_pod() { echo "$BURSTABLE/pod$1"; }
    guaranteed_pod() { echo "$PODS/pod$1"; }
    CONTAINER=4f1d ;;
esac
group() { mkdir -p "$1"; echo +cpu > "$1/cgroup.subtree_control"; }
# What the kubelet does when it starts, and every minute: the class of pods has the least weight.
kubelet() { echo 1 > "$BEST_EFFORT/cpu.weight"; }
# POD COMMAND...: in the container of a pod; its process becomes P.
in_pod() {
  pod=$1; shift
  group "$pod"; mkdir -p "$pod/$CONTAINER"
  ( echo 0 > "$pod/$CONTAINER/cgroup.procs"; "$@" ) & P=$!
}
remove_pod() { kill -9 "$2"; wait "$2"; rmdir "$1/$CONTAINER" && rmdir "$1"; }
group "$PODS"; group "$BEST_EFFORT"; group "$BURSTABLE"
kubelet; echo 40 > "$BURSTABLE/cpu.weight"
leave() { kill -9 $(cat $(find "$PODS" -name cgroup.procs)) 2>/dev/null; sleep 0.2
  find "$PODS" -depth -type d -exec rmdir {} \; ; }
"""

WITH_CLASS: Final = r"""
in_pod "$(best_effort_pod a)" hog; A=$P
since=$(now)
steelyard-scheduler start --within-s 60 --best-effort-below "$BEST_EFFORT" > "$OUT/loader.txt" 2>&1
fact start $?; fact started_in "$(echo "$since $(now)" | awk '{ print $2 - $1 }')"
fact marks "$(cat "$(best_effort_pod a)/cpu.idle" "$BEST_EFFORT/cpu.idle" | tr '\n' ' ')"
kubelet; fact kubelet_beside_marks $?
measure alone 1 $A
in_pod "$(guaranteed_pod g)" hog; G=$P
in_pod "$(burstable_pod b)" hog; B=$P
sleep 0.5
measure parked 3 $A $G $B
# A pod that comes later.
in_pod "$(best_effort_pod c)" hog; C=$P
await 10 grep -qx 1 "$(best_effort_pod c)/cpu.idle"; fact marked_in "$WAITED"
measure joined 3 $A $C $G $B
remove_pod "$(best_effort_pod a)" $A; fact removed $?
fact attached "$(cat /sys/kernel/sched_ext/state)"
# A pod with a limit.
echo "50000 100000" > "$(burstable_pod b)/cpu.max"
await 10 detached; fact detached_in "$WAITED"
await 5 grep -qx 0 "$(best_effort_pod c)/cpu.idle"; fact unmarked $?
cp /run/steelyard-scheduler/log "$OUT/log"
steelyard-scheduler start > "$OUT/refused.txt" 2>&1; fact refused $?
steelyard-scheduler probe --json > "$OUT/probe.json"; fact probed $?
echo max > "$(burstable_pod b)/cpu.max"
# Why the group of the class of pods is not marked itself.
echo 1 > "$BEST_EFFORT/cpu.idle"; kubelet 2> "$OUT/kubelet.txt"; fact kubelet_beside_a_mark_of_its_own $?
leave
"""

WITH_GOVERNOR: Final = r"""
in_pod "$(best_effort_pod a)" hog; A=$P
in_pod "$(best_effort_pod c)" hog; C=$P
steelyard-govern start --service "$BURSTABLE" --group "$BEST_EFFORT" --calm-ms 200 > "$OUT/start.txt" 2>&1
fact start $?
sleep 1
measure alone 1 $A $C
# A service that wants everything, and a pod with a limit of half a CPU.
in_pod "$(burstable_pod b)" hog; B=$P
in_pod "$(burstable_pod b)" hog; D=$P
in_pod "$(burstable_pod l)" hog; L=$P
echo "50000 100000" > "$(burstable_pod l)/cpu.max"
sleep 6
kubelet; fact kubelet $?
measure held 4 $B $D $L $A $C
# What a manager that sets all properties of a group again does to it.
echo max > "$BEST_EFFORT/cpu.max"
sleep 6
measure again 4 $B $D $L $A $C
kill -9 $B $D; sleep 6
# A pod that waits for nothing but its own limit.
measure limited 4 $L $A $C
steelyard-govern status --json > "$OUT/status.json"
kill -9 $L
is_free() { grep -q ^max "$BEST_EFFORT/cpu.max" && grep -qx 0 "$BEST_EFFORT/cgroup.freeze"; }
await 20 is_free; fact released $?
measure alone_again 1 $A $C
steelyard-govern stop > /dev/null; fact stop $?
is_free; fact restored $?
leave
"""

KILLED_AT_ANY_TIME: Final = r"""
nothing() { ! ps | grep -v grep | grep -q '[s]teelyard-scheduler start' && detached; }
since=$(now)
steelyard-scheduler start --within-s 60 > "$OUT/loader.txt" 2>&1; fact start $?
TAKES=$(echo "$since $(now)" | awk '{ print $2 - $1 }'); fact takes "$TAKES"
steelyard-scheduler stop > /dev/null
for percent in 1 5 10 20 30 40 50 60 70 80 90; do
  steelyard-scheduler start --within-s 60 > /dev/null 2>&1 & P=$!
  sleep "$(echo "$TAKES $percent" | awk '{ print $1 * $2 / 100 }')"
  kill -9 $P || fact left "not killed at $percent %"
  wait $P; await 2 nothing || fact left "at $percent %"
done
# Who started the starter is killed.
sh -c 'steelyard-scheduler start --within-s 60 --starter $$ > /dev/null 2>&1 & wait' & P=$!
sleep 1; kill -9 $P; wait $P
await 2 nothing || fact left "with the starter's starter"
since=$(now)
steelyard-scheduler start --within-s 1 > "$OUT/late.txt" 2>&1; fact late $?
fact ended_in "$(echo "$since $(now)" | awk '{ print $2 - $1 }')"
nothing || fact left "of one that was late"
steelyard-scheduler status > /dev/null; fact status $?
# Nothing is in the way of the next, nor of a second one.
steelyard-scheduler start --within-s 60 > "$OUT/loader.txt" 2>&1; fact next $?
steelyard-scheduler start > "$OUT/second.txt" 2>&1; fact second $?
steelyard-scheduler start --foreground > "$OUT/third.txt" 2>&1; fact third $?
attached; fact attached $?
steelyard-scheduler stop > /dev/null; fact stop $?
await 2 nothing || fact left "after the stop"
"""


def _task(name: str, script: str, driver: str) -> GuestTask:
    return GuestTask(name, f"DRIVER={driver}\n{PRELUDE}{LAYOUT}{script}{EPILOGUE}", limit_s=120)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of what the tasks left, all of them in one guest."""
    programs = {SCHEDULER: class_in_guest(), "steelyard-govern": govern_program()}
    out = tmp_path_factory.mktemp("node")
    tasks = [
        _task(f"{name}-{driver}", script, driver)
        for name, script in (("class", WITH_CLASS), ("governor", WITH_GOVERNOR))
        for driver in DRIVERS
    ]
    tasks.append(GuestTask("killed", PRELUDE + KILLED_AT_ANY_TIME + EPILOGUE, limit_s=120))
    execute_tasks(tasks, out, Guest(programs, timeout_s=7200))
    return out


def _facts(left: Path, name: str) -> dict[str, str]:
    lines = (left / name / "facts").read_text(encoding="utf-8").splitlines()
    facts = dict(line.split("=", 1) for line in lines)
    assert facts.get("ended") == "yes", (left / name / LOG).read_text(encoding="utf-8")
    return facts


def _shares(facts: dict[str, str], name: str, seconds: float) -> list[float]:
    """CPUs that each process had during a measurement."""
    before, after = ([int(word) for word in facts[f"{name}_{end}"].split()] for end in ("before", "after"))
    return [(last - first) / TICKS_PER_S / seconds for first, last in zip(before, after, strict=True)]


@pytest.mark.parametrize("driver", DRIVERS)
def test_best_effort_pods_run_only_where_no_other_pod_wants_to(left: Path, driver: str) -> None:
    facts = _facts(left, f"class-{driver}")
    assert facts["start"] == "0", (left / f"class-{driver}" / "loader.txt").read_text()
    assert facts["marks"] == "1 0 "
    assert _shares(facts, "alone", 1)[0] > 0.9
    job, *services = _shares(facts, "parked", 3)
    assert job < 0.02
    assert min(services) > 0.95
    assert float(facts["marked_in"]) < 2
    first, second, *services = _shares(facts, "joined", 3)
    assert max(first, second) < 0.02
    assert min(services) > 0.9
    assert (facts["removed"], facts["attached"]) == ("0", "enabled")


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_kubelet_can_write_the_weight_of_best_effort_pods_beside_the_marks(
    left: Path, driver: str
) -> None:
    facts = _facts(left, f"class-{driver}")
    assert facts["kubelet_beside_marks"] == "0"
    assert facts["kubelet_beside_a_mark_of_its_own"] != "0", "then the group could be marked itself"


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_class_leaves_when_a_pod_has_a_limit_and_names_it(left: Path, driver: str) -> None:
    facts = _facts(left, f"class-{driver}")
    assert float(facts["detached_in"]) < 4
    assert facts["unmarked"] == "0"
    assert (facts["refused"], facts["probed"]) == ("3", "3")
    for name in ("log", "refused.txt", "probe.json"):
        text = (left / f"class-{driver}" / name).read_text(encoding="utf-8")
        assert "cannot keep the quota `50000 100000` of `/sys/fs/cgroup/kubepods" in text


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_governor_holds_best_effort_pods_back_beside_a_limit(left: Path, driver: str) -> None:
    facts = _facts(left, f"governor-{driver}")
    assert facts["start"] == "0", (left / f"governor-{driver}" / "start.txt").read_text()
    assert min(_shares(facts, "alone", 1)) > 0.8
    for name in ("held", "again"):
        first, second, limited, *jobs = _shares(facts, name, 4)
        assert first + second + limited > 1.8
        assert limited < 0.6
        assert sum(jobs) < 0.2, name
    limited, *jobs = _shares(facts, "limited", 4)
    assert limited < 0.6
    assert (facts["kubelet"], facts["released"]) == ("0", "0")
    assert min(_shares(facts, "alone_again", 1)) > 0.6
    assert (facts["stop"], facts["restored"]) == ("0", "0")


def test_a_start_that_is_killed_or_late_leaves_nothing(left: Path) -> None:
    facts = _facts(left, "killed")
    assert "left" not in facts, facts["left"]
    assert facts["late"] == "4"
    assert float(facts["ended_in"]) < 2 < float(facts["takes"])
    assert "cannot attach the best-effort class within 1 s" in (left / "killed" / "late.txt").read_text()
    assert facts["status"] == "1"
    assert [facts[name] for name in ("start", "next", "attached", "stop")] == ["0"] * 4
    # Neither does the second one, which leaves the first alone.
    assert (facts["second"], facts["third"]) == ("4", "4")
