"""Why the interval of a question may miss its level: the rule of `guarantee`, and what else may be wrong."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.guarantee import (
    FEWEST_UNITS,
    mean_objections,
    ratio_objections,
    tail_objections,
)
from steelyard.analyse.intervals.quantity import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analyse.comparison.input_sample import InputSample
    from steelyard.analyse.intervals.procedure import Found, Question

FEWEST_EFFECTIVE: Final = 50
"""Effective sizes below this guarantee nothing (simulated: series with correlation 0.5 and 0.9)."""

FEWEST_EVENTS: Final = 5
"""Fewer events in a tail do not show how far it reaches."""

FEWEST_CLUSTERS_DRAWN: Final = 30
"""Percentile limits from fewer clusters cover about 90 instead of 95 % (simulated with 10)."""

FEWEST_STEPS: Final = 10
"""Fewer distinct values between the quartiles show the steps of the clock, not the spread of the times."""

_PERCENTILES: Final = {"percentile", "basic", "bca"}
_OF_UNITS: Final = {"wider", "t", "effective_t", "batch_t"}
"""Methods that speak of the mean of units."""

_ALLOWING: Final = {"wider", "effective_t", "batch_t"}
"""Methods that allow for neighbours that resemble each other."""


def objections(question: Question, sides: Sequence[InputSample], method: str, found: Found) -> list[str]:
    """Give every reason why the interval may miss its level; none if it is guaranteed.

    Parameters
    ----------
    question : Question
        What was estimated.
    sides : sequence of InputSample
        The samples as given.
    method : str
        How, one of `Method`.
    found : Found
        The outcome.
    """
    reasons = list(_of_outcome(question, found))
    if method in _OF_UNITS or question.quantity.kind is Kind.SHIFT:
        return list(dict.fromkeys([*reasons, *_of_units(question, sides, method)]))
    for side in sides:
        reasons += _of_independence(side, method)
        reasons += _of_quantiles(question, side)
        if question.quantity.kind is Kind.MEAN:
            units = side.unit_values(question.quantity)
            reasons += tail_objections(units, side.values, side.shown, is_wider=False)
    return list(dict.fromkeys(reasons))


def _of_units(question: Question, sides: Sequence[InputSample], method: str) -> list[str]:
    """Ask the rule of means, or that of two samples."""
    quantity = question.quantity
    units = [side.unit_values(quantity) for side in sides]
    is_series = all(side.clusters is None for side in sides)
    if len(sides) > 1:
        is_allowed = method in _ALLOWING or quantity.kind is Kind.SHIFT
        return ratio_objections(units[0], units[1], is_series=is_series, is_allowed=is_allowed)
    return mean_objections(
        units[0],
        sides[0].values,
        is_series=is_series,
        is_wider=method in _ALLOWING,
        has_tails=quantity.kind is Kind.MEAN,
        counting=sides[0].counting,
        shown=sides[0].shown,
    )


def _of_outcome(question: Question, found: Found) -> Iterator[str]:
    if question.quantity.kind is Kind.MOMENT_SPREAD:
        yield "no interval of an sd or cv keeps its level on skewed or heavy-tailed times; see iqr"
    if math.isinf(found.low) or math.isinf(found.high):
        yield "too few values for a limit at this level"
    if math.isnan(found.low) or math.isnan(found.high) or found.undefined:
        yield f"the statistic is not defined for {found.undefined or 'some'} resamples"
    if found.low == found.high:
        yield "the values have no spread"


def _of_independence(side: InputSample, method: str) -> Iterator[str]:
    if side.clusters is not None:
        count = side.clusters_count
        if count < FEWEST_UNITS:
            yield f"{count} clusters, at least {FEWEST_UNITS} needed"
        elif method in _PERCENTILES and count < FEWEST_CLUSTERS_DRAWN:
            yield f"{count} clusters drawn, at least {FEWEST_CLUSTERS_DRAWN} needed"
        return
    if side.effective < FEWEST_EFFECTIVE:
        yield f"effective size {side.effective:.0f}, at least {FEWEST_EFFECTIVE} needed"
    if side.is_dependent and side.block is None and method not in _ALLOWING:
        yield "neighbours resemble each other, the method takes them for independent"


def _of_quantiles(question: Question, side: InputSample) -> Iterator[str]:
    quantity, values = question.quantity, side.values
    if quantity.kernel in {"quantile", "harrell_davis", "range", "quantile_ratio"}:
        events = min(min(p, 1 - p) for p in quantity.parameters) * values.size
        if events < FEWEST_EVENTS:
            yield f"{events:.1f} values expected beyond the quantile, at least {FEWEST_EVENTS} needed"
    if quantity.kind is Kind.ROBUST_SPREAD:
        low, high = np.quantile(values, [0.25, 0.75])
        steps = np.unique(values[(values >= low) & (values <= high)]).size
        if steps < min(FEWEST_STEPS, values.size // 4):
            yield f"{steps} distinct values between the quartiles: the scale is coarse"
