"""Plain CSV or Parquet, with columns named on the command line."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from steelyard.errors import UsageError
from steelyard.record.importers.delimited import number_of, rows
from steelyard.record.importers.foreign import (
    DECIMAL_EXPONENTS,
    MEASURE,
    WARM_UP,
    WORKLOAD,
    ForeignFile,
    ForeignRun,
    Section,
    to_nanoseconds,
)
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.problem_list import ProblemList

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "a CSV file (comma, semicolon, tab or blanks) or a Parquet file with a column of values: "
    "`--column value=NAME --unit ms`, by number from 1 where there is no header"
)
ROLES: Final = ("value", "run", "iteration", "workload", "phase", "metric", "block")
_PARQUET: Final = b"PAR1"
Row = tuple[int, list[str]]


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Listing the first 20 lines that are wrong, or the columns there are.
    UsageError
        If the unit is not given.
    """
    if not options.unit:
        message = "the unit of the values is not given; allowed: `ns`, `us`, `ms`, `s`, or any other word"
        raise UsageError(message, hint="add e.g. `--unit ms`", code="usage.unit")
    is_parquet = source.content.startswith(_PARQUET)
    heading, body = _parquet(source) if is_parquet else _delimited(source, options)
    places = _places(source, heading, options)
    found = ForeignFile("Parquet" if is_parquet else "CSV", facts={"tool": "table"})
    reader = _Reader(source, options.unit, places)
    for row in body:
        reader.take(row)
    reader.problems.raise_if_any()
    found.runs = list(reader.runs.values())
    ignored = [name for place, name in enumerate(heading) if place not in places.values()]
    if ignored:
        found.notes.append(f"columns that were not taken: {', '.join(f'`{name}`' for name in ignored)}")
    if "run" not in places:
        found.notes.append("no column `run`: the values of a cell are iterations of one run")
    return found


def _delimited(source: Source, options: ReadOptions) -> tuple[list[str], list[Row]]:
    first = next((line for line in source.text().splitlines() if line.strip()), "")
    delimiter = next((sign for sign in ("\t", ";", ",") if sign in first), " ")
    found = list(rows(source, delimiter))
    if delimiter == " ":
        found = [(line, [field for field in row if field]) for line, row in found]
    if not found:
        source.refuse("line 1", "the file is empty")
    if options.columns and all(name.isdecimal() for name in options.columns.values()):
        return [str(place) for place in range(1, len(found[0][1]) + 1)], found
    return found[0][1], found[1:]


def _parquet(source: Source) -> tuple[list[str], list[Row]]:
    try:
        table = pq.read_table(pa.BufferReader(source.content), use_threads=False, pre_buffer=False)
        names = [field.name for field in table.schema]
        columns = [column.to_pylist() for column in table.columns]
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or ["damaged"])[0]
        source.refuse("", f"no Parquet file that can be read: {reason}")
    body = [
        (line, ["" if value is None else str(value) for value in row])
        for line, row in enumerate(zip(*columns, strict=True), start=1)
    ]
    return names, body


def _places(source: Source, heading: list[str], options: ReadOptions) -> dict[str, int]:
    """Give the position of the column of each role."""
    columns = options.columns or {role: role for role in ROLES if role in heading}
    absent = [name for name in columns.values() if name not in heading]
    there = ", ".join(f"`{name[:40]}`" for name in heading[:30])
    if absent:
        source.refuse("line 1", f"no column `{'`, `'.join(absent)}`; columns are: {there}")
    if "value" not in columns:
        source.refuse("line 1", f"no column of values is named; columns are: {there}")
    return {role: heading.index(name) for role, name in columns.items()}


class _Reader:
    """Puts rows into the runs they belong to."""

    def __init__(self, source: Source, unit: str, places: dict[str, int]) -> None:
        self.problems = ProblemList(source.path, EXPECTED)
        self.runs: dict[tuple[str, ...], ForeignRun] = {}
        self._name = source.path.stem
        self._unit = unit
        self._places = places
        self._counts: dict[tuple[str, ...], int] = {}
        self._factors = [role for role in places if role not in ROLES]

    def take(self, row: Row) -> None:
        line, fields = row
        if len(fields) <= max(self._places.values()):
            self.problems.add(
                line, f"{len(fields)} fields; expected at least {max(self._places.values()) + 1}"
            )
            return
        texts = {role: fields[place] for role, place in self._places.items()}
        faults = list(self._faults(texts))
        if faults:
            self.problems.add(line, "; ".join(faults))
            return
        levels = {
            WORKLOAD: texts.get("workload", self._name),
            **{role: texts[role] for role in self._factors},
        }
        key = (*levels.values(), texts.get("block", ""), texts.get("run", ""))
        run = self.runs.get(key)
        if run is None:
            run = self.runs[key] = ForeignRun(levels, [], block=texts.get("block", ""))
        run.sections.append(self._section(texts, key))

    def _faults(self, texts: dict[str, str]) -> Iterable[str]:
        number = number_of(texts["value"])
        if number is None or (self._unit in DECIMAL_EXPONENTS and number < 0):
            yield f"value is `{texts['value'][:40]}`; expected a number"
        if texts.get("phase", MEASURE) not in (MEASURE, WARM_UP):
            yield f"phase is `{texts['phase'][:40]}`; expected `{MEASURE}` or `{WARM_UP}`"
        iteration = texts.get("iteration", "1")
        if not (iteration.isascii() and iteration.isdecimal() and len(iteration) <= 9):  # noqa: PLR2004 - int32
            yield f"iteration is `{iteration[:40]}`; expected a whole number"

    def _section(self, texts: dict[str, str], key: tuple[str, ...]) -> Section:
        metric, phase = texts.get("metric", "value") or "value", texts.get("phase", MEASURE)
        counted = self._counts[*key, metric] = self._counts.get((*key, metric), 0) + 1
        iteration = int(texts["iteration"]) if "iteration" in texts else counted
        number = Decimal(texts["value"])
        if self._unit in DECIMAL_EXPONENTS:
            value, unit = to_nanoseconds(number, self._unit), "ns"
        else:
            value, unit = float(number), self._unit
        return Section(metric, unit, value, iteration, phase, texts["value"])


IMPORTER: Final = ForeignImporter("csv", "plain CSV or Parquet, with columns named", EXPECTED, read)
