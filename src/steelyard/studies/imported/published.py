"""What a tool published, computed again from its own raw values."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from scipy import special

from steelyard.analyse.intervals.describe import mean, quantile, standard_deviation
from steelyard.model import Estimate, Evidence, Finding
from steelyard.record.published import PUBLISHED_NAME
from steelyard.studies.analysis_parts import finding, finite

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from steelyard.studies.imported.samples import Sample

AGREEMENT: Final = 1e-9
"""Largest relative difference that is called agreement."""


def jmh_error(values: NDArray[np.float64]) -> float:
    """Give JMH's error of a score: half of the 99.9 % t interval of the mean of all iterations.

    Parameters
    ----------
    values : ndarray
        Shape (n,), n >= 2: the iterations of all forks.

    References
    ----------
    .. [1] JMH, `AbstractStatistics.getMeanErrorAt(0.999)`: t quantile of 1 - (1 - 0.999) / 2 with n - 1
       degrees of freedom, times s / sqrt(n).

    Examples
    --------
    >>> import numpy as np
    >>> round(jmh_error(np.array([1.0, 2.0, 3.0])) * 3**0.5, 3)  # t table: 2 degrees of freedom, 0.9995
    31.599
    """
    quantile_of_t = float(special.stdtrit(values.size - 1, 1 - (1 - 0.999) / 2))
    return quantile_of_t * standard_deviation(values) / math.sqrt(values.size)


RECOMPUTED: Final[dict[str, Callable[[NDArray[np.float64]], float]]] = {
    "score": mean,
    "scoreError": jmh_error,
    "mean": mean,
    "stddev": standard_deviation,
    "median": lambda values: quantile(values, 0.5),
    "min": lambda values: float(values.min()),
    "max": lambda values: float(values.max()),
    "cv": lambda values: standard_deviation(values) / mean(values),
}
"""How each published statistic follows from all raw values of its cell and file."""


def published_findings(
    rows: Mapping[int, dict[str, Any]], samples: Sequence[Sample], labels: Sequence[str]
) -> list[tuple[int, Finding]]:
    """Lay published numbers beside ours.

    Parameters
    ----------
    rows : mapping of int to dict
        Rows of the table of published numbers, by their place in it: all of some cells.
    samples : sequence of Sample
        What those cells measured.
    labels : sequence of str
        Names of the blocks.
    """
    by_place = {(sample.cell, sample.metric): sample for sample in samples}
    given = Counter(_key(row) for row in rows.values())
    found = []
    for place, row in rows.items():
        sample = by_place.get((row["cell"], row["metric"]))
        compute = RECOMPUTED.get(row["statistic"])
        # Two results of one name in one file: nobody can say which values belong to which.
        if sample is None or compute is None or given[_key(row)] > 1:
            continue
        values = sample.of_block(row["block"])
        if values.size:
            found.append((place, _finding(sample, row, values, labels[row["block"]])))
    return found


def _key(row: dict[str, object]) -> tuple[object, ...]:
    return row["cell"], row["block"], row["metric"], row["statistic"]


def _finding(sample: Sample, row: dict[str, object], values: NDArray[np.float64], file: str) -> Finding:
    statistic, theirs = str(row["statistic"]), float(str(row["value"]))
    ours = (
        RECOMPUTED[statistic](values)
        if values.size > 1 or statistic not in {"scoreError", "stddev"}
        else math.nan
    )
    scale = max(abs(theirs), abs(ours))
    difference = abs(ours - theirs) / scale if scale > 0 else 0.0
    unit = "ratio" if statistic == "cv" else sample.unit
    agrees = difference <= AGREEMENT
    return finding(
        "published_value",
        {**sample.subject, "statistic": statistic, "file": file},
        "agrees" if agrees else "NA" if math.isnan(ours) else "differs",
        estimates={
            "published": Estimate(theirs, unit, "as the tool printed it", guaranteed=False),
            "ours": Estimate(
                finite(ours),
                unit,
                f"{statistic} of the raw values",
                measurements=values.size,
                guaranteed=False,
            ),
        },
        facts={"printed": str(row["printed"]), "relative_difference": finite(difference)},
        evidence=Evidence(PUBLISHED_NAME, {"cell": str(sample.cell)}, ("value",), statistic),
    )
