"""Problems of a foreign file, collected so that one error names them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.record.importers.foreign import in_line
from steelyard.units import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SHOWN: Final = 20
"""Kinds of problems that are listed; each with all of its lines."""
_SHOWN_RANGES: Final = 40


class ProblemList:
    """Collects problems with their lines; the same problem of several lines is listed once.

    Parameters
    ----------
    path : Path
        The file.
    expected : str
        What the file should look like, for the hint.
    """

    def __init__(self, path: Path, expected: str) -> None:
        self.path = path
        self.expected = expected
        self.count = 0
        self._lines: dict[str, list[int]] = {}
        self._listed = 0

    def add(self, line: int, text: str) -> None:
        """Add a problem of a line, counted from 1."""
        self.count += 1
        text = in_line(text)
        if text in self._lines or len(self._lines) < SHOWN:
            self._lines.setdefault(text, []).append(line)
            self._listed += 1

    def raise_if_any(self) -> None:
        """Raise what was collected.

        Raises
        ------
        DataError
            Listing the first 20 kinds of problems, each with its lines, and counting the others.
        """
        if not self.count:
            return
        count = format_count(self.count, "problem")
        shown = "\n".join(f"  {_places(lines)}: {text}" for text, lines in self._lines.items())
        rest = f"\n  and {self.count - self._listed} more" if self.count > self._listed else ""
        message = f"`{in_line(str(self.path))}` has {count}:\n{shown}{rest}"
        raise DataError(message, hint=f"expected {self.expected}", code="data.import")


def _places(lines: Sequence[int]) -> str:
    """Name lines, neighbours as a range.

    Examples
    --------
    >>> _places([3]), _places([3, 5, 6, 7])
    ('line 3', 'lines 3, 5-7')
    """
    ranges: list[list[int]] = []
    for line in lines:
        if ranges and line <= ranges[-1][1] + 1:
            ranges[-1][1] = line
        else:
            ranges.append([line, line])
    listed = ", ".join(
        str(first) if first == last else f"{first}-{last}" for first, last in ranges[:_SHOWN_RANGES]
    )
    rest = sum(last - first + 1 for first, last in ranges[_SHOWN_RANGES:])
    more = f" and {rest} more" if rest else ""
    return f"line{'s' * (len(lines) > 1)} {listed}{more}"
