"""Columns of a chart: compact inside the page, rows for the chart engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from steelyard.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Sequence


Scalar: TypeAlias = "str | int | float | bool | None"

SIGNIFICANT_DIGITS = 6
"""Digits kept of a number in a chart: a pixel resolves fewer than four."""


Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Rows of a chart, kept by column.

    Parameters
    ----------
    columns : dict
        Values by field; all of the same length.
    drawn : int or None
        Rows that the chart draws, the first; ``None`` for all. The others are in the table of the figure.

    Raises
    ------
    InternalError
        If the columns differ in length.
    """

    columns: dict[str, tuple[str | int | float | bool | None, ...]]
    drawn: int | None = None

    def __post_init__(self) -> None:
        """Check the lengths."""
        if len({len(values) for values in self.columns.values()}) > 1:
            lengths = ", ".join(f"`{name}` {len(values)}" for name, values in self.columns.items())
            message = f"columns of a chart differ in length: {lengths}"
            raise InternalError(message, code="report.dataset")

    def __len__(self) -> int:
        """Give the number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def rows(self, most: int | None = None) -> list[Json]:
        """Give one mapping per row, as Vega-Lite reads it; at most the first `most`."""
        names, columns = list(self.columns), (values[:most] for values in self.columns.values())
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

    def packed(self) -> dict[str, Json]:
        """Give the columns of what is drawn, with texts replaced by positions in a list of words.

        A page with 40 000 points stays small this way; the page's script unpacks it.
        """
        return {name: _pack(values[: self.drawn]) for name, values in self.columns.items()}


def dataset(rows: Sequence[dict[str, str | int | float | bool | None]], drawn: int | None = None) -> Dataset:
    """Make a dataset of rows that all have the same fields.

    Examples
    --------
    >>> dataset([{"x": 1, "y": 0.1234567891}, {"x": 2, "y": None}]).columns
    {'x': (1, 2), 'y': (0.123457, None)}
    """
    names = list(rows[0]) if rows else []
    return Dataset({name: tuple(_rounded(row[name]) for row in rows) for name in names}, drawn)


def _rounded(value: Scalar) -> Scalar:
    if isinstance(value, float):
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    return value


def _pack(values: tuple[str | int | float | bool | None, ...]) -> dict[str, Json]:
    if not any(isinstance(value, str) for value in values):
        return {"values": list(values)}
    words = list(dict.fromkeys(values))
    position = {word: index for index, word in enumerate(words)}
    return {"words": list(words), "codes": [position[value] for value in values]}
