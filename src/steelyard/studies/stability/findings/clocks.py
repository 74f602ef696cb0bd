"""The step of each clock, and where iterations are short against it."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.describe import quantile
from steelyard.analyse.intervals.granularity import detect_grid
from steelyard.analyse.mapping.over_cells import map_each
from steelyard.model import Estimate, Finding
from steelyard.studies.analysis_parts import finding, of_cells
from steelyard.studies.stability.findings.cells import CLOCKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.analyse.mapping.over_cells import OverCells
    from steelyard.studies.stability.findings.cells import Recorded

COARSE_SHARE: Final = 0.001
"""A clock is coarse if its step exceeds a thousandth of the median iteration, a twentieth of a 2 % margin."""

WARNING_SHARE: Final = 0.01
"""Cells whose median iteration is shorter than 100 steps are named."""

_MOST_NAMED: Final = 8


def clock_granularity(recorded: Recorded, over: OverCells) -> Iterator[Finding]:
    """Find the step of each clock of each isolation."""
    clocks = []
    for isolation, clock in product(recorded.isolations, CLOCKS):
        cells = [cell for key, cell in recorded.cells.items() if key.isolation == isolation]
        groups = {cell.key: cell.values(clock) for cell in cells}
        filled = {key: values for key, values in groups.items() if values.size}
        if filled:
            clocks.append((isolation, clock, cells, filled))
    values_of = [
        (f"the clock {clock} of {isolation}", list(filled.values())) for isolation, clock, _, filled in clocks
    ]
    grids = map_each(over, detect_grid, values_of)
    for (isolation, clock, cells, filled), grid in zip(clocks, grids, strict=True):
        median = quantile(np.concatenate(list(filled.values())), 0.5)
        share = grid.step_s / median
        medians = {key: quantile(values, 0.5) for key, values in filled.items()}
        short = [key for key, value in medians.items() if grid.step_s > WARNING_SHARE * value]
        names = ", ".join(f"{key.label} ({key.setup})" for key in short[:_MOST_NAMED])
        more = f" and {len(short) - _MOST_NAMED} more" if len(short) > _MOST_NAMED else ""
        yield finding(
            "clock_granularity",
            {"clock": clock, "isolation": isolation},
            "coarse" if share > COARSE_SHARE else "fine",
            estimates={
                "step": Estimate(
                    grid.step_s, "s", "phase-concentration", measurements=grid.values, units=len(filled)
                )
            },
            facts={
                "share_of_iteration_percent": 100 * share,
                "printing_step_s": grid.printing_step_s,
                "grid_found": grid.clock_step_s is not None,
                "on_grid_percent": None if grid.on_grid_share is None else 100 * grid.on_grid_share,
                "shortest_iteration_s": min(medians.values()),
            },
            evidence=of_cells((cell.number for cell in cells), (clock,), "step of the grid of all values"),
            warnings=[f"short-iterations: the clock's step is above 1 % of an iteration of {names}{more}"]
            if short
            else [],
        )
