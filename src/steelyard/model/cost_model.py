"""What moving n bytes costs over one transport in one state of the host: the model card as data."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Mapping  # noqa: TC003 - the reader of documents resolves it
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from steelyard.errors import AnalysisError, DataError, UsageError
from steelyard.model.document import read_document

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA: Final = "steelyard/cost-model/2"
"""Number 1 does not say which sizes were measured."""

ROUND_TRIP: Final = "half a round trip"
PieceName = Literal["constant", "line", "power"]
BoundarySource = Literal["search", "measured", "declared"]


@dataclass(frozen=True, slots=True)
class CostPiece:
    """One piece of a curve: seconds over bytes, for sizes in (low, high].

    Parameters
    ----------
    low, high : float
        Bytes; the first piece begins at -1, so that it holds 0, and the last one's `high` is ``None``.
    kind : str
        ``constant`` (base), ``line`` (base + slope n) or ``power`` (base n^slope).
    base, slope : float
        Level, intercept or factor [s]; 0, seconds per byte, or exponent.
    base_error, slope_error : float or None
        Standard errors.
    count : int
        Operations it was fitted to.
    """

    low: float
    high: float | None
    kind: PieceName
    base: float
    slope: float
    base_error: float | None = None
    slope_error: float | None = None
    count: int = 0

    def at(self, size: float) -> float:
        """Give the seconds that the curve of this piece says, also outside of its range."""
        if self.kind == "power":
            return float(self.base * max(size, 1.0) ** self.slope)
        return self.base + self.slope * size


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where the curve of delays changes.

    Parameters
    ----------
    at, low, high : float
        Bytes: the largest size before it, the largest size that is surely before it, and the smallest that is
        surely beyond.
    recurrence : float
        Part of the resamples in which a search that is told nothing found a boundary here.
    kind : str
        ``protocol``: something switches here; ``knot``: the pieces only approximate a bend.
    source : str
        How its place is known: ``search`` from the costs, ``measured`` by an experiment of its own,
        ``declared`` by the library and confirmed by the costs.
    """

    at: float
    low: float
    high: float
    recurrence: float
    kind: Literal["protocol", "knot"]
    source: BoundarySource = "search"


@dataclass(frozen=True, slots=True)
class TailLaw:
    """A heavy tail of noise: P(ratio > threshold + y) = share (1 + shape y / scale)^(-1 / shape).

    Parameters
    ----------
    share : float
        Of the messages, beyond the threshold.
    threshold, scale : float
        Ratios; positive.
    shape : float
        Above 0; one over the index. From 1 on the mean is infinite.
    """

    share: float
    threshold: float
    shape: float
    scale: float

    def quantile(self, probability: float) -> float:
        """Give the ratio below which a share of all messages lies, from `1 - share` on.

        Examples
        --------
        >>> tail = TailLaw(share=0.01, threshold=2.0, shape=0.5, scale=1.0)
        >>> [round(tail.quantile(share), 3) for share in (0.99, 0.9975)]
        [2.0, 4.0]
        """
        left = max(1.0 - probability, 1e-300) / self.share
        return float(self.threshold + self.scale * (left**-self.shape - 1.0) / self.shape)


@dataclass(frozen=True, slots=True)
class NoiseClass:
    """The noise of messages with sizes in (low, high]: measured time over the curve.

    Parameters
    ----------
    low, high : float or None
        Bytes, as in `CostPiece`.
    quantiles : tuple of float
        Ratios at equidistant probabilities from 0 to 1, ascending, at least 2.
    tail_index : float or None
        Hill's index of the largest 2 %; smaller is heavier.
    law : str
        Law that fits, or why none does.
    tail : TailLaw or None
        Law of the largest ratios where they have a heavy tail; it holds there instead of the quantiles.
    """

    low: float
    high: float | None
    quantiles: tuple[float, ...]
    tail_index: float | None
    law: str
    tail: TailLaw | None = None


