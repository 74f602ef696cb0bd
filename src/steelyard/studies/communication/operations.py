"""A trace as columns: what each operation cost, in seconds, with both endpoints on one clock."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from steelyard.analyse.cost_curve.clock_offset import SHARED_CLOCK, clock_model
from steelyard.errors import AnalysisError
from steelyard.studies.communication.trace import Operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.cost_curve.clock_offset import ClockModel
    from steelyard.studies.communication.trace import Trace

    Whole = NDArray[np.int64]
    Vector = NDArray[np.float64]

BLOCK: Final = 256
"""Operations of a block where a trace does not say."""

SURE: Final = 3.0
"""One-way times below so many errors of the clocks are withheld."""

MONOTONIC: Final = "CLOCK_MONOTONIC"
"""Clock of the stamps, as headers name it."""

CALLS: Final = (Operation.TEST, Operation.IPROBE, Operation.WTIME)


@dataclass(frozen=True, slots=True, eq=False)
class Operations:
    """Operations of one or several traces, one row each, in the order of measuring.

    Parameters
    ----------
    run, seq, block, op, size, previous_size : ndarray of int
        Shape (n,): number of the trace from 0, operation and block in it, kind, bytes; and the bytes of the
        message before (-1: there was none).
    begin_s : ndarray
        Begin on endpoint 0 [s] since the trace's first operation.
    half_s : ndarray
        Half a round trip; NaN but for ``pingpong``. Of a recording without round trips: the times of the
        operation that its curve is about.
    send_s, receive_s : ndarray
        Duration of the sending call on endpoint 0, of the receiving call on endpoint 1; NaN where none is.
    one_way_s : ndarray
        End of the receive less begin of what was begun last, send or receive, by the mapped clocks. NaN
        where it is shorter than three errors of the clocks, which are 0 where both ends read one clock.
    call_s : ndarray
        Duration of ``test``, ``iprobe`` and ``wtime``.
    """

    run: Whole
    seq: Whole
    block: Whole
    op: Whole
    size: Whole
    previous_size: Whole
    begin_s: Vector
    half_s: Vector
    send_s: Vector
    receive_s: Vector
    one_way_s: Vector
    call_s: Vector

    def __len__(self) -> int:
        """Give the number of operations."""
        return int(self.seq.size)

    def where(self, mask: NDArray[np.bool_]) -> Operations:
        """Give the rows of a mask."""
        return Operations(*(getattr(self, each.name)[mask] for each in fields(self)))

    def frame(self) -> pl.DataFrame:
        """Give the table as a Polars frame with one column per field."""
        return pl.DataFrame({each.name: getattr(self, each.name) for each in fields(self)})


@dataclass(frozen=True, slots=True, eq=False)
class Clocks:
    """What is known about the clocks of one trace.

    Parameters
    ----------
    model : ClockModel or None
        From clock 1 to clock 0; of one clock where both ends booted together and no probe contradicts it.
        ``None`` where a recording has no probes: then nothing is known of the other clock.
    withheld : int
        One-way times that are not given.
    reason : str
        Why; empty where none is.
    """

    model: ClockModel | None
    withheld: int
    reason: str


def operations_of(trace: Trace, *, run: int = 0) -> tuple[Operations, Clocks]:
    """Put the records of both endpoints side by side.

    Parameters
    ----------
    trace : Trace
        Also of endpoints that were killed: operations that either of them did not finish are left out.
    run : int
        Number given to the trace.

    Raises
    ------
    AnalysisError
        If no operation was finished, or the trace has no clock probe.
    """
    first, second = (endpoint.operations for endpoint in trace.endpoints)
    if first.size == 0:
        message = "endpoint 0 finished no operation"
        raise AnalysisError(message, hint="repeat the run; its header says why it ended")
    if second.size == 0 and not trace.is_recording:
        message = "endpoint 1 finished no operation"
        raise AnalysisError(message, hint="repeat the run; its header says why it ended")
    clock = _clock_of(trace)
    kind = first["op"].astype(np.int64)
    at, is_there = _partners(first["seq"], second["seq"])
    begin1, mid1, end1 = (_on_clock_0(second[name], clock)[at] for name in ("start_ns", "mid_ns", "end_ns"))
    kept = is_there | np.isin(kind, CALLS) | trace.is_recording
    begin, mid, end = (first[name].astype(np.int64) for name in ("start_ns", "mid_ns", "end_ns"))
    is_round = kind == Operation.PINGPONG
    is_message = ~is_round & ~np.isin(kind, CALLS)
    # The receiving end of a recording may be the only one that was timed.
    is_received = (kind == Operation.RECV) & ~is_there
    sent = (np.where(is_round | (kind == Operation.ISEND), mid, end) - begin) * 1e-9
    received = np.where(is_round, mid1, end1)
    has_both = is_there & ~(is_round & (second["mid_ns"][at] == 0 if second.size else False))
    if clock is None:
        one_way, shortest = np.full(first.size, -1.0), 0.0
    else:
        one_way = np.where(has_both, received - np.maximum(begin, begin1), -1).astype(np.float64)
        shortest = SURE * clock.error_ns
    is_sure = one_way >= max(shortest, 1.0)
    withheld = int(np.sum(is_there & kept & ~is_sure))
    is_sent = (is_round & (mid > 0)) | (is_message & ~is_received)
    send = np.where(is_sent, sent, np.nan)
    receive = np.where(is_message & is_there, (end1 - begin1) * 1e-9, np.nan)
    receive = np.where(is_received, (end - begin) * 1e-9, receive)
    columns = {
        "run": np.full(first.size, run),
        "seq": first["seq"].astype(np.int64),
        "block": _block_numbers(trace, first["seq"]),
        "op": kind,
        "size": first["size"].astype(np.int64),
        "previous_size": _previous(kind, first["size"].astype(np.int64)),
        "begin_s": (begin - begin[0]) * 1e-9,
        "half_s": _half(trace, kind, np.asarray((end - begin) * 0.5e-9), send, receive),
        "send_s": send,
        "receive_s": receive,
        "one_way_s": np.where(is_sure, one_way * 1e-9, np.nan),
        "call_s": np.where(np.isin(kind, CALLS), (end - begin) * 1e-9, np.nan),
    }
    reason = f"{withheld} one-way times are below {SURE:g} errors of the clocks ({shortest:.0f} ns)"
    if clock is None:
        reason = "the recording has no probes of the clocks of its ends"
    table = Operations(**{name: column[kept] for name, column in columns.items()})
    return table, Clocks(clock, withheld, reason if withheld else "")


def _half(trace: Trace, kind: Whole, halved: Vector, send: Vector, receive: Vector) -> Vector:
    """Give what the curve is about; NaN for other operations.

    Times that the coarse clock of a recording shows as nothing are half of the shortest that it shows.
    """
    found = receive if trace.timed is Operation.RECV else send
    found = np.where(kind == trace.timed, halved if trace.timed is Operation.PINGPONG else found, np.nan)
    seen = found[found > 0]
    is_coarse = trace.is_recording and seen.size > 0
    return np.where(found == 0, seen.min() / 2, found) if is_coarse else found


def _on_clock_0(stamps_ns: NDArray[np.unsignedinteger], clock: ClockModel | None) -> Whole:
    """Give stamps of endpoint 1 by the clock of endpoint 0, or as they are; at least one, for absent ones."""
    if stamps_ns.size == 0:
        return np.zeros(1, dtype=np.int64)
    return np.asarray(stamps_ns.astype(np.int64)) if clock is None else clock.to_clock_0(stamps_ns)


def _clock_of(trace: Trace) -> ClockModel | None:
    """Give the model of the endpoints' clocks: one clock where the boot proves it, else what probes say.

    CLOCK_MONOTONIC counts from the boot of a kernel, so that all processes of one boot read the same clock,
    except those of another time namespace; probes would show its offset.
    """
    probes = trace.probes
    header = trace.endpoints[0].header
    if trace.is_recording and probes.size == 0:
        return SHARED_CLOCK if header.get("is_one_clock") is True else None
    clock = clock_model(probes["seq"], probes["send0"], probes["time1"], probes["recv0"])
    sources = {(each.header.get("boot_id"), each.header.get("clock")) for each in trace.endpoints}
    boot, name = sources.pop()
    is_one = (not sources and bool(boot) and name == MONOTONIC) or header.get("is_one_clock") is True
    return (clock.as_shared() if is_one else None) or clock


def _partners(first: NDArray[np.void], second: NDArray[np.void]) -> tuple[Whole, NDArray[np.bool_]]:
    """Give for each operation of endpoint 0 the row of endpoint 1, or 0, and whether it exists."""
    if second.size == 0:
        return np.zeros(first.size, dtype=np.int64), np.zeros(first.size, dtype=np.bool_)
    at = np.minimum(np.searchsorted(second, first), second.size - 1)
    is_there = second[at] == first
    return np.where(is_there, at, 0), is_there


def _block_numbers(trace: Trace, seq: NDArray[np.void]) -> Whole:
    starts = np.unique(trace.endpoints[0].blocks["seq"]).astype(np.int64)
    if starts.size < 2:  # noqa: PLR2004 - one mark divides nothing
        return np.asarray(seq.astype(np.int64) // BLOCK)
    return np.asarray(np.searchsorted(starts, seq.astype(np.int64), side="right") - 1)


def _previous(kind: Whole, size: Whole) -> Whole:
    """Give the size of the last message before; calls without a message are passed over."""
    is_message = ~np.isin(kind, CALLS)
    last = np.maximum.accumulate(np.where(is_message, np.arange(kind.size), -1))
    before = np.concatenate([[-1], last[:-1]])
    return np.where(before >= 0, size[before], -1)


def joined(tables: Sequence[Operations]) -> Operations:
    """Put the tables of several traces below each other."""
    return Operations(
        *(np.concatenate([getattr(table, each.name) for table in tables]) for each in fields(Operations))
    )
