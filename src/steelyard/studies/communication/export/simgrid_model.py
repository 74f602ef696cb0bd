"""What SimGrid's SMPI is told of a transport, and what it will answer: both as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from steelyard.studies.communication.export.simgrid_sections import ENVELOPE_BYTES

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

Profile = Literal["rtt", "os"]

UNLIMITED_WINDOW_BYTES: Final = 1e12
"""TCP window that limits nothing; 0 would be unsafe on SimGrid 3.32."""
TIMING_PRECISION_S: Final = 1e-12
"""``smpirun`` gives 1e-9, which is 0.5 % of a message in shared memory."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor for messages whose size plus 16 is above `above` bytes."""

    above: int
    value: float


@dataclass(frozen=True, slots=True)
class Overhead:
    """``base_s + slope n`` seconds of the CPU for messages above `above` bytes."""

    above: int
    base_s: float
    slope_s_per_byte: float


@dataclass(frozen=True, slots=True)
class ExportNote:
    """Where an export is not simply the model's coefficients.

    Parameters
    ----------
    reason : str
        ``re-anchored``: a line lower at 0 bytes than its slope times 16, which SimGrid cannot say,
        became sections through the origin. ``falling``: times that fall with size became constants.
        ``chords``: a power law became lines. ``send-above-delay``: the send alone takes longer than
        half a round trip; the transfer is 1 ns. ``threshold-unknown``: SimGrid's own is used.
        ``threshold-lowered``: sends that return only once the receiver makes progress outlast half a
        round trip, so they are not taken to return early.
        ``above-largest``: a piece begins above the sizes that SimGrid tells apart. ``no-round-trips``: the
        model rests on times of calls, which SimGrid takes for those until a message arrives.
        ``extrapolated``: outside the measured sizes of a curve that is charged. ``measured-unknown``: the
        model does not say which sizes were measured.
    low, high : int
        Smallest and largest size it concerns [bytes].
    sections : int
        Sections that it became; 0 where that says nothing.
    """

    reason: str
    low: int
    high: int
    sections: int = 0


@dataclass(frozen=True, slots=True)
class SimGridModel:
    """The options of SMPI that reproduce a cost model.

    Parameters
    ----------
    name : str
        Of the cost model.
    profile : str
        ``rtt``: half round trips are exact, a send of an eager message takes no time. ``os``: the
        measured send is charged too, and half round trips stay what they are.
    bandwidth_bytes_per_s, latency_s : float
        Of the link.
    latency_factors, bandwidth_factors : tuple of Factor
        Ascending, the first above 0.
    send, isend : tuple of Overhead
        ``smpi/os`` and ``smpi/ois``; ``smpi/or`` is 0.
    asynchronous_below, detached_below : int
        Smaller messages are on their way before the receive is posted; smaller messages' sends return
        at once.
    notes : tuple of ExportNote
        What is not simply the model's.
    """

    name: str
    profile: Profile
    bandwidth_bytes_per_s: float
    latency_s: float
    latency_factors: tuple[Factor, ...]
    bandwidth_factors: tuple[Factor, ...]
    send: tuple[Overhead, ...]
    isend: tuple[Overhead, ...]
    asynchronous_below: int
    detached_below: int
    notes: tuple[ExportNote, ...] = ()

    def half_round_trips(self, sizes: ArrayLike) -> Vector:
        """Give what SMPI will answer for half a round trip, without SimGrid.

        Parameters
        ----------
        sizes : array_like
            Shape (n,), bytes, whole numbers from 0.

        Returns
        -------
        ndarray
            Shape (n,), seconds: [n < detached] os(n) + L lat(n + 16) + (n + 16) / (B bw(n + 16)).

        References
        ----------
        .. [1] SimGrid 3.32, ``smpi_request.cpp`` and ``network_cm02.cpp``: a section of a factor holds
           above its boundary, not from it on.
        """
        size = np.asarray(sizes, dtype=np.float64)
        return self.send_overheads(size) + self.transfers(size)

    def transfers(self, sizes: ArrayLike) -> Vector:
        """Give what SMPI will answer for the transfer alone; shape (n,), seconds."""
        sent = np.asarray(sizes, dtype=np.float64) + ENVELOPE_BYTES
        latency = self.latency_s * _factors(self.latency_factors, sent)
        bandwidth = self.bandwidth_bytes_per_s * _factors(self.bandwidth_factors, sent)
        return np.asarray(latency + sent / bandwidth)

    def send_overheads(self, sizes: ArrayLike) -> Vector:
        """Give what a send costs its CPU: ``smpi/os`` of detached messages, 0 of others; shape (n,), s."""
        size = np.asarray(sizes, dtype=np.float64)
        place = _places(tuple(each.above for each in self.send), size)
        base = np.array([each.base_s for each in self.send])[place]
        slope = np.array([each.slope_s_per_byte for each in self.send])[place]
        return np.where(size < self.detached_below, base + slope * size, 0.0)

    def send_durations(self, sizes: ArrayLike) -> Vector:
        """Give what SMPI will answer for a blocking send to a receiver that waits; shape (n,), seconds."""
        size = np.asarray(sizes, dtype=np.float64)
        is_detached = size < self.detached_below
        return np.where(is_detached, self.send_overheads(size), self.transfers(size))


def _places(above: tuple[int, ...], sizes: Vector) -> NDArray[np.intp]:
    """Give the section of each size; below the first boundary SimGrid 3.32 takes the first overhead."""
    return np.maximum(np.searchsorted(np.array(above), sizes, side="left") - 1, 0)


def _factors(factors: tuple[Factor, ...], sizes: Vector) -> Vector:
    place = _places(tuple(factor.above for factor in factors), sizes)
    return np.asarray(np.array([factor.value for factor in factors])[place])
