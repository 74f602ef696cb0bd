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
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import signal

from steelyard.analyse.equivalence import ratio_test
from steelyard.analyse.multiplicity import benjamini_hochberg
from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SHORTEST: Final = 2
"""Fewest results of a segment: one result alone cannot be told from an outlier."""

FEWEST_INDEPENDENT: Final = 6
"""Fewest results in which a split could be significant at 5 % if they are independent."""

FEWEST: Final = 12
"""Fewest results in which a change can be told from the wandering of dependent results."""

MOST_DEPENDENT: Final = 0.7
"""Above this autocorrelation no change is claimed: a wandering series has levels without causes."""

RULED_OUT: Final = 0.1
"""An autocorrelation is ruled out if so rough a series is rarer than half of this by either estimate."""

CUT_OFF: Final = 3.0
"""Farthest that a value counts from the median, in standard deviations of the noise."""

TRIMMED_SHARE: Final = 0.03
"""Largest steps left out of the noise and of the roughness, which changes of level would inflate."""

MOST: Final = 5000
"""Most results of a history; the tables of longer ones take minutes."""

SERIES_PER_TABLE: Final = 3000
"""Simulated series; more where many series are corrected for, a third for more than 1000 results."""

_LONG: Final = 1000
_SEED: Final = 20_250_101
_BURN_IN: Final = 200
_VALUES_AT_ONCE: Final = 300_000
_EXACT_LENGTH: Final = 40
_GRID: Final = (*(round(0.05 * step, 2) for step in range(20)), 0.975)


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
    """

    changes: tuple[Change, ...]
    p_value: float
    autocorrelation: float
    is_undecidable: bool


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
        If a series has more than 5000 results.

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
        found.append(SeriesHistory(changes, p_value, split.autocorrelation, split.is_undecidable))
    return found


@dataclass(frozen=True, slots=True)
class _Split:
    position: int
    p_value: float
    autocorrelation: float = 0.0
    is_undecidable: bool = False


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
    found = _measure(values[None, :])
    position = int(found.positions[0])
    if options.is_independent:
        return _Split(position, _permutation_p(values, float(found.sizes[0]), draws))
    table = _null_table(_length_of_table(values.size), draws)
    autocorrelation = float(table.estimate(found)[0])
    if autocorrelation > MOST_DEPENDENT:
        return _Split(position, 1.0, autocorrelation, is_undecidable=True)
    return _Split(position, table.p_value(found), autocorrelation)


@dataclass(frozen=True, slots=True)
class _Measured:
    """What is measured of each row: largest split, its place, and two estimates of dependence."""

    sizes: Array
    positions: NDArray[np.int64]
    roughness: Array
    residual_correlation: Array


def _measure(rows: Array) -> _Measured:
    """Measure the largest split of each row, and how neighbours depend on each other.

    The roughness is the ratio of trimmed squared differences at lags 2 and 1, 1 + rho without trimming: it
    forgets levels, however many there are. The correlation of neighbours is that of what is left when the two
    sides of the split have lost their means: it is more precise, for series of one change.
    """
    scaled, roughness = _scaled(rows)
    sums, sizes = _splits(scaled)
    place = sizes.argmax(axis=1)
    index = np.arange(place.size)
    positions = place + SHORTEST
    count = rows.shape[1]
    left = np.arange(count)[None, :] < positions[:, None]
    share = sums[index, place][:, None]
    grand = scaled.mean(axis=1, keepdims=True)
    left_mean = grand + share / positions[:, None]
    right_mean = grand - share / (count - positions)[:, None]
    rest = scaled - np.where(left, left_mean, right_mean)
    total = (rest**2).sum(axis=1)
    neighbours = (rest[:, 1:] * rest[:, :-1]).sum(axis=1)
    return _Measured(
        sizes[index, place], positions, roughness, neighbours / np.where(total > 0, total, np.inf)
    )


def _scaled(rows: Array) -> tuple[Array, Array]:
    """Give the rows in units of their noise, cut off around the median, and their roughness."""
    trimmed = max(1, math.ceil(TRIMMED_SHARE * rows.shape[1]))
    squares = np.sort((rows[:, 1:] - rows[:, :-1]) ** 2, axis=1)
    near = squares[:, :-trimmed].mean(axis=1)
    near = np.where(near > 0, near, squares.mean(axis=1))
    far = np.sort((rows[:, 2:] - rows[:, :-2]) ** 2, axis=1)[:, : -2 * trimmed].mean(axis=1)
    scale = np.sqrt(near / 2)[:, None]
    middle = np.median(rows, axis=1, keepdims=True)
    return np.clip((rows - middle) / scale, -CUT_OFF, CUT_OFF), far / near


def _splits(scaled: Array) -> tuple[Array, Array]:
    """Give, for each row and split, the centred sum of the first side and the standardised difference."""
    count = scaled.shape[1]
    sums = np.cumsum(scaled - scaled.mean(axis=1, keepdims=True), axis=1)[:, SHORTEST - 1 : count - SHORTEST]
    left = np.arange(SHORTEST, count - SHORTEST + 1)
    return sums, np.abs(sums) / np.sqrt(left * (count - left) / count)


def _permutation_p(values: Array, size: float, draws: int) -> float:
    """Give the share of orders of the same values whose largest split is at least as large."""
    scaled = _scaled(values[None, :])[0][0]
    generator = np.random.Generator(np.random.PCG64([_SEED, values.size]))
    orders = generator.permuted(np.tile(scaled, (draws, 1)), axis=1)
    return _exceeding(np.sort(_splits(orders)[1].max(axis=1)), size)


def _length_of_table(size: int) -> int:
    """Give the length whose table is used: exact for short series, in steps of about 5 % for long ones."""
    if size <= _EXACT_LENGTH:
        return size
    return round(_EXACT_LENGTH * 1.05 ** round(math.log(size / _EXACT_LENGTH) / math.log(1.05)))


@dataclass(frozen=True, slots=True, eq=False)
class _NullTable:
    """What is measured of series without change, for each autocorrelation of the grid.

    `medians` and `low` are pairs: for the roughness, and for the correlation of what is left.
    """

    medians: tuple[Array, Array]
    low: tuple[Array, Array]
    splits: tuple[Array, ...]

    def estimate(self, found: _Measured) -> Array:
        """Give the smaller of the autocorrelations whose series typically look like this."""
        return _estimate(self.medians, found)

    def p_value(self, found: _Measured) -> float:
        """Give the largest p-value over the autocorrelations that are not ruled out."""
        size = float((found.sizes * _shrinking(self.estimate(found)))[0])
        plausible = (found.roughness[0] >= self.low[0]) & (found.residual_correlation[0] >= self.low[1])
        plausible[0] = True
        chosen = (splits for splits, is_plausible in zip(self.splits, plausible, strict=True) if is_plausible)
        return max(_exceeding(splits, size) for splits in chosen)


def _estimate(medians: tuple[Array, Array], found: _Measured) -> Array:
    by_roughness = np.interp(found.roughness, medians[0], _GRID)
    smaller: Array = np.minimum(by_roughness, np.interp(found.residual_correlation, medians[1], _GRID))
    return smaller


def _exceeding(ascending: Array, size: float) -> float:
    above = ascending.size - int(np.searchsorted(ascending, size * (1 - 1e-9)))
    return (1 + above) / (1 + ascending.size)


def _shrinking(autocorrelation: Array) -> Array:
    """Give the square root of the effective share of a series: (1 - rho) / (1 + rho)."""
    share: Array = np.sqrt((1 - autocorrelation) / (1 + autocorrelation))
    return share


def _simulated(size: int, draws: int, step: int) -> _Measured:
    """Measure series of one autocorrelation of the grid, in portions that fit a cache."""
    generator = np.random.Generator(np.random.PCG64([_SEED, size, step]))
    portion = max(1, _VALUES_AT_ONCE // (size + _BURN_IN))
    parts = []
    for begin in range(0, draws, portion):
        shocks = generator.standard_normal((min(portion, draws - begin), size + _BURN_IN))
        parts.append(_measure(signal.lfilter([1.0], [1.0, -_GRID[step]], shocks, axis=1)[:, _BURN_IN:]))
    return _Measured(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("sizes", "positions", "roughness", "residual_correlation")
        )
    )


@lru_cache(maxsize=64)
def _null_table(size: int, draws: int) -> _NullTable:
    """Simulate series without change; the same arguments give the same table."""
    found = [_simulated(size, draws, step) for step in range(len(_GRID))]

    def rising(probability: float) -> tuple[Array, Array]:
        rough = [float(np.quantile(each.roughness, probability)) for each in found]
        rest = [float(np.quantile(each.residual_correlation, probability)) for each in found]
        return np.maximum.accumulate(rough), np.maximum.accumulate(rest)

    medians = rising(0.5)
    splits = tuple(np.sort(each.sizes * _shrinking(_estimate(medians, each))) for each in found)
    return _NullTable(medians, rising(RULED_OUT / 2), splits)


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
    widening = 1 / float(_shrinking(np.array([autocorrelation]))[0])
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
