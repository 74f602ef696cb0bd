"""The best-effort class where cores have two hardware threads, and where CPUs are on two memory nodes.

An emulator's siblings share nothing, so what one costs the other is not seen here: it is looked at who had
which CPU.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.guest_needs import class_in_guest
from integration.guest_kernels import facts_of, shares
from integration.guest_topology import (
    FAULTS,
    JOB,
    NODES,
    PROGRAM,
    SERVICE,
    SIBLINGS,
    Trace,
    read_trace,
    topology_task,
)
from steelyard.studies.colocation.guest.sched_ext import sched_ext_kernels
from steelyard.studies.colocation.guest.tasks import Guest, execute_tasks
from steelyard.studies.colocation.guest.trials import SCHEDULER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.studies.colocation.guest.tasks import GuestTask

pytestmark = [pytest.mark.needs_sched_ext_guest, pytest.mark.slow, pytest.mark.timeout(900)]

TOOLS = ("chrt", "taskset")
TICK_US = 4000
CORES = [{0, 1}, {2, 3}]


@dataclass(frozen=True, slots=True)
class Left:
    """What one task left."""

    folder: Path

    def facts(self) -> dict[str, str]:
        return facts_of(self.folder)

    def trace(self, name: str) -> Trace:
        return read_trace(self.folder, name)

    def strictness(self, file: str = "scheduler.json") -> dict[str, int]:
        counted: dict[str, Any] = json.loads((self.folder / file).read_text(encoding="utf-8"))
        assert counted["ejections"] == 0
        found: dict[str, int] = counted["strictness"]
        return found


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Give what runs in the guests."""
    scheduler, compiler = class_in_guest(), shutil.which("cc")
    tools = {name: Path(found) for name in TOOLS if (found := shutil.which(name))}
    if len(tools) < len(TOOLS) or compiler is None:
        pytest.skip(f"needs {', '.join(TOOLS)} of util-linux, and a C compiler, `cc`")
    busy = tmp_path_factory.mktemp("program") / "busy"
    words = [compiler, "-O1", "-static", "-x", "c", "-", "-o", str(busy)]
    subprocess.run(words, input=PROGRAM, text=True, check=True)
    return {SCHEDULER: scheduler, "busy": busy} | tools


@pytest.fixture(scope="module")
def siblings(programs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Left]:
    """Give what the tasks left in a guest of two cores of two threads."""
    scripts = {"allow": SIBLINGS, "avoid": SIBLINGS, "forbid": SIBLINGS + FAULTS}
    tasks = [topology_task(policy, script, POLICY=policy) for policy, script in scripts.items()]
    return _execute(tasks, tmp_path_factory.mktemp("siblings"), Guest(programs, cpus=4, threads=2))


@pytest.fixture(scope="module")
def nodes(programs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> list[Left]:
    """Give what the task left under each kernel, in a guest of two nodes of two cores of two threads."""
    guest = Guest(programs, cpus=8, sockets=2, threads=2, has_nodes=True)
    task = topology_task("nodes", NODES, POLICY="allow")
    return [
        _execute([task], tmp_path_factory.mktemp("nodes"), replace(guest, kernel=kernel))["nodes"]
        for kernel in sched_ext_kernels()
    ]


def _execute(tasks: Sequence[GuestTask], out: Path, guest: Guest) -> dict[str, Left]:
    return {outcome.name: Left(outcome.folder) for outcome in execute_tasks(tasks, out, guest)}


def test_jobs_run_beside_a_service_where_that_is_allowed(siblings: dict[str, Left]) -> None:
    left = siblings["allow"]
    assert left.facts()["siblings"] == "0-1 2-3 "
    full = left.trace("full")
    assert full.share(SERVICE, {0}) > 0.95
    assert full.share(JOB, {1, 2, 3}) > 2.9
    assert max(full.beside_us(CORES)) > TICK_US
    # Nothing makes a job leave, but a shell that interrupts it for a moment.
    one = left.trace("one")
    assert sum(one.beside_us(CORES)) > 0.5 * one.us
    # The meter sees it under any policy.
    assert left.strictness()["beside_ns"] > 500_000_000
    assert left.strictness()["longest_beside_ns"] > TICK_US * 1000


def test_a_job_leaves_the_core_of_a_service_where_another_is_idle(siblings: dict[str, Left]) -> None:
    for policy in ("avoid", "forbid"):
        one = siblings[policy].trace("one")
        assert one.share(JOB, {2, 3}) > 0.95, policy
        # A shell has a thread of the other core for a moment, and a tick may pass until the job goes back.
        assert one.share(JOB, {0, 1}) < 0.05, policy
    # And stays where none is.
    assert siblings["avoid"].trace("full").share(JOB, {1, 2, 3}) > 2.9


def test_no_job_runs_beside_a_service_where_that_is_forbidden(siblings: dict[str, Left]) -> None:
    left = siblings["forbid"]
    full = left.trace("full")
    assert full.share(SERVICE, {0}) > 0.95
    assert full.share(JOB, {1}) < 0.01
    assert max(full.beside_us(CORES)) < TICK_US
    # The other core is theirs, and all is when the service has ended.
    assert full.share(JOB, {2, 3}) > 1.9
    assert left.trace("alone").share(JOB, {0, 1, 2, 3}) > 3.8


def test_services_that_come_and_go_have_their_cores_within_a_tick(siblings: dict[str, Left]) -> None:
    left = siblings["forbid"]
    busy = left.trace("busy")
    assert max(busy.beside_us(CORES)) < TICK_US
    # 3 ms of work, 1.1 to 1.4 of sleep: nobody waits because a sibling is to be free.
    assert busy.share(SERVICE, {0, 1, 2, 3}) > 0.95 * 4 * 3 / 4.25
    # And what they leave of whole cores is used.
    assert busy.share(JOB, {0, 1, 2, 3}) > 0.2
    strictness = left.strictness("counted.json")
    assert strictness["beside_count"] > 100
    assert max(strictness["longest_beside_ns"], strictness["longest_ns"]) < TICK_US * 1000


def test_a_sibling_may_go_and_come_back(siblings: dict[str, Left]) -> None:
    left = siblings["forbid"]
    for name in ("unplugged", "plugged"):
        trace = left.trace(name)
        assert trace.share(SERVICE, {0}) > 0.95, name
        assert trace.share(JOB, {1}) < 0.01, name
        assert trace.share(JOB, {2, 3}) > 1.9, name
    assert left.facts()["still_attached"] == "yes"


def test_jobs_that_have_no_core_live_on(siblings: dict[str, Left]) -> None:
    left = siblings["forbid"]
    facts = left.facts()
    one, other, *jobs = shares(facts, "none", 1)
    assert min(one, other) > 95
    assert sum(jobs) < 4
    assert float(facts["killed"]) < 1
    again = left.trace("again")
    assert again.share(SERVICE, {0}) > 0.95
    assert again.share(JOB, {2, 3}) > 1.9


def test_a_service_stays_in_its_memory_node_while_jobs_have_cpus_there(nodes: list[Left]) -> None:
    for left in nodes:
        assert (left.facts()["nodes"], left.facts()["siblings"]) == ("0-1", "0-1 2-3 4-5 6-7 ")
        near = left.trace("near")
        assert near.share(SERVICE, {0, 1, 2, 3}) > 0.25
        assert near.share(SERVICE, {4, 5, 6, 7}) < 0.01
        # But does not wait for one where services have them all.
        other = left.trace("other")
        assert other.share(SERVICE, {0, 1, 2, 3}) > 3.8
        assert other.share(SERVICE, {4, 5, 6, 7}) > 0.25
