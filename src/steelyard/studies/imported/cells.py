"""What is said of one cell: how much was measured, where it lies, how it scatters, how the series runs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.analyse.intervals.describe import mean, quantile, quantile_of_sorted, standard_deviation
from steelyard.analyse.intervals.modality import has_several_modes_sorted
from steelyard.analyse.series.warm_up import WINDOW, SeriesClass, class_of_series, outliers_beside
from steelyard.model import Estimate, Evidence, Finding
from steelyard.studies.analysis_parts import MEASUREMENTS, finding, finite
from steelyard.studies.imported.location import location_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.studies.imported.samples import Sample

ONE_RUN: Final = "one run: the interval says nothing about other runs"
TOO_SHORT: Final = "too few to tell"
UNORDERED: Final = "order unknown"
"""In place of the class of a series whose values have no order, such as a histogram or sorted samples."""
LISTED_OUTLIERS: Final = 20
_MODES: Final = {True: "several", False: "one", None: TOO_SHORT}
_WORST_FIRST: Final = (
    SeriesClass.NO_STEADY_STATE,
    SeriesClass.SLOW_DOWN,
    SeriesClass.WARM_UP,
    SeriesClass.FLAT,
)


def cell_finding(sample: Sample, *, seed: int, margin: float) -> Finding:
    """Describe one metric of one cell.

    `margin` is the largest relative difference of levels of a series that does not matter.
    """
    values = sample.values
    centre, spread = mean(values), standard_deviation(values)
    # Sorted once for all that asks for ranks.
    ascending = _native.ascending(values)
    quartiles = quantile_of_sorted(ascending, 0.75) - quantile_of_sorted(ascending, 0.25)
    outliers = outliers_beside(values, ascending)
    has_modes = has_several_modes_sorted(ascending)
    median, smallest, largest = quantile_of_sorted(ascending, 0.5), float(ascending[0]), float(ascending[-1])
    del ascending
    verdict, counts = _shape(sample, margin)
    lag, size = _dependence(sample)
    count = int(values.size)
    warnings = [ONE_RUN] if sample.sizes.size == 1 and count > 1 else []
    if sample.failed:
        warnings.append(f"failed launches left out: {sample.failed}; they say how fast a program failed")
    return finding(
        "cell",
        sample.subject,
        verdict,
        estimates={
            "mean": location_of(sample, seed),
            "sd": Estimate(
                finite(spread), sample.unit, "standard deviation", measurements=count, guaranteed=False
            ),
            "cv": Estimate(
                finite(100 * spread / centre) if centre > 0 else None,
                "percent",
                "standard deviation over mean",
                measurements=count,
                guaranteed=False,
            ),
            "iqr": Estimate(
                quartiles, sample.unit, "range of the quartiles", measurements=count, guaranteed=False
            ),
        },
        facts={
            "n": count,
            "runs": sample.sizes.size,
            "blocks": np.unique(sample.blocks).size,
            "warm_up_values": sample.warm_ups,
            "median": median,
            "smallest": smallest,
            "largest": largest,
            "shapes": counts,
            "lag_1": finite(lag),
            "effective_size": finite(size),
            "modes": _MODES[has_modes],
            "outliers": len(outliers),
            "outlier_places": _places(sample, outliers),
        },
        evidence=Evidence(
            MEASUREMENTS,
            {"cell": str(sample.cell), "metric": sample.metric, "phase": "measure"},
            ("value",),
            "mean, spread and shape",
        ),
        warnings=warnings,
    )


def _series(sample: Sample) -> list[NDArray[np.float64]]:
    """Give the series that have an order: inside each run, or over runs of one value each."""
    if not sample.is_ordered:
        return []
    if (sample.sizes == 1).all():
        return [sample.values]
    return list(sample.runs)


def _shape(sample: Sample, margin: float) -> tuple[str, str]:
    """Give the worst class of a series, and how many series are of each."""
    long = [series for series in _series(sample) if series.size >= 2 * WINDOW]
    counts = Counter(class_of_series(series, margin=margin) for series in long)
    otherwise = TOO_SHORT if sample.is_ordered else UNORDERED
    worst = next((shape.value for shape in _WORST_FIRST if counts[shape]), otherwise)
    listed = ", ".join(f"{counts[shape]} {shape.value}" for shape in _WORST_FIRST if counts[shape])
    return worst, listed or otherwise


def _dependence(sample: Sample) -> tuple[float, float]:
    """Give the median autocorrelation of neighbours, and the sum of effective sizes."""
    long = [series for series in _series(sample) if series.size > 2]  # noqa: PLR2004 - no neighbours
    if not long:
        return float("nan"), float("nan")
    lags, sizes = zip(*(_native.dependence(series) for series in long), strict=True)
    return quantile(np.array(lags), 0.5), float(sum(sizes))


def _places(sample: Sample, outliers: tuple[int, ...]) -> str:
    """Name outliers by run and position, from 1; nothing is removed."""
    bounds = np.concatenate(([0], np.cumsum(sample.sizes)))
    shown = []
    for place in outliers[:LISTED_OUTLIERS]:
        run = int(np.searchsorted(bounds, place, side="right")) - 1
        shown.append(f"{run + 1}.{place - int(bounds[run]) + 1}")
    rest = len(outliers) - len(shown)
    return " ".join(shown) + (f" and {rest} more" if rest else "")
