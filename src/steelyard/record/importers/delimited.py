"""Lines of fields, read with their numbers, so that an error can name them."""

from __future__ import annotations

import csv
import io
import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import is_plausible
from steelyard.units import TIME_UNITS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.problem_list import ProblemList

_UNIT: Final = re.compile(
    r"[\s_\[(.](?P<unit>ns|nsec|us|usec|\u00b5s|\u03bcs|ms|msec|s|sec)[\])\s]*\Z", re.IGNORECASE
)
_LONGEST_WHOLE: Final = 9
"""Digits of a whole number: more would not fit into 32 bits."""


def rows(source: Source, delimiter: str, comment: str = "") -> Iterator[tuple[int, list[str]]]:
    """Give the rows that are not blank and do not begin with a sign of comments, with their lines from 1.

    Raises
    ------
    DataError
        If the file is no text or no CSV.
    """
    text = source.text()
    if comment:
        lines = text.splitlines(keepends=True)
        text = "".join("\n" if line.lstrip().startswith(comment) else line for line in lines)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if row and any(field.strip() for field in row):
                yield reader.line_num, [field.strip() for field in row]
    except csv.Error as error:
        source.refuse(f"line {reader.line_num}", f"not CSV: {error}")


def table_rows(source: Source, delimiter: str, comment: str = "") -> list[tuple[int, list[str]]]:
    """Give all rows; blanks that separate fields may be several.

    Raises
    ------
    DataError
        If there are none.
    """
    found = list(rows(source, delimiter, comment))
    if not found:
        source.refuse("line 1", "the file is empty, or comments alone" if comment else "the file is empty")
    if delimiter == " ":
        return [(line, [field for field in row if field]) for line, row in found]
    return found


def delimiter_of(line: str) -> str:
    """Give what separates the fields of a line: a tab, else a semicolon, else a comma, else blanks."""
    return next((sign for sign in ("\t", ";", ",") if sign in line), " ")


def column_place(source: Source, name: str, heading: Sequence[str]) -> int | None:
    """Give the position of a column by its name, or by its number from 1 where no heading is that number.

    Raises
    ------
    DataError
        If several columns have that name.
    """
    places = [place for place, each in enumerate(heading) if each == name]
    if places:
        return only_column(source, name, places)
    return int(name) - 1 if is_whole(name) and 1 <= int(name) <= len(heading) else None


def only_column(source: Source, name: str, places: Sequence[int]) -> int:
    """Give the one position at which a column of a name stands.

    Raises
    ------
    DataError
        If it stands at several: which of them is meant, the file does not tell.
    """
    if len(places) > 1:
        numbers = [str(place + 1) for place in places]
        listed = f"{', '.join(numbers[:-1])} and {numbers[-1]}"
        source.refuse(
            "line 1", f"cannot choose a column `{name[:40]}`: columns {listed} are called so; rename them"
        )
    return places[0]


def split_heading(heading: str) -> tuple[str, str]:
    """Give the plain name of a column, and the unit of time that it states; empty where it states none.

    Examples
    --------
    >>> split_heading("Latency (us)"), split_heading("run_delay0_ns"), split_heading("size_bytes")
    (('latency', 'us'), ('rundelay0', 'ns'), ('sizebytes', ''))
    """
    heading = heading.strip()
    matched = _UNIT.search(heading)
    name, unit = (heading[: matched.start()], matched["unit"].lower()) if matched else (heading, "")
    return re.sub(r"[^a-z0-9]", "", name.lower()), TIME_UNITS.get(unit, unit)


def contradicted(name: str, stated: str, unit: str) -> str:
    """Say that a heading states another unit than the command line."""
    return (
        f"cannot read column `{name[:40]}` in {unit}: its heading states {stated}; leave out `--unit {unit}`"
    )


def is_whole(text: str) -> bool:
    """Tell whether a text is a whole number from 0 that fits into 32 bits."""
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_WHOLE


def headed_rows(
    source: Source, delimiter: str, headings: Collection[tuple[str, ...]]
) -> tuple[tuple[str, ...], list[tuple[int, list[str]]]]:
    """Give the heading of a file, which must be one of those given, and the rows below it.

    Raises
    ------
    DataError
        If the file is empty, has another heading, or is no CSV.
    """
    found = list(rows(source, delimiter))
    if not found:
        source.refuse("line 1", "the file is empty")
    heading = tuple(found[0][1])
    if heading not in headings:
        source.refuse("line 1", f"the heading is `{','.join(heading)[:80]}`")
    return heading, found[1:]


def number_of(text: str) -> Decimal | None:
    """Give a finite number; nothing for anything else.

    Examples
    --------
    >>> number_of("1.5e-3"), number_of("nan"), number_of("1_000")
    (Decimal('0.0015'), None, None)
    """
    if "_" in text:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if is_plausible(number) else None


def require_number(problems: ProblemList, line: int, name: str, text: str) -> Decimal | None:
    """Give a number from 0; for anything else note the problem and give nothing."""
    number = number_of(text)
    if number is None or number < 0:
        problems.add(line, f"{name} is `{text[:40]}`; expected a number from 0")
        return None
    return number
