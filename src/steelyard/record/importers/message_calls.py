"""Calls that move a message: put together by operation and size, a run each; a call is an iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.record.importers.delimited import number_of, require_number
from steelyard.record.importers.foreign import WORKLOAD, ForeignRun, Section, to_nanoseconds

if TYPE_CHECKING:
    from decimal import Decimal

    from steelyard.record.importers.problem_list import ProblemList


class MessageCalls:
    """Collects the calls of one file.

    Parameters
    ----------
    problems : ProblemList
        Where damage is noted.
    unit : str
        Unit of the times: ns, us, ms, s.
    """

    def __init__(self, problems: ProblemList, unit: str = "s") -> None:
        self._problems = problems
        self._unit = unit
        self._runs: dict[tuple[str, str], ForeignRun] = {}

    @property
    def runs(self) -> list[ForeignRun]:
        """One per operation and size, in the order of their first calls."""
        return list(self._runs.values())

    def size(self, line: int, text: str) -> str | None:
        """Give a number of bytes without leading zeros; note the problem for anything else."""
        if text.isascii() and text.isdecimal():
            return text.lstrip("0") or "0"
        self._problems.add(line, f"size is `{text[:40]}`; expected a whole number from 0")
        return None

    def add(self, line: int, call: tuple[str, str], duration: str, start: str | None = None) -> None:
        """Add one call with its times as the file has them.

        Parameters
        ----------
        line : int
            Line, from 1.
        call : tuple of str
            Operation and size [B].
        duration, start : str
            Numbers from 0 in the file's unit.
        """
        lasted = require_number(self._problems, line, "duration", duration)
        begun = None if start is None else require_number(self._problems, line, "start", start)
        if lasted is not None and (start is None or begun is not None):
            self._keep(call, lasted, begun, (duration, start))

    def add_span(self, line: int, call: tuple[str, str], start: str, end: str) -> None:
        """Add one call that is told by its begin and its end; a begin may be before the clock's zero."""
        begun, ended = (number_of(text) for text in (start, end))
        for name, text, number in (("start", start, begun), ("end", end, ended)):
            if number is None:
                self._problems.add(line, f"{name} is `{text[:40]}`; expected a number")
        if begun is None or ended is None:
            return
        if ended < begun:
            self._problems.add(line, f"{call[0]} ends at {end} before it starts at {start}")
            return
        self._keep(call, ended - begun, begun, (None, start))

    def _keep(
        self,
        call: tuple[str, str],
        lasted: Decimal,
        begun: Decimal | None,
        printed: tuple[str | None, str | None],
    ) -> None:
        operation, size = call
        run = self._runs.setdefault(call, ForeignRun({WORKLOAD: operation, "size_bytes": size}, []))
        iteration = run.sections[-1].iteration + 1 if run.sections else 1
        time = to_nanoseconds(lasted, self._unit)
        run.sections.append(Section("time", "ns", time, iteration, printed=printed[0]))
        if begun is not None:
            start = to_nanoseconds(begun, self._unit)
            run.sections.append(Section("start", "ns", start, iteration, printed=printed[1]))
