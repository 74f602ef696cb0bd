"""How well drawn noise resembles measured noise, class by class: distributions, and quantiles within 10 %."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from steelyard import _native
from steelyard.analyse.cost_curve.quantile_table import kolmogorov_distance
from steelyard.studies.communication.export.simgrid import to_simgrid
from steelyard.studies.communication.export.simgrid_noise import to_noise
from steelyard.studies.communication.simulation.message_run import simulate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.model.cost_model import CostModel

    Vector = NDArray[np.float64]

QuantileVerdict = Literal["within 10 %", "beyond 10 %", "undecided"]

PERCENTILES: Final = (50, 95, 99)

LEVEL: Final = 0.95

_MARGIN: Final = 0.1
_DRAWS: Final = 25_000
"""Messages that are drawn where fewer were held out, so that the interval is that of what was measured."""
_MOST_DRAWS: Final = 5
"""Draws per held-out message at most."""


@dataclass(frozen=True, slots=True)
class QuantileRatio:
    """Simulated over measured quantile.

    Parameters
    ----------
    percentile : int
        Which quantile, in (0, 100).
    ratio : float
        Of the quantiles of the two samples.
    low, high : float or None
        95 % interval; 0 or ``None`` where too few values were measured for a limit: the 99 % quantile of
        fewer than 437 values has no upper one.
    """

    percentile: int
    ratio: float
    low: float
    high: float | None

    @property
    def verdict(self) -> QuantileVerdict:
        """Whether the quantiles are surely within 10 % of each other, surely not, or neither."""
        high = math.inf if self.high is None else self.high
        if self.low >= 1 - _MARGIN and high <= 1 + _MARGIN:
            return "within 10 %"
        return "beyond 10 %" if high < 1 - _MARGIN or self.low > 1 + _MARGIN else "undecided"


@dataclass(frozen=True, slots=True)
class NoiseDistance:
    """Measured and simulated ratios to the curve, for sizes in (low, high].

    Parameters
    ----------
    low, high : float or None
        Bytes, as in the noise class.
    operations : int
        Measured ones.
    distance, noiseless_distance : float
        Kolmogorov-Smirnov distance with drawn noise, and with the curve alone.
    quantiles : tuple of QuantileRatio
        Of the 50th, 95th and 99th percentile.
    """

    low: float | None
    high: float | None
    operations: int
    distance: float
    noiseless_distance: float
    quantiles: tuple[QuantileRatio, ...]

    @property
    def verdict(self) -> QuantileVerdict:
        """Whether all quantiles are within 10 %, one is surely not, or neither is sure."""
        found = {each.verdict for each in self.quantiles}
        if "beyond 10 %" in found:
            return "beyond 10 %"
        return "undecided" if "undecided" in found else "within 10 %"


def noise_distances(
    model: CostModel, sizes: NDArray[np.int64], half_round_trips_s: Vector, seed: int
) -> tuple[NoiseDistance, ...]:
    """Let SimGrid draw the times of held-out messages, and compare them class by class.

    Parameters
    ----------
    model : CostModel
        With noise.
    sizes, half_round_trips_s : ndarray
        Shape (n,), n >= 1: bytes, and what was measured.
    seed : int
        Of the draws.

    Raises
    ------
    CapabilityError, RunError
        If SimGrid is missing, or fails.
    """
    simgrid = to_simgrid(model)
    repeated = np.tile(sizes, min(max(_DRAWS // len(sizes), 1), _MOST_DRAWS))
    answer = simulate(simgrid, repeated, noise=to_noise(model, seed=seed))
    drawn = answer.half_round_trips_s / simgrid.half_round_trips(repeated)
    measured = half_round_trips_s / simgrid.half_round_trips(sizes)
    found = []
    for each in model.noise:
        low = -math.inf if each.low is None else each.low
        high = math.inf if each.high is None else each.high
        truth = measured[(sizes > low) & (sizes <= high)]
        said = drawn[(repeated > low) & (repeated <= high)]
        if truth.size:
            found.append(
                NoiseDistance(
                    each.low,
                    each.high,
                    len(truth),
                    kolmogorov_distance(truth, said),
                    kolmogorov_distance(truth, np.ones(1)),
                    quantile_ratios(said, truth),
                )
            )
    return tuple(found)


def quantile_ratios(simulated: Vector, measured: Vector) -> tuple[QuantileRatio, ...]:
    """Give the ratios of quantiles of two samples of independent positive values, with intervals.

    Parameters
    ----------
    simulated, measured : ndarray
        Shapes (m,) and (n,), at least one value each.

    References
    ----------
    .. [1] David & Nagaraja (2003), Order Statistics, section 7.1: exact limits of a quantile. Those of either
           sample hold 97.5 %, so that both together hold 95 % (Bonferroni).

    Examples
    --------
    >>> values = np.linspace(1.0, 2.0, 10_001)
    >>> [(each.percentile, each.verdict) for each in quantile_ratios(1.2 * values, values)]
    [(50, 'beyond 10 %'), (95, 'beyond 10 %'), (99, 'beyond 10 %')]
    >>> quantile_ratios(values, values[::100])[2].verdict
    'undecided'
    """
    found = []
    for percentile in PERCENTILES:
        share = percentile / 100
        (low, high), (least, most) = (_limits(each, share) for each in (simulated, measured))
        ratio = float(np.quantile(simulated, share) / np.quantile(measured, share))
        found.append(
            QuantileRatio(
                percentile,
                ratio,
                low / most,
                high / least if least > 0 and math.isfinite(high) else None,
            )
        )
    return tuple(found)


def _limits(values: Vector, share: float) -> tuple[float, float]:
    """Give the exact 97.5 % limits of a quantile of positive values; 0 and infinity where there are none."""
    low, high, _ = _native.order_interval(np.sort(values), share, level=(1 + LEVEL) / 2)
    return max(low, 0.0), high
