"""The report in a terminal: the verdict in a line, the key tables, the answer in words, its warnings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from steelyard.report.shown_text import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

    from steelyard.report.page import Page, Table, Value
    from steelyard.report.sentence import Statement

WIDTH: Final = 80
LONGEST_NOTE: Final = 40
"""Characters; longer notes are sentences, which the page has room for."""
LONGEST_WORD: Final = 20
"""Characters; a longer word of a table may be broken."""
KEY_ROWS: Final = 8
"""Rows of a key table shown; the page and the CSV file have all."""

_CLAUSE_END: Final = re.compile(r" \(|[,;.] ")
_MORE: Final = " ..."

_TONES: Final = {
    "higher": "dark_orange3",
    "slower": "dark_orange3",
    "lesser": "blue",
    "faster": "blue",
    "same": "green",
    "equivalent": "green",
    "good": "green",
    "warn": "yellow",
    "bad": "red",
}


def print_summary(page: Page, stream: IO[str], places: tuple[tuple[str, str], ...] = ()) -> None:
    """Print the summary of a report, 80 columns wide, readable without colour.

    The first line is the verdict, then come the key tables, then the whole answer in words.

    Parameters
    ----------
    page : Page
        What to show.
    stream : file
        Colour is used only where it is a terminal and ``NO_COLOR`` is not set.
    places : tuple of (str, str)
        What was written, and where; printed last.
    """
    console = Console(
        file=stream, width=min(WIDTH, Console(file=stream).width), highlight=False, emoji=False, markup=False
    )
    said = verdict_line(page, console.width)
    if said:
        console.print(Text(said, style="bold"))
    for table in page.tables():
        if table.is_key:
            console.print()
            _print_table(console, table)
    in_words = [statement for statement in page.answer if statement.text != said or statement.warnings]
    if in_words:
        console.print()
    for statement in in_words:
        _print_statement(console, statement)
    for notice in page.notices:
        console.print()
        console.print(Text(notice.title, style="bold"))
        for item in notice.items:
            console.print(Text(f"- {item}"))
    console.print()
    console.print(Text(_about(page, console.width), style="dim"))
    for name, place in places:
        console.print(Text(f"{name}: {place}"), soft_wrap=True)


def verdict_line(page: Page, width: int) -> str:
    """Give the first statement of the answer in one line; dots stand where it goes on below.

    Parameters
    ----------
    page : Page
        The report.
    width : int
        Characters of a line.
    """
    text = " ".join(page.answer[0].text.split()) if page.answer else ""
    if len(text) <= width:
        return text
    room = width - len(_MORE)
    ends = [match.start() for match in _CLAUSE_END.finditer(text) if room // 2 <= match.start() <= room]
    words = text[: room + 1].rpartition(" ")[0] or text[:room]
    return (text[: ends[-1]] if ends else words).rstrip(" ,;:") + _MORE


def _about(page: Page, width: int) -> str:
    """Give the short facts that fit into one line; the page has all."""
    line = f"{page.study} study"
    for name, value in page.about:
        longer = f"{line}, {name} {value}"
        if len(longer) <= width:
            line = longer
    return line


def _print_statement(console: Console, statement: Statement) -> None:
    """Print a statement and its warnings as an item whose lines begin below each other."""
    line = Text()
    for part in statement.parts:
        line.append(part.text, style="bold" if part.is_value else "")
    item = Grid.grid(padding=(0, 1, 0, 0))
    item.add_row("-", line)
    for warning in statement.warnings:
        item.add_row("!", Text(warning, style="yellow"))
    console.print(item)


def _print_table(console: Console, table: Table) -> None:
    console.print(Text(table.title, style="bold"))
    shown = [place for place, column in enumerate(table.columns) if column.in_terminal]
    columns = [table.columns[place] for place in shown]
    rows = [[_cell(row[place]) for place in shown] for row in table.rows[:KEY_ROWS]]
    headings = [Text(each.key).append(f"\n[{each.unit}]" if each.unit else "") for each in columns]
    cells = [[cell.plain for cell in column] for column in zip(headings, *rows, strict=True)]
    gap, widths = _widths(cells, [each.is_number for each in columns], console.width)
    # The box puts one space between columns.
    grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0))
    for column, heading, width in zip(columns, headings, widths, strict=True):
        justify: Literal["left", "right"] = "right" if column.is_number else "left"
        grid.add_column(heading, justify=justify, overflow="fold", width=width)
    for row in rows:
        grid.add_row(*row)
    console.print(grid)
    hidden = len(table.rows) - KEY_ROWS
    if hidden > 0:
        console.print(Text(f"{hidden} more rows in {table.file or 'the page'}", style="dim"))


def _widths(
    columns: Sequence[Sequence[str]], are_numbers: Sequence[bool], room: int
) -> tuple[int, Sequence[int | None]]:
    """Give gap and widths at which words, and numbers with their units, stay whole if there is room."""
    words = [
        min(max((len(word) for text in texts for word in text.split()), default=0), LONGEST_WORD)
        for texts in columns
    ]
    lines = [[len(line) for text in texts for line in text.split("\n")] for texts in columns]
    kept = [
        max([word, *found[1:]]) if is_number else word
        for word, found, is_number in zip(words, lines, are_numbers, strict=True)
    ]
    headed = [max(width, found[0]) for width, found in zip(kept, lines, strict=True)]
    for gap, widths in ((2, headed), (2, kept), (1, kept), (2, words), (1, words)):
        left = room - sum(widths) - gap * (len(widths) - 1)
        if left >= 0:
            return gap, _widened(widths, lines, left)
    return 2, [None] * len(columns)


def _widened(widths: Sequence[int], lines: Sequence[Sequence[int]], left: int) -> list[int]:
    """Give what is left, one by one, to the column in which most lines are too long."""
    wider = list(widths)
    for _ in range(left):
        long = [
            (sum(line > width for line in found), max(found) / max(width, 1))
            for width, found in zip(wider, lines, strict=True)
        ]
        most = max(long)
        if most[0] == 0:
            break
        wider[long.index(most)] += 1
    return wider


def _cell(value: Value) -> Text:
    text = Text(shortened(value.text), style=_TONES.get(value.tone, ""))
    if value.note and len(value.note) <= LONGEST_NOTE:
        text.append(f"\n{value.note}", style="dim")
    return text
