"""The trace of a communication run: what each endpoint stamped of every operation, as it left it.

A trace is a folder. Each endpoint (rank 0 and rank 1) writes its own files and nothing else; both work
through the same list of operations in the same order.

``plan.csv``
    ``op,size`` per line, with that heading: what both endpoints do, in this order. Sizes in bytes.
``header.R.json``
    What endpoint R says of itself: `format` (``steelyard/trace/1``), `rank`, `transport`, `operations` (how
    many it finished), `is_complete`, `host`, `cpu`, `clock`, `stamp_cost_ns`, and whatever else it knows. Of
    messages that a foreign program timed: `is_recording`, `timed` (the operation that its curve is about) and
    `timed_as` (what its times are), `is_ordered` (by size), `is_one_clock`, `repetitions` (behind each time),
    `files`.
``operations.R.bin``
    `OPERATION` records, one per operation in order. The file is mapped and has its full length from the
    begin, so that what was stamped survives a killed process: a record counts once its `end_ns` is set.
``blocks.R.bin``
    `BLOCK` records, one before the first operation, one after every so many operations, one at the end.
``probes.bin``
    `PROBE` records of endpoint 0: clock probes before, during and after the operations.

All files are little-endian, all stamps are of the endpoint's own monotonic clock.

===========  =====================================================================================
operation    stamps
===========  =====================================================================================
pingpong     0: begin of send, send returned, reply received; 1: begin of receive, received, reply
             sent
stream       one message, no answer. 0: begin and end of send; 1: begin and end of receive
send         as stream; the receive was posted long before
recv         as stream; the message had arrived long before the receive
isend        as stream; 0 also stamps the return of the non-blocking call (mid)
test         cost of one completion test, endpoint 0 only
iprobe       cost of one look for a message, endpoint 0 only
wtime        cost of one reading of the library's clock, endpoint 0 only
===========  =====================================================================================
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from steelyard.errors import DataError
from steelyard.model.cost_model import ROUND_TRIP

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

FORMAT: Final = "steelyard/trace/1"


class Operation(IntEnum):
    """What two endpoints do with one message; the value stands in the files."""

    PINGPONG = 1
    STREAM = 2
    SEND = 3
    RECV = 4
    ISEND = 5
    TEST = 6
    IPROBE = 7
    WTIME = 8


OPERATION: Final = np.dtype(
    [
        ("seq", "<u4"),
        ("op", "<u4"),
        ("size", "<u8"),
        ("start_ns", "<u8"),
        ("mid_ns", "<u8"),
        ("end_ns", "<u8"),
    ]
)
"""Operation number from 0, kind, bytes, begin, stamp between (0: none), end (0: not finished)."""

BLOCK: Final = np.dtype(
    [
        ("seq", "<u4"),
        ("cpu", "<u4"),
        ("time_ns", "<u8"),
        ("run_delay_ns", "<u8"),
        ("canary_ns", "<f8"),
    ]
)
"""Next operation, CPU, stamp, time this endpoint has waited for a CPU since its start (``schedstat``), and
the round trip of a cache line between the two endpoints [ns], NaN where it was not measured."""

PROBE: Final = np.dtype([("seq", "<u4"), ("_", "<u4"), ("send0", "<u8"), ("time1", "<u8"), ("recv0", "<u8")])
"""Next operation, and stamps: request sent (clock 0), answered (clock 1), answer received (clock 0)."""


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint:
    """What one endpoint recorded.

    Parameters
    ----------
    header : Mapping
        ``header.R.json``.
    operations : ndarray
        Shape (finished operations,), dtype `OPERATION`.
    blocks : ndarray
        Dtype `BLOCK`.
    """

    header: Mapping[str, Any]
    operations: NDArray[np.void]
    blocks: NDArray[np.void]


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A trace: both endpoints, and the probes of their clocks.

    Parameters
    ----------
    endpoints : tuple of Endpoint
        Rank 0 and rank 1.
    probes : ndarray
        Dtype `PROBE`.
    """

    endpoints: tuple[Endpoint, Endpoint]
    probes: NDArray[np.void]

    @property
    def is_complete(self) -> bool:
        """Whether both endpoints came to the end of what they had to do."""
        return all(endpoint.header.get("is_complete") is True for endpoint in self.endpoints)

    @property
    def is_recording(self) -> bool:
        """Whether a foreign program timed the messages: then either end may have stamped nothing."""
        return self.endpoints[0].header.get("is_recording") is True

    @property
    def timed(self) -> Operation:
        """Operation that the curve is about: round trips, or what a recording has instead."""
        name = str(self.endpoints[0].header.get("timed", "")).upper()
        return Operation[name] if name in Operation.__members__ else Operation.PINGPONG

    @property
    def timed_as(self) -> str:
        """What the times behind the curve are."""
        return str(self.endpoints[0].header.get("timed_as") or ROUND_TRIP)

    @property
    def repetitions(self) -> tuple[int, int] | None:
        """Fewest and most repetitions that each time is the mean of; ``None`` for single times."""
        found = self.endpoints[0].header.get("repetitions")
        return (int(found[0]), int(found[1])) if isinstance(found, list) else None

    def after(self, warm_up: int) -> Trace:
        """Give the trace without its first operations."""
        if warm_up == 0:
            return self
        first, second = (
            replace(endpoint, operations=endpoint.operations[endpoint.operations["seq"] >= warm_up])
            for endpoint in self.endpoints
        )
        return Trace((first, second), self.probes)


