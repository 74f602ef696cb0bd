"""criterion.rs: the directory it writes, one `sample.json`, or an old `raw.csv`; a sample is an iteration."""

from __future__ import annotations

import csv
import io
import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from steelyard.model.plain_file import read_plain_file
from steelyard.record.importers.delimited import column_place
from steelyard.record.importers.foreign import (
    WORKLOAD,
    ForeignFile,
    ForeignRun,
    Section,
    Source,
    is_plausible,
    unreadable,
)
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.json_node import read_json

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "criterion's folder (`target/criterion`), a `sample.json` with `iters` and `times` of equal length, or a "
    "`raw.csv` with the columns group, function, value, sample_measured_value, unit, iteration_count"
)
_RAW: Final = ("group", "function", "value", "sample_measured_value", "unit", "iteration_count")


def sample_files(folder: Path) -> list[Path]:
    """Give the newest samples of every benchmark below a folder, in order of their paths."""
    found = sorted(folder.glob("**/new/sample.json"))
    return found or sorted(folder.glob("**/sample.json"))


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the place of what is wrong.
    """
    del options
    is_json = source.content.lstrip()[:1] in (b"{", b"[")
    return _read_sample(source) if is_json else _read_raw(source)


def _read_sample(source: Source) -> ForeignFile:
    document = read_json(source)
    counts, times = document.member("iters").elements(), document.member("times")
    totals = times.elements()
    if len(totals) != len(counts):
        times.refuse(f"a list of {len(counts)} entries, one per entry of `iters`")
    sections: list[Section] = []
    for iteration, (count, total) in enumerate(zip(counts, totals, strict=True), start=1):
        number = count.count()
        if number == 0:
            count.refuse("a number of loops from 1")
        sections += _sections(number, total.duration(), iteration)
    facts = {"tool": "criterion"}
    if (mode := document.optional("sampling_mode")) is not None:
        facts["sampling_mode"] = mode.shown()
    return ForeignFile("sample.json", [ForeignRun({WORKLOAD: _name(source.path)}, sections)], [], facts)


def _sections(count: int, total_ns: Decimal, iteration: int) -> list[Section]:
    """Give time per loop, and the two numbers of the file it is the quotient of."""
    quotient = float(Fraction(total_ns) / count)
    return [
        Section("time", "ns", quotient, iteration),
        Section("batch_time", "ns", float(total_ns), iteration, printed=str(total_ns)),
        Section("batch_loops", "count", float(count), iteration, printed=str(count)),
    ]


def _name(path: Path) -> str:
    """Give the full name from `benchmark.json` beside the sample, else from the folders."""
    described = path.with_name("benchmark.json")
    if described.is_file():
        try:
            content = read_plain_file(described)
        except OSError as error:
            raise unreadable(described, error, EXPECTED) from error
        document = read_json(Source(described, content, EXPECTED))
        if (full := document.optional("full_id")) is not None:
            return full.text()
    folder = path.resolve().parent
    return (folder.parent if folder.name in ("new", "base") else folder).name or "benchmark"


def _read_raw(source: Source) -> ForeignFile:
    reader = csv.DictReader(io.StringIO(source.text(), newline=""), strict=True)
    found: dict[str, list[Section]] = {}
    try:
        absent = [name for name in _RAW if name not in (reader.fieldnames or ())]
        if absent:
            source.refuse("line 1", f"no column `{'`, `'.join(absent)}`")
        for name in _RAW:
            column_place(source, name, reader.fieldnames or ())
        for row in reader:
            name = "/".join(part for part in (row["group"], row["function"], row["value"]) if part)
            name = name or "benchmark"
            sections = found.setdefault(name, [])
            place = f"line {reader.line_num}"
            if row["unit"] != "ns":
                source.refuse(place, f"unit is `{row['unit']}`; expected `ns`")
            count = _number(source, place, "iteration_count", row["iteration_count"])
            total = _number(source, place, "sample_measured_value", row["sample_measured_value"])
            if count < 1 or count != int(count) or total < 0:
                source.refuse(place, "expected an iteration_count from 1 and a value from 0")
            sections.extend(_sections(int(count), total, len(sections) // 3 + 1))
    except csv.Error as error:
        source.refuse(f"line {reader.line_num}", f"not CSV: {error}")
    runs = [ForeignRun({WORKLOAD: name}, sections) for name, sections in found.items()]
    return ForeignFile("raw.csv", runs, [], {"tool": "criterion"})


def _number(source: Source, place: str, column: str, text: str | None) -> Decimal:
    try:
        number = Decimal(text or "")
    except InvalidOperation:
        number = Decimal("NaN")
    if not is_plausible(number):
        source.refuse(place, f"{column} is `{text}`; expected a number")
    return number


IMPORTER: Final = ForeignImporter(
    "criterion",
    "criterion.rs: a sample is an iteration, the process the run",
    EXPECTED,
    read,
    files_of=sample_files,
    sign=re.compile(r"^\S.*time: +\[[\d.]+ \S+ [\d.]+ \S+ [\d.]+ \S+\]", re.MULTILINE | re.ASCII),
)
