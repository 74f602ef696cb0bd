"""Whether an interval keeps its level, by the rules the simulations support."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.automatic import FEWEST_EFFECTIVE
from steelyard.analyse.describe import mad, quantile
from steelyard.analyse.equivalence import FEWEST_UNITS
from steelyard.analyse.procedure import Method
from steelyard.analyse.quantity import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analyse.procedure import Found, Question
    from steelyard.analyse.side import Side

FEWEST_EVENTS: Final = 5
"""Fewer events in a tail do not show how far it reaches."""

RAREST: Final = 0.01
"""Share of values that a mean must not hang on without being seen."""

FEWEST_TO_SEE: Final = 300
"""Values without an event that bound its share by `RAREST` at 95 % ("rule of three", 3 / n)."""

FEWEST_CLUSTERS_DRAWN: Final = 30
"""Percentile limits from fewer clusters cover about 90 instead of 95 % (simulated with 10)."""

_RANKED: Final = {Method.PERCENTILE, Method.BASIC, Method.BCA}

FAR: Final = 10.0
"""A value farther from the median than this many MAD is an event of its own."""

FEWEST_STEPS: Final = 10
"""Fewer distinct values between the quartiles show the steps of the clock, not the spread of the times."""


def objections(question: Question, sides: Sequence[Side], method: Method, found: Found) -> list[str]:
    """Give every reason why the interval may miss its level; none if it is guaranteed.

    Parameters
    ----------
    question : Question
        What was estimated.
    sides : sequence of Side
        The samples as given.
    method : Method
        How.
    found : Found
        The outcome.
    """
    found_reasons = list(_of_outcome(question, found))
    for side in sides:
        found_reasons += _of_independence(side, method)
        found_reasons += _of_tails(question, side)
    return list(dict.fromkeys(found_reasons))


def _of_outcome(question: Question, found: Found) -> Iterator[str]:
    if question.quantity.kind is Kind.MOMENT_SPREAD:
        yield "no interval of an sd or cv keeps its level on skewed or heavy-tailed times; see iqr"
    if math.isinf(found.low) or math.isinf(found.high):
        yield "too few values for a limit at this level"
    if math.isnan(found.low) or math.isnan(found.high) or found.undefined:
        yield f"the statistic is not defined for {found.undefined or 'some'} resamples"
    if found.low == found.high:
        yield "the values have no spread"


def _of_independence(side: Side, method: Method) -> Iterator[str]:
    if side.clusters is not None:
        count = side.clusters_count
        if count < FEWEST_UNITS:
            yield f"{count} clusters, at least {FEWEST_UNITS} needed"
        elif method in _RANKED and count < FEWEST_CLUSTERS_DRAWN:
            yield f"{count} clusters drawn, at least {FEWEST_CLUSTERS_DRAWN} needed"
        return
    if side.effective < FEWEST_EFFECTIVE:
        yield f"effective size {side.effective:.0f}, at least {FEWEST_EFFECTIVE} needed"
    allows = side.block is not None or method in {Method.EFFECTIVE_T, Method.BATCH_T}
    if side.is_dependent and not allows:
        yield "neighbours resemble each other, the method takes them for independent"


def _of_tails(question: Question, side: Side) -> Iterator[str]:
    quantity, values = question.quantity, side.values
    if quantity.kernel in {"quantile", "harrell_davis", "range", "quantile_ratio"}:
        events = min(min(p, 1 - p) for p in quantity.parameters) * values.size
        if events < FEWEST_EVENTS:
            yield f"{events:.1f} values expected beyond the quantile, at least {FEWEST_EVENTS} needed"
    if quantity.is_moment and side.clusters is None:
        spread = mad(values)
        far = int(np.count_nonzero(np.abs(values - quantile(values, 0.5)) > FAR * spread))
        if 0 < far < FEWEST_EVENTS and spread > 0:
            yield f"{far} rare far values move the result, at least {FEWEST_EVENTS} needed to know their rate"
        elif far == 0 and side.effective < FEWEST_TO_SEE:
            yield (
                f"effective size {side.effective:.0f}: a far value that comes once in {1 / RAREST:.0f}"
                f" may not have come yet, at least {FEWEST_TO_SEE} needed"
            )
    if quantity.kind is Kind.ROBUST_SPREAD:
        low, high = quantile(values, 0.25), quantile(values, 0.75)
        steps = np.unique(values[(values >= low) & (values <= high)]).size
        if steps < min(FEWEST_STEPS, values.size // 4):
            yield f"{steps} distinct values between the quartiles: the scale is coarse"
