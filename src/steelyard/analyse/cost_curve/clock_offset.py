"""Offset and drift between two clocks from probes that travel there and back, with a sure error."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]
    Vector = NDArray[np.float64]

_STEADY_NS: Final = 1e9
"""Shorter spans say nothing about a drift: 1 ns in 1 s is 1 ppb already."""

_LINE: Final = 2
"""Estimates that a line passes through exactly."""


@dataclass(frozen=True, slots=True)
class OffsetEstimate:
    """What one group of probes says.

    Parameters
    ----------
    at_ns : float
        Clock 0 in the middle of the group.
    offset_ns, error_ns : float
        Clock 1 minus clock 0, and how far the truth may be from it.
    probes : int
        In the group.
    """

    at_ns: float
    offset_ns: float
    error_ns: float
    probes: int


@dataclass(frozen=True, slots=True)
class ClockModel:
    """A line that takes stamps of clock 1 to clock 0.

    Parameters
    ----------
    origin_ns : int
        Stamp of clock 0 that the line is written around.
    base_ns : int
        Whole part of the offset there; the rest is in `offset_ns`, so that nothing is lost to rounding.
    offset_ns, drift_ppb : float
        Clock 1 minus clock 0 is base + offset + drift (clock 0 - origin).
    error_ns : float
        How far the offset, anywhere between the first and the last probe, may be from the truth.
    drift_error_ppb : float
        Standard error of the drift, from the scatter of the estimates around the line; NaN without a drift.
    residual_ns : float
        Largest distance of an estimate from the line.
    estimates : tuple of OffsetEstimate
        In the order of time, offsets less `base_ns`.
    is_shared : bool
        Whether both stamps are of one clock, so that nothing had to be estimated.
    """

    origin_ns: int
    base_ns: int
    offset_ns: float
    drift_ppb: float
    error_ns: float
    drift_error_ppb: float
    residual_ns: float
    estimates: tuple[OffsetEstimate, ...]
    is_shared: bool = False

    def as_shared(self) -> ClockModel | None:
        """Give the model of one clock that both ends read; ``None`` if a probe says that they differ."""
        from_zero = [(abs(self.base_ns + each.offset_ns), each.error_ns) for each in self.estimates]
        if any(offset > error for offset, error in from_zero):
            return None
        moved = tuple(replace(each, offset_ns=self.base_ns + each.offset_ns) for each in self.estimates)
        residual = max(offset for offset, _ in from_zero)
        return ClockModel(self.origin_ns, 0, 0.0, 0.0, 0.0, math.nan, residual, moved, is_shared=True)

    def to_clock_0(self, stamps_ns: NDArray[np.unsignedinteger]) -> Whole:
        """Give stamps of clock 1 as stamps of clock 0, rounded to a nanosecond."""
        raw = stamps_ns.astype(np.int64) - np.int64(self.base_ns)
        since = (raw - np.int64(self.origin_ns)).astype(np.float64) - self.offset_ns
        moved = since / (1.0 + self.drift_ppb * 1e-9)
        return np.asarray(np.int64(self.origin_ns) + np.round(moved).astype(np.int64))


SHARED_CLOCK: Final = ClockModel(0, 0, 0.0, 0.0, 0.0, math.nan, 0.0, (), is_shared=True)
"""Of one clock that both ends are known to read, without a probe."""


def clock_model(group: Whole, send0: Whole, time1: Whole, recv0: Whole) -> ClockModel:
    """Fit offset and drift to probes.

    A probe leaves at `send0` (clock 0), is answered at `time1` (clock 1) and is back at `recv0` (clock 0):
    the offset lies between time1 - recv0 and time1 - send0. Of a group the largest lower and the smallest
    upper limit count; their middle is the estimate, half their distance its error. A line through the groups'
    estimates gives the drift where probes span more than a second. What a group's error has beyond that of
    the best group bounds how unevenly its fastest probes were delayed, so that weights fall with its square.

    Parameters
    ----------
    group, send0, time1, recv0 : ndarray of int
        Shape (n,): probes with the same number were sent together; stamps [ns].

    Returns
    -------
    ClockModel
        Its error is the largest over the groups of what a group's own limits leave on either side of the
        line, so that it covers the truth wherever the limits do.

    Raises
    ------
    AnalysisError
        If there is no probe, or one is back before it was sent.

    References
    ----------
    .. [1] Worsch, Reussner & Augustin (2002), SKaMPI: limits of the offset from many round trips.

    Examples
    --------
    >>> send = np.arange(0, 10_000_000_000, 1_000_000)
    >>> there, back = 5000 + send % 700, 5000 + send % 900
    >>> model = clock_model(send // 10**9, send, send + there + 123_456, send + there + back)
    >>> abs(model.offset_ns + model.base_ns - 123_456) < 100, round(model.error_ns)
    (True, 5000)
    """
    if send0.size == 0:
        message = "the trace has no clock probe"
        raise AnalysisError(message, hint="repeat the run: probes are sent before and after the operations")
    sent, answered, back = (np.asarray(each).astype(np.int64) for each in (send0, time1, recv0))
    if np.any(back < sent):
        message = f"clock probe number {int(np.argmax(back < sent))} (from 0) came back before it was sent"
        raise AnalysisError(message, hint="the file is damaged: repeat the run")
    origin, base = int(sent[0]), int(answered[0] - sent[0])
    middle = (sent - origin) + (back - sent) / 2
    lower = (answered - back - base).astype(np.float64)
    upper = (answered - sent - base).astype(np.float64)
    times, limits, counts = [], [], []
    for number in np.unique(group):
        inside = group == number
        times.append(float(middle[inside].mean()))
        limits.append((float(lower[inside].max()), float(upper[inside].min())))
        counts.append(int(inside.sum()))
    return _line(origin, base, (np.array(times), np.array(limits), np.array(counts)))


def _line(origin: int, base: int, groups: tuple[Vector, Vector, Whole]) -> ClockModel:
    at, limits, counts = groups
    offsets = limits.mean(axis=1)
    # Limits that contradict each other (the clock moved within the group) err by as much as they do.
    errors = np.maximum(np.abs(limits[:, 1] - limits[:, 0]) / 2, 1.0)
    excess = errors - errors.min()
    weights = 1.0 / (excess + max(float(np.median(excess)), 1.0)) ** 2
    centre = float(np.average(at, weights=weights))
    spread = float(np.sum(weights * (at - centre) ** 2))
    has_drift = at.size > 1 and float(np.ptp(at)) > _STEADY_NS
    level = float(np.average(offsets, weights=weights))
    slope = float(np.sum(weights * (at - centre) * (offsets - level))) / spread if has_drift else 0.0
    fitted = level + slope * (at - centre)
    best = errors <= 2 * errors.min()
    reach = np.abs(fitted - offsets) + errors
    scatter = float(np.sum(weights * (fitted - offsets) ** 2)) / max(at.size - 2, 1)
    drift_error = math.sqrt(scatter / spread) * 1e9 if has_drift and at.size > _LINE else math.nan
    return ClockModel(
        origin_ns=origin,
        base_ns=base,
        offset_ns=level - slope * centre,
        drift_ppb=slope * 1e9,
        error_ns=float(reach[best].max()),
        drift_error_ppb=drift_error,
        residual_ns=float(np.max(np.abs(fitted - offsets)[best])),
        estimates=tuple(
            OffsetEstimate(origin + float(time), float(offset), float(error), int(count))
            for time, offset, error, count in zip(at, offsets, errors, counts, strict=True)
        ),
    )
