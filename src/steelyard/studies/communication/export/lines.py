"""Curves of a cost model as lines over whole numbers of bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.model.cost_model import CostPiece

LARGEST_BYTES: Final = 2**31 - 1
"""Largest size a curve is followed to: a count of MPI is an ``int``."""

MOST_LINES: Final = 2200
"""More make ``smpi/os`` longer than one word of a command line may be: 128 KiB, 57 characters each."""

TOO_MANY: Final = "data.sections"
"""Code of the error about a curve that needs too many lines or sections."""


@dataclass(frozen=True, slots=True)
class Line:
    """Seconds ``base + slope n`` for the sizes ``first <= n <= last`` [bytes]."""

    first: int
    last: int
    base: float
    slope: float

    def at(self, size: float) -> float:
        """Give its value [s]."""
        return self.base + self.slope * size

    def within(self, first: int, last: int) -> Line:
        """Give the same line on fewer sizes."""
        return Line(first, last, self.base, self.slope)


def curve_lines(pieces: Sequence[CostPiece], *, tolerance: float, largest: int = LARGEST_BYTES) -> list[Line]:
    """Give a curve as lines; power laws as chords.

    Parameters
    ----------
    pieces : sequence of CostPiece
        The curve.
    tolerance : float
        Largest relative distance between a power law and its chord, positive.
    largest : int
        Largest size that matters, from 0.

    Returns
    -------
    list of Line
        Ascending, without gaps, from 0 to `largest`. Constants and lines are exact.

    Raises
    ------
    DataError
        If a value is not finite or not positive, or too many chords are needed.
    """
    found: list[Line] = []
    for piece in pieces:
        first = math.floor(piece.low) + 1
        last = largest if piece.high is None else min(math.floor(piece.high), largest)
        if first > last:
            continue
        _require_times(piece, first, last)
        if piece.kind == "power":
            found += _chords(piece, first, last, tolerance)
        else:
            slope = 0.0 if piece.kind == "constant" else piece.slope
            found.append(Line(first, last, piece.base, slope))
    if not found or found[0].first > 0:
        msg = "the first piece of a curve does not begin at 0 bytes"
        raise DataError(msg, hint="its `low` must be -1", code="data.cost-model")
    return _limited(found)


def _require_times(piece: CostPiece, first: int, last: int) -> None:
    """Refuse a piece with values that are no durations; it is monotone, so its ends tell."""
    for size in (first, last):
        try:
            seconds = piece.at(size)
        except OverflowError:
            seconds = math.inf
        if not (math.isfinite(seconds) and seconds > 0):
            shown = "bytes" if size < LARGEST_BYTES else "bytes, the largest message of MPI,"
            msg = f"the model says that {size} {shown} take {seconds:g} s; expected a positive, finite time"
            raise DataError(
                msg,
                hint="fit again with more messages around this size, or of larger sizes",
                code="data.cost-model",
            )


def _limited(lines: list[Line]) -> list[Line]:
    if len(lines) > MOST_LINES:
        msg = f"the curve needs {len(lines)} lines; at most {MOST_LINES} fit into an option"
        raise DataError(msg, hint="fit fewer power laws", code=TOO_MANY)
    return lines


def _chords(piece: CostPiece, first: int, last: int, tolerance: float) -> list[Line]:
    found: list[Line] = []
    if first <= 1:
        # The law is defined from 1 byte on, below it stays.
        found.append(Line(first, min(1, last), piece.base, 0.0))
        first = 2
    step = 1
    while first <= last:
        end = furthest(first, last, partial(_is_close, piece, tolerance, first), step=step)
        found.append(_chord(piece, first, end))
        step = end - first + 1
        first = end + 1
        _limited(found)
    return found


def furthest(first: int, last: int, is_fine: Callable[[int], bool], *, step: int = 1) -> int:
    """Give a number up to `last` that is fine and nearly the largest, where all below a fine one are.

    Parameters
    ----------
    first, last : int
        The range; `first` is fine.
    is_fine : callable
        Whether a number is.
    step : int
        First step, positive: about how far is expected.

    Returns
    -------
    int
        At most 2 % of the way from `first` below the largest.

    Examples
    --------
    >>> furthest(3, 1000, lambda end: end <= 50), furthest(3, 10, lambda end: end <= 77)
    (50, 10)
    """
    low = first
    while low < last and is_fine(min(low + step, last)):
        low, step = min(low + step, last), 2 * step
    high = min(low + step, last)
    while high - low > max(1, (low - first) // 50):
        middle = (low + high) // 2
        low, high = (middle, high) if is_fine(middle) else (low, middle)
    return low


def _is_close(piece: CostPiece, tolerance: float, first: int, last: int) -> bool:
    return abs(_gap(piece, first, last)) <= 2 * tolerance


def _gap(piece: CostPiece, first: int, last: int) -> float:
    """Give the extreme of chord / law - 1 between the ends, where both agree.

    The extreme of (a + m n) / (c n^p) is where its derivative is 0: n = p a / (m (1 - p)).
    """
    if last - first <= 1 or piece.slope in (0.0, 1.0):
        return 0.0
    slope, base = _secant(piece, first, last)
    if slope == 0:
        return 0.0
    extreme = piece.slope * base / (slope * (1 - piece.slope))
    extreme = min(max(extreme, float(first)), float(last))
    return (base + slope * extreme) / piece.at(extreme) - 1


def _secant(piece: CostPiece, first: int, last: int) -> tuple[float, float]:
    begin, end = piece.at(first), piece.at(last)
    slope = (end - begin) / (last - first)
    return slope, begin - slope * first


def _chord(piece: CostPiece, first: int, last: int) -> Line:
    if first == last:
        return Line(first, last, piece.at(first), 0.0)
    slope, base = _secant(piece, first, last)
    # Moved by half of the gap, so that it is as far off at its ends as between them.
    scale = 1 / (1 + _gap(piece, first, last) / 2)
    return Line(first, last, base * scale, slope * scale)
