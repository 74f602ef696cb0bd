"""Plain CSV or Parquet, with columns named on the command line."""

from __future__ import annotations

import io
import shlex
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from steelyard.errors import UsageError
from steelyard.record.importers.column_blocks import PlainText, parquet_blocks, text_blocks
from steelyard.record.importers.columnar import ColumnarRuns, columnar_rows
from steelyard.record.importers.delimited import (
    column_place,
    contradicted,
    delimiter_of,
    is_whole,
    number_of,
    only_column,
    split_heading,
    table_rows,
)
from steelyard.record.importers.foreign import (
    DECIMAL_EXPONENTS,
    MEASURE,
    WARM_UP,
    WORKLOAD,
    ForeignFile,
    ForeignRun,
    Section,
    in_line,
    to_nanoseconds,
)
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.problem_list import ProblemList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "a CSV file (comma, semicolon, tab or blanks) or a Parquet file with a column of values: "
    "`--column value=NAME --unit ms`, by number from 1 where there is no header"
)
ROLES: Final = ("value", "run", "iteration", "workload", "phase", "metric", "block", "exit_code")
UNNAMED: Final = "unnamed"
"""The program of a table that does not name it."""
OF_FILE: Final = "{file}"
ROWS: Final = ("iteration", "run", "block")
_PARQUET: Final = b"PAR1"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_COMMENTS: Final = ("#", "%", "//")
_SHOWN_HINTS: Final = 3
_SHOWN_COLUMNS: Final = 20
Row = tuple[int, list[str]]


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming every cell that is wrong, or the columns there are.
    UsageError
        If the unit is not given.
    """
    if not options.unit:
        message = "the unit of the values is not given; allowed: `ns`, `us`, `ms`, `s`, or any other word"
        raise UsageError(message, hint="add e.g. `--unit ms`", code="usage.unit")
    if source.content.startswith(_PARQUET):
        _refuse_text_options(source, options)
        return _file("Parquet", *_read_parquet(source, options))
    found = _read_columns(source, PlainText(io.BytesIO(source.content)), options)
    return _file("CSV", *(found or _read_rows(source, options, *_delimited(source, options))))


def read_plain(source: Source, text: PlainText, options: ReadOptions) -> ForeignFile | None:
    """Read a file that need not fit into memory as text, if it is as plain as most are.

    Raises
    ------
    DataError, UsageError
        As `read`, for what the headings show.
    """
    found = _read_columns(source, text, options) if options.unit else None
    return None if found is None else _file("CSV", *found)


def _file(form: str, reader: _Reader, runs: Sequence[ForeignRun]) -> ForeignFile:
    found = ForeignFile(form, facts={"tool": "table"}, notes=list(reader.notes()))
    if isinstance(runs, ColumnarRuns):
        found.table = runs
    else:
        found.runs = list(runs)
    return found


def _read_rows(
    source: Source, options: ReadOptions, heading: list[str], body: Iterable[Row]
) -> tuple[_Reader, list[ForeignRun]]:
    columns = _Columns.of(source, heading, options)
    _refuse_contradictions(source, columns, options)
    reader = _Reader(source, options, columns)
    for row in body:
        reader.take(row)
    reader.raise_if_any()
    return reader, [run.foreign() for run in reader.runs.values()]


def _read_columns(
    source: Source, text: PlainText, options: ReadOptions
) -> tuple[_Reader, Sequence[ForeignRun]] | None:
    """Read a table by column, where it is as plain as most are; else give nothing."""
    first = text.readline().removeprefix(_BYTE_ORDER_MARK)
    is_plain = not (options.wide or options.comment or options.missing or options.decimal != ".")
    if not (is_plain and first.endswith(b"\n") and first.strip() and first.isascii()) or b"\0" in first:
        return None
    line = first.decode().rstrip("\r\n")
    delimiter = delimiter_of(line)
    if delimiter == " " and len(line.split()) == 1:
        delimiter = ","  # a single column has no separator
    fields = [field.strip() for field in line.split(delimiter)]
    if delimiter == " " or not options.has_header or '"' in line or _begins_with_values(fields, options):
        return None
    return _by_column(
        source, options, fields, lambda places: text_blocks(text, delimiter, len(fields), places)
    )


def _by_column(
    source: Source,
    options: ReadOptions,
    heading: list[str],
    blocks_of: Callable[[dict[str, int]], Iterator[dict[str, pa.Array]]],
) -> tuple[_Reader, Sequence[ForeignRun]] | None:
    columns = _Columns.of(source, heading, options)
    reader = _Reader(source, options, columns)
    places = {**columns.places, "value": columns.values[0]}
    if not reader.has_runs_of_iterations or len(places) > len(set(places.values())):
        return None
    _refuse_contradictions(source, columns, options)
    try:
        rows = columnar_rows(blocks_of(places), options.unit)
    except (pa.ArrowException, OSError, ValueError):
        return None  # the reader of rows says where
    return None if rows is None else (reader, ColumnarRuns(rows, reader.levels))


def _read_parquet(source: Source, options: ReadOptions) -> tuple[_Reader, Sequence[ForeignRun]]:
    try:
        file = pq.ParquetFile(pa.BufferReader(source.content), pre_buffer=False)
        names = [field.name for field in file.schema_arrow]
    except (pa.ArrowException, OSError, ValueError) as error:
        _refuse_parquet(source, error)
    is_plain = not (options.wide or options.missing or options.decimal != ".")
    if is_plain and not any(pa.types.is_nested(field.type) for field in file.schema_arrow):
        found = _by_column(source, options, names, lambda places: parquet_blocks(file, places))
        if found is not None:
            return found
    return _read_rows(source, options, names, _parquet_rows(source, file))


def _refuse_text_options(source: Source, options: ReadOptions) -> None:
    """Refuse options that say how lines of text are read, of a file that has none."""
    given = {"--no-header": not options.has_header, "--comment": options.comment}
    for option in (name for name, value in given.items() if value):
        source.refuse("", f"cannot take `{option}`: a Parquet file has names of columns, and no lines")


def _delimited(source: Source, options: ReadOptions) -> tuple[list[str], list[Row]]:
    first = next(
        (
            line
            for line in source.text().splitlines()
            if line.strip() and not (options.comment and line.lstrip().startswith(options.comment))
        ),
        "",
    )
    delimiter = delimiter_of(first)
    if delimiter == "," and all(_number(field, options.decimal) is not None for field in first.split()):
        delimiter = " "  # the commas are inside of its numbers
    found = table_rows(source, delimiter, options.comment)
    if options.has_header and not _begins_with_values(found[0][1], options):
        return found[0][1], found[1:]
    return [str(place) for place in range(1, len(found[0][1]) + 1)], found


def _begins_with_values(row: list[str], options: ReadOptions) -> bool:
    """Tell whether a first row is none of headings: its columns have numbers, and its value is one."""
    columns = options.columns
    if not columns or not all(is_whole(name) for name in columns.values()):
        return False
    place = int(columns.get("value", "0"))
    return not 0 < place <= len(row) or _number(row[place - 1], options.decimal) is not None


def _parquet_rows(source: Source, file: pq.ParquetFile) -> Iterator[Row]:
    line = 0
    try:
        for batch in file.iter_batches(use_threads=False):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                line += 1
                yield line, ["" if value is None else str(value) for value in row]
    except (pa.ArrowException, OSError, ValueError) as error:
        _refuse_parquet(source, error)


def _refuse_parquet(source: Source, error: Exception) -> NoReturn:
    reason = (str(error).splitlines() or ["damaged"])[0]
    source.refuse("", f"no Parquet file that can be read: {reason}")


@dataclass(frozen=True, slots=True)
class _Columns:
    """Which column is what: positions by role, and those of the values (in a wide table, all others)."""

    heading: list[str]
    places: dict[str, int]
    values: list[int]

    @classmethod
    def of(cls, source: Source, heading: list[str], options: ReadOptions) -> _Columns:
        wanted = options.columns or {role: role for role in ROLES if role in heading}
        there = ", ".join(f"`{name[:40]}`" for name in heading[:30])
        found = {role: column_place(source, name, heading) for role, name in wanted.items()}
        if absent := [wanted[role] for role, place in found.items() if place is None]:
            source.refuse("line 1", f"no column `{'`, `'.join(absent)}`; columns are: {there}")
        places = {role: place for role, place in found.items() if place is not None}
        if not options.wide:
            if "value" not in places:
                source.refuse("line 1", f"no column of values is named; columns are: {there}")
            value = places.pop("value")
            if value in places.values():
                source.refuse("line 1", f"cannot take column `{heading[value][:40]}` for values and a role")
            return cls(heading, places, [value])
        if taken := {"value", options.wide} & set(options.columns):
            source.refuse("line 1", f"a wide table has no column of the role `{taken.pop()}`")
        places = {role: place for role, place in places.items() if role not in {"value", options.wide}}
        values = [place for place in range(len(heading)) if place not in places.values()]
        if not values:
            source.refuse("line 1", f"no column is left for values; columns are: {there}")
        is_level = [options.wide != "iteration" or is_whole(heading[place]) for place in values]
        for name, is_named in zip([heading[place] for place in values], is_level, strict=True):
            if is_named:
                only_column(source, name, [place for place in values if heading[place] == name])
        return cls(heading, places, values)

    @property
    def width(self) -> int:
        """Fields that a row needs."""
        return 1 + max([*self.places.values(), *self.values])

    @property
    def ignored(self) -> list[str]:
        """Names of the columns that are not taken."""
        taken = {*self.places.values(), *self.values}
        return [name for place, name in enumerate(self.heading) if place not in taken]


@dataclass(slots=True)
class _Run:
    """A run while its rows are read."""

    levels: dict[str, str]
    block: str
    sections: list[Section] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    exit_code: int | None = None

    def foreign(self) -> ForeignRun:
        return ForeignRun(self.levels, self.sections, block=self.block, exit_code=self.exit_code)


def _refuse_contradictions(source: Source, columns: _Columns, options: ReadOptions) -> None:
    """Refuse options that say something else than the headings."""
    names = [columns.heading[place] for place in columns.values]
    stated = [unit for _, unit in map(split_heading, names)]
    if options.unit in DECIMAL_EXPONENTS and all(stated):
        for name, unit in zip(names, stated, strict=True):
            if unit != options.unit:
                source.refuse("line 1", contradicted(name, unit, options.unit))
    says = {"workload": options.workload, **({options.rows: options.rows} if options.rows else {})}
    for role, text in says.items():
        option = "workload" if role == "workload" else "rows"
        if text and role in columns.places:
            name = columns.heading[columns.places[role]]
            source.refuse(
                "line 1", f"cannot take the {role} from `--{option} {text}`: column `{name[:40]}` tells it"
            )
        if text and role == options.wide:
            source.refuse("line 1", f"cannot take the {role} from `--{option} {text}`: the headings tell it")


class _Reader:
    """Puts the values of rows into the runs they belong to."""

    def __init__(self, source: Source, options: ReadOptions, columns: _Columns) -> None:
        self.runs: dict[tuple[str, ...], _Run] = {}
        self._options = options
        self._columns = columns
        self._rows_are = options.rows or ("run" if options.wide == "iteration" else "iteration")
        self._workload = (options.workload or UNNAMED).replace(OF_FILE, source.path.stem)
        roles = [*columns.places, *([options.wide] if options.wide else [])]
        self._factors = [role for role in roles if role not in ROLES]
        self._missing = {word.strip().casefold() for word in options.missing}
        self._left_out = 0
        self._problems = ProblemList(source.path, EXPECTED)
        self._hints: dict[str, None] = {}
        self._row = 0

    @property
    def has_runs_of_iterations(self) -> bool:
        """Whether rows are iterations, or tell their run: no row is a run because of its place."""
        return self._rows_are == "iteration" or (self._rows_are == "run" and "run" in self._columns.places)

    def take(self, row: Row) -> None:
        """Take the values of a row, or note what is wrong with it."""
        line, fields = row
        self._row += 1
        columns, options = self._columns, self._options
        if len(fields) < columns.width:
            is_comment = fields[0].startswith(_COMMENTS)
            if is_comment or not options.wide or len(fields) <= max(columns.places.values(), default=-1):
                self._problems.add(line, f"{len(fields)} fields; expected at least {columns.width}")
                if is_comment:
                    self._hints[f"`--comment '{fields[0][0]}'` leaves lines of comments out"] = None
                return
            # Columns of a wide table need not be of the same length.
            fields = fields + [""] * (columns.width - len(fields))
        if any(fields[len(columns.heading) :]):
            # Decimal commas between commas, say: every field behind the first of them is another column's.
            self._problems.add(line, f"{len(fields)} fields; expected {len(columns.heading)}")
            return
        texts = {role: fields[place] for role, place in columns.places.items()}
        faults = list(_faults(texts))
        for place in columns.values:
            heading = f"column `{columns.heading[place][:40]}`: " if options.wide else ""
            faults += [f"{heading}{fault}" for fault in self._faults_of_value(fields[place])]
        if faults:
            self._problems.add(line, "; ".join(faults))
            return
        for number, place in enumerate(columns.values, start=1):
            if self._is_missing(fields[place]):
                self._left_out += 1
                continue
            self._add({**texts, **self._of_column(number, columns.heading[place])}, fields[place])

    def _is_missing(self, text: str) -> bool:
        return text.casefold() in self._missing or (bool(self._options.wide) and not text)

    def _faults_of_value(self, text: str) -> Iterator[str]:
        if self._is_missing(text):
            return
        number = _number(text, self._options.decimal)
        if number is not None and (self._options.unit not in DECIMAL_EXPONENTS or number >= 0):
            return
        if number is None and _is_decimal_comma(text):
            self._hints["`--decimal ,` reads decimal commas"] = None
        elif number is None:
            self._hints[f"`--missing {shlex.quote(in_line(text[:40]))}` leaves such values out"] = None
        least = " from 0" if self._options.unit in DECIMAL_EXPONENTS else ""
        yield f"value is `{text[:40]}`; expected a number{least}"

    def _of_column(self, number: int, heading: str) -> dict[str, str]:
        """Give the role that a column of a wide table plays, with its level."""
        role = self._options.wide
        if not role:
            return {}
        return {role: heading if role != "iteration" or is_whole(heading) else str(number)}

    def levels(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Give the level of each factor from the texts of a row by role."""
        return {
            WORKLOAD: texts.get("workload", self._workload),
            **{role: texts[role] for role in self._factors},
        }

    def _add(self, texts: dict[str, str], text: str) -> None:
        levels = self.levels(texts)
        block = texts.get("block", f"row {self._row}" if self._rows_are == "block" else "")
        launch = texts.get("run", "" if self._rows_are == "iteration" else str(self._row))
        run = self.runs.setdefault((*levels.values(), block, launch), _Run(levels, block))
        if code := texts.get("exit_code"):
            run.exit_code = run.exit_code or int(code)
        metric, unit = texts.get("metric", "value") or "value", self._options.unit
        run.counts[metric] = run.counts.get(metric, 0) + 1
        iteration = int(texts["iteration"]) if "iteration" in texts else run.counts[metric]
        number = _number(text, self._options.decimal) or Decimal(0)
        is_time = unit in DECIMAL_EXPONENTS
        value = to_nanoseconds(number, unit) if is_time else float(number)
        phase = texts.get("phase", MEASURE)
        run.sections.append(Section(metric, "ns" if is_time else unit, value, iteration, phase, text))

    def raise_if_any(self) -> None:
        """Raise every problem, with the options that may be meant."""
        self._problems.expected = "; ".join((EXPECTED, *list(self._hints)[:_SHOWN_HINTS]))
        self._problems.raise_if_any()

    def notes(self) -> Iterator[str]:
        """Say how the columns were read, and what was not taken."""
        options, columns = self._options, self._columns
        roles = {role: f"`{columns.heading[place]}`" for role, place in columns.places.items()}
        if options.wide:
            taken = ", ".join(f"`{columns.heading[place]}`" for place in columns.values[:_SHOWN_COLUMNS])
            rest = len(columns.values) - _SHOWN_COLUMNS
            roles = {
                f"values, each of one {options.wide}": taken + (f" and {rest} more" if rest > 0 else "")
            } | roles
        else:
            roles = {"value": f"`{columns.heading[columns.values[0]]}`"} | roles
        read_as = "; ".join(f"{role} {column}" for role, column in roles.items())
        yield f"columns: {read_as}; unit {options.unit}"
        if ignored := columns.ignored:
            yield f"columns that were not taken: {', '.join(f'`{name}`' for name in ignored)}"
        if "workload" not in columns.places and options.wide != "workload" and not options.workload:
            yield (
                f"no column `workload`: all rows are of one program, `{UNNAMED}`, and each file is a "
                f"repetition of it; `--workload NAME` names it, `--workload '{OF_FILE}'` makes each file a "
                "program"
            )
        if "run" not in columns.places and options.wide != "run" and self._rows_are == "iteration":
            yield (
                "no column `run`: the values of a cell are iterations of one run; `--rows run` makes each "
                "row a launch of its own"
            )
        if self._left_out:
            yield f"values that are not there: {self._left_out}"


def _faults(texts: dict[str, str]) -> Iterable[str]:
    """Give what is wrong with the fields beside the values."""
    if texts.get("phase", MEASURE) not in (MEASURE, WARM_UP):
        yield f"phase is `{texts['phase'][:40]}`; expected `{MEASURE}` or `{WARM_UP}`"
    if not is_whole(texts.get("iteration", "1")):
        yield f"iteration is `{texts['iteration'][:40]}`; expected a whole number"
    code = texts.get("exit_code", "")
    if code and not is_whole(code.removeprefix("-")):
        yield f"exit code is `{code[:40]}`; expected a whole number, or nothing"


def _number(text: str, decimal: str) -> Decimal | None:
    if decimal == ",":
        return None if "." in text else number_of(text.replace(",", "."))
    return number_of(text)


def _is_decimal_comma(text: str) -> bool:
    return text.count(",") == 1 and number_of(text.replace(",", ".")) is not None


IMPORTER: Final = ForeignImporter(
    "csv", "plain CSV or Parquet, with columns named", EXPECTED, read, read_plain=read_plain
)
