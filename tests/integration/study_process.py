"""A short study through the command line, as a process that can be stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.errors import DataError
from steelyard.model.plan import read_plan
from steelyard.record.ledger_reader import LedgerReader
from steelyard.record.tables import read_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COMMAND = (sys.executable, "-c", "from steelyard.cli import main; main()")
LONGEST_S = 120
STUDY_FILE = """
study = "stability"
quick = true
blocks = {blocks}
iterations = {iterations}
isolation = ["bare"]
workers = [1]
setups = ["single"]
workloads = ["exp/exp_float"]
"""


def write_study_file(folder: Path, blocks: int = 8, iterations: int = 10) -> Path:
    path = folder / "study.toml"
    path.write_text(STUDY_FILE.format(blocks=blocks, iterations=iterations), encoding="utf-8")
    return path


@contextmanager
def environment() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="sy-") as state:  # short: sockets lie below it
        yield {**os.environ, "STEELYARD_STATE": state}
        assert list(Path(state).iterdir()) == [], "private folders were left behind"


def execute(words: Sequence[object], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False, env=env)


def start(words: Sequence[object], env: dict[str, str]) -> subprocess.Popen[str]:
    command = [*COMMAND, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


@contextmanager
def started(words: Sequence[object], env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Start a study that goes on no longer than its test."""
    process = start(words, env)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def completed(result: Path) -> dict[int, int]:
    """Give the complete attempts, none where there is no ledger yet."""
    try:
        with LedgerReader(result / "ledger.sqlite") as reader:
            return reader.completed_attempts()
    except DataError:
        return {}


def wait_for_batches(process: subprocess.Popen[str], result: Path, count: int) -> None:
    deadline = time.monotonic() + LONGEST_S
    while len(completed(result)) < count:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, "the study does not advance"
        time.sleep(0.02)


def recorded(result: Path) -> set[tuple[int, int, int, int]]:
    with LedgerReader(result / "ledger.sqlite") as reader:
        found = [(row.batch, row.attempt, row.worker, row.iteration) for row in reader.outcomes()]
    assert len(found) == len(set(found)), "a run is recorded twice"
    return set(found)


def check_whole(result: Path) -> None:
    """Check that a result has every run of its plan exactly once, each completed."""
    plan = read_plan(result / "plan.json")
    runs = read_runs(result)
    assert sorted(completed(result)) == [batch.number for batch in plan.batches]
    found = Counter(zip(*(runs[name].to_pylist() for name in ("batch", "worker", "iteration")), strict=True))
    expected = {
        (batch.number, worker, iteration)
        for batch in plan.batches
        if (execution := plan.cell_of(batch).execution) is not None
        for worker in range(execution.workers)
        for iteration in range(1, execution.iterations + 1)
    }
    assert set(found) == expected
    assert set(found.values()) == {1}
    assert set(runs["status"].to_pylist()) == {"completed"}
    assert (result / "report.html").exists()
