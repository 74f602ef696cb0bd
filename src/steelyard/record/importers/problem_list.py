"""Problems of a foreign file, collected so that one error names them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

SHOWN: Final = 20


class ProblemList:
    """Collects problems with their lines.

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
        self._shown: list[str] = []

    def add(self, line: int, text: str) -> None:
        """Add a problem of a line, counted from 1."""
        self.count += 1
        if self.count <= SHOWN:
            self._shown.append(f"  line {line}: {text}")

    def raise_if_any(self) -> None:
        """Raise what was collected.

        Raises
        ------
        DataError
            Listing the first 20 problems and counting the others.
        """
        if not self.count:
            return
        count = "1 problem" if self.count == 1 else f"{self.count} problems"
        shown = "\n".join(self._shown)
        rest = f"\n  and {self.count - SHOWN} more" if self.count > SHOWN else ""
        message = f"`{self.path}` has {count}:\n{shown}{rest}"
        raise DataError(message, hint=f"expected {self.expected}", code="data.import")
