"""Which procedure suits a sample, and why: the defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.analyse.intervals.objections import FEWEST_EFFECTIVE
from steelyard.analyse.intervals.procedure import Method
from steelyard.analyse.intervals.quantity import Kind

_WIDER: Final = "the wider of two procedures, each of which keeps its level where the other does not"

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analyse.comparison.input_sample import InputSample
    from steelyard.analyse.intervals.procedure import Question


@dataclass(frozen=True, slots=True)
class Choice:
    """A procedure with the reason for it.

    Parameters
    ----------
    method : Method
        Never `auto`.
    why : str
        One sentence without a full stop.
    in_blocks : bool
        Whether the series is to be resampled in blocks of automatic length.
    """

    method: Method
    why: str
    in_blocks: bool = False


def choose(question: Question, sides: Sequence[InputSample]) -> Choice:
    """Choose by the labels that were recorded, the kind of statistic, and what the series looks like.

    References
    ----------
    .. [1] Kalibera & Jones (2013), "Rigorous benchmarking in reasonable time": analyse at the highest random
       level.
    .. [2] docs/concepts/intervals.md: the table of defaults and the simulations behind it.
    """
    quantity = question.quantity
    if quantity.kind is Kind.SHIFT:
        return Choice(Method.EXACT, "ranks of all pairwise differences need no distribution")
    if any(side.block is not None for side in sides):
        return Choice(Method.PERCENTILE, "blocks of the series are drawn, as asked")
    if any(side.strata is not None for side in sides):
        return _labelled(question, "clusters are drawn inside strata", Method.STUDENTISED)
    if any(side.clusters is not None for side in sides):
        return _labelled(question, "clusters are drawn whole", Method.WIDER)
    if any(side.is_dependent for side in sides):
        return _series(question, sides)
    return _independent(question)


def _labelled(question: Question, drawn: str, location: Method) -> Choice:
    quantity = question.quantity
    if quantity.is_location and location is Method.WIDER:
        return Choice(Method.WIDER, f"the `{quantity.name}` of each cluster is one observation; {_WIDER}")
    if quantity.is_moment:
        return Choice(Method.STUDENTISED, drawn)
    return Choice(Method.PERCENTILE, drawn)


def _series(question: Question, sides: Sequence[InputSample]) -> Choice:
    shares = ", ".join(f"{side.effective / side.size:.0%}" for side in sides)
    seen = f"neighbours resemble each other: effective share {shares}"
    if question.quantity.kind is not Kind.MEAN:
        return Choice(Method.PERCENTILE, seen, in_blocks=True)
    if question.contrast is None:
        return Choice(Method.WIDER, f"{seen}; the wider of two errors that allow for it")
    if min(side.effective for side in sides) < FEWEST_EFFECTIVE:
        return Choice(Method.EFFECTIVE_T, seen)
    return Choice(Method.BATCH_T, f"{seen}; batches of ten correlation times are compared")


def _independent(question: Question) -> Choice:
    kind = question.quantity.kind
    if kind is Kind.MEAN:
        return Choice(Method.WIDER, _WIDER)
    if kind is Kind.MOMENT_SPREAD:
        return Choice(Method.STUDENTISED, "on the logarithm, the least bad for a spread of moments")
    if kind is Kind.TRIMMED:
        return Choice(Method.T, "winsorised values give the error of a trimmed mean")
    if kind is Kind.QUANTILE and question.contrast is None:
        return Choice(Method.EXACT, "order statistics need no distribution")
    return Choice(Method.PERCENTILE, "order statistics of resamples need no distribution")
