"""Where the values of an imported cell lie: the mean with the interval that its structure allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.describe import mean
from steelyard.analyse.intervals.estimate import interval
from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finite
from steelyard.studies.imported.samples import level_of
from steelyard.units import is_amount

if TYPE_CHECKING:
    from steelyard.studies.imported.samples import Sample

LEVEL: Final = 0.95
RESAMPLES: Final = 2000


def location_of(sample: Sample, seed: int) -> Estimate:
    """Give the mean of a cell with its interval: that of `steelyard.interval`.

    Blocks (at least 5), else runs, are the independent units; with one run the values are a series.

    Parameters
    ----------
    sample : Sample
        At least one value.
    seed : int
        Seed of the resampling.

    Returns
    -------
    Estimate
        In the unit of the sample; without limits for fewer than 2 values, and for one run whose values have
        no order, so that nobody can tell how they depend on each other. That of an amount ends at zero where
        no value is below. Marked where the interval may miss its level, by the one rule of
        `steelyard.analyse.intervals.guarantee`.

    References
    ----------
    .. [1] Kalibera & Jones (2013): the unit is the highest random level.
    """
    values, level, is_one_run = sample.values, level_of(sample), sample.sizes.size == 1
    labels = sample.labels(level)
    count = int(np.unique(sample.blocks).size if level == "block" else sample.sizes.size)
    units = values.size if is_one_run else count
    if units < 2:  # noqa: PLR2004 - one value has no interval
        return Estimate(
            mean(values), sample.unit, "one value", units=1, measurements=values.size, guaranteed=False
        )
    if is_one_run and not sample.is_ordered:
        return Estimate(
            mean(values),
            sample.unit,
            "mean of one run, whose values have no order",
            units=1,
            measurements=int(values.size),
            guaranteed=False,
        )
    found = interval(
        values, clusters=None if is_one_run else labels, level=LEVEL, resamples=RESAMPLES, seed=seed
    )
    low = finite(found.low)
    if low is not None and is_amount(sample.unit) and values.min() >= 0:
        # The mean of such values is not negative either, so that the interval holds it as often as before.
        low = max(low, 0.0)
    return Estimate(
        value=found.estimate,
        unit=sample.unit,
        method=f"{found.method}, of iterations" if is_one_run else f"{found.method} ({level}s)",
        low=low,
        high=finite(found.high),
        level=None if low is None else LEVEL,
        units=count,
        measurements=int(values.size),
        guaranteed=found.guaranteed,
    )
