"""From columns of a file to the messages it holds: calls of one end, or stamps of both."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.studies.communication.importers.recording import (
    NONE,
    Recording,
    durations,
    in_order,
    operation_of,
)
from steelyard.studies.communication.trace import Operation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from steelyard.record.importers.problem_list import ProblemList
    from steelyard.studies.communication.importers.recording import Column

    Whole = NDArray[np.int64]

PING: Final = -1
PONG: Final = -2
LEGS: Final = {"ping": PING, "pong": PONG}
"""The two legs of a round trip, each with a line of its own."""

BOTH_ENDS: Final = ("start0", "end0", "start1", "end1")


@dataclass(slots=True)
class MessageColumns:
    """Columns of one file by their role.

    Parameters
    ----------
    columns : mapping
        Role to column: ``size``; ``start0``, ``end0`` and where both ends were timed ``start1``, ``end1``; or
        ``start``, ``end``; or ``time`` with or without ``start``; ``op``, ``seq``, ``repetitions``.
    units : mapping
        Unit of each column of times, by its role.
    problems : ProblemList
        Where damage is noted.
    operation : Operation or None
        Of all rows; ``None`` where the column ``op`` tells.
    """

    columns: Mapping[str, Column]
    units: Mapping[str, str]
    problems: ProblemList
    operation: Operation | None = None
    notes: list[str] = field(default_factory=list)
    seq: Whole = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def recording(self, transport: str) -> Recording:
        """Give the messages in the order of measuring; what is wrong is noted, and makes no sense then."""
        size = self.columns["size"].whole(self.problems)
        lines = np.asarray(self.columns["size"].lines)
        recording = self._messages(transport, size, lines)
        return replace(recording, repetitions=self._repetitions())

    def _messages(self, transport: str, size: Whole, lines: Whole) -> Recording:
        op = self._operations(size.size)
        if "start0" in self.columns:
            return self._stamped(transport, op, size, lines)
        begin, end = self._spans()
        if self.problems.count:
            return _nothing(transport)
        paired = self._pairs(op, size, begin, end)
        if paired is not None:
            return Recording(transport, *paired)
        order = self._order(op, lines)
        first, second = durations(op[order], begin[order], end[order])
        return Recording(transport, op[order], size[order], first, second)

    def _repetitions(self) -> tuple[int, int] | None:
        """Give how many repetitions the times are means of; of one each they are single times."""
        column = self.columns.get("repetitions")
        if column is None:
            return None
        counts = column.whole(self.problems)
        self._refuse(counts < 1, "repetitions", "expected a whole number from 1")
        if not np.any(counts > 1):
            return None
        return int(counts.min()), int(counts.max())

    def _operations(self, count: int) -> Whole:
        column = self.columns.get("op")
        if self.operation is not None:
            self._refuse_other_operations(self.operation)
            return np.full(count, int(self.operation), dtype=np.int64)
        if column is None:
            return np.full(count, int(Operation.STREAM), dtype=np.int64)
        return column.operations(self.problems, LEGS if "start0" in self.columns else None)

    def _refuse_other_operations(self, stated: Operation) -> None:
        """Note rows whose column names another operation than the command line states for all."""
        column = self.columns.get("op")
        if column is None:
            return
        known = {name: operation_of(name) for name in set(column.texts)}
        for line, text in zip(column.lines, column.texts, strict=True):
            if known[text] not in (None, stated):
                self.problems.add(
                    line, f"{column.name} is `{text[:40]}`, and `--operation` states {stated.name.lower()}"
                )

    def _times(self, role: str) -> Whole:
        return self.columns[role].nanoseconds(self.units[role], self.problems)

    def _spans(self) -> tuple[Whole, Whole]:
        """Give begin and end of calls that one end timed."""
        if "time" in self.columns:
            lasted = self._times("time")
            self._refuse(lasted < 0, "time", "expected a number from 0")
            if "start" not in self.columns:
                self.notes.append("times of begin are not in the file: its order is taken for that of time")
                return in_order(lasted)
            begin = self._times("start")
            return begin, begin + lasted
        begin, end = self._times("start"), self._times("end")
        self._refuse(end < begin, "end", "expected no time before the begin")
        return begin, end

    def _refuse(self, is_wrong: NDArray[np.bool_], role: str, expected: str) -> None:
        column = self.columns[role]
        for at in np.flatnonzero(is_wrong).tolist():
            self.problems.add(column.lines[at], f"{column.name} is `{column.texts[at][:40]}`; {expected}")

    def _order(self, op: Whole, lines: Whole) -> Whole:
        """Give the rows by their numbers; a number that occurs again is damage."""
        column = self.columns.get("seq")
        if column is None:
            self.seq = np.arange(op.size)
            return self.seq
        number = column.whole(self.problems)
        order = np.lexsort((lines, -op, number))
        again = (np.diff(number[order]) == 0) & (np.diff(op[order]) == 0)
        for at in (np.flatnonzero(again) + 1).tolist():
            row, before = order[at], order[at - 1]
            text = f"{column.name} is `{number[row]}`, as in line {lines[before]}; expected each number once"
            self.problems.add(int(lines[row]), text)
        self.seq = number[order]
        return order

    def _stamped(self, transport: str, op: Whole, size: Whole, lines: Whole) -> Recording:
        has_both = "start1" in self.columns
        stamps = [self._times(role) for role in BOTH_ENDS[: 4 if has_both else 2]]
        for rank, (begin, end) in enumerate(zip(stamps[::2], stamps[1::2], strict=True)):
            self._refuse(end < begin, f"end{rank}", f"expected no time before start{rank}")
        order = self._order(op, lines)
        if self.problems.count:
            return _nothing(transport)
        op, size, lines = op[order], size[order], lines[order]
        stamps = [each[order] for each in stamps]
        absent = np.full(op.size, NONE)
        between = [np.where(op == Operation.ISEND, stamps[1], NONE), absent]
        first = np.stack([stamps[0], between[0], stamps[1]], axis=1)
        second = np.stack([stamps[2], absent, stamps[3]], axis=1) if has_both else np.full_like(first, NONE)
        if np.any(op < 0):
            op, size, first, second = self._joined_legs(op, size, first, second, lines)
        return Recording(transport, op, size, first, second)

    def _joined_legs(
        self, op: Whole, size: Whole, first: Whole, second: Whole, lines: Whole
    ) -> tuple[Whole, Whole, Whole, Whole]:
        """Make one round trip of two legs: of one number, or of lines that follow each other."""
        is_pong = op == PONG
        begins = np.flatnonzero(op == PING)
        number = self.seq if "seq" in self.columns else np.cumsum(op == PING)
        following = np.minimum(begins + 1, op.size - 1)
        is_whole = is_pong[following] & (number[following] == number[begins])
        ping, pong = begins[is_whole], following[is_whole]
        for at in np.flatnonzero(size[ping] != size[pong]).tolist():
            text = f"pong has {size[pong[at]]} bytes; expected the {size[ping[at]]} of its ping"
            self.problems.add(int(lines[pong[at]]), text)
        for at in np.flatnonzero(first[pong, 2] < first[ping, 2]).tolist():
            self.problems.add(int(lines[pong[at]]), "pong ends before its ping; expected its end0 behind")
        self._say_lost(op, size, lines, np.concatenate([ping, pong]))
        op, first, second = op.copy(), first.copy(), second.copy()
        op[ping] = Operation.PINGPONG
        # The reply begins where the message was received; where one end was timed, its end is what is known.
        first[ping, 1], first[ping, 2] = first[ping, 2], first[pong, 2]
        second[ping, 1], second[ping, 2] = second[ping, 2], second[pong, 2]
        kept = op > 0
        self.seq = self.seq[kept] if "seq" in self.columns else np.arange(int(kept.sum()))
        return op[kept], size[kept], first[kept], second[kept]

    def _say_lost(self, op: Whole, size: Whole, lines: Whole, joined: Whole) -> None:
        """Note the legs without the other one; where no leg has another, there are no round trips."""
        alone = np.setdiff1d(np.flatnonzero(op < 0), joined)
        if not alone.size:
            return
        counts = [int(np.sum(op[alone] == leg)) for leg in (PING, PONG)]
        lost = " and ".join(
            f"{count} `{leg}` without its `{other}`"
            for count, leg, other in zip(counts, LEGS, reversed(LEGS), strict=True)
            if count
        )
        if not joined.size:
            text = f"cannot join legs to round trips: {lost}; expected each `ping` with its `pong` behind it"
            self.problems.add(int(lines[alone[0]]), text)
            return
        sizes = [int(np.min(size[alone])), int(np.max(size[alone]))]
        of = f"of {sizes[0]} B" if sizes[0] == sizes[1] else f"of {sizes[0]} to {sizes[1]} B"
        self.notes.append(
            f"{alone.size} of {int(np.sum(op < 0))} legs of round trips were left out, {of}: {lost}"
        )

    def _pairs(
        self, op: Whole, size: Whole, begin: Whole, end: Whole
    ) -> tuple[Whole, Whole, Whole, Whole] | None:
        """Give round trips where each line of a send is followed by the receive that began with it.

        SOURCE: SimGrid's calibration of MPI: both times are counted from the begin of the send.
        """
        sent, received = slice(0, None, 2), slice(1, None, 2)
        if op.size == 0 or op.size % 2 or self.operation is not None:
            return None
        is_pair = (op[sent] == Operation.SEND) & (op[received] == Operation.RECV)
        is_pair &= (size[sent] == size[received]) & (begin[sent] == begin[received])
        is_pair &= end[received] >= end[sent]
        if not np.all(is_pair):
            return None
        self.notes.append("each send is followed by a receive that began with it: read as round trips")
        trips = np.full(op.size // 2, int(Operation.PINGPONG))
        self.seq = np.arange(trips.size)
        first, second = durations(trips, begin[sent], end[received], end[sent])
        return trips, size[sent], first, second


def _nothing(transport: str) -> Recording:
    none = np.empty(0, dtype=np.int64)
    return Recording(
        transport, none, none, np.empty((0, 3), dtype=np.int64), np.empty((0, 3), dtype=np.int64)
    )


def stated_operation(name: str) -> Operation | None:
    """Give the operation that was stated on the command line; nothing where none was."""
    return operation_of(name) if name else None
