"""How often the guarantee is claimed, and kept, over all kinds of data: tables of the truth page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

import steelyard
from statistical.kinds import kinds
from steelyard.analyse.comparison.equivalence import ratio_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from statistical.kinds import Drawn, Kind
    from steelyard.analyse.comparison.equivalence import RatioTest

REPLICATES: Final = 200
RESAMPLES: Final = 499
SIZES: Final = (5, 10, 30, 60, 100, 300, 1000)
SHAPES: Final = ((8, 5), (10, 10), (10, 100), (30, 1), (100, 1), (100, 10))
"""Runs and iterations of each."""

PAIRS: Final = ((5, 5), (10, 10), (5, 60), (8, 40), (10, 100), (100, 1000))
"""Runs of the two sides of a comparison with labels."""

SERIES_PAIRS: Final = ((10, 10), (30, 30), (30, 100), (30, 300), (100, 100), (300, 300))
"""Values of the two sides of a comparison without labels."""

FEWEST_CLAIMS: Final = 20
"""Of fewer claims no rate is given."""

_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Kept:
    """What was claimed, and what held.

    Parameters
    ----------
    replicates : int
        Samples, or pairs of them.
    claimed : int
        Of these, so many were guaranteed.
    held : int
        Of those claimed, so many hold the mean of what came (or raise no alarm).
    held_all : int
        So many hold the mean with what did not come.
    held_anyway : int
        Of all samples, so many hold the mean of what came, guaranteed or not.
    """

    replicates: int
    claimed: int
    held: int
    held_all: int
    held_anyway: int

    @property
    def misses(self) -> int:
        """Claims that do not hold."""
        return self.claimed - self.held


def intervals(kind: Kind, replicates: int, *, size: int = 0, shape: tuple[int, int] = (0, 0)) -> Kept:
    """Judge the default interval of the mean of a series of a size, or of labelled runs of a shape."""
    labels = np.repeat(np.arange(shape[0]), shape[1]) if shape[0] else None
    counts = np.zeros(4, dtype=int)
    for replicate in range(replicates):
        rng = np.random.default_rng([31, kind.number, size, *shape, replicate])
        drawn = kind.series(rng, size) if labels is None else kind.runs(rng, *shape)
        counts += _of_interval(drawn, labels)
    return Kept(replicates, *(int(count) for count in counts))


def _of_interval(drawn: Drawn, labels: np.ndarray | None) -> np.ndarray:
    found = steelyard.interval(drawn.values.ravel(), clusters=labels, resamples=RESAMPLES)
    seen, all_ = (
        found.low - _ROUNDING * truth <= truth <= found.high + _ROUNDING * truth
        for truth in (drawn.seen, drawn.truth)
    )
    claims = found.guaranteed
    return np.array([claims, claims and seen, claims and all_, seen], dtype=int)


def alarms(kind: Kind, pair: tuple[int, int], replicates: int, *, has_labels: bool) -> Kept:
    """Judge the comparison of two samples of one kind; a run of a dependent kind is a mean of ten values."""
    counts = np.zeros(4, dtype=int)
    for replicate in range(replicates):
        rng = np.random.default_rng([37, kind.number, *pair, has_labels, replicate])
        test = _compared(kind, rng, pair, has_labels=has_labels)
        quiet = test.p_different >= 0.05
        claims = test.is_guaranteed
        counts += np.array([claims, claims and quiet, claims and quiet, quiet], dtype=int)
    return Kept(replicates, *(int(count) for count in counts))


def _compared(kind: Kind, rng: np.random.Generator, pair: tuple[int, int], *, has_labels: bool) -> RatioTest:
    if not has_labels:
        first, second = (kind.series(rng, size).values[0] for size in pair)
        return ratio_test(first, second, is_series=True)
    iterations = 10 if kind.is_dependent else 1
    first, second = (kind.runs(rng, size, iterations).values.mean(axis=1) for size in pair)
    return ratio_test(first, second)


def _table(heads: Sequence[str], cells: Callable[[Kind], Iterator[str]]) -> Iterator[str]:
    yield "| kind of data | " + " | ".join(heads) + " |"
    yield "|---|" + "---:|" * len(heads)
    for kind in kinds():
        benign = "**" if kind.is_benign else ""
        yield f"| {benign}{kind.text}{benign} | " + " | ".join(cells(kind)) + " |"


def coverage_cell(kept: Kept) -> str:
    """Give share claimed, and coverage of the claims; in brackets that with what did not come."""
    claims = f"{100 * kept.claimed / kept.replicates:.0f}"
    if kept.claimed < FEWEST_CLAIMS:
        return f"{claims}: -"
    held, held_all = (100 * count / kept.claimed for count in (kept.held, kept.held_all))
    return f"{claims}: {held:.1f}" + (f" ({held_all:.0f})" if held_all < held - 0.05 else "")


def alarm_cell(kept: Kept) -> str:
    """Give share claimed, false alarms among the claims, and in brackets among all."""
    claims = f"{100 * kept.claimed / kept.replicates:.0f}"
    everywhere = 100 * (1 - kept.held_anyway / kept.replicates)
    if kept.claimed < FEWEST_CLAIMS:
        return f"{claims}: - ({everywhere:.1f})"
    return f"{claims}: {100 * kept.misses / kept.claimed:.1f} ({everywhere:.1f})"


def series_table(replicates: int = REPLICATES) -> Iterator[str]:
    """Give what the interval of the mean claims and keeps without labels."""
    yield from _table(
        [f"n = {size}" for size in SIZES],
        lambda kind: (coverage_cell(intervals(kind, replicates, size=size)) for size in SIZES),
    )


def runs_table(replicates: int = REPLICATES) -> Iterator[str]:
    """Give what the interval of the mean claims and keeps with labels of runs."""
    yield from _table(
        [f"{runs} x {iterations}" for runs, iterations in SHAPES],
        lambda kind: (coverage_cell(intervals(kind, replicates, shape=shape)) for shape in SHAPES),
    )


def labelled_alarm_table(replicates: int = REPLICATES) -> Iterator[str]:
    """Give the false alarms of comparisons of runs."""
    yield from _table(
        [f"{first}:{second}" for first, second in PAIRS],
        lambda kind: (alarm_cell(alarms(kind, pair, replicates, has_labels=True)) for pair in PAIRS),
    )


def series_alarm_table(replicates: int = REPLICATES) -> Iterator[str]:
    """Give the false alarms of comparisons of values without labels."""
    yield from _table(
        [f"{first}:{second}" for first, second in SERIES_PAIRS],
        lambda kind: (alarm_cell(alarms(kind, pair, replicates, has_labels=False)) for pair in SERIES_PAIRS),
    )
