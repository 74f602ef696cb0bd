"""Changes in a history of results, by evidence that looking again cannot raise.

The logarithm of a result's mean is a level, what the result differs by (each result depends on the one
before: first-order autoregression), and the error of the mean of its runs. The spread of the runs inside the
results is part of the likelihood, so that the two kinds of noise are told apart. The evidence for a change is
the likelihood of a change, averaged over its place, its size and the parameters of the noise, over the
likelihood of no change at those parameters, among all that are allowed for, that suit it best (native:
``crates/stats/src/level.rs``).

What the evidence must exceed is calibrated for somebody who looks after each new result: of 100 looks at a
history without a change, one or more say *slower* in at most 5 % of histories, whatever the autocorrelation
up to the one allowed for (`tests/statistical/test_history.py`). Later looks are spent ever less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.analyse.comparison.multiplicity import benjamini_hochberg
from steelyard.analyse.series.history_threshold import NOMINAL, threshold
from steelyard.analyse.series.recurring_values import RANKS_LOSE, rank_evidence, reaches_back
from steelyard.analyse.series.resolution import spread
from steelyard.analyse.series.visible_change import visible_step
from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SHORTEST: Final = 3
"""Fewest results of a level: one or two may be outliers."""

FEWEST: Final = 2 * SHORTEST
"""Fewest results in which a change can be found."""

MOST_DEPENDENT: Final = 0.7
"""Autocorrelation allowed for by default, and at most: results that depend on each other more have levels
without causes."""

MOST: Final = 20_000
"""Most results of a history; longer ones take more than some seconds."""

_SUSPECT_DEPENDENCE: Final = 0.3
_SUSPECT_LEVEL: Final = 0.8
_SUSPECT_NEWEST: Final = 4.0


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """What counts as a change.

    Parameters
    ----------
    margin : float
        Largest relative difference of neighbouring levels that counts as none.
    level : float
        1 - level is the share of unchanged series that are called slower at one or more of 100 looks.
    is_independent : bool
        Whether the results are known not to depend on the ones before.
    autocorrelation : float
        Largest autocorrelation of neighbouring results that is allowed for, in [0, 0.7].
    """

    margin: float = 0.02
    level: float = 0.95
    is_independent: bool = False
    autocorrelation: float = MOST_DEPENDENT

    @property
    def allowed(self) -> float:
        """Autocorrelation that is allowed for."""
        return 0.0 if self.is_independent else self.autocorrelation


@dataclass(frozen=True, slots=True)
class Inside:
    """What the runs inside each result say.

    Parameters
    ----------
    runs : ndarray
        Runs of each result, shape (n,), 1 or more.
    squares : ndarray
        Sum of squared deviations of the runs of a result from their mean, over the square of the mean, shape
        (n,).
    """

    runs: Array
    squares: Array


@dataclass(frozen=True, slots=True)
class Change:
    """A place where a series changes its level.

    Parameters
    ----------
    position : int
        First result of the new level, from 0: the likeliest place.
    ratio, low, high : float
        New level over old one with its 95 % interval, over all places that the change may have.
    p_value : float
        Over all looks, corrected over series where it is a series' first: an upper bound.
    places : tuple of int
        First and last place that the change may have, with 95 %.
    """

    position: int
    ratio: float
    low: float
    high: float
    p_value: float
    places: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class SeriesHistory:
    """What a series of results does.

    Parameters
    ----------
    changes : tuple of Change
        In order; empty for a series without.
    p_value : float
        Of a change of the whole series over all looks, corrected over series; 1 where nothing can be said.
    autocorrelation : float
        Of neighbouring results, that suits the series best when its first change is taken into account.
    is_undecidable : bool
        Whether there are too few results, or they depend too much on each other.
    visible : float
        Smallest lasting relative change in the middle that would have been found in 8 of 10 such series;
        infinite where none would have been.
    suspect : Change or None
        What may be a new level and is not settled: the newest one or two results far from those before, or a
        level that somebody who looks once would call changed. Its p-value is NaN.
    between : float
        Share of the noise that lies between results, likewise; the rest is the error of their means.
    """

    changes: tuple[Change, ...]
    p_value: float
    autocorrelation: float
    is_undecidable: bool
    visible: float = math.inf
    suspect: Change | None = None
    between: float = 1.0


def find_changes(
    series: Sequence[Array],
    options: HistoryOptions | None = None,
    inside: Sequence[Inside] | None = None,
) -> list[SeriesHistory]:
    """Find the changes of many series; the first test of each is corrected over all.

    A series with enough evidence for a change is cut where it is likeliest, and both sides are searched in
    turn. Neighbouring levels that differ by no more than the margin are joined again.

    Parameters
    ----------
    series : sequence of ndarray
        Shape (n_i,), positive and finite, oldest first: one value per result.
    options : HistoryOptions or None
        Margin, level, and the autocorrelation to allow for.
    inside : sequence of Inside or None
        What the runs inside the results say, in the order of `series`.

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
    .. [1] Kass & Raftery (1995), J. Am. Stat. Assoc. 90: likelihood averaged over parameters.
    .. [2] Ville (1939); Grünwald, de Heide & Koolen (2024), J. R. Stat. Soc. B 86: such a ratio cannot be
       raised by looking again. Deviation: the threshold is calibrated by simulation, which is less than the
       bound asks for.
    .. [3] Vostrikova (1981), Soviet Math. Dokl. 24: binary segmentation, each cut tested.
    .. [4] Wang & Ramdas (2022), J. R. Stat. Soc. B 84: the false discovery rate of such evidence.

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
        message = f"cannot follow {longest} results of a series: at most {MOST} are allowed"
        raise AnalysisError(message, hint="give the newest results only, or fewer blocks")
    all_inside = inside or [Inside(np.ones(values.size), np.zeros(values.size)) for values in series]
    stretches = [
        _Stretch(np.log(spread(values)), each.runs, each.squares)
        for values, each in zip(series, all_inside, strict=True)
    ]
    first = [_first_search(stretch, options) for stretch in stretches]
    corrected = benjamini_hochberg([found.p_value for found in first])
    return [
        _follow(stretch, found, p_value, options, len(series))
        for stretch, found, p_value in zip(stretches, first, corrected, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Some results in a row: logarithms, and what the runs inside say."""

    logs: Array
    runs: Array
    squares: Array

    def part(self, begin: int, end: int) -> _Stretch:
        return _Stretch(self.logs[begin:end], self.runs[begin:end], self.squares[begin:end])

    @property
    def is_constant(self) -> bool:
        return self.logs.size == 0 or bool(np.ptp(self.logs) == 0)


@dataclass(frozen=True, slots=True)
class _Found:
    position: int = 0
    p_value: float = 1.0
    autocorrelation: float = 0.0
    between: float = 1.0
    noise: float = 0.0
    places: tuple[int, int] = (0, 0)
    effect: tuple[float, float, float] = (0.0, 0.0, 0.0)
    is_undecidable: bool = False


def _first_search(stretch: _Stretch, options: HistoryOptions) -> _Found:
    """Look for a change of a series; what an earlier look has found stands, where all results show it.

    A second change can hide a first one: the levels behind it are then far from each other.
    """
    found = _search(stretch, options)
    if found.p_value <= 1 - options.level or found.is_undecidable:
        return found
    surest = _surest_look(stretch, options)
    earlier = found if surest is None else _search(stretch.part(0, surest), options)
    return replace(found, p_value=min(found.p_value, earlier.p_value))


def _surest_look(stretch: _Stretch, options: HistoryOptions) -> int | None:
    """Give how many results the earlier look saw whose evidence exceeds its threshold most, if any does."""
    size = stretch.logs.size
    if size <= FEWEST or stretch.is_constant:
        return None
    looks = [
        _native.level_looks(
            stretch.logs,
            stretch.runs,
            stretch.squares,
            options.allowed,
            first=FEWEST,
            is_downward=is_downward,
        )
        for is_downward in (False, True)
    ]
    exceeded = np.max(looks, axis=0)[:-1] - [threshold(seen, options.allowed) for seen in range(FEWEST, size)]
    surest = int(np.argmax(exceeded))
    return FEWEST + surest if exceeded[surest] >= 0 else None


def _search(stretch: _Stretch, options: HistoryOptions) -> _Found:
    """Look for a change of a stretch."""
    size = stretch.logs.size
    if size < FEWEST:
        return _Found(is_undecidable=True)
    if stretch.is_constant:
        return _Found()
    evidence, position, places, effect, rho, between, noise = _native.level_change(
        stretch.logs, stretch.runs, stretch.squares, options.allowed
    )
    exceeded = evidence - threshold(size, options.allowed)
    if exceeded >= 0 and reaches_back(stretch.logs, position):
        exceeded = min(exceeded, rank_evidence(stretch.logs) + RANKS_LOSE - threshold(size, 0.0))
    return _Found(
        position=position,
        p_value=min(1.0, NOMINAL * math.exp(-max(exceeded, -10.0))),
        autocorrelation=rho,
        between=between,
        noise=noise,
        places=places,
        effect=effect,
        is_undecidable=rho > options.allowed,
    )


def _follow(
    stretch: _Stretch, found: _Found, p_value: float, options: HistoryOptions, count: int
) -> SeriesHistory:
    """Cut a series where it changes, and say what is suspect and what could have been seen."""
    cuts: dict[int, float] = {}
    if p_value <= 1 - options.level:
        cuts[found.position] = p_value
        _cut(stretch, (0, found.position), options, cuts)
        _cut(stretch, (found.position, stretch.logs.size), options, cuts)
    changes = _relevant(stretch, cuts, options)
    begin = changes[-1].position if changes else 0
    suspect = _suspect(stretch, begin, options, count)
    visible = math.inf if changes or found.is_undecidable else _visible(stretch, found, options, count)
    return SeriesHistory(
        changes,
        p_value,
        found.autocorrelation,
        found.is_undecidable,
        visible=visible,
        suspect=suspect,
        between=found.between,
    )


def _visible(stretch: _Stretch, found: _Found, options: HistoryOptions, count: int) -> float:
    """Give the smallest lasting relative change that would have been seen, not below the margin."""
    if stretch.is_constant:
        return options.margin
    # A change of one series alone must be significant among all of them.
    least = threshold(stretch.logs.size, options.allowed, (1 - options.level) / count)
    rho = min(round(found.autocorrelation, 1), options.allowed)
    step = visible_step(stretch.logs.size, options.allowed, rho, round(found.between, 1), least)
    # The likelihood takes the level for known, and pulls in what is far out: both make noise look smaller.
    noise = found.noise * math.sqrt(stretch.logs.size / (stretch.logs.size - 3))
    return max(math.expm1(step * noise), options.margin) if math.isfinite(step) else step


def _cut(stretch: _Stretch, bounds: tuple[int, int], options: HistoryOptions, cuts: dict[int, float]) -> None:
    """Cut a stretch where it changes most likely while there is enough evidence."""
    open_stretches = [bounds]
    while open_stretches:
        begin, end = open_stretches.pop()
        found = _search(stretch.part(begin, end), options)
        if found.p_value <= 1 - options.level:
            position = begin + found.position
            cuts[position] = found.p_value
            open_stretches += [(begin, position), (position, end)]


def _relevant(stretch: _Stretch, cuts: dict[int, float], options: HistoryOptions) -> tuple[Change, ...]:
    """Join levels that differ by no more than the margin, the least different first."""
    bound = math.log1p(options.margin)
    positions = sorted(cuts)
    while positions:
        changes = [
            _change(stretch, bounds, cuts[bounds[1]], options)
            for bounds in zip(
                [0, *positions[:-1]], positions, [*positions[1:], stretch.logs.size], strict=True
            )
        ]
        least = min(changes, key=lambda change: abs(math.log(change.ratio)))
        if abs(math.log(least.ratio)) > bound:
            return tuple(changes)
        del positions[changes.index(least)]
    return ()


def _change(
    stretch: _Stretch, bounds: tuple[int, int, int], p_value: float, options: HistoryOptions
) -> Change:
    """Measure the change of a stretch between its neighbours."""
    begin, middle, end = bounds
    part = stretch.part(begin, end)
    _, position, places, effect, *_ = _native.level_change(
        part.logs, part.runs, part.squares, options.allowed
    )
    if abs(begin + position - middle) > SHORTEST:  # neighbours were joined: the cut is kept
        position, places = middle - begin, (min(places[0], middle - begin), max(places[1], middle - begin))
    ratio, low, high = (math.exp(limit) for limit in effect)
    return Change(begin + position, ratio, low, high, p_value, (begin + places[0], begin + places[1]))


def _suspect(stretch: _Stretch, begin: int, options: HistoryOptions, count: int) -> Change | None:
    """Give what may be a new level of the newest stretch, and is not settled."""
    part = stretch.part(begin, stretch.logs.size)
    if part.logs.size < FEWEST or part.is_constant:
        return None
    allowed = min(options.allowed, _SUSPECT_DEPENDENCE)
    more = math.log(max(count, 1)) + math.log(NOMINAL / (1 - options.level))
    newest = _native.newest_change(part.logs, part.runs, part.squares, options.allowed)
    lasting = _native.level_change(part.logs, part.runs, part.squares, allowed)
    for found, least in ((newest, _SUSPECT_NEWEST), (lasting, _SUSPECT_LEVEL)):
        evidence, position, places, effect, *_ = found
        if evidence >= least + more and abs(effect[0]) > math.log1p(options.margin):
            ratio, low, high = (math.exp(limit) for limit in effect)
            return Change(
                begin + position, ratio, low, high, math.nan, (begin + places[0], begin + places[1])
            )
    return None


def segments_of(history: SeriesHistory, size: int) -> list[tuple[int, int]]:
    """Give the bounds of the segments, from 0.

    Examples
    --------
    >>> segments_of(SeriesHistory((Change(3, 1.1, 1.0, 1.2, 0.01),), 0.01, 0.0, False), 8)
    [(0, 3), (3, 8)]
    """
    return list(pairwise([0, *(change.position for change in history.changes), size]))
