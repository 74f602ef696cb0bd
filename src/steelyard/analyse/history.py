"""Changes in a history of results: a test of the largest split that accounts for choosing it.

The statistic is the largest standardised difference of the two sides over all splits, of logarithms cut off
at three times the noise around their median, so that an outlier of any size weighs little. Where results are
known to be independent, every order of them is equally likely: the test is a permutation test of that
statistic. Otherwise a result may depend on the one before, which makes large splits more likely. Then the
statistic is divided by what the estimated autocorrelation adds, its distribution is simulated by first-order
autoregressive series that pass through the same estimates, and of all autocorrelations that the data do not
rule out the one with the largest p-value counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.equivalence import ratio_test
from steelyard.analyse.largest_split import (
    exceeding,
    length_of_table,
    measure_split,
    null_table,
    permutation_sizes,
    shrinking,
)
from steelyard.analyse.multiplicity import benjamini_hochberg
from steelyard.analyse.visible_change import visible_step
from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FEWEST_INDEPENDENT: Final = 6
"""Fewest results in which a split could be significant at 5 % if they are independent."""

FEWEST: Final = 12
"""Fewest results in which a change can be told from the wandering of dependent results."""

MOST_DEPENDENT: Final = 0.7
"""Above this autocorrelation no change is claimed: a wandering series has levels without causes."""

MOST: Final = 20_000
"""Most results of a history; the tables of longer ones take more than some seconds."""

SERIES_PER_TABLE: Final = 3000
"""Simulated series; more where many series are corrected for, a third for more than 1000 results."""

_LONG: Final = 1000


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """What counts as a change.

    Parameters
    ----------
    margin : float
        Largest relative difference of neighbouring segments that counts as none.
    level : float
        1 - level is the share of unchanged series that may be called changed.
    is_independent : bool
        Whether the results are known not to depend on the ones before: a permutation test then.
    """

    margin: float = 0.02
    level: float = 0.95
    is_independent: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A place where a series changes its level.

    Parameters
    ----------
    position : int
        First result of the new level, from 0.
    ratio, low, high : float
        New level over old one (geometric means), with its interval given the place of the change.
    p_value : float
        Of the split, corrected over series where it is a series' first.
    """

    position: int
    ratio: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, slots=True)
class SeriesHistory:
    """What a series of results does.

    Parameters
    ----------
    changes : tuple of Change
        In order; empty for a series without.
    p_value : float
        Of the largest split of the whole series, corrected over series; 1 where nothing can be said.
    autocorrelation : float
        Of neighbours, estimated from differences, in [0, 1).
    is_undecidable : bool
        Whether there are too few results, or they depend too much on each other.
    visible : float
        Smallest lasting relative change in the middle that would have been found in 8 of 10 such series;
        infinite where none would have been.
    """

    changes: tuple[Change, ...]
    p_value: float
    autocorrelation: float
    is_undecidable: bool
    visible: float = math.inf


def find_changes(series: Sequence[Array], options: HistoryOptions | None = None) -> list[SeriesHistory]:
    """Find the changes of many series; the first test of each is corrected over all.

    A series whose largest split is significant is cut there, and both sides are tested in turn. Neighbouring
    segments that differ by no more than the margin are joined again.

    Parameters
    ----------
    series : sequence of ndarray
        Shape (n_i,), positive and finite, oldest first: one value per result.
    options : HistoryOptions or None
        Margin and level.

    Returns
    -------
    list of SeriesHistory
        In the order of `series`; the same for the same values.

    Raises
    ------
    AnalysisError
        If a series has more than 20 000 results.

    References
    ----------
    .. [1] Hawkins (1977), J. Am. Stat. Assoc. 72: the largest standardised difference over all splits.
    .. [2] Matteson & James (2014), J. Am. Stat. Assoc. 109: hierarchical splitting with a permutation test of
       the maximal statistic.
    .. [3] Silvapulle (1996), J. Am. Stat. Assoc. 91: a nuisance parameter by its confidence set. Deviation:
       the set's error is not added; the simulated rates hold without (tests).
    .. [4] Benjamini & Hochberg (1995), J. R. Stat. Soc. B 57.

    Examples
    --------
    >>> noise = np.sin(np.arange(40.0) ** 2) / 100
    >>> slower = np.where(np.arange(40) < 25, 1.0, 1.2) + noise
    >>> [change.position for change in find_changes([slower])[0].changes]
    [25]
    """
    options = options or HistoryOptions()
    longest = max((values.size for values in series), default=0)
    if longest > MOST:
        message = f"a series has {longest} results; at most {MOST} can be followed"
        raise AnalysisError(message, hint="give the newest results only, or fewer blocks")
    draws = _draws(len(series), longest)
    # A change of one series alone must be significant among all of them.
    error = (1 - options.level) / max(len(series), 1)
    logs = [np.log(values) for values in series]
    first = [_split(values, options, draws) for values in logs]
    corrected = benjamini_hochberg([split.p_value for split in first])
    found = []
    for values, split, p_value in zip(logs, first, corrected, strict=True):
        cuts: dict[int, float] = {}
        if p_value <= 1 - options.level:
            cuts[split.position] = p_value
            _cut(values, (0, split.position), options, draws, cuts)
            _cut(values, (split.position, values.size), options, draws, cuts)
        changes = _relevant(values, cuts, split.autocorrelation, options)
        visible = math.inf if changes else _visible(values, split, options, draws, error)
        found.append(SeriesHistory(changes, p_value, split.autocorrelation, split.is_undecidable, visible))
    return found


