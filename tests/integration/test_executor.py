"""Failures during a study: recorded, counted, and never in the way of the rest."""

from __future__ import annotations

import os
import signal
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.errors import RunError
from steelyard.model import Cell, Execution, NeighbourKind, Neighbours, Plan
from steelyard.model.plan import Batch
from steelyard.record.ledger import Ledger
from steelyard.run.executor import ExecutionOptions, execute
from steelyard.run.isolation.registry import sweep_all, technology
from steelyard.run.neighbours import neighbours
from steelyard.run.session import Session, Site, open_session
from steelyard.run.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SPIN = ("{work}", "spin", "--ms", "1")


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    with tempfile.TemporaryDirectory(prefix="sy-") as state:  # short: sockets lie below it
        monkeypatch.setenv("STEELYARD_STATE", state)
        with open_session(tmp_path / "logs", sweep_all) as opened:
            yield opened


def _plan(*executions: Execution) -> Plan:
    cells = tuple(Cell(n, {"cell": str(n)}, execution) for n, execution in enumerate(executions))
    batches = tuple(Batch(n, 0, n) for n in range(len(cells)))
    return Plan(
        "small", 1, {"cell": tuple(str(cell.number) for cell in cells)}, cells, batches, 1, {}
    ).freeze()


def _execute(plan: Plan, session: Session, tmp_path: Path) -> tuple[dict[str, int], list[dict[str, Any]]]:
    with Ledger(tmp_path / "ledger.sqlite", plan.id) as ledger:
        options = ExecutionOptions(placement=lambda count, _affinity: [None] * count)
        summary = execute(plan, session, ledger, options)
        return summary.statuses, [row.outcome for row in ledger.outcomes()]


def test_wrong_output_fails_the_run_and_keeps_its_values(session: Session, tmp_path: Path) -> None:
    wrong = Execution("bare", ("/bin/echo", "4"), expected_output="5")
    statuses, outcomes = _execute(_plan(wrong, Execution("bare", SPIN)), session, tmp_path)
    assert statuses == {"nonzero_exit": 1, "completed": 1}
    failed = next(outcome for outcome in outcomes if outcome["status"] == "nonzero_exit")
    assert failed["message"] == "wrong output: `4`; expected: `5`"
    assert failed["exit_code"] == 0
    assert failed["quantities"]["wall_ns"]["value"] > 0


def test_a_program_that_does_not_exist_fails_its_runs_alone(session: Session, tmp_path: Path) -> None:
    absent = Execution("bare", ("/no/such/program",), iterations=2)
    statuses, _ = _execute(_plan(absent, Execution("bare", SPIN)), session, tmp_path)
    assert statuses["completed"] == 1
    assert statuses["launcher_failed"] == 2


def test_a_study_whose_every_run_failed_is_an_error(session: Session, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="all 1 runs failed"):
        _execute(_plan(Execution("bare", ("/no/such/program",))), session, tmp_path)


def test_a_batch_with_neighbours_has_them_for_its_whole_length(session: Session, tmp_path: Path) -> None:
    beside = Execution("bare", SPIN, iterations=2, neighbours=Neighbours(NeighbourKind.CPU, 1))
    statuses, _ = _execute(_plan(beside), session, tmp_path)
    assert statuses == {"completed": 2}


def test_a_neighbour_that_dies_is_noticed(session: Session) -> None:
    with neighbours(session, NeighbourKind.CPU, [None]) as load:
        load.require_alive()
        os.killpg(load.processes[0].pid, signal.SIGKILL)
        load.processes[0].wait()
        with pytest.raises(RunError, match="1 of 1 neighbours"):
            load.require_alive()


def test_a_worker_that_dies_names_its_log(session: Session) -> None:
    with Worker(technology("bare"), Site(session, "bare", 0)) as worker:
        worker.start()
        assert worker._process is not None
        os.kill(worker._process.pid, signal.SIGKILL)
        with pytest.raises(RunError, match="ended by itself") as raised:
            worker.await_reply(5.0, "did not answer")
        assert str(worker.site.log) in (raised.value.hint or "")