@dataclass(frozen=True, slots=True)
class CostModel:
    """The model of one transport.

    Parameters
    ----------
    transport : str
        What was measured, e.g. ``openmpi``.
    state : str
        State of the host it holds in.
    curves : Mapping
        Pieces by name, ascending, without gaps: ``delay`` (half a round trip, always there), ``send``
        (duration of a blocking send), ``isend``, ``recv`` (of a message that has arrived), ``one_way`` (one
        message without an answer, where the clocks of both ends are known well enough).
    bandwidth_bytes_per_s, latency_s : float
        Of the link the factors of an export refer to.
    costs_s : Mapping
        Seconds of ``test``, ``iprobe``, ``wtime``, where measured.
    asynchronous_bytes, detached_bytes : int or None
        Largest message whose send returns although the receiver only progresses, and makes no call at all.
    boundaries, noise : tuple
        Of the curve of delays.
    timed : str
        What the times of the curve of delays are: half a round trip, unless a recording has none.
    measured_bytes : Mapping
        Smallest and largest measured size of each curve; of a curve that is not in it they are not known.
    """

    transport: str
    state: str
    curves: Mapping[str, tuple[CostPiece, ...]]
    bandwidth_bytes_per_s: float
    latency_s: float
    costs_s: Mapping[str, float] = field(default_factory=dict)
    asynchronous_bytes: int | None = None
    detached_bytes: int | None = None
    boundaries: tuple[Boundary, ...] = ()
    noise: tuple[NoiseClass, ...] = ()
    timed: str = ROUND_TRIP
    measured_bytes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    schema: str = SCHEMA

    def predict(self, size: float, *, curve: str = "delay") -> float:
        """Give the seconds a message of so many bytes takes.

        Raises
        ------
        UsageError
            If the size is negative or not finite, or the model has no such curve.
        AnalysisError
            If the curve says no positive, finite time there, as a line does below its smallest measured size
            where it starts below zero.

        Examples
        --------
        >>> small, large = CostPiece(-1, 1000, "constant", 5e-6, 0), CostPiece(1000, None, "line", 4e-6, 1e-9)
        >>> model = CostModel("tcp", "fast", {"delay": (small, large)}, 1e9, 5e-6)
        >>> model.predict(1000), round(model.predict(1_000_000), 6)
        (5e-06, 0.001004)
        """
        if not (math.isfinite(size) and size >= 0):
            msg = f"size `{size}` is not a number of bytes; allowed: 0 or more"
            raise UsageError(msg, hint="give the size in bytes")
        pieces = self.curves.get(curve)
        if not pieces:
            msg = f"this model has no curve `{curve}`; it has: {', '.join(sorted(self.curves))}"
            raise UsageError(msg, hint="name one of these curves")
        ends = [piece.high for piece in pieces[:-1] if piece.high is not None]
        try:
            seconds = pieces[bisect_left(ends, size)].at(size)
        except OverflowError:
            seconds = math.inf
        if not (math.isfinite(seconds) and seconds > 0):
            where = f", {self.outside(size, curve)}" if self.is_measured(size, curve) is not True else ""
            msg = f"cannot predict `{curve}` of {size:g} bytes: the model says {seconds:.3g} s there{where}"
            raise AnalysisError(
                msg, hint="give a size that was measured, or measure this one", code="analysis.no-time"
            )
        return seconds

    def is_measured(self, size: float, curve: str = "delay") -> bool | None:
        """Whether a size lies within the measured ones of a curve; nothing where these are not known."""
        known = self.measured_bytes.get(curve)
        return None if known is None else known[0] <= size <= known[1]

    def outside(self, size: float, curve: str = "delay") -> str:
        """Say what a prediction of this size rests on that no measurement shows; empty where one does.

        Examples
        --------
        >>> curves = {"delay": (CostPiece(-1, None, "constant", 5e-6, 0),)}
        >>> model = CostModel("tcp", "fast", curves, 1e9, 5e-6, measured_bytes={"delay": (1, 65536)})
        >>> model.outside(65536), model.outside(65537)
        ('', 'outside the measured sizes (1 B to 65 536 B)')
        """
        if self.is_measured(size, curve):
            return ""
        if curve not in self.measured_bytes:
            return "the model does not say which sizes were measured"
        low, high = (f"{each:,} B".replace(",", " ") for each in self.measured_bytes[curve])
        if low == high:
            return f"outside the only measured size ({low})"
        return f"outside the measured sizes ({low} to {high})"

    def to_json(self) -> str:
        """Give it as a JSON document, the same text for the same model."""
        return json.dumps(asdict(self), indent=1, sort_keys=True, allow_nan=False) + "\n"


def read_cost_model(path: Path) -> CostModel:
    """Read a model that `CostModel.to_json` wrote, also one of an earlier version.

    Raises
    ------
    DataError
        If the file is absent, damaged, or no cost model.
    """
    hint = "analyse the result that it belongs to: `steelyard analyse DIR`"
    model = read_document(path, CostModel, SCHEMA, absent=hint, damaged=hint, is_older_read=True)
    for name, pieces in model.curves.items():
        ends = [piece.high for piece in pieces]
        begins = [piece.low for piece in pieces]
        if not pieces or ends[-1] is not None or begins[1:] != ends[:-1]:
            msg = f"`{path}`: the pieces of curve `{name}` do not follow each other up to the last one"
            raise DataError(msg, hint=hint, code="data.cost-model")
    for name, (low, high) in model.measured_bytes.items():
        if name not in model.curves or not 0 <= low <= high:
            msg = f"`{path}`: `measured_bytes` of `{name}` is not a range of sizes of one of its curves"
            raise DataError(msg, hint=hint, code="data.cost-model")
    return replace(model, schema=SCHEMA)