@dataclass(frozen=True, slots=True)
class _Split:
    position: int
    p_value: float
    autocorrelation: float = 0.0
    is_undecidable: bool = False


def _visible(values: Array, split: _Split, options: HistoryOptions, draws: int, error: float) -> float:
    """Give the smallest lasting relative change that would have been seen, not below the margin."""
    if split.is_undecidable:
        return math.inf
    if np.ptp(values) == 0:
        return options.margin
    rho = 0.0 if options.is_independent else min(math.ceil(10 * split.autocorrelation) / 10, MOST_DEPENDENT)
    size = length_of_table(values.size)
    step = visible_step(size, draws, rho, MOST_DEPENDENT, error, is_independent=options.is_independent)
    if math.isinf(step):
        return step
    return max(math.expm1(step * measure_split(values).noise), options.margin)


def _draws(series: int, longest: int) -> int:
    """Give the number of simulated series: the smallest p-value must survive the correction."""
    fewest = SERIES_PER_TABLE if longest <= _LONG else SERIES_PER_TABLE // 3
    return min(max(fewest, 60 * series), 20_000)


def _cut(
    values: Array, bounds: tuple[int, int], options: HistoryOptions, draws: int, cuts: dict[int, float]
) -> None:
    """Cut a stretch at its largest split while that is significant."""
    open_stretches = [bounds]
    while open_stretches:
        begin, end = open_stretches.pop()
        split = _split(values[begin:end], options, draws)
        if split.p_value <= 1 - options.level:
            position = begin + split.position
            cuts[position] = split.p_value
            open_stretches += [(begin, position), (position, end)]


def _split(values: Array, options: HistoryOptions, draws: int) -> _Split:
    """Test the largest split of a stretch."""
    fewest = FEWEST_INDEPENDENT if options.is_independent else FEWEST
    if values.size < fewest:
        return _Split(0, 1.0, is_undecidable=True)
    if np.ptp(values) == 0:
        return _Split(0, 1.0)
    found = measure_split(values)
    if options.is_independent:
        p_value = exceeding(permutation_sizes(values, draws), found.size)
        return _Split(found.position, p_value)
    table = null_table(length_of_table(values.size), draws)
    autocorrelation = table.estimate(found)
    if autocorrelation > MOST_DEPENDENT:
        return _Split(found.position, 1.0, autocorrelation, is_undecidable=True)
    return _Split(found.position, table.p_value(found), autocorrelation)


def _relevant(
    logs: Array, cuts: dict[int, float], autocorrelation: float, options: HistoryOptions
) -> tuple[Change, ...]:
    """Join segments that differ by no more than the margin, the least different first."""
    bound = math.log1p(options.margin)
    positions = sorted(cuts)
    while positions:
        changes = [
            _change(logs, bounds, cuts[bounds[1]], autocorrelation)
            for bounds in zip([0, *positions[:-1]], positions, [*positions[1:], logs.size], strict=True)
        ]
        least = min(changes, key=lambda change: abs(math.log(change.ratio)))
        if abs(math.log(least.ratio)) > bound:
            return tuple(changes)
        positions.remove(least.position)
    return ()


def _change(logs: Array, bounds: tuple[int, int, int], p_value: float, autocorrelation: float) -> Change:
    """Compare the segments on both sides of a cut; dependence widens the interval."""
    begin, middle, end = bounds
    test = ratio_test(np.exp(logs[begin:middle]), np.exp(logs[middle:end]))
    widening = 1 / float(shrinking(autocorrelation))
    centre = math.log(test.ratio)
    low, high = (math.exp(centre + widening * (math.log(limit) - centre)) for limit in (test.low, test.high))
    return Change(middle, test.ratio, low, high, p_value)


def segments_of(history: SeriesHistory, size: int) -> list[tuple[int, int]]:
    """Give the bounds of the segments, from 0.

    Examples
    --------
    >>> segments_of(SeriesHistory((Change(3, 1.1, 1.0, 1.2, 0.01),), 0.01, 0.0, False), 8)
    [(0, 3), (3, 8)]
    """
    return list(pairwise([0, *(change.position for change in history.changes), size]))
