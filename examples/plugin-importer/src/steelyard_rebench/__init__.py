"""ReBench's data files: an invocation is a run, with its iterations.

The columns are named by the file itself (rebench.readthedocs.io), since ReBench 1.3.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import (
    DECIMAL_EXPONENTS,
    WORKLOAD,
    ForeignFile,
    ForeignRun,
    Section,
    is_plausible,
    to_nanoseconds,
)
from steelyard.record.importers.foreign_importer import ForeignImporter

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "a data file of ReBench: lines of `invocation`, `iteration`, `value`, `unit`, `criterion`, `benchmark` "
    "and further columns, separated by tabs and named before"
)
NEEDED: Final = ("invocation", "iteration", "value", "unit", "criterion", "benchmark")
NO_FACTOR: Final = (*NEEDED, "runId")
START: Final = "# Execution Start: "


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the line that is wrong.
    """
    del options
    found = ForeignFile("data", facts={"tool": "ReBench"})
    runs: dict[tuple[str, tuple[tuple[str, str], ...]], list[Section]] = {}
    columns: list[str] = []
    for number, line in enumerate(source.text().splitlines(), start=1):
        place, words = f"line {number}", line.split("\t")
        if line.startswith(START):
            found.facts.setdefault("date", line.removeprefix(START))
        elif words[0] == "invocation":
            columns = words
            if absent := [name for name in NEEDED if name not in columns]:
                source.refuse(place, f"no column `{'`, `'.join(absent)}`")
        elif line.strip() and not line.startswith("#"):
            if len(words) != len(columns):
                source.refuse(place, f"has {len(words)} columns, {len(columns)} are named before it")
            row = dict(zip(columns, words, strict=True))
            levels = {WORKLOAD: row["benchmark"]}
            levels |= {name: row[name] for name in columns if row[name] and name not in NO_FACTOR}
            sections = runs.setdefault((row["invocation"], tuple(levels.items())), [])
            sections.append(_section(source, place, row))
    found.runs += [ForeignRun(dict(levels), sections) for (_, levels), sections in runs.items()]
    return found


def _section(source: Source, place: str, row: dict[str, str]) -> Section:
    """Give the value of a line; `total` is ReBench's name of the time that a benchmark is about."""
    metric = {"total": "time"}.get(row["criterion"], row["criterion"])
    try:
        value = Decimal(row["value"])
    except InvalidOperation:
        value = Decimal("NaN")
    if not is_plausible(value) or not row["iteration"].isdecimal() or int(row["iteration"]) < 1:
        source.refuse(place, f"`{row['iteration']}` and `{row['value']}` should be an iteration and a value")
    if row["unit"] not in DECIMAL_EXPONENTS:
        return Section(metric, row["unit"], float(value), int(row["iteration"]), printed=row["value"])
    if value < 0:
        source.refuse(place, "a time is negative")
    exact = to_nanoseconds(value, row["unit"])
    return Section(metric, "ns", exact, int(row["iteration"]), printed=row["value"])


IMPORTER: Final = ForeignImporter(
    "rebench", "ReBench's data files: an invocation is a run, with its iterations", EXPECTED, read
)
