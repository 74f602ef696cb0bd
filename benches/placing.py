"""What does it cost to place runs on other hosts, and does it grow with cells and hosts?

A scripted engine plays a cluster: a part that is placed writes its journal at once, or one batch between
two looks, as a host would in time, and nothing is measured. What is left is Steelyard's own work where it was
asked: dealing, placing, reading journals, the ledger. CPU time of each placed run, beside that of the same
runs recorded directly, the time that a host takes to read the plan, and the peak memory so far.

Hosts write and synchronise their journals in parallel; here one process plays all of them. So everything lies
in memory, and what the disk takes is not in the table: one synchronisation of the ledger a look.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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


class Row(NamedTuple):
    """A row of the table; `is_slow` hosts hand back one batch a look, the others everything at once."""

    cells: int
    blocks: int
    iterations: int
    hosts: int
    is_slow: bool = False


SHORT = (Row(10, 100, 10, 4), Row(10, 256, 1, 256), Row(10, 256, 1, 32, is_slow=True))
LONG = (
    Row(10, 100, 10, 4),
    Row(1000, 10, 10, 4),
    Row(1000, 64, 1, 1024),
    Row(10, 10_000, 1, 1024),
    Row(10, 2048, 1, 1024, is_slow=True),
    Row(100_000, 2, 1, 16),
)


class Played:
    """Hosts that hand back everything at once, or one batch a look.

    Parameters
    ----------
    plan : Plan
        What they run.
    hosts : int
        How many there are.
    is_slow : bool
        Whether each completes one batch between two looks.
    """

    is_here = False
    names = ()

    def __init__(self, plan: Plan, hosts: int, *, is_slow: bool) -> None:
        self._plan, self.size, self.width = plan, hosts, hosts
        self._provenance = begin_provenance(plan, ["bench"])
        self._most = 1 if is_slow else len(plan.batches)
        self._waiting: deque[Path] = deque()
        self._left: dict[str, tuple[Journal, deque[int]]] = {}
        self.parts = 0
        self.looks = 0
        self.played_s = 0.0

    def place(self, parts: Sequence[Path], _hosts: Sequence[str] = (), /) -> None:
        """Let them wait for a host."""
        self.parts += len(parts)
        self._waiting.extend(parts)

    def pending(self) -> Pending:
        """Let hosts go on, then say what is not over."""
        begin_s = time.process_time()
        self.looks += 1
        while self._waiting and len(self._left) < self.width:
            part = self._waiting.popleft()
            start = part / "starts/host.0"
            start.mkdir(parents=True)
            write_provenance(start, replace(self._provenance, host_id=f"host-{len(self._left)}"))
            self._left[part.name] = Journal(start / JOURNAL_NAME), deque(read_part(part).batches)
        for name, (journal, left) in tuple(self._left.items()):
            for _ in range(min(self._most, len(left))):
                record(journal, self._plan, self._plan.batches[left.popleft()])
            if not left:
                journal.__exit__(None, None, None)
                del self._left[name]
        names = frozenset((*self._left, *(part.name for part in self._waiting)))
        self.played_s += time.process_time() - begin_s
        return Pending(names)

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


def measured(row: Row, scratch_folder: Path) -> str:
    """Give a line of the table."""
    plan = plan_of(row.cells, row.blocks, row.iterations)
    runs = len(plan.batches) * row.iterations
    with tempfile.TemporaryDirectory(dir=scratch_folder) as scratch:
        result = Path(scratch) / "r"
        result.mkdir()
        plan.write(result / PLAN_NAME)
        write_provenance(result, begin_provenance(plan, ["bench"]))
        engine = Played(plan, row.hosts, is_slow=row.is_slow)
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
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return (
        f"{row.cells:>8}{row.hosts:>7}{engine.parts:>7}{runs:>9}{engine.looks:>7}{each_ms:>10.3f}{each_direct_ms:>13.3f}"
        f"{1000 * placed_s / engine.parts:>12.1f}{read_s:>11.2f}{peak_mib:>6}"
    )


def main() -> None:
    """Print a table of growth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=100_000, help="cells")
    parser.add_argument("--scratch", type=Path, default=Path("/dev/shm"), help="folder in memory")
    parser.add_argument("--short", action="store_true", help="few runs, on four hosts and on many")
    options = parser.parse_args()
    driver.LOOK_S = driver.SETTLE_S = 0.0  # type: ignore[misc] # nothing becomes visible late here
    sys.stdout.write(
        f"{'cells':>8}{'hosts':>7}{'parts':>7}{'runs':>9}{'looks':>7}{'ms a run':>10}{'ms directly':>13}"
        f"{'ms a part':>12}{'s to read':>11}{'MiB':>6}\n"
    )
    for row in SHORT if options.short else LONG:
        if row.cells <= options.largest:
            sys.stdout.write(measured(row, options.scratch) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
