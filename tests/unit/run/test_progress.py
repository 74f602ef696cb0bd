"""How the time left is foreseen, and what that takes with many cells."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import pytest

from steelyard.model import Batch, Cell, Execution, Plan
from steelyard.run.progress import Estimator

if TYPE_CHECKING:
    from collections.abc import Sequence

CELLS = 500


@pytest.fixture
def plan() -> Plan:
    """A plan of equal cells, of which every second one runs in the sandbox."""
    executions = [Execution(name, ("true",)) for name in ("bare", "sandbox")]
    cells = tuple(Cell(number, {"cell": str(number)}, executions[number % 2]) for number in range(CELLS))
    batches = tuple(Batch(number, 0, number) for number in range(CELLS))
    return Plan("stability", 1, {}, cells, batches, 1, {}).freeze()


def test_a_batch_takes_as_long_as_those_of_its_cell_then_of_its_isolation_then_as_all(plan: Plan) -> None:
    estimator = Estimator(plan)
    assert estimator.left_s(plan.batches) is None
    for seconds in (1.0, 2.0, 9.0):
        estimator.add(plan.cells[0], seconds)
    estimator.add(plan.cells[2], 4.0)
    # Cell 0: the median of its own. Cell 4: that of `bare`. Cell 1: that of all, for `sandbox` never ran.
    assert estimator.left_s([plan.batches[cell] for cell in (0, 4, 1)]) == pytest.approx(2.0 + 3.0 + 3.0)


def test_cells_that_are_left_out_take_no_time(plan: Plan) -> None:
    estimator = Estimator(plan)
    estimator.add(plan.cells[0], 2.0)
    assert estimator.left_s(plan.batches[:4], 1, {2}) == pytest.approx(2 * 2.0)


def test_many_cells_that_were_not_run_yet_share_one_median(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[int] = []

    def counted(data: Sequence[float]) -> float:
        computed.append(len(data))
        return sorted(data)[len(data) // 2]

    monkeypatch.setattr(statistics, "median", counted)
    estimator = Estimator(plan)
    for cell in plan.cells[:10]:
        estimator.add(cell, 1.0)
    estimator.left_s(plan.batches, 10)
    assert len(computed) <= 2
