"""From a cost model to the options of SimGrid's SMPI."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.errors import DataError
from steelyard.model.cost_model import ROUND_TRIP
from steelyard.studies.communication.export.lines import LARGEST_BYTES, TOO_MANY, Line, curve_lines
from steelyard.studies.communication.export.simgrid_model import (
    ExportNote,
    Factor,
    Overhead,
    Profile,
    SimGridModel,
)
from steelyard.studies.communication.export.simgrid_sections import ENVELOPE_BYTES, LEAST_TRANSFER_S, sections

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.model.cost_model import CostModel
    from steelyard.studies.communication.export.simgrid_sections import Section

TOLERANCES: Final = (4e-4, 9e-4)
"""Relative; what is cut is within the first, or the second where that needs more than an option can hold.
Both are below the promised 0.1 % of the model."""

SIMGRID_DETACHED_BYTES: Final = 65536
"""SOURCE: default of ``smpi/send-is-detached-thresh``."""

_NOTHING: Final[tuple[Overhead, ...]] = (Overhead(0, 0.0, 0.0),)


def to_simgrid(model: CostModel, profile: Profile = "rtt") -> SimGridModel:
    """Give the options of SMPI under which half round trips are those of the model.

    Parameters
    ----------
    model : CostModel
        With the curve ``delay``; for the profile ``os`` also ``send`` and a threshold.
    profile : str
        ``rtt`` or ``os``, as `SimGridModel` says.

    Raises
    ------
    DataError
        If the model lacks what the profile needs, says times that are no durations, or needs more sections
        than SimGrid can be told.

    References
    ----------
    .. [1] platform-calibration (SimGrid group): factors of latency and bandwidth. Deviations: one-way time
       is half a round trip minus the send, factors may lie on both sides of 1, and sections begin where
       SMPI looks them up, 16 bytes later.

    Examples
    --------
    >>> from steelyard.model.cost_model import CostModel, CostPiece
    >>> small, large = CostPiece(-1, 1000, "line", 5e-6, 1e-9), CostPiece(1000, None, "line", 9e-6, 1e-9)
    >>> simgrid = to_simgrid(CostModel("tcp", "fast", {"delay": (small, large)}, 1e9, 5e-6))
    >>> [factor.above for factor in simgrid.latency_factors]
    [0, 1016]
    >>> simgrid.half_round_trips([1000, 1001]).round(9).tolist()
    [6e-06, 1.0001e-05]
    """
    _check_link(model)
    fine, coarse = TOLERANCES
    try:
        return _to_simgrid(model, profile, fine)
    except DataError as error:
        if error.code != TOO_MANY:
            raise
    return _to_simgrid(model, profile, coarse)


def _to_simgrid(model: CostModel, profile: Profile, tolerance: float) -> SimGridModel:
    # Errors of chords and of sections add up.
    of_chords, of_sections = 0.2 * tolerance, 0.75 * tolerance
    notes: list[ExportNote] = list(_notes_of_curves(model, profile))
    below = _thresholds(model, profile, notes)
    if profile == "os":
        split = _charge_sends(model, below[0], of_chords)
        # A send that waits for progress of the receiver may outlast the round trip: it is no early one.
        if len(below) > 1 and any(note.high >= below[1] for note in split.notes):
            split = _charge_sends(model, below[1], of_chords)
            notes.append(ExportNote("threshold-lowered", below[1], below[0] - 1))
            below = below[1:]
    else:
        delay = _lines(model, "delay", of_chords)
        split = _Split(delay, delay, _NOTHING, _NOTHING, [])
    found = sections(split.transfer, split.delay, tolerance=of_sections)
    notes += _joined([*split.notes, *_notes_of_sections(split.transfer, found)])
    latency, bandwidth = _factors([each for group in found for each in group], model)
    is_measured = not any(note.reason == "threshold-unknown" for note in notes)
    return SimGridModel(
        f"{model.transport}-{model.state}",
        profile,
        model.bandwidth_bytes_per_s,
        model.latency_s,
        latency,
        bandwidth,
        split.send,
        split.isend,
        below[0] if is_measured else 0,
        below[0],
        tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class _Split:
    """Half a round trip as transfer and send; `delay` and `transfer` have the same places."""

    delay: list[Line]
    transfer: list[Line]
    send: tuple[Overhead, ...]
    isend: tuple[Overhead, ...]
    notes: list[ExportNote]


def _charge_sends(model: CostModel, below: int, tolerance: float) -> _Split:
    charged = _charged(model, "send", tolerance, below)
    delay, charged = _common_places(_lines(model, "delay", tolerance), charged)
    notes: list[ExportNote] = []
    transfer = _differences(delay, charged, notes)
    send = isend = _overheads(charged)
    if model.curves.get("isend"):
        isend = _overheads(_charged(model, "isend", tolerance, below))
    return _Split(_at_places(delay, transfer), transfer, send, isend, notes)


def fidelity(model: CostModel, simgrid: SimGridModel) -> float:
    """Give the largest relative distance between the model's half round trips and what SMPI answers.

    Looks at both ends of every section and of every piece of the model, and at sizes between them; where
    the send alone is longer than half a round trip, which an export cannot say, nothing is compared.
    """
    edges = [factor.above - ENVELOPE_BYTES for factor in simgrid.latency_factors]
    edges += [math.floor(piece.low) for pieces in model.curves.values() for piece in pieces]
    ends = sorted({min(max(edge, -1), LARGEST_BYTES - 1) for edge in edges} | {LARGEST_BYTES - 1})
    spread = [np.geomspace(low + 2, high + 1, 17).round() - 1 for low, high in pairwise(ends)]
    sizes = np.unique(np.concatenate([*spread, [0.0, float(LARGEST_BYTES)]]))
    for note in simgrid.notes:
        if note.reason == "send-above-delay":
            sizes = sizes[(sizes < note.low) | (sizes > note.high)]
    truth = np.array([model.predict(float(size)) for size in sizes])
    return float(np.max(np.abs(simgrid.half_round_trips(sizes) / truth - 1)))


def _check_link(model: CostModel) -> None:
    for name, value in (("bandwidth", model.bandwidth_bytes_per_s), ("latency", model.latency_s)):
        if not (math.isfinite(value) and value > 0):
            msg = f"the {name} of the model's link is {value:g}; expected a positive, finite number"
            raise DataError(msg, hint="state the link in the cost model", code="data.cost-model")


def _lines(model: CostModel, curve: str, tolerance: float, largest: int = LARGEST_BYTES) -> list[Line]:
    pieces = model.curves.get(curve)
    if not pieces:
        msg = f"the model `{model.transport}-{model.state}` has no curve `{curve}`, which this export needs"
        hint = "use the profile `rtt`" if curve != "delay" else "analyse a run with the operation `pingpong`"
        raise DataError(msg, hint=hint, code="data.cost-model")
    return curve_lines(pieces, tolerance=tolerance, largest=largest)


def _thresholds(model: CostModel, profile: Profile, notes: list[ExportNote]) -> tuple[int, ...]:
    """Give the size below which sends return early, and a lower one where that depends on the receiver.

    SimGrid knows no progress of a receiver: what returns once it makes some is taken to return at once.
    """
    known = {each for each in (model.asynchronous_bytes, model.detached_bytes) if each is not None}
    if known:
        return tuple(min(each, LARGEST_BYTES - 1) + 1 for each in sorted(known, reverse=True))
    if profile == "os":
        msg = (
            f"the model `{model.transport}-{model.state}` does not say up to which size a send returns early"
        )
        raise DataError(msg, hint="use the profile `rtt`", code="data.cost-model")
    notes.append(ExportNote("threshold-unknown", SIMGRID_DETACHED_BYTES, LARGEST_BYTES))
    return (SIMGRID_DETACHED_BYTES,)


def _charged(model: CostModel, curve: str, tolerance: float, detached: int) -> list[Line]:
    """Give what SMPI charges: the send below the threshold, nothing from there on."""
    charged = _lines(model, curve, tolerance, detached - 1)
    return [*charged, Line(detached, LARGEST_BYTES, 0.0, 0.0)] if detached <= LARGEST_BYTES else charged


def _overheads(lines: Sequence[Line]) -> tuple[Overhead, ...]:
    """Give the sections of an overhead, which SMPI looks up by size, without envelope."""
    found: list[Overhead] = []
    for line in lines:
        if not found or (found[-1].base_s, found[-1].slope_s_per_byte) != (line.base, line.slope):
            found.append(Overhead(max(line.first - 1, 0), line.base, line.slope))
    return tuple(found)


def _common_places(first: Sequence[Line], second: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    return _at_places(first, second), _at_places(second, first)


def _at_places(lines: Sequence[Line], places: Sequence[Line]) -> list[Line]:
    """Cut lines where the others begin."""
    begins = sorted({line.first for line in (*lines, *places)})
    ends = [*(begin - 1 for begin in begins[1:]), LARGEST_BYTES]
    owners = _owners(lines, begins)
    return [owner.within(*place) for owner, *place in zip(owners, begins, ends, strict=True)]


def _owners(lines: Sequence[Line], begins: Sequence[int]) -> Iterator[Line]:
    rest = iter(lines)
    line = next(rest)
    for begin in begins:
        while line.last < begin:
            line = next(rest)
        yield line


def _differences(delay: Sequence[Line], send: Sequence[Line], notes: list[ExportNote]) -> list[Line]:
    found: list[Line] = []
    for whole, part in zip(delay, send, strict=True):
        line = Line(whole.first, whole.last, whole.base - part.base, whole.slope - part.slope)
        for each in _split_at_least(line):
            if each.at(each.first) < LEAST_TRANSFER_S or each.at(each.last) < LEAST_TRANSFER_S:
                notes.append(ExportNote("send-above-delay", each.first, each.last))
                found.append(Line(each.first, each.last, LEAST_TRANSFER_S, 0.0))
            else:
                found.append(each)
    return found


def _split_at_least(line: Line) -> list[Line]:
    """Cut a line where it passes the least time of a transfer."""
    is_below = [line.at(size) < LEAST_TRANSFER_S for size in (line.first, line.last)]
    if is_below[0] == is_below[1]:
        return [line]
    crossing = math.floor((LEAST_TRANSFER_S - line.base) / line.slope)
    # Rounding may put the crossing one off; the part that is partly below counts as below.
    crossing = min(max(crossing, line.first), line.last - 1)
    return [line.within(line.first, crossing), line.within(crossing + 1, line.last)]


def _factors(found: Sequence[Section], model: CostModel) -> tuple[tuple[Factor, ...], tuple[Factor, ...]]:
    latency: list[Factor] = []
    bandwidth: list[Factor] = []
    for section in found:
        above = max(section.above + ENVELOPE_BYTES, 0) if section.above >= 0 else 0
        if above > LARGEST_BYTES:
            break
        latency.append(Factor(above, section.latency_s / model.latency_s))
        bandwidth.append(Factor(above, 1 / (section.seconds_per_byte * model.bandwidth_bytes_per_s)))
    return tuple(latency), tuple(bandwidth)


def _notes_of_curves(model: CostModel, profile: Profile) -> Iterator[ExportNote]:
    if model.timed != ROUND_TRIP:
        yield ExportNote("no-round-trips", 0, LARGEST_BYTES)
    charged = ("delay",) if profile == "rtt" else ("delay", "send", "isend")
    yield from _notes_of_measured(model, [name for name in charged if model.curves.get(name)])
    for name in charged:
        for piece in model.curves.get(name, ()):
            low = math.floor(piece.low) + 1
            high = LARGEST_BYTES if piece.high is None else min(math.floor(piece.high), LARGEST_BYTES)
            if low > LARGEST_BYTES - ENVELOPE_BYTES:
                yield ExportNote("above-largest", low, max(low, high))
            elif piece.kind == "power":
                yield ExportNote("chords", low, high)


def _notes_of_measured(model: CostModel, curves: Sequence[str]) -> Iterator[ExportNote]:
    """Give the sizes at which at least one of the curves was not measured."""
    if not all(name in model.measured_bytes for name in curves):
        yield ExportNote("measured-unknown", 0, LARGEST_BYTES)
        return
    smallest = max((model.measured_bytes[name][0] for name in curves), default=0)
    largest = min((model.measured_bytes[name][1] for name in curves), default=LARGEST_BYTES)
    if smallest > 0:
        yield ExportNote("extrapolated", 0, smallest - 1)
    if largest < LARGEST_BYTES:
        yield ExportNote("extrapolated", largest + 1, LARGEST_BYTES)


def _joined(notes: Sequence[ExportNote]) -> list[ExportNote]:
    """Make one note of neighbours with the same reason."""
    found: list[ExportNote] = []
    for note in notes:
        last = found[-1] if found else None
        if last and last.reason == note.reason and last.high + 1 == note.low:
            found[-1] = ExportNote(note.reason, last.low, note.high, last.sections + note.sections)
        else:
            found.append(note)
    return found


def _notes_of_sections(lines: Sequence[Line], found: Sequence[Sequence[Section]]) -> list[ExportNote]:
    return [
        ExportNote("falling" if line.slope < 0 else "re-anchored", line.first, line.last, len(group))
        for line, group in zip(lines, found, strict=True)
        if line.slope < 0 or (line.slope > 0 and line.base < ENVELOPE_BYTES * line.slope)
    ]
