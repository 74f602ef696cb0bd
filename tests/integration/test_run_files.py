"""Files that runs read and leave: there while they run, kept when they are over, however they ended."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import DataError, RunError
from steelyard.model import Cell, Execution, Plan
from steelyard.model.plan import Batch
from steelyard.record.ledger import Ledger
from steelyard.record.trace_folder import TRACES_NAME, trace_files
from steelyard.run.executor.executor import execute
from steelyard.run.executor.run_files import RunFiles, files_name
from steelyard.run.executor.run_options import ExecutionOptions
from steelyard.run.isolation.registry import sweep_all
from steelyard.run.session import Session, open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATH = {"PATH": "/usr/bin:/bin"}
COPY = "cat {files}/asked > {files}/left; echo done"
FAIL = f"{COPY}; echo the other side was lost >&2; exit 3"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    with tempfile.TemporaryDirectory(prefix="sy-") as state:  # short: sockets lie below it
        monkeypatch.setenv("STEELYARD_STATE", state)
        with open_session(tmp_path / "logs", sweep_all) as opened:
            yield opened


def _shell(*scripts: str) -> Plan:
    cells = tuple(
        Cell(n, {}, Execution("bare", ("sh", "-c", script), environment=PATH, kept_error_bytes=100))
        for n, script in enumerate(scripts)
    )
    batches = tuple(Batch(n, 0, n) for n in range(len(cells)))
    return Plan("small", 1, {}, cells, batches, 1, {}).freeze()


def _ask(batch: Batch, folder: Path) -> None:
    (folder / "asked").write_text(f"batch {batch.number}")


def _options(tmp_path: Path, write_inputs: Callable[[Batch, Path], None] = _ask) -> ExecutionOptions:
    return ExecutionOptions(
        placement=lambda count, _affinity: [None] * count,
        files=RunFiles(tmp_path / TRACES_NAME, write_inputs),
    )


def test_a_run_reads_and_leaves_files_also_when_it_fails(session: Session, tmp_path: Path) -> None:
    plan = _shell(COPY, FAIL)
    with Ledger(tmp_path / "ledger.sqlite", plan.id) as ledger:
        summary = execute(plan, session, ledger, _options(tmp_path))
        messages = [row.outcome.message for row in ledger.outcomes()]
    assert summary.statuses == {"completed": 1, "nonzero_exit": 1}
    assert "the other side was lost" in messages[1]
    for number in (0, 1):
        kept = tmp_path / TRACES_NAME / files_name(number, 1)
        assert (kept / "left").read_text() == f"batch {number}"
    assert len(trace_files(tmp_path)) == 4
    assert not [path for path in session.shared.iterdir() if path.name.startswith("000")]


def test_a_batch_whose_files_cannot_be_kept_is_not_complete(session: Session, tmp_path: Path) -> None:
    (tmp_path / TRACES_NAME).write_text("in the way")
    plan = _shell(COPY)
    with Ledger(tmp_path / "ledger.sqlite", plan.id) as ledger:
        with pytest.raises(DataError, match="cannot keep the files of a run in"):
            execute(plan, session, ledger, _options(tmp_path))
        assert not ledger.completed_batches()
        (tmp_path / TRACES_NAME).unlink()
        execute(plan, session, ledger, _options(tmp_path))
        assert ledger.completed_batches() == {0}
    assert (tmp_path / TRACES_NAME / files_name(0, 2) / "left").read_text() == "batch 0"


def test_a_run_that_was_interrupted_keeps_what_it_left(session: Session, tmp_path: Path) -> None:
    def interrupt(_batch: Batch, folder: Path) -> None:
        (folder / "begun").write_text("so far")
        raise KeyboardInterrupt

    plan = _shell(COPY)
    with Ledger(tmp_path / "ledger.sqlite", plan.id) as ledger:
        with pytest.raises(KeyboardInterrupt):
            execute(plan, session, ledger, _options(tmp_path, interrupt))
        execute(plan, session, ledger, _options(tmp_path))
    assert (tmp_path / TRACES_NAME / files_name(0, 1) / "begun").read_text() == "so far"
    assert (tmp_path / TRACES_NAME / files_name(0, 2) / "left").read_text() == "batch 0"


def test_a_plan_with_files_needs_a_place_for_them(session: Session, tmp_path: Path) -> None:
    plan = _shell(COPY)
    options = ExecutionOptions(placement=lambda count, _affinity: [None] * count)
    with (
        Ledger(tmp_path / "ledger.sqlite", plan.id) as ledger,
        pytest.raises(RunError, match="no output folder is configured"),
    ):
        execute(plan, session, ledger, options)
