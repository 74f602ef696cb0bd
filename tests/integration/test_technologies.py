"""Each technology for real: two workers, released by one barrier, measured, and taken away again."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import RunError, UsageError
from steelyard.model import Affinity, Cell, Execution, Plan
from steelyard.model.plan import Batch
from steelyard.model.run_outcome import RunStatus
from steelyard.model.run_spec import OutputStream, RunSpec
from steelyard.record.ledger import Ledger
from steelyard.run.cleanup import CGROUP_ROOT
from steelyard.run.executor.executor import execute
from steelyard.run.executor.pool import WorkerPool
from steelyard.run.executor.run_options import ExecutionOptions
from steelyard.run.isolation.registry import sweep_all, technologies, technology
from steelyard.run.machine.affinity import memory_nodes_of, place
from steelyard.run.machine.host import read_topology
from steelyard.run.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MARKS = {
    "sandbox": [pytest.mark.needs_root],
    "isolate": [pytest.mark.needs_isolate],
    "docker": [pytest.mark.needs_docker],
    "docker-sandbox": [pytest.mark.needs_docker],
    "podman": [pytest.mark.needs_podman],
    "crun": [pytest.mark.needs_oci],
    "runc": [pytest.mark.needs_oci],
    "bubblewrap": [pytest.mark.needs_bwrap],
    "nspawn": [pytest.mark.needs_nspawn],
    "vm": [pytest.mark.needs_vm, pytest.mark.slow],
    "vm-sandbox": [pytest.mark.needs_vm, pytest.mark.slow],
}
NAMES = [pytest.param(name, marks=MARKS.get(name, [])) for name in technologies()]
ITERATIONS = 2
WORKERS = 2


@pytest.fixture(autouse=True)
def private_state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="sy-") as state:  # short: sockets lie below it
        monkeypatch.setenv("STEELYARD_STATE", state)
        yield


def _plan(isolation: str) -> Plan:
    execution = Execution(
        isolation,
        ("{work}", "spin", "--ms", "2"),
        workers=WORKERS,
        iterations=ITERATIONS,
        affinity=Affinity.NONE,
        environment={"PATH": "/usr/bin:/bin"},
    )
    cells = (Cell(0, {"isolation": isolation}, execution),)
    return Plan("small", 1, {"isolation": (isolation,)}, cells, (Batch(0, 0, 0),), 1, {}).freeze()


@pytest.mark.parametrize("name", NAMES)
def test_two_parallel_workers_are_measured_and_removed(
    name: str, tmp_path: Path, private_state: Path
) -> None:
    found = technology(name).probe()
    if not found.available:
        pytest.skip(f"{name} does not work here: {found.reason}")
    plan = _plan(name)
    options = ExecutionOptions(placement=lambda count, _affinity: [None] * count)
    with Ledger(tmp_path / "ledger.sqlite", plan.id) as ledger:
        with open_session(tmp_path / "logs", sweep_all) as session:
            summary = execute(plan, session, ledger, options)
        rows = list(ledger.outcomes())
    assert summary.statuses == {"completed": WORKERS * ITERATIONS}, [row.outcome.message for row in rows]
    assert len(summary.worker_starts_s[name]) == WORKERS
    for row in rows:
        own = {each.metric: each.value for each in row.outcome.own}
        assert own["wall"] >= 2_000_000
        # isolate counts from when its own keeper gets a CPU, which may be after the program.
        assert (row.outcome.value("wall_ns") or 0) >= (0 if name == "isolate" else 1)
        assert row.outcome.start_ns < row.outcome.end_ns
    starts = [row.outcome.start_ns for row in rows if row.iteration == 1]
    assert max(starts) - min(starts) < 1_000_000_000, "the workers were not released together"
    assert [path for path in CGROUP_ROOT.glob("*/*") if session.key in path.name] == []
    assert not session.folder.exists()


@pytest.mark.parametrize("name", [name for name in NAMES if not name.values[0].startswith("vm")])
def test_a_worker_bound_to_a_memory_node_allocates_there_alone(name: str, tmp_path: Path) -> None:
    chosen = technology(name)
    found = chosen.probe()
    if not found.available:
        pytest.skip(f"{name} does not work here: {found.reason}")
    topology = read_topology()
    node = topology.memory_nodes[-1]
    cpu = next(cpu for cpu in node.cpus if cpu in topology.allowed)
    spec = RunSpec(
        id="bound",
        command=("cat", "/proc/self/numa_maps", "/proc/self/status"),
        environment={"PATH": "/usr/bin:/bin"},
        standard_output=OutputStream.captured(1 << 20),
    )
    with open_session(tmp_path / "logs", sweep_all) as session, WorkerPool(session) as pool:
        (worker,) = pool.take(chosen, [(cpu,)], [(node.id,)])
        (outcome,) = worker.execute(spec, timeout_s=60)
    assert outcome.status is RunStatus.COMPLETED, outcome.message
    text = outcome.standard_output.text
    is_bound_by_engine = f"Mems_allowed_list:\t{node.id}\n" in text
    assert is_bound_by_engine if name == "docker" else f" bind:{node.id} " in text, text


def test_a_study_binds_memory_to_the_nodes_of_the_workers_cpus(tmp_path: Path) -> None:
    execution = Execution(
        "bare",
        ("{work}", "spin", "--ms", "1"),
        workers=2,
        affinity=Affinity.MEMORY_NODE,
        environment={"PATH": "/usr/bin:/bin"},
    )
    cells = (Cell(0, {"affinity": "numa"}, execution),)
    plan = Plan("small", 1, {"affinity": ("numa",)}, cells, (Batch(0, 0, 0),), 1, {}).freeze()
    topology = read_topology()
    asked: list[tuple[int, ...]] = []

    def nodes_of(cpus: Sequence[int]) -> Sequence[int]:
        asked.append(tuple(cpus))
        return memory_nodes_of(topology, cpus)

    def placed(count: int, affinity: Affinity) -> Sequence[Sequence[int] | None]:
        return place(topology, count, affinity)

    for options in (ExecutionOptions(placed, nodes_of), ExecutionOptions(placed)):
        with (
            Ledger(tmp_path / f"{options.nodes_of is None}.sqlite", plan.id) as ledger,
            open_session(tmp_path / "logs", sweep_all) as session,
        ):
            if options.nodes_of is None:
                with pytest.raises(RunError, match="the memory nodes of this host are not configured"):
                    execute(plan, session, ledger, options)
            else:
                assert execute(plan, session, ledger, options).statuses == {"completed": 2}
    assert [place(topology, 2, Affinity.MEMORY_NODE)[index] for index in range(2)] == [*map(list, asked)]


def test_an_unknown_technology_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="docker-sandbox"):
        technology("jail")


def test_every_technology_describes_itself_in_one_sentence() -> None:
    for each in technologies().values():
        assert "\n" not in each.describe()
        assert each.describe()
