"""Each technology for real: two workers, released by one barrier, measured, and taken away again."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import UsageError
from steelyard.model import Affinity, Cell, Execution, Plan
from steelyard.model.plan import Batch
from steelyard.record.ledger import Ledger
from steelyard.run.executor import ExecutionOptions, execute
from steelyard.run.isolation.registry import sweep_all, technologies, technology
from steelyard.run.remains import CGROUP_ROOT
from steelyard.run.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterator
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
    "vm": [pytest.mark.needs_vm],
    "vm-sandbox": [pytest.mark.needs_vm],
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
    assert summary.statuses == {"completed": WORKERS * ITERATIONS}, [row.outcome["message"] for row in rows]
    assert len(summary.worker_starts_s[name]) == WORKERS
    for row in rows:
        own = {each["metric"]: each["value"] for each in row.outcome["own"]}
        assert own["wall"] >= 2_000_000
        assert row.outcome["quantities"]["wall_ns"]["value"] > 0
        assert row.outcome["start_ns"] < row.outcome["end_ns"]
    starts = [row.outcome["start_ns"] for row in rows if row.iteration == 1]
    assert max(starts) - min(starts) < 1_000_000_000, "the workers were not released together"
    assert [path for path in CGROUP_ROOT.glob("*/*") if session.key in path.name] == []
    assert not session.folder.exists()


def test_an_unknown_technology_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="docker-sandbox"):
        technology("jail")


def test_every_technology_describes_itself_in_one_sentence() -> None:
    for each in technologies().values():
        assert "\n" not in each.describe()
        assert each.describe()
