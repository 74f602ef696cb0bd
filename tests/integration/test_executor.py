"""Failures during a study: recorded, counted, and never in the way of the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from steelyard.errors import RunError
from steelyard.model import Cell, Execution, NeighbourKind, Neighbours, Plan
from steelyard.model.plan import Batch
from steelyard.model.run_outcome import RunOutcome, RunStatus
from steelyard.model.run_spec import RunSpec
from steelyard.record.ledger import Ledger
from steelyard.record.ledger_reader import LedgerReader
from steelyard.record.tables import read_attempts, read_runs, write_tables
from steelyard.run.cleanup import end_remains
from steelyard.run.executor.executor import execute
from steelyard.run.executor.neighbours import neighbours
from steelyard.run.executor.pool import WorkerPool
from steelyard.run.executor.run_options import MOST_LOST, ExecutionOptions
from steelyard.run.executor.worker import Worker
from steelyard.run.isolation.bare import Bare
from steelyard.run.isolation.registry import sweep_all, technology
from steelyard.run.machine.gate import Patience
from steelyard.run.machine.preparation import BatchGate, MachineRequest
from steelyard.run.session import Session, Site, open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from steelyard.model.run_outcome import RunOutcome

SPIN = ("{work}", "spin", "--ms", "1")


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    with tempfile.TemporaryDirectory(prefix="sy-") as state:  # short: sockets lie below it
        monkeypatch.setenv("STEELYARD_STATE", state)
        with open_session(tmp_path / "logs", sweep_all) as opened:
            yield opened


def _plan(*executions: Execution) -> Plan:
    cells = tuple(Cell(n, {"case": str(n)}, execution) for n, execution in enumerate(executions))
    batches = tuple(Batch(n, 0, n) for n in range(len(cells)))
    return Plan(
        "small", 1, {"case": tuple(str(cell.number) for cell in cells)}, cells, batches, 1, {}
    ).freeze()


def _execute(plan: Plan, session: Session, tmp_path: Path) -> tuple[dict[RunStatus, int], list[RunOutcome]]:
    with Ledger(tmp_path / "ledger.sqlite", plan.id) as ledger:
        options = ExecutionOptions(placement=lambda count, _affinity: [None] * count)
        summary = execute(plan, session, ledger, options)
        return summary.statuses, [row.outcome for row in ledger.outcomes()]


def test_wrong_output_fails_the_run_and_keeps_its_values(session: Session, tmp_path: Path) -> None:
    wrong = Execution("bare", ("/bin/echo", "4"), expected_output="5")
    statuses, outcomes = _execute(_plan(wrong, Execution("bare", SPIN)), session, tmp_path)
    assert statuses == {"nonzero_exit": 1, "completed": 1}
    failed = next(outcome for outcome in outcomes if outcome.status == "nonzero_exit")
    assert failed.message == "wrong output: `4`; expected: `5`"
    assert failed.exit_code == 0
    assert (failed.value("wall_ns") or 0) > 0


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


class _FilesOfEachRun(Bare):
    """Reads, as isolate's class does, a file that the next launch would write anew."""

    one_launch_per_request = True
    read: ClassVar[list[str]] = []

    def collect(self, outcome: RunOutcome, site: Site) -> RunOutcome:
        """Read what this run alone has written."""
        self.read.append(site.log.with_name("of-the-run").read_text(encoding="utf-8"))
        site.log.with_name("of-the-run").unlink()
        return super().collect(outcome, site)


def test_what_a_technology_reads_of_each_run_is_read_before_the_next(session: Session) -> None:
    with Worker(_FilesOfEachRun(), Site(session, "bare", 0)) as worker:
        worker.start()
        path = worker.site.log.with_name("of-the-run")
        spec = RunSpec(id="each", command=("/bin/sh", "-c", f"echo once >> {path}"), iterations=4)
        outcomes = worker.execute(spec, timeout_s=20.0)
    assert [(outcome.iteration, outcome.status) for outcome in outcomes] == [
        (number, RunStatus.COMPLETED) for number in range(spec.first_iteration, spec.first_iteration + 4)
    ]
    assert _FilesOfEachRun.read == ["once\n"] * 4


