"""The process that takes in what hosts recorded, killed at random instants again and again."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fixtures.outcomes import make_plan
from integration.study_process import completed, recorded
from steelyard.model.plan import PLAN_NAME
from steelyard.record.ledger_reader import LedgerReader
from steelyard.record.placed.journal import JOURNAL_NAME, JournalReader
from steelyard.record.provenance import begin_provenance, read_provenance, write_provenance
from steelyard.record.trace_folder import TRACES_NAME
from steelyard.run.executor.run_files import files_name

if TYPE_CHECKING:
    from pathlib import Path

CELLS, BLOCKS, HOSTS = 4, 12, 3
LONGEST_S = 100.0

# Hosts that record a part when it is placed, some of them not to its end; then nothing runs.
SUBMITTER = """
import sys, zlib
from dataclasses import replace
from pathlib import Path

from fixtures.outcomes import make_outcome
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.record.ledger import LEDGER_NAME, Ledger
from steelyard.record.placed.journal import JOURNAL_NAME, Journal
from steelyard.record.provenance import begin_provenance, write_provenance
from steelyard.record.trace_folder import TRACES_NAME
from steelyard.run.executor.run_files import files_name
from steelyard.run.hosts.engine import Pending
from steelyard.run.progress import Silent
from steelyard.studies.placed import driver
from steelyard.studies.placed.parts import read_part

result, hosts = Path(sys.argv[1]), int(sys.argv[2])
plan = read_plan(result / PLAN_NAME)


class Played:
    is_here = False
    size = width = hosts

    names = ()

    def place(self, parts, _names=()):
        for part in parts:
            host = f"h{zlib.crc32(part.name.encode()) % hosts}"
            start = part / "starts" / f"{host}.0"
            start.mkdir(parents=True)
            write_provenance(start, begin_provenance(plan, ["x"], host_id=host))
            batches = read_part(part).batches
            most = len(batches) - zlib.crc32(part.name.encode()) % 3
            with Journal(start / JOURNAL_NAME) as journal:
                for batch in batches[:most] or batches[:1]:
                    number = journal.begin_attempt(batch)
                    files = start / TRACES_NAME / files_name(batch, number)
                    files.mkdir(parents=True)
                    (files / "said.txt").write_text(f"{part.name} {batch}")
                    for iteration in (1, 2):
                        journal.record(batch, number, 0, make_outcome(iteration))
                    journal.complete(batch, number)
                if batches[most:]:
                    journal.record(batches[most], journal.begin_attempt(batches[most]), 0, make_outcome(1))

    def pending(self):
        return Pending(frozenset())

    def cancel(self):
        pass


driver.LOOK_S = driver.SETTLE_S = 0.0
print("ready", flush=True)
with Ledger(result / LEDGER_NAME, plan.id) as ledger:
    driver.execute_placed(plan, result, ledger, Played(), Silent())
"""


def begun(result: Path) -> subprocess.Popen[str]:
    """Start it up to where it takes in what is there."""
    command = [sys.executable, "-c", SUBMITTER, str(result), str(HOSTS)]
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=path)
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        pytest.fail(process.communicate()[1])
    return process


@pytest.mark.timing
@pytest.mark.long("starts and kills a process again and again")
@pytest.mark.parametrize("seed", range(2))
def test_a_submitter_killed_again_and_again_takes_each_batch_once(tmp_path: Path, seed: int) -> None:
    chance = np.random.default_rng(seed)
    plan = make_plan(CELLS, BLOCKS)
    plan.write(tmp_path / PLAN_NAME)
    write_provenance(tmp_path, begin_provenance(plan, ["x"], host_id="here"))
    kills, before = 0, set[tuple[int, int, int, int]]()
    deadline_s = time.monotonic() + LONGEST_S
    while True:
        assert time.monotonic() < deadline_s
        process = begun(tmp_path)
        # Longer and longer, so that it gets to its end on any machine.
        time.sleep(chance.uniform(0, 0.05 * (1 + kills)))
        process.kill()
        _, said = process.communicate()
        if process.returncode == 0:
            break
        assert process.returncode == -9, said
        kills += 1
        found = recorded(tmp_path) if (tmp_path / "ledger.sqlite").exists() and completed(tmp_path) else set()
        assert before <= found, "what was taken in is gone"
        before = found
    assert kills > 2
    attempts = completed(tmp_path)
    assert sorted(attempts) == [batch.number for batch in plan.batches]
    taken = attempts_taken(tmp_path)
    assert len(taken) == len(set(taken)), "an attempt is taken in twice"
    assert set(taken) == attempts_in_journals(tmp_path)
    with LedgerReader(tmp_path / "ledger.sqlite") as reader:
        hosts = reader.hosts()
    for batch, attempt in attempts.items():
        part, of_batch = (
            (tmp_path / TRACES_NAME / files_name(batch, attempt) / "said.txt").read_text().split()
        )
        assert int(of_batch) == batch
        (start,) = (tmp_path / "placed" / part / "starts").iterdir()
        assert hosts[batch, attempt] == read_provenance(start).host_id


def attempts_taken(result: Path) -> list[tuple[str, int, int]]:
    """Give the journal, the batch and the number there of each attempt in the ledger."""
    with closing(sqlite3.connect(result / "ledger.sqlite")) as connection:
        return connection.execute("SELECT journal, batch, number FROM placed").fetchall()


def attempts_in_journals(result: Path) -> set[tuple[str, int, int]]:
    """Give the same of what hosts recorded, complete or not."""
    found = set()
    for path in result.glob(f"placed/*/starts/*/{JOURNAL_NAME}"):
        reader, name = JournalReader(path), path.parent.relative_to(result / "placed").as_posix()
        found |= {(name, each.batch, each.number) for each in reader.completed()}
        if (rest := reader.rest()) is not None:
            found.add((name, rest.batch, rest.number))
    return found
