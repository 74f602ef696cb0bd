"""What the cells of imported files measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.agreement import CellValues
from steelyard.analyse.series.result_series import NOT_OBSERVED, TIMES
from steelyard.studies.imported.samples import read_samples
from steelyard.units import is_rate, per_second

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.model import Plan

_BYTES: Final = "bytes"


def cell_values(result: Path, plan: Plan) -> Iterator[CellValues]:
    """Give what each cell of imported files measured; launches of one file are independent of each other.

    Rates are in seconds: a tool may be asked for operations per second today, and per millisecond tomorrow.
    """
    samples = [sample for sample in read_samples(result, plan) if sample.metric not in NOT_OBSERVED]
    observed = [
        sample for sample in samples if sample.unit in TIMES or sample.unit == _BYTES or is_rate(sample.unit)
    ]
    for sample in observed or samples:
        unit, factor = per_second(sample.unit)
        values = replace(sample, values=sample.values * factor) if factor != 1 else sample
        yield CellValues(
            sample.levels, sample.metric, unit, values.units("block"), launches=values.units("run")
        )