def test_a_program_does_not_survive_launcher_and_guard_that_are_killed_together(session: Session) -> None:
    with Worker(technology("bare"), Site(session, "bare", 0)) as worker:
        worker.start()
        spec = RunSpec(id="long", command=("/bin/sleep", "3571.25"), environment={"PATH": "/usr/bin:/bin"})
        worker.send({"request": "prepare", "spec": worker.technology.inside(spec, worker.site).document()})
        assert worker.await_reply(20.0, "did not answer")["reply"] == "ready"
        worker.send({"request": "go"})
        wait_until(lambda: len(_sleepers()) == 1)
        end_remains(session.folder)
        wait_until(lambda: not _sleepers())


def _sleepers() -> list[str]:
    found = subprocess.run(
        ["pgrep", "--full", "^/bin/sleep 3571.25$"], capture_output=True, text=True, check=False
    )
    return found.stdout.split()


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_disturbed_batch_is_repeated_and_what_was_disturbed_stays(session: Session, tmp_path: Path) -> None:
    plan = _plan(Execution("bare", SPIN, iterations=2), Execution("bare", SPIN, iterations=2))
    plan.write(tmp_path / "plan.json")
    noise = ("other processes used 40% of the CPU time: make (7)",)
    # Batch 0: disturbed, then quiet. Batch 1: disturbed as often as it may be repeated, and once more.
    script = [noise, (), noise, noise, noise]
    asked: list[int] = []
    options = ExecutionOptions(
        placement=lambda count, _affinity: [None] * count,
        gate=asked.append,
        disturbances=lambda: script.pop(0),
        retries=2,
    )
    with Ledger(tmp_path / "ledger.sqlite", plan.id) as ledger:
        summary = execute(plan, session, ledger, options)
    assert script == []
    assert asked == [0, 0, 1, 1, 1], "the gate looks before every attempt"
    assert summary.statuses == {"completed": 4}, "only what counts is counted"
    write_tables(tmp_path)
    runs, attempts = read_runs(tmp_path).to_pylist(), read_attempts(tmp_path).to_pylist()
    assert [(row["batch"], row["attempt"], "disturbed_batch" in row["flags"]) for row in runs] == [
        (0, 2, False),
        (0, 2, False),
        (1, 3, True),
        (1, 3, True),
    ]
    assert {(row["batch"], row["attempt"], row["attempt_state"]) for row in attempts} == {
        (0, 1, "disturbed"),
        (1, 1, "disturbed"),
        (1, 2, "disturbed"),
    }
    assert len(attempts) == 6
    assert all(row["wall_ns"] > 0 for row in attempts), "nothing measured is thrown away"
    with LedgerReader(tmp_path / "ledger.sqlite") as reader:
        assert set(reader.disturbances()) == {(0, 1), (1, 1), (1, 2), (1, 3)}
        assert reader.disturbances()[0, 1] == noise


def test_without_retries_a_disturbed_batch_counts_and_is_labelled(session: Session, tmp_path: Path) -> None:
    plan = _plan(Execution("bare", SPIN))
    options = ExecutionOptions(
        placement=lambda count, _affinity: [None] * count, disturbances=lambda: ("500 pages were swapped",)
    )
    with Ledger(tmp_path / "ledger.sqlite", plan.id) as ledger:
        assert execute(plan, session, ledger, options).statuses == {"completed": 1}
        assert ledger.completed_batches() == {0}
    with LedgerReader(tmp_path / "ledger.sqlite") as reader:
        assert reader.disturbances() == {(0, 1): ("500 pages were swapped",)}


