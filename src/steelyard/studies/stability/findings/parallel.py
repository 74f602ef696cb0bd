"""Whether the workers of homogenous cells ran in parallel, and which iterations did not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.analyse.comparison.overlap import Stamps, overlapping, parallel_ratio
from steelyard.model import Estimate, Finding
from steelyard.studies.analysis_parts import finding, of_cells
from steelyard.studies.stability.findings.cells import HOMOGENOUS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from steelyard.studies.stability.findings.cells import CellData, Recorded


def batch_stamps(cell: CellData) -> Iterator[tuple[NDArray[np.int64], Stamps]]:
    """Give the rows and stamps of each batch of a cell that has stamps."""
    for batch in np.unique(cell.batch):
        rows = np.flatnonzero((cell.batch == batch) & np.isfinite(cell.start))
        if rows.size:
            yield rows, Stamps(cell.worker[rows], cell.iteration[rows], cell.start[rows], cell.end[rows])


def full_load(cell: CellData) -> NDArray[np.bool_]:
    """Mark the iterations that ran while all workers were running; all, where there are no stamps."""
    marked = np.ones(cell.iteration.size, dtype=np.bool_)
    if cell.key.setup_type == HOMOGENOUS:
        for rows, stamps in batch_stamps(cell):
            if np.isfinite(stamps.end).all():
                marked[rows] = overlapping(stamps)
    return marked


def parallel_ratios(recorded: Recorded) -> list[Finding]:
    """Give the parallel ratio of each homogenous cell, smallest first: the median of its batches."""
    found = []
    for key, cell in recorded.cells.items():
        if key.setup_type != HOMOGENOUS:
            continue
        ratios = [ratio for _, stamps in batch_stamps(cell) if (ratio := parallel_ratio(stamps)) is not None]
        if not ratios:
            continue
        found.append(
            finding(
                "parallel_ratio",
                key.subject(),
                "measured",
                estimates={
                    "ratio": Estimate(
                        float(np.median(ratios)),
                        "ratio",
                        "start-stamps, median of batches",
                        units=len(ratios),
                        measurements=int(np.isfinite(cell.start).sum()),
                    )
                },
                facts={"lowest": min(ratios), "highest": max(ratios), "batches": len(ratios)},
                evidence=of_cells(
                    [cell.number],
                    ("start-wall",),
                    "(min start of last - max start of first) / (max start - min start)",
                ),
            )
        )
    return sorted(found, key=lambda each: (each.estimates["ratio"].value or 0.0, each.id))


def overlaps(recorded: Recorded) -> Iterator[Finding]:
    """Count the iterations of each homogenous cell that ran under full load."""
    for key, cell in recorded.cells.items():
        if key.setup_type != HOMOGENOUS or not np.isfinite(cell.end).any():
            continue
        marked = full_load(cell)
        yield finding(
            "overlap",
            key.subject(),
            "counted",
            facts={
                "iterations": int(marked.size),
                "overlapping": int(marked.sum()),
                "not_overlapping": int((~marked).sum()),
            },
            evidence=of_cells(
                [cell.number], ("start-wall", "outside-wall", "wall"), "95 % of the iteration under full load"
            ),
        )
