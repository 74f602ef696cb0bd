"""Whether events come with a period."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import stats

from steelyard.analyse.intervals.describe import inner_product

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

FEWEST: Final = 6
"""Events below which no period is looked for."""
FEWEST_CYCLES: Final = 5
"""Cycles that a period must have in the time that was watched."""
FEWEST_CALLS: Final = 4
"""Calls that the shortest period must hold, so that the lattice of the calls is no period."""
SIGNIFICANT: Final = 0.01
_MOST_CELLS: Final = 1 << 19
"""Cells of the grid that events are spread over, at most."""
_CELLS_PER_CYCLE: Final = 8
"""At the highest frequency, at least."""
_NEIGHBOURS: Final = 30
"""Ordinates on either side that give the level of the noise."""
_GUARD: Final = 2
"""Ordinates on either side that a line leaks into."""
_PER_RATE: Final = 20.0
"""Frequencies are looked at up to so many times the rate of the events: not every cycle makes a peak."""
_FEWEST_FITTING: Final = 3
_MOST_MULTIPLES: Final = 32
"""Multiples of a possible period, from the first on, that are looked at to tell it from noise."""
_LINE: Final = 8.0
"""Noise has this power with probability exp(-8) = 0.0003."""
_STEPS: Final = (0.5, 0.05, 0.005)
"""Half widths of the grids in which the frequency is refined, of 41 points each [cycles]."""


@dataclass(frozen=True, slots=True)
class Period:
    """What was found about a period.

    Parameters
    ----------
    is_periodic : bool
        Whether the p-value is below `SIGNIFICANT`.
    p_value : float
        Of a stream without a period, over all frequencies that were looked at.
    period_ns, low_ns, high_ns : float
        The period, with its 95 % interval; not a number where there is none [ns].
    locked_share : float
        Share of the events within a quarter of a period around the common phase: 1/2 by chance.
    reason : str
        Why no period was looked for; empty otherwise.
    shortest_ns : float
        The shortest period that was looked for [ns].
    why_no_interval : str
        Why a period that was found has no interval; empty otherwise.
    """

    is_periodic: bool
    p_value: float
    period_ns: float
    low_ns: float
    high_ns: float
    locked_share: float
    reason: str = ""
    shortest_ns: float = math.nan
    why_no_interval: str = ""

    @property
    def half_width_ns(self) -> float:
        """Half the width of the interval [ns]; not a number where there is none."""
        return (self.high_ns - self.low_ns) / 2


def find_period(
    time_ns: NDArray[np.int64],
    start_ns: int,
    end_ns: int,
    *,
    shortest_ns: float = 0.0,
    resolution_ns: float = 0.0,
) -> Period:
    """Look for a period in the times of events.

    The power of the events at each frequency, every half of 1 / (end - start), is compared with the
    middle one of m powers on its left, and on its right: for events without a period both stand for the same
    smooth spectrum, whatever their clustering, and an exponential variable exceeds z times the r-th smallest
    of m others with probability prod (m - i) / (m - i + z), i = 0 ... r - 1. The larger of both probabilities
    counts; the smallest of all frequencies, times their number, is the p-value.
    The reported period is the longest one that has a line of its own. Shorter ones than 1/65536 of the time,
    or than a twentieth of the mean distance of the events, are not looked for; the answer says how short.

    Parameters
    ----------
    time_ns : ndarray
        Shape (n,), ascending: begins of the episodes [ns].
    start_ns, end_ns : int
        Begin and end of the time that was watched [ns].
    shortest_ns : float
        No shorter period is looked for [ns]; calls that follow each other are a lattice themselves.
    resolution_ns : float
        How finely times are known [ns], as the distance of the calls whose begins they are: the first and
        the last event may each have come half of it earlier or later, and no interval is narrower than that.

    Returns
    -------
    Period

    References
    ----------
    .. [1] Bartlett (1963), J. R. Stat. Soc. B 25, 264: the spectrum of a point process; ordinates are
       asymptotically independent and exponential around it.
    .. [2] Renyi (1953), Acta Math. Hung. 4, 191: order statistics of exponential variables are sums of
       independent ones, which gives the product.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(3)
    >>> ticks = np.arange(40) * 25e6 + rng.normal(0, 1e6, 40) + 5e6
    >>> found = find_period(ticks.astype(np.int64), 0, 1_000_000_000)
    >>> found.is_periodic, found.low_ns < 25e6 < found.high_ns
    (True, True)
    """
    times = np.asarray(time_ns, dtype=np.float64) - start_ns
    length = float(end_ns - start_ns)
    count = times.size
    if count < FEWEST or length <= 0:
        return _none(1.0, f"{count} events are too few: at least {FEWEST} needed")
    highest = min(
        _MOST_CELLS / _CELLS_PER_CYCLE,
        _PER_RATE * count,
        length / (2 * shortest_ns) if shortest_ns > 0 else math.inf,
    )
    ordinates = 2 * int(highest)
    if ordinates <= 2 * (FEWEST_CYCLES + _GUARD + 2):
        return _none(1.0, f"fewer than {FEWEST_CYCLES} cycles of the shortest period fit in")
    shortest = length / int(highest)
    power = _powers(times, length, ordinates)
    p_values = _exceedance(power)
    best = int(np.argmin(p_values))
    p_value = min(1.0, float(p_values[best]) * (ordinates - 2 * FEWEST_CYCLES))
    if p_value >= SIGNIFICANT:
        return _none(p_value, shortest_ns=shortest)
    frequency = _refined(times, _fundamental(best, power) / 2 / length, length)
    return replace(_estimated(times, frequency, p_value, resolution_ns), shortest_ns=shortest)


def _none(p_value: float, reason: str = "", *, shortest_ns: float = math.nan) -> Period:
    return Period(
        is_periodic=False,
        p_value=p_value,
        period_ns=math.nan,
        low_ns=math.nan,
        high_ns=math.nan,
        locked_share=math.nan,
        reason=reason,
        shortest_ns=shortest_ns,
    )


def _powers(times: Vector, length: float, ordinates: int) -> Vector:
    """Power at 0, 1/2, 1, 3/2 ... cycles in the whole time; its expectation without a period is about 1.

    Each event is spread over four cells by the cubic B-spline, whose spectrum is the fourth power of the
    sinc function and is divided out: counted in one cell each, events whose period is shorter than a cell
    or two would show at frequencies that they do not have, mirrored at that of the cells.
    """
    count = 1 << max(_CELLS_PER_CYCLE * ordinates // 2 - 1, 1).bit_length()
    cells = _spread(times / length * count, 2 * count)
    # The other half is empty, which gives the ordinates in between; the mean is taken out, as it leaks.
    cells[:count] -= times.size / count
    spectrum = np.fft.rfft(cells)[: ordinates + 1]
    kernel = np.sinc(np.arange(ordinates + 1) / (2 * count)) ** 4
    return np.asarray(np.abs(spectrum / kernel) ** 2 / times.size, dtype=np.float64)


def _spread(places: Vector, count: int) -> Vector:
    """Spread events, each of weight 1, over the cells around their places; the cells are a ring."""
    first = np.floor(places)
    part = places - first
    weights = (
        (1 - part) ** 3 / 6,
        (3 * part**3 - 6 * part**2 + 4) / 6,
        (-3 * part**3 + 3 * part**2 + 3 * part + 1) / 6,
        part**3 / 6,
    )
    cells = np.zeros(count)
    for offset, weight in zip(range(-1, 3), weights, strict=True):
        near = (first.astype(np.int64) + offset) % count
        cells += np.bincount(near, weights=weight, minlength=count)
    return cells


def _exceedance(power: Vector) -> Vector:
    """Probability of so much power at each ordinate, if only its surroundings were there."""
    p_values = np.ones(power.size)
    for parity in (0, 1):
        # Whole cycles apart: ordinates in between repeat their neighbours.
        column = power[parity::2]
        found = np.ones(column.size)
        inner = np.arange(_NEIGHBOURS + _GUARD + 1, column.size - _NEIGHBOURS - _GUARD)
        if inner.size:
            windows = np.lib.stride_tricks.sliding_window_view(column, _NEIGHBOURS)
            rank = _NEIGHBOURS // 2
            level = np.partition(windows, rank - 1, axis=1)[:, rank - 1]
            left, right = level[inner - _GUARD - _NEIGHBOURS], level[inner + _GUARD + 1]
            found[inner] = _beyond(column[inner], np.maximum(left, right), _NEIGHBOURS)
        for place in range(FEWEST_CYCLES, min(_NEIGHBOURS + _GUARD + 1, column.size)):
            found[place] = _beyond_edge(column, place)
        p_values[parity::2] = found
    return p_values


def _beyond_edge(column: Vector, place: int) -> float:
    sides = (column[1 : place - _GUARD], column[place + _GUARD + 1 :][:_NEIGHBOURS])
    worst = 0.0
    for side in sides:
        rank = side.size // 2
        if rank == 0:
            return 1.0
        level = np.partition(side, rank - 1)[rank - 1 : rank]
        worst = max(worst, float(_beyond(column[place : place + 1], level, side.size)[0]))
    return worst


def _beyond(power: Vector, level: Vector, neighbours: int) -> Vector:
    """Probability that an exponential variable exceeds so many times the middle one of others like it."""
    ratio = power / np.maximum(level, 1e-9)
    found = np.ones(power.size)
    for index in range(neighbours // 2):
        found *= (neighbours - index) / (neighbours - index + ratio)
    return found


def _fundamental(best: int, power: Vector) -> int:
    """Go from a line to the longest period of which it is a multiple and that has a line of its own.

    Any multiple can be the line of least probability: of a sharp period all have the same power. The power
    at a part of a frequency that is no multiple is noise, far below that of a line. Of many parts some come
    high by chance; of a period, its multiples up to the line are high with it.
    """
    divisors = np.arange(best // (2 * _FEWEST_FITTING), 1, -1)
    is_line = power[_around(best / divisors, power.size)].max(axis=-1) > max(power[best] / 4, _LINE)
    for divisor in divisors[is_line]:
        multiples = best / divisor * np.arange(1, min(divisor, _MOST_MULTIPLES + 1))
        beside = _around(multiples, power.size)
        powers = power[beside]
        if powers.max(axis=-1).mean() > power[best] / 4:
            return int(beside[0, np.argmax(powers[0])])
    return best


def _around(places: Vector, count: int) -> NDArray[np.int64]:
    """Give the ordinate nearest to each place and its neighbours, of so many: shape (n, 3)."""
    beside = np.rint(places).astype(np.int64)[:, None] + np.arange(-1, 2)
    return np.asarray(np.clip(beside, 2 * _FEWEST_FITTING, count - 1), dtype=np.int64)


def _refined(times: Vector, frequency: float, length: float) -> float:
    """Find the frequency of most power within one ordinate."""
    for width in _STEPS:
        tried = frequency + np.linspace(-width, width, 41) / length
        tried = tried[tried > 0]
        power = np.abs(np.exp(-2j * math.pi * np.outer(tried, times)).sum(axis=1))
        frequency = float(tried[np.argmax(power)])
    return frequency


def _products(first: Vector, second: Vector) -> Vector:
    """Give the inner product of each row with each row."""
    return np.array([[inner_product(one, other) for other in second] for one in first])


def _estimated(times: Vector, frequency: float, p_value: float, resolution_ns: float) -> Period:
    """Give the period with the interval of an M-estimator.

    Frequency f and phase a maximise sum cos(2 pi f t - a). With v = (2 pi t, -1), the angle's derivatives,
    A = sum cos(.) v v' and B = sum sin^2(.) v v', their covariance is A^-1 B A^-1: events out of phase count.
    To the half width comes what the resolution d of times leaves open, f d / (last - first).
    """
    centred = times - times.mean()
    phase = float(np.angle(np.exp(2j * math.pi * frequency * centred).sum()))
    angle = 2 * math.pi * frequency * centred - phase
    share = float((np.cos(angle) >= 0.0).mean())
    # In units of the whole time, so that both columns are of one size.
    scale = float(np.ptp(centred))
    columns = np.stack([2 * math.pi * centred / scale, -np.ones(times.size)])
    curvature = _products(columns * np.cos(angle), columns)
    scores = _products(columns * np.sin(angle) ** 2, columns)
    inverse = np.linalg.inv(curvature)
    error = math.sqrt(max(float((inverse @ scores @ inverse)[0, 0]), 0.0)) / scale
    error = math.hypot(error, _STEPS[-1] / 20 / scale)
    width = float(stats.t.ppf(0.975, times.size - 2)) * error + frequency * resolution_ns / scale
    low, high = 1 / (frequency + width), 1 / max(frequency - width, 1e-300)
    return Period(
        is_periodic=True,
        p_value=p_value,
        period_ns=1 / frequency,
        low_ns=low,
        high_ns=high,
        locked_share=share,
    )