def test_a_batch_that_failed_is_not_repeated_for_noise(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = _plan(Execution("bare", SPIN), Execution("bare", SPIN))
    take = WorkerPool.take
    calls: list[int] = []

    def failing_first(*words: Any) -> list[Worker]:
        calls.append(1)
        if len(calls) == 1:
            message = "the worker did not come up"
            raise RunError(message)
        return take(*words)

    monkeypatch.setattr(WorkerPool, "take", failing_first)
    script = [("noise",), ()]
    options = ExecutionOptions(
        placement=lambda count, _affinity: [None] * count, disturbances=lambda: script.pop(0), retries=2
    )
    with Ledger(tmp_path / "ledger.sqlite", plan.id) as ledger:
        assert execute(plan, session, ledger, options).statuses == {"launcher_failed": 1, "completed": 1}
    with LedgerReader(tmp_path / "ledger.sqlite") as reader:
        assert reader.completed_attempts() == {0: 1, 1: 1}


def test_a_batch_is_repeated_where_a_host_was_lost_and_not_where_the_run_failed(
    session: Session, tmp_path: Path
) -> None:
    plan = _plan(
        Execution("bare", ("/bin/false",)), Execution("bare", ("/bin/false",)), Execution("bare", SPIN)
    )
    told = iter(("node n2 was lost: no answer", ""))
    asked: list[tuple[int, str | None, int | None]] = []

    def lost_host(cell: Cell, failed: Sequence[RunOutcome]) -> str:
        asked.extend((cell.number, each.status, each.exit_code) for each in failed)
        return next(told) if cell.number == 0 else ""

    options = ExecutionOptions(placement=lambda count, _affinity: [None] * count, lost_host=lost_host)
    with Ledger(tmp_path / "ledger.sqlite", plan.id) as ledger:
        summary = execute(plan, session, ledger, options)
    assert summary.statuses == {"nonzero_exit": 2, "completed": 1}
    assert asked == [(number, "nonzero_exit", 1) for number in (0, 0, 1)], "a run that succeeds is none of it"
    with LedgerReader(tmp_path / "ledger.sqlite") as reader:
        assert reader.completed_attempts() == {0: 2, 1: 1, 2: 1}
        assert reader.disturbances() == {(0, 1): ("node n2 was lost: no answer",)}


def test_a_host_that_is_always_lost_ends_no_study(session: Session, tmp_path: Path) -> None:
    plan = _plan(Execution("bare", ("/bin/false",)), Execution("bare", SPIN))
    options = ExecutionOptions(
        placement=lambda count, _affinity: [None] * count, lost_host=lambda _cell, _failed: "lost"
    )
    with Ledger(tmp_path / "ledger.sqlite", plan.id) as ledger:
        assert execute(plan, session, ledger, options).statuses == {"nonzero_exit": 1, "completed": 1}
    with LedgerReader(tmp_path / "ledger.sqlite") as reader:
        assert reader.completed_attempts() == {0: MOST_LOST, 1: 1}


def test_a_real_load_during_a_batch_is_noticed_by_the_gate_of_a_study(
    session: Session, tmp_path: Path
) -> None:
    plan = _plan(Execution("bare", ("{work}", "spin", "--ms", "50"), iterations=8))
    gate = BatchGate(MachineRequest(patience=Patience(window_s=0.05, pause_s=0.01, bound_s=0.05)))
    # Started by a process that ends, so that it is no part of our own tree.
    load = (
        "import os, time\nchild = os.fork()\nprint(child or '', flush=True)\n"
        "if child == 0:\n    end = time.monotonic() + 30\n    while time.monotonic() < end: pass\n"
    )
    with (tmp_path / "child").open("w+", encoding="utf-8") as said:
        subprocess.run([sys.executable, "-c", load], check=True, stdout=said)
        said.seek(0)
        child = int(said.read())
    options = ExecutionOptions(
        placement=lambda count, _affinity: [None] * count, gate=gate, disturbances=gate.close, retries=1
    )
    try:
        with Ledger(tmp_path / "ledger.sqlite", plan.id) as ledger:
            execute(plan, session, ledger, options)
    finally:
        os.kill(child, signal.SIGKILL)
    with LedgerReader(tmp_path / "ledger.sqlite") as reader:
        assert set(reader.disturbances()) == {(0, 1), (0, 2)}
        assert any("other processes used" in reason for reason in reader.disturbances()[0, 1])
    moments = [(record["batch"], record["moment"]) for record in gate.records()]
    assert moments == [(0, "before"), (0, "after")] * 2
