"""What does it cost to place runs on other hosts, and does it grow with cells and hosts?

A scripted engine plays a cluster: a part that is placed writes its journal at once, as a host would in time,
and nothing is measured. What is left is Steelyard's own work where it was asked: dealing, placing, reading
journals, the ledger. The time of each placed run, beside that of the same runs recorded directly, and the
time that a host takes to begin a part of the plan.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.design.blocks import draw_batches
from steelyard.model import Cell, Execution, Plan
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.model.run_outcome import RunOutcome, RunStatus
from steelyard.record.ledger import Ledger
from steelyard.record.placed.journal import JOURNAL_NAME, Journal
from steelyard.record.provenance import begin_provenance, write_provenance
from steelyard.run.hosts.engine import Pending
from steelyard.run.progress import Silent
from steelyard.studies.placed import driver
from steelyard.studies.placed.parts import read_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import Batch

SHORT = ((10, 100, 10, 4), (10, 256, 1, 256))
LONG = (
    (10, 100, 10, 4),
    (1000, 10, 10, 4),
    (1000, 64, 1, 1024),
    (10, 10_000, 1, 1024),
    (100_000, 2, 1, 16),
)
"""Cells, blocks, iterations, hosts."""


class Played:
    """Hosts that hand back everything at once.

    Parameters
    ----------
    plan : Plan
        What they run.
    hosts : int
        How many there are.
    """

    is_here = False
    names = ()

    def __init__(self, plan: Plan, hosts: int) -> None:
        self._plan, self.size, self.width = plan, hosts, hosts
        self.parts = 0
        self.played_s = 0.0

    def place(self, parts: Sequence[Path], _hosts: Sequence[str] = (), /) -> None:
        """Write the journals."""
        begin_s = time.process_time()
        self.parts += len(parts)
        provenance = begin_provenance(self._plan, ["bench"])
        for number, part in enumerate(parts):
            start = part / "starts/host.0"
            start.mkdir(parents=True)
            write_provenance(start, replace(provenance, host_id=f"host-{number % self.width}"))
            with Journal(start / JOURNAL_NAME) as journal:
                for batch in read_part(part).batches:
                    record(journal, self._plan, self._plan.batches[batch])
        self.played_s += time.process_time() - begin_s

    def pending(self) -> Pending:
        """Nothing runs any more."""
        return Pending(frozenset())

    def cancel(self) -> None:
        """Nothing runs."""


def record(sink: Journal | Ledger, plan: Plan, batch: Batch) -> None:
    """Keep what one batch gives."""
    attempt = sink.begin_attempt(batch.number)
    execution = plan.cell_of(batch).execution
    assert execution is not None
    for iteration in range(1, execution.iterations + 1):
        outcome = RunOutcome(id=f"b{batch.number}a{attempt}", iteration=iteration, status=RunStatus.COMPLETED)
        sink.record(batch.number, attempt, 0, outcome)
    sink.complete(batch.number, attempt)


def plan_of(cells: int, blocks: int, iterations: int) -> Plan:
    """Give a plan of many equal cells."""
    names = tuple(f"c{number}" for number in range(cells))
    execution = Execution("bare", ("true",), iterations=iterations)
    made = tuple(Cell(number, {"cell": name}, execution) for number, name in enumerate(names))
    batches = draw_batches(range(cells), blocks=blocks, seed=1)
    return Plan("stability", 1, {"cell": names}, made, batches, blocks, {}).freeze()


def measured(cells: int, blocks: int, iterations: int, hosts: int) -> str:
    """Give a line of the table."""
    plan = plan_of(cells, blocks, iterations)
    runs = len(plan.batches) * iterations
    with tempfile.TemporaryDirectory() as scratch:
        result = Path(scratch) / "r"
        result.mkdir()
        plan.write(result / PLAN_NAME)
        write_provenance(result, begin_provenance(plan, ["bench"]))
        engine = Played(plan, hosts)
        with Ledger(result / "ledger.sqlite", plan.id) as ledger:
            begin_s = time.process_time()
            driver.execute_placed(plan, result, ledger, engine, Silent())
            placed_s = time.process_time() - begin_s - engine.played_s
        with Ledger(Path(scratch) / "direct.sqlite", plan.id) as ledger:
            begin_s = time.process_time()
            for batch in plan.batches:
                record(ledger, plan, batch)
            direct_s = time.process_time() - begin_s
        begin_s = time.process_time()
        read_plan(result / PLAN_NAME)
        read_s = time.process_time() - begin_s
    each_ms, each_direct_ms = 1000 * placed_s / runs, 1000 * direct_s / runs
    return (
        f"{cells:>8}{hosts:>7}{engine.parts:>7}{runs:>9}{each_ms:>12.3f}{each_direct_ms:>13.3f}"
        f"{1000 * placed_s / engine.parts:>12.1f}{read_s:>13.2f}"
    )


def main() -> None:
    """Print a table of growth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=100_000, help="cells")
    parser.add_argument("--short", action="store_true", help="few runs, on four hosts and on many")
    options = parser.parse_args()
    driver.LOOK_S = driver.SETTLE_S = 0.0  # type: ignore[misc] # nothing becomes visible late here
    sys.stdout.write(
        f"{'cells':>8}{'hosts':>7}{'parts':>7}{'runs':>9}{'ms a run':>12}{'ms directly':>13}"
        f"{'ms a part':>12}{'s to begin':>13}\n"
    )
    for cells, blocks, iterations, hosts in SHORT if options.short else LONG:
        if cells <= options.largest:
            sys.stdout.write(measured(cells, blocks, iterations, hosts) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
