"""Whether times depend on the input, and which counters go with them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.clustering import Units, intraclass_share
from steelyard.analyse.intervals.describe import mean, standard_deviation
from steelyard.analyse.linear.correlation import Correlation, pearson, spearman
from steelyard.model import Estimate, Finding
from steelyard.studies.analysis_parts import finding, finite, of_cells
from steelyard.studies.stability.findings.cells import NO_AFFINITY, SINGLE, UNSTATED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from steelyard.studies.analysis_options import AnalysisOptions
    from steelyard.studies.stability.findings.cells import CellData, Recorded

_MISSES: Final = "-misses"


def input_dependence(recorded: Recorded, options: AnalysisOptions) -> Iterator[Finding]:
    """Compare the means over the inputs of a workload in the first isolation that has several."""
    found: dict[str, dict[str, list[CellData]]] = defaultdict(lambda: defaultdict(list))
    for key, cell in recorded.cells.items():
        alone = (key.setup_type, key.setup_size) == SINGLE and key.affinity == NO_AFFINITY
        if alone and key.input != UNSTATED and cell.values().size:
            found[key.workload][key.isolation].append(cell)
    for workload, by_isolation in found.items():
        ordered = sorted(by_isolation.items(), key=lambda entry: recorded.isolations.index(entry[0]))
        several = [(isolation, cells) for isolation, cells in ordered if len(cells) > 1]
        if several:
            yield _inputs(workload, *several[0], options)
            for cell in several[0][1]:
                yield _one_input(cell)


def _inputs(workload: str, isolation: str, cells: list[CellData], options: AnalysisOptions) -> Finding:
    means = np.array([mean(cell.values()) for cell in cells])
    spreads = np.array([standard_deviation(cell.values()) for cell in cells])
    widest = float(means.max() / means.min() - 1)
    share = intraclass_share(Units("input", tuple(cell.values() for cell in cells)))
    typical_spread = float(np.nanmedian(spreads / means)) if np.isfinite(spreads).any() else float("nan")
    depends = widest > options.margin_percent / 100
    return finding(
        "input_dependence",
        {"workload": workload},
        "depends on the input" if depends else "no relevant dependence on the input",
        estimates={
            "widest": Estimate(
                widest * 100, "percent", "largest over smallest mean of an input, less 1", units=len(cells)
            )
        },
        facts={
            "inputs": len(cells),
            "isolation": isolation,
            "smallest_mean_s": float(means.min()),
            "largest_mean_s": float(means.max()),
            "between_inputs_share": share,
            "sd_between_inputs_percent": finite(100 * standard_deviation(means) / mean(means)),
            "sd_within_input_percent": finite(100 * typical_spread),
        },
        evidence=of_cells((cell.number for cell in cells), ("cpu",), "mean and sd of each input"),
    )


def _one_input(cell: CellData) -> Finding:
    values = cell.values()
    spread = finite(standard_deviation(values))
    count = int(values.size)
    return finding(
        "input_statistics",
        {"workload": cell.key.workload, "input": cell.key.input, "isolation": cell.key.isolation},
        "measured",
        estimates={
            "mean": Estimate(mean(values), "s", "mean", measurements=count, guaranteed=False),
            "sd": Estimate(spread, "s", "standard deviation", measurements=count, guaranteed=False),
        },
        evidence=of_cells([cell.number], ("cpu",), "mean and sd"),
    )


def counter_correlations(recorded: Recorded) -> Iterator[Finding]:
    """Correlate counters, and miss ratios, with cpu time, over all runs of a workload that were counted."""
    by_workload: dict[str, list[CellData]] = defaultdict(list)
    for cell in recorded.counted:
        by_workload[cell.key.label].append(cell)
    for workload, cells in by_workload.items():
        numbers = [cell.number for cell in cells]
        for name, counts in _counters(cells).items():
            times = np.concatenate([cell.clocks["cpu"] for cell in cells])
            kept = np.isfinite(counts) & np.isfinite(times)
            linear, ranked = pearson(counts[kept], times[kept]), spearman(counts[kept], times[kept])
            if finite(linear.value) is None:
                continue
            yield finding(
                "counter_correlation",
                {"counter": name, "workload": workload},
                "measured",
                estimates={
                    "pearson": _estimate(linear, "pearson"),
                    "spearman": _estimate(ranked, "spearman"),
                },
                facts={"mean_count": mean(counts[kept]), "runs": int(kept.sum())},
                evidence=of_cells(numbers, (f"counter:{name}", "cpu"), "Pearson and Spearman correlation"),
            )


def _counters(cells: list[CellData]) -> dict[str, NDArray[np.float64]]:
    """Give each counter, and the miss ratio of each that has misses, over all iterations."""
    names = sorted({name for cell in cells for name in cell.counters})
    found = {
        name: np.concatenate(
            [cell.counters.get(name, np.full(cell.iteration.size, np.nan)) for cell in cells]
        )
        for name in names
    }
    for name in names:
        base = next(
            (
                each
                for each in (name.removesuffix(_MISSES), f"{name.removesuffix(_MISSES)}s")
                if each in found
            ),
            None,
        )
        if name.endswith(_MISSES) and base is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                found[f"{name} / {base}"] = found[name] / found[base]
    return found


def _estimate(found: Correlation, method: str) -> Estimate:
    low = finite(found.low)
    return Estimate(
        finite(found.value),
        "correlation",
        method,
        low,
        finite(found.high),
        None if low is None else 0.95,
        found.pairs,
        found.pairs,
        guaranteed=False,
    )
