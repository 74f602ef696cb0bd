"""The step of a clock, found in the values it gave.

Two grids must not be taken for each other: the *printing grid* (how many digits a value was written with)
and the *clock grid* (the step the clock itself moves in). A clock of 1 ms may be printed with 0.1 ms
digits, and noise in reading or writing may move values a little off the grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

FINEST_S: Final = 1e-9
"""Clocks are read in whole nanoseconds."""

_STEPS: Final = (1.0, 2.0, 2.5, 10.0 / 3.0, 4.0, 5.0)
"""Steps within a decade: clocks tick at 1000, 400, 300, 250, 200, 100 Hz and their like."""

_CONCENTRATION: Final = 0.7
"""Mean resultant length of phases above which values sit on a grid: about 0.7 is a jitter of an eighth of
the step."""

_FEWEST: Final = 30
_FEWEST_STEPS: Final = 5
_TIED: Final = 0.5


@dataclass(frozen=True, slots=True)
class ClockGrid:
    """What the values say about their clock. All steps in seconds.

    Parameters
    ----------
    printing_step_s : float
        Smallest decimal step all values are multiples of.
    clock_step_s : float or None
        Step of the clock; ``None`` where no grid shows, so that the clock is as fine as its printing or
        finer.
    on_grid_share : float or None
        Share of values within an eighth of a step of the grid, in [0, 1].
    values : int
        Values the answer rests on.
    """

    printing_step_s: float
    clock_step_s: float | None
    on_grid_share: float | None
    values: int

    @property
    def step_s(self) -> float:
        """The step to reckon with: the clock's, else the printing's."""
        return self.printing_step_s if self.clock_step_s is None else self.clock_step_s


def detect_grid(groups: Sequence[NDArray[np.float64]]) -> ClockGrid:
    """Find the step of the clock that gave some values.

    Parameters
    ----------
    groups : sequence of ndarray
        Values [s] of one clock, one array per cell: a step can be told only where the values of a cell
        spread over several steps, however far apart the cells are.

    Returns
    -------
    ClockGrid
        Of the coarsest grid that holds.

    References
    ----------
    .. [1] Own definition: phases of the values modulo a candidate step are tested for concentration by
       their mean resultant length (Mardia & Jupp, "Directional Statistics", 2000, section 6.3.1); exact
       ties give the step as a common divisor.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> ticks = rng.integers(200, 400, 300) * 1e-3 + rng.choice([-1e-4, 0, 1e-4], 300)
    >>> grid = detect_grid([ticks])
    >>> grid.clock_step_s, grid.printing_step_s
    (0.001, 0.0001)
    """
    finite = [group[np.isfinite(group)] for group in groups]
    pooled = np.concatenate(finite) if finite else np.empty(0)
    printing = _printing_step(pooled)
    middles = [
        float(np.subtract(*np.quantile(group, [0.75, 0.25]))) if group.size else 0.0 for group in finite
    ]
    for step in _candidates(printing, finite):
        eligible = [
            group for group, middle in zip(finite, middles, strict=True) if _spreads_over(group, middle, step)
        ]
        count = sum(group.size for group in eligible)
        if count < _FEWEST:
            continue
        phases = np.concatenate(eligible) / step
        if abs(np.mean(np.exp(2j * np.pi * phases))) >= _CONCENTRATION and _is_centred(phases):
            share = float(np.mean(np.abs(phases - np.round(phases)) <= 0.125))  # noqa: PLR2004 - an eighth
            return ClockGrid(printing, step, share, count)
    return _by_ties(finite, printing)


def _printing_step(values: NDArray[np.float64]) -> float:
    for digits in range(9):
        scaled = values * 10.0**digits
        # A double holds 15 to 16 digits: what is left of a multiple is rounding of the product.
        if np.all(np.abs(scaled - np.round(scaled)) <= 1e-6 + np.abs(scaled) * 1e-14):
            return float(f"1e-{digits}")
    return FINEST_S


def _candidates(printing: float, groups: Sequence[NDArray[np.float64]]) -> Iterator[float]:
    """Give steps coarser than the printing, coarsest first, as far as the widest group can show them."""
    widest = max((float(np.ptp(group)) for group in groups if group.size), default=0.0)
    if widest <= printing:
        return
    for decade in range(math.ceil(math.log10(widest)), math.floor(math.log10(printing)) - 1, -1):
        for factor in reversed(_STEPS):
            step = factor / 10**-decade if decade < 0 else factor * 10**decade
            if printing * 1.5 < step < widest:
                yield step


def _spreads_over(group: NDArray[np.float64], middle: float, step: float) -> bool:
    """Whether values without a grid would have all phases: their middle half spans a step."""
    if group.size < _FEWEST_STEPS or middle < step:
        return False
    return np.unique(np.round(group / step)).size >= _FEWEST_STEPS


def _is_centred(phases: NDArray[np.float64]) -> bool:
    """Whether the phases gather at whole steps: a shifted grid is none of a clock that starts at 0."""
    return abs(float(np.angle(np.mean(np.exp(2j * np.pi * phases))))) < np.pi / 4


def _by_ties(groups: Sequence[NDArray[np.float64]], printing: float) -> ClockGrid:
    """Tell the step of a coarse clock whose values hardly spread: equal values, all multiples of one step."""
    units = [np.round(group / printing).astype(np.int64) for group in groups if group.size >= _FEWEST_STEPS]
    total = sum(unit.size for unit in units)
    tied = [unit for unit in units if np.unique(unit).size <= _TIED * unit.size]
    distinct = sum(np.unique(unit).size for unit in tied)
    if sum(unit.size for unit in tied) < max(_FEWEST, 0.9 * total) or distinct <= len(tied):
        return ClockGrid(printing, None, None, total)
    divisor = int(np.gcd.reduce(np.concatenate(units)))
    return ClockGrid(printing, max(divisor, 1) * printing, 1.0, total)
