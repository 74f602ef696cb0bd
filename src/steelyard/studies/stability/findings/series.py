"""Shape of each worker's series of iterations, and workers against each other."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.comparison.multiplicity import benjamini_hochberg
from steelyard.analyse.comparison.worker_agreement import PairDifference, compare_workers
from steelyard.analyse.intervals.describe import quantile
from steelyard.analyse.series.warm_up import SeriesClass, SeriesShape, classify_series
from steelyard.studies.analysis_parts import finding, finite, of_cells
from steelyard.studies.stability.findings.cells import UNSTATED
from steelyard.studies.stability.findings.parallel import full_load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.model import Finding
    from steelyard.studies.analysis_options import AnalysisOptions
    from steelyard.studies.stability.findings.cells import CellData, CellKey, Recorded

METRIC: Final = "cpu"
_SHORTEST: Final = 2
_MOST_NAMED: Final = 20


def warm_ups(recorded: Recorded, options: AnalysisOptions) -> Iterator[Finding]:
    """Classify the series of each cell: what at least half of its series show, else no steady state."""
    for key, cell in recorded.cells.items():
        if key.setup_type == UNSTATED:
            continue  # a file that names no setup does not state the order of measuring either
        shapes = _shapes(cell, options)
        if not shapes:
            continue
        counts = Counter(shape.shape for _, shape in shapes)
        common, number = max(counts.items(), key=lambda entry: (entry[1], entry[0] is SeriesClass.FLAT))
        verdict = common if 2 * number >= len(shapes) else SeriesClass.NO_STEADY_STATE
        changes = [shape.changes[0] + 1 for _, shape in shapes if shape.changes and shape.shape is verdict]
        ratios = [shape.window_sd_ratio for _, shape in shapes if finite(shape.window_sd_ratio) is not None]
        yield finding(
            "warm_up",
            key.subject(),
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


def _shapes(cell: CellData, options: AnalysisOptions) -> list[tuple[str, SeriesShape]]:
    """Classify each worker of each batch, cut to the time in which all workers were running."""
    loaded = full_load(cell)
    found = []
    for name, rows in cell.series(METRIC):
        kept = rows[loaded[rows]]
        used = kept if kept.size >= _SHORTEST else rows
        if used.size >= _SHORTEST:
            values = cell.clocks[METRIC][used]
            found.append((name, classify_series(values, margin=options.margin_percent / 100)))
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


def worker_differences(recorded: Recorded, options: AnalysisOptions) -> Iterator[Finding]:
    """Compare the workers of each batch with each other; p-values are corrected over all pairs."""
    compared: list[tuple[CellKey, CellData, list[PairDifference]]] = []
    for key, cell in recorded.cells.items():
        pairs = [
            pair for batch in np.unique(cell.batch) for pair in compare_workers(_workers_of(cell, int(batch)))
        ]
        if pairs:
            compared.append((key, cell, pairs))
    adjusted = iter(benjamini_hochberg([pair.p_value for _, _, pairs in compared for pair in pairs]))
    margin = options.margin_percent / 100
    for key, cell, pairs in compared:
        verdicts = [(next(adjusted) < 0.05, pair.median_ratio - 1) for pair in pairs]  # noqa: PLR2004 - 5 %
        different = [ratio for differs, ratio in verdicts if differs]
        relevant = sum(ratio > margin for ratio in different)
        yield finding(
            "worker_difference",
            key.subject(),
            "workers differ" if relevant else "no relevant difference",
            facts={
                "pairs": len(pairs),
                "different": len(different),
                "relevant": relevant,
                "largest_difference_percent": 100 * max(ratio for _, ratio in verdicts),
            },
            evidence=of_cells([cell.number], (METRIC,), "Kolmogorov-Smirnov and medians of pairs of workers"),
        )


def _workers_of(cell: CellData, batch: int) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    values = cell.clocks[METRIC]
    inside = (cell.batch == batch) & np.isfinite(values)
    return [values[inside & (cell.worker == worker)] for worker in np.unique(cell.worker[inside])]
