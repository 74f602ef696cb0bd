"""Lines as what SimGrid's network model can express: a latency and a rate, none negative."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.studies.communication.export.lines import TOO_MANY, Line, furthest

if TYPE_CHECKING:
    from collections.abc import Sequence

ENVELOPE_BYTES: Final = 16
"""SOURCE: SMPI adds the size of an MPI envelope before it looks for a factor (measured on 3.32)."""

LEAST_TRANSFER_S: Final = 1e-9
"""Transfer that is left where the send alone takes longer than half a round trip."""

MOST_SECTIONS: Final = 3500
"""More make an option longer than one word of a command line may be: 128 KiB, 34 characters each."""

_NEGLIGIBLE: Final = 1e-9
"""Part of a constant that its bandwidth adds: an infinite bandwidth cannot be written."""


@dataclass(frozen=True, slots=True)
class Section:
    """What a transfer of n bytes takes, ``latency_s + (n + 16) seconds_per_byte``, for n > `above`."""

    above: int
    latency_s: float
    seconds_per_byte: float


def sections(transfer: Sequence[Line], whole: Sequence[Line], *, tolerance: float) -> list[list[Section]]:
    """Give the sections of each line.

    A line ``a + b n`` with a >= 16 b >= 0 is one section, exactly. One that is lower at the begin than
    its slope allows is re-anchored: cut into sections through the origin. One that falls is cut into
    constants.

    Parameters
    ----------
    transfer : sequence of Line
        Time of the transfer, positive.
    whole : sequence of Line
        Same places: the time that distances are relative to.
    tolerance : float
        Largest distance, as a part of `whole`.

    Returns
    -------
    list of list of Section
        For each line its sections, ascending.

    Raises
    ------
    DataError
        If there are more than an option can hold.
    """
    found = [_of_line(line, each, tolerance) for line, each in zip(transfer, whole, strict=True)]
    count = sum(map(len, found))
    if count > MOST_SECTIONS:
        raise too_many_sections(count)
    return found


def _of_line(line: Line, whole: Line, tolerance: float) -> list[Section]:
    latency = line.base - ENVELOPE_BYTES * line.slope
    if line.slope > 0 and latency >= 0:
        return [Section(line.first - 1, latency, line.slope)]
    if line.slope == 0:
        return [_constant(line.first, line.last, line.base)]
    is_falling = line.slope < 0
    found: list[Section] = []
    first, step = line.first, 1
    while first <= line.last:
        if len(found) > MOST_SECTIONS:
            raise too_many_sections(len(found))
        last = furthest(first, line.last, partial(_is_close, line, whole, tolerance, first), step=step)
        level = _level(line, whole, first, last, is_falling=is_falling)
        found.append(_constant(first, last, level) if is_falling else Section(first - 1, 0.0, level))
        step = last - first + 1
        first = last + 1
    return found


def too_many_sections(count: int) -> DataError:
    """Give the error about a model that SimGrid cannot be told."""
    msg = f"the export needs more than {min(count, MOST_SECTIONS)} sections, and no more fit into an option"
    return DataError(msg, hint="fit fewer power laws and no falling pieces", code=TOO_MANY)


def _constant(first: int, last: int, seconds: float) -> Section:
    return Section(first - 1, seconds, _NEGLIGIBLE * seconds / (last + ENVELOPE_BYTES))


def _weights(whole: Line, size: int, *, is_falling: bool) -> float:
    """Give what one unit of level changes at a size, relative to the whole."""
    return (1.0 if is_falling else size + ENVELOPE_BYTES) / whole.at(size)


def _wanted(line: Line, size: int, *, is_falling: bool) -> float:
    return line.at(size) if is_falling else line.at(size) / (size + ENVELOPE_BYTES)


def _level(line: Line, whole: Line, first: int, last: int, *, is_falling: bool) -> float:
    """Give the constant, or the slope through the origin, as far off at one end as at the other."""
    weights = [_weights(whole, size, is_falling=is_falling) for size in (first, last)]
    wanted = [_wanted(line, size, is_falling=is_falling) for size in (first, last)]
    return sum(w * x for w, x in zip(weights, wanted, strict=True)) / sum(weights)


def _is_close(line: Line, whole: Line, tolerance: float, first: int, last: int) -> bool:
    return _distance(line, whole, first, last, is_falling=line.slope < 0) <= tolerance


def _distance(line: Line, whole: Line, first: int, last: int, *, is_falling: bool) -> float:
    """Give the largest relative distance on [first, last].

    (level - wanted) weight is a ratio of two lines in n, hence monotone: the ends tell.
    """
    level = _level(line, whole, first, last, is_falling=is_falling)
    return max(
        abs(level - _wanted(line, size, is_falling=is_falling)) * _weights(whole, size, is_falling=is_falling)
        for size in (first, last)
    )