def read_trace(folder: Path) -> Trace:
    """Read a trace, also one whose endpoints were killed: then it ends with the last finished operation.

    Raises
    ------
    DataError
        If a file is missing, has another format, or contradicts itself.
    """
    probes = _records(folder / "probes.bin", PROBE)
    return Trace((_endpoint(folder, 0), _endpoint(folder, 1)), probes[probes["recv0"] > 0])


def _endpoint(folder: Path, rank: int) -> Endpoint:
    header = _header(folder / f"header.{rank}.json", rank)
    operations = _records(folder / f"operations.{rank}.bin", OPERATION)
    finished = operations["end_ns"] > 0
    # Records of operations that only the other endpoint stamps stay empty: what counts is the last one.
    kept = operations[finished]
    numbers = kept["seq"].astype(np.int64)
    if np.any(np.diff(numbers) <= 0) or (len(numbers) and numbers[-1] >= len(operations)):
        msg = f"`{folder / f'operations.{rank}.bin'}` has operations out of order"
        raise DataError(msg, hint="the file is damaged: repeat the run", code="trace.order")
    blocks = _records(folder / f"blocks.{rank}.bin", BLOCK)
    return Endpoint(header, kept, blocks[blocks["time_ns"] > 0])


def _header(path: Path, rank: int) -> Mapping[str, Any]:
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"`{path}` is not the header of a trace: {error}"
        raise DataError(msg, hint="a trace is a folder written by a run", code="trace.header") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT or header.get("rank") != rank:
        msg = f"`{path}` is not the header of endpoint {rank} in the format `{FORMAT}`"
        raise DataError(msg, hint="a trace is a folder written by a run", code="trace.header")
    return header


def _records(path: Path, dtype: np.dtype[np.void]) -> NDArray[np.void]:
    try:
        content = path.read_bytes()
    except OSError as error:
        msg = f"cannot read `{path}`: {error.strerror}"
        raise DataError(msg, hint="a trace is a folder written by a run", code="trace.file") from error
    if len(content) % dtype.itemsize:
        msg = f"`{path}` has {len(content)} bytes; expected a multiple of {dtype.itemsize}"
        raise DataError(msg, hint="the file is damaged: repeat the run", code="trace.file")
    return np.frombuffer(content, dtype=dtype)


def write_trace(folder: Path, trace: Trace) -> None:
    """Write a trace as endpoints do: for data that was simulated or came from elsewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank, endpoint in enumerate(trace.endpoints):
        header = {"format": FORMAT, "rank": rank, **endpoint.header}
        (folder / f"header.{rank}.json").write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")
        (folder / f"operations.{rank}.bin").write_bytes(endpoint.operations.tobytes())
        (folder / f"blocks.{rank}.bin").write_bytes(endpoint.blocks.tobytes())
    (folder / "probes.bin").write_bytes(trace.probes.tobytes())
