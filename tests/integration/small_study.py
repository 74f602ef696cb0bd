"""A small real study for fault tests: bare and sandboxed runs, every record announced on standard output.

Usage: small_study.py RESULT [--blocks N]
"""

import argparse
import sys
from pathlib import Path

from steelyard.design.blocks import draw_batches
from steelyard.model import Cell, Execution, Plan
from steelyard.model.plan import read_plan
from steelyard.record.ledger import LEDGER_NAME, Ledger
from steelyard.run.executor.executor import execute
from steelyard.run.executor.run_options import ExecutionOptions
from steelyard.run.isolation.registry import sweep_all
from steelyard.run.session import open_session

ITERATIONS = 3
WORKERS = (1, 2)
ISOLATIONS = ("bare", "sandbox")


def make_plan(blocks: int) -> Plan:
    cells = []
    for isolation in ISOLATIONS:
        for workers in WORKERS:
            execution = Execution(
                isolation,
                ("{work}", "spin", "--ms", "20"),
                workers=workers,
                iterations=ITERATIONS,
                environment={"PATH": "/usr/bin:/bin"},
            )
            levels = {"isolation": isolation, "setup_size": str(workers)}
            cells.append(Cell(len(cells), levels, execution))
    return Plan(
        study="small",
        seed=1,
        factors={"isolation": ISOLATIONS, "setup_size": tuple(map(str, WORKERS))},
        cells=tuple(cells),
        batches=draw_batches([cell.number for cell in cells], blocks=blocks, seed=1),
        blocks=blocks,
        options={},
    ).freeze()


class AnnouncingLedger(Ledger):
    def record(self, batch, attempt, worker, outcome):
        super().record(batch, attempt, worker, outcome)
        self._say("recorded", batch, attempt, worker, outcome.iteration, outcome.status)

    def complete(self, batch, attempt, expected=None):
        super().complete(batch, attempt, expected)
        self._say("completed", batch, attempt)

    def _say(self, *words):
        sys.stdout.write(" ".join(map(str, words)) + "\n")
        sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("result", type=Path)
    parser.add_argument("--blocks", type=int, default=3)
    arguments = parser.parse_args()
    result = arguments.result
    result.mkdir(exist_ok=True)
    path = result / "plan.json"
    plan = read_plan(path) if path.exists() else make_plan(arguments.blocks)
    plan.write(path)
    options = ExecutionOptions(placement=lambda count, _affinity: [None] * count)
    with (
        AnnouncingLedger(result / LEDGER_NAME, plan.id) as ledger,
        open_session(result / "logs", sweep_all) as session,
    ):
        execute(plan, session, ledger, options)


if __name__ == "__main__":
    main()
