"""Shape of each worker's series of iterations, and workers against each other."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.comparison.multiplicity import benjamini_hochberg
from steelyard.analyse.comparison.worker_agreement import PairDifference, compare_workers
from steelyard.analyse.intervals.describe import quantile
from steelyard.analyse.mapping.over_cells import map_each
from steelyard.analyse.series.warm_up import SeriesClass, SeriesShape, classify_series
from steelyard.studies.analysis_parts import finding, finite, of_cells
from steelyard.studies.stability.findings.cells import UNSTATED
from steelyard.studies.stability.findings.parallel import full_load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analyse.mapping.over_cells import OverCells
    from steelyard.model import Finding
    from steelyard.studies.analysis_options import AnalysisOptions
    from steelyard.studies.stability.findings.cells import CellData, Recorded

METRIC: Final = "cpu"
_SHORTEST: Final = 2
_MOST_NAMED: Final = 20


def warm_ups(recorded: Recorded, options: AnalysisOptions, over: OverCells) -> Iterator[Finding]:
    """Classify the series of each cell: what at least half of its series show, else no steady state."""
    # A file that names no setup does not state the order of measuring either.
    cells = [each for each in recorded.named() if each[1].key.setup_type != UNSTATED]
    shapes_of = map_each(over, partial(_shapes, margin=options.margin_percent / 100), cells)
    for (_, cell), shapes in zip(cells, shapes_of, strict=True):
        if not shapes:
            continue
        counts = Counter(shape.shape for _, shape in shapes)
        common, number = max(counts.items(), key=lambda entry: (entry[1], entry[0] is SeriesClass.FLAT))
        verdict = common if 2 * number >= len(shapes) else SeriesClass.NO_STEADY_STATE
        changes = [shape.changes[0] + 1 for _, shape in shapes if shape.changes and shape.shape is verdict]
        ratios = [shape.window_sd_ratio for _, shape in shapes if finite(shape.window_sd_ratio) is not None]
        yield finding(
            "warm_up",
            cell.key.subject(),
            verdict.value,
            facts={
                "first_value_s": quantile(np.array([shape.first for _, shape in shapes]), 0.5),
                "median_s": quantile(cell.values(METRIC), 0.5),
                "window_sd_ratio": quantile(np.array(ratios), 0.5) if ratios else None,
                "outliers": sum(len(shape.outliers) for _, shape in shapes),
                "outlier_iterations": _outlier_text(shapes),
                "change_point": round(float(np.median(changes)))
                if changes and verdict is not SeriesClass.FLAT
                else None,
                "series": len(shapes),
                **{each.name.lower(): counts[each] for each in SeriesClass},
                "lag_1": quantile(np.array([shape.lag_1 for _, shape in shapes]), 0.5),
                "effective_size": quantile(np.array([shape.effective_size for _, shape in shapes]), 0.5),
            },
            evidence=of_cells([cell.number], (METRIC,), "change points of each worker's series"),
        )


def _shapes(cell: CellData, *, margin: float) -> list[tuple[str, SeriesShape]]:
    """Classify each worker of each batch, cut to the time in which all workers were running."""
    loaded = full_load(cell)
    found = []
    for name, rows in cell.series(METRIC):
        kept = rows[loaded[rows]]
        used = kept if kept.size >= _SHORTEST else rows
        if used.size >= _SHORTEST:
            values = cell.clocks[METRIC][used]
            found.append((name, classify_series(values, margin=margin)))
    return found


def _outlier_text(shapes: Sequence[tuple[str, SeriesShape]]) -> str | None:
    """Name the iterations of outliers, counted from 1; with the worker where there are several series."""
    parts = []
    for name, shape in shapes:
        if shape.outliers:
            numbers = ", ".join(str(index + 1) for index in shape.outliers[:_MOST_NAMED])
            more = " ..." if len(shape.outliers) > _MOST_NAMED else ""
            parts.append(f"{numbers}{more}" if len(shapes) == 1 else f"{name}: {numbers}{more}")
    return "; ".join(parts) or None


def worker_differences(recorded: Recorded, options: AnalysisOptions, over: OverCells) -> Iterator[Finding]:
    """Compare the workers of each batch with each other; p-values are corrected over all pairs."""
    found = map_each(over, _pairs_of_workers, recorded.named())
    compared = [(cell, pairs) for cell, pairs in zip(recorded.cells.values(), found, strict=True) if pairs]
    adjusted = iter(benjamini_hochberg([pair.p_value for _, pairs in compared for pair in pairs]))
    margin = options.margin_percent / 100
    for cell, pairs in compared:
        verdicts = [(next(adjusted) < 0.05, pair.median_ratio - 1) for pair in pairs]  # noqa: PLR2004 - 5 %
        different = [ratio for differs, ratio in verdicts if differs]
        relevant = sum(ratio > margin for ratio in different)
        yield finding(
            "worker_difference",
            cell.key.subject(),
            "workers differ" if relevant else "no relevant difference",
            facts={
                "pairs": len(pairs),
                "different": len(different),
                "relevant": relevant,
                "largest_difference_percent": 100 * max(ratio for _, ratio in verdicts),
            },
            evidence=of_cells([cell.number], (METRIC,), "Kolmogorov-Smirnov and medians of pairs of workers"),
        )


def _pairs_of_workers(cell: CellData) -> list[PairDifference]:
    return [
        pair for batch in np.unique(cell.batch) for pair in compare_workers(_workers_of(cell, int(batch)))
    ]


def _workers_of(cell: CellData, batch: int) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    values = cell.clocks[METRIC]
    inside = (cell.batch == batch) & np.isfinite(values)
    return [values[inside & (cell.worker == worker)] for worker in np.unique(cell.worker[inside])]
