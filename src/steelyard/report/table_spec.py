"""Tables as specifications: each column together with the function that fills it from what a row is about."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from steelyard.report.page import MOST_ROWS, Column, MadeRows, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from steelyard.model.finding import Finding
    from steelyard.report.page import Value

Row = TypeVar("Row")

DOUBT: Final = "*"
"""Mark of an interval in a table that may miss its level; the note of the table says so."""

DOUBT_NOTE: Final = f"{DOUBT} with so few trials the interval may miss its level."


@dataclass(frozen=True, slots=True)
class ColumnSpec(Generic[Row]):
    """A column and how it is filled; `text`, `number` and `prose` make one.

    Parameters
    ----------
    column : Column
        Heading, unit and flags.
    fill : callable
        Gives the value of a row.
    is_shown : callable or None
        Tells of all rows whether the column says anything; ``None`` for a column that is always there.
    """

    column: Column
    fill: Callable[[Row], Value]
    is_shown: Callable[[Sequence[Row]], bool] | None = None


@dataclass(frozen=True, slots=True)
class TableSpec(Generic[Row]):
    """A table before it has rows.

    Parameters
    ----------
    id, title : str
        Anchor and caption.
    columns : tuple of ColumnSpec
        In order.
    note : str
        How to read it.
    doubt_note : str
        Follows `note` where a value bears the mark `DOUBT`.
    file : str or None
        Stem of the CSV file in the folder ``tables`` of the result, by default `id`; ``None`` for no file.
    is_key : bool
        Whether the terminal summary shows it.
    summary : callable or None
        Gives of all rows what the table says, in one line.

    Examples
    --------
    >>> from steelyard.report.page import Value
    >>> spec = TableSpec("squares", "Squares", (number("n", lambda n: Value(f"{n}", n)),), file=None)
    >>> [value.text for (value,) in spec.build([1, 4]).rows], spec.build([])
    (['1', '4'], None)
    """

    id: str
    title: str
    columns: tuple[ColumnSpec[Row], ...]
    note: str = ""
    doubt_note: str = ""
    file: str | None = ""
    is_key: bool = False
    summary: Callable[[Sequence[Row]], str] | None = None

    def build(self, rows: Sequence[Row]) -> Table | None:
        """Give the table of some rows, in their order; nothing where there are none."""
        if not rows:
            return None
        columns = [each for each in self.columns if each.is_shown is None or each.is_shown(rows)]
        values: Sequence[tuple[Value, ...]] = MadeRows(
            len(rows), lambda place: tuple(each.fill(rows[place]) for each in columns)
        )
        if len(rows) <= MOST_ROWS:
            values = tuple(values)
        is_doubtful = bool(self.doubt_note) and any(_is_marked(value) for row in values for value in row)
        return Table(
            id=self.id,
            title=self.title,
            columns=tuple(each.column for each in columns),
            rows=values,
            note=" ".join(filter(None, (self.note, self.doubt_note if is_doubtful else ""))),
            file=None if self.file is None else f"tables/{self.file or self.id}.csv",
            is_key=self.is_key,
            summary="" if self.summary is None else self.summary(rows),
        )


def text(
    heading: str,
    fill: Callable[[Row], Value],
    explanation: str = "",
    *,
    unit: str = "",
    in_terminal: bool = True,
) -> ColumnSpec[Row]:
    """Give a column of words or of texts that sort as such, like intervals."""
    return ColumnSpec(Column(heading, unit, explanation=explanation, in_terminal=in_terminal), fill)


def number(
    heading: str,
    fill: Callable[[Row], Value],
    explanation: str = "",
    *,
    unit: str = "",
    in_terminal: bool = True,
) -> ColumnSpec[Row]:
    """Give a column of numbers: aligned to the right and sorted by value."""
    column = Column(heading, unit, is_number=True, explanation=explanation, in_terminal=in_terminal)
    return ColumnSpec(column, fill)


def prose(heading: str, fill: Callable[[Row], Value]) -> ColumnSpec[Row]:
    """Give a column of sentences, which may be broken into lines."""
    return ColumnSpec(Column(heading, is_prose=True), fill)


def shown_where(
    is_shown: Callable[[Sequence[Row]], bool], *columns: ColumnSpec[Row]
) -> tuple[ColumnSpec[Row], ...]:
    """Show columns only in tables whose rows fulfil a condition."""
    return tuple(replace(each, is_shown=is_shown) for each in columns)


def counted(words: Iterable[str], order: Sequence[str] = ()) -> str:
    """Count words, most frequent first, or in a given order.

    Examples
    --------
    >>> counted(["flat", "warm-up", "flat"])
    '2 flat, 1 warm-up'
    """
    counts = Counter(words)
    names = [name for name in order if name in counts] or [name for name, _ in counts.most_common()]
    return ", ".join(f"{counts[name]} {name}" for name in names)


def counted_verdicts(findings: Sequence[Finding]) -> str:
    """Count the verdicts of findings: the summary of many tables."""
    return counted(finding.verdict for finding in findings)


def _is_marked(value: Value) -> bool:
    return value.text.endswith(f" {DOUBT}") or value.note.endswith(f" {DOUBT}")
