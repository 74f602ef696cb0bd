"""Messages that a foreign program timed: what was done, how large, and when at one end or at both."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.record.importers.delimited import number_of
from steelyard.record.importers.foreign import DECIMAL_EXPONENTS
from steelyard.studies.communication.trace import Operation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from steelyard.record.importers.problem_list import ProblemList

    Whole = NDArray[np.int64]

NONE: Final = np.iinfo(np.int64).min
"""A stamp that was not taken."""

OPERATIONS: Final[dict[str, Operation]] = {
    "pingpong": Operation.PINGPONG,
    "stream": Operation.STREAM,
    "send": Operation.SEND,
    "isend": Operation.ISEND,
    "recv": Operation.RECV,
    "test": Operation.TEST,
    "iprobe": Operation.IPROBE,
    "wtime": Operation.WTIME,
}
"""Names of operations, which may also begin with `MPI_`, in capitals or not."""

TIMED: Final[dict[Operation, str]] = {
    Operation.PINGPONG: "half a round trip",
    Operation.STREAM: "a message, as the recording times it",
    Operation.SEND: "a blocking send",
    Operation.ISEND: "a non-blocking send call",
    Operation.RECV: "a receive",
}
"""What a curve may be about: round trips if there are any, which alone say when a message arrived."""

LARGEST_BYTES: Final = 1 << 53
"""Sizes from here on are damage: nothing sends so much at once, and doubles do not tell them apart."""

_EXACT: Final = float(1 << 50)
"""Products of doubles below are exact to a fraction of 1."""

_LARGEST_NS: Final = 1 << 61
_DIGITS: Final = re.compile(r"[+-]?\d+", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """The messages of one transport in one file.

    Parameters
    ----------
    transport : str
        What moved them.
    op, size : ndarray of int
        Shape (n,): `Operation`, and bytes, in the order of measuring.
    first, second : ndarray of int
        Shape (n, 3): begin, stamp between and end [ns] as `communication.trace` has them at endpoint 0 and 1;
        `NONE` for what was not taken. A receive that endpoint 1 alone timed stands in `first`.
    probes : ndarray of int or None
        Shape (m, 3): a probe of the clocks leaves (clock 0), is answered (clock 1), is back (clock 0).
    waiting : ndarray of int or None
        Shape (k, 5): number of the next operation, then time and time waited for a CPU so far of either end.
    timed : mapping
        What the times of an operation are, where `TIMED` does not say it.
    repetitions : tuple of int or None
        Fewest and most repetitions that each time is the mean of, 0 where the file does not say how many;
        ``None`` for single times.
    error_share : float or None
        Median standard error of such means, as a share of them.
    is_one_clock : bool
        Whether both ends are known to read one clock.
    """

    transport: str
    op: Whole
    size: Whole
    first: Whole
    second: Whole
    probes: Whole | None = None
    waiting: Whole | None = None
    timed: Mapping[Operation, str] = field(default_factory=dict)
    repetitions: tuple[int, int] | None = None
    error_share: float | None = None
    is_one_clock: bool = False

    def __len__(self) -> int:
        return int(self.op.size)

    @property
    def has_second(self) -> bool:
        """Whether endpoint 1 stamped anything."""
        return bool(np.any(self.second[:, 2] != NONE))


def durations(op: Whole, begin: Whole, end: Whole, mid: Whole | None = None) -> tuple[Whole, Whole]:
    """Give `first` and `second` of a recording of one end alone."""
    between = np.full(op.size, NONE) if mid is None else mid
    # A non-blocking send is timed up to its return.
    between = np.where(op == Operation.ISEND, end, between)
    first = np.stack([begin, between, end], axis=1)
    return first, np.full_like(first, NONE)


def in_order(lasted: Whole) -> tuple[Whole, Whole]:
    """Give begin and end of calls of which only durations are known: one after the other from 0."""
    end = np.cumsum(lasted)
    return end - lasted, end


def operation_of(name: str) -> Operation | None:
    """Give the operation that a name means.

    Examples
    --------
    >>> operation_of("MPI_Send"), operation_of("Ping-Pong"), operation_of("MPI_Bcast")
    (<Operation.SEND: 3>, <Operation.PINGPONG: 1>, None)
    """
    plain = name.strip().lower().removeprefix("mpi_").replace("-", "").replace("_", "")
    return OPERATIONS.get(plain)


def allowed_operations() -> str:
    """List the names of operations for an error."""
    return ", ".join(f"`{name}`" for name in OPERATIONS)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a file with the lines of its fields.

    Parameters
    ----------
    name : str
        As the file calls it.
    texts : sequence of str
        Its fields.
    lines : sequence of int
        Their lines, from 1.
    """

    name: str
    texts: Sequence[str]
    lines: Sequence[int]

    def nanoseconds(self, unit: str, problems: ProblemList) -> Whole:
        """Give times as whole nanoseconds, the nearest; what is no number is noted and 0."""
        exponent = DECIMAL_EXPONENTS[unit]
        if not any("_" in text for text in self.texts):
            try:
                if exponent == 0:
                    return self._checked(
                        np.array([int(text) for text in self.texts], dtype=np.int64), problems
                    )
            except (ValueError, OverflowError):
                pass
            try:
                values = np.array([float(text) for text in self.texts]) * 10.0**exponent
            except ValueError:
                values = np.array([np.inf])
            if np.all(np.abs(values) < _EXACT):
                return np.rint(values).astype(np.int64)
        found = np.zeros(len(self.texts), dtype=np.int64)
        for at, text in enumerate(self.texts):
            number = number_of(text)
            scaled = None if number is None else int(number.scaleb(exponent).to_integral_value())
            if scaled is None or abs(scaled) > _LARGEST_NS:
                what = "a number" if scaled is None else f"at most {_LARGEST_NS / 1e9:.0f} s"
                problems.add(self.lines[at], f"{self.name} is `{text[:40]}`; expected {what}")
            else:
                found[at] = scaled
        return found

    def _checked(self, values: Whole, problems: ProblemList) -> Whole:
        for at in np.flatnonzero(np.abs(values) > _LARGEST_NS).tolist():
            text = f"{self.name} is `{self.texts[at][:40]}`; expected at most {_LARGEST_NS / 1e9:.0f} s"
            problems.add(self.lines[at], text)
        return values

    def whole(self, problems: ProblemList, most: int = LARGEST_BYTES) -> Whole:
        """Give whole numbers from 0; what is none is noted and 0."""
        try:
            values = np.array([int(text) if text.isascii() else -1 for text in self.texts], dtype=np.int64)
        except (ValueError, OverflowError):
            values = np.array([-1])
        has_marks = any(not text.isdecimal() for text in self.texts)
        if not has_marks and bool(np.all((values >= 0) & (values < most))):
            return values
        found = np.zeros(len(self.texts), dtype=np.int64)
        for at, text in enumerate(self.texts):
            number = int(text) if _DIGITS.fullmatch(text) and len(text) < 20 else -1  # noqa: PLR2004 - 64 bits
            if 0 <= number < most:
                found[at] = number
            else:
                problems.add(self.lines[at], f"{self.name} is `{text[:40]}`; expected a whole number from 0")
        return found

    def operations(self, problems: ProblemList, more: Mapping[str, int] | None = None) -> Whole:
        """Give operations by their names, or what else a format calls some of them."""
        known = {
            name: more[name.strip().lower()] if more and name.strip().lower() in more else operation_of(name)
            for name in set(self.texts)
        }
        for at, text in enumerate(self.texts):
            if known[text] is None:
                listed = ", ".join(f"`{name}`" for name in more or ())
                allowed = f"{listed}, {allowed_operations()}" if listed else allowed_operations()
                problems.add(self.lines[at], f"{self.name} is `{text[:40]}`; allowed: {allowed}")
        return np.array([known[text] or 0 for text in self.texts], dtype=np.int64)
