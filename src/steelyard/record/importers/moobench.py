"""MooBench's raw response times, `thread;nanoseconds` per call: a file is a run, calls are iterations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.delimited import require_number, rows
from steelyard.record.importers.foreign import WORKLOAD, ForeignFile, ForeignRun, Section
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.problem_list import ProblemList

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "MooBench's raw file: `thread;nanoseconds` per line, no header; a name like "
    "`raw-LOOP-DEPTH-CONFIGURATION.csv` tells recursion depth and configuration"
)
_NAME: Final = re.compile(
    r"^(?P<tool>.*?)-?raw-[0-9]+-(?P<depth>[0-9]+)-(?P<configuration>[0-9]+)$", re.ASCII
)
_FIELDS: Final = 2


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Listing the first 20 lines that are wrong.
    """
    del options
    problems = ProblemList(source.path, EXPECTED)
    threads: dict[str, list[Section]] = {}
    for line, row in rows(source, ";"):
        if len(row) != _FIELDS:
            problems.add(line, f"{len(row)} fields; expected {_FIELDS}")
            continue
        number = require_number(problems, line, "response time", row[1])
        if number is not None:
            calls = threads.setdefault(row[0], [])
            calls.append(Section("response_time", "ns", float(number), len(calls) + 1, printed=row[1]))
    problems.raise_if_any()
    levels = _levels(source.path.stem)
    note = "MooBench's own scripts drop the first half of a file; here every call is kept"
    runs = [ForeignRun(dict(levels), calls, worker_label=thread) for thread, calls in threads.items()]
    return ForeignFile("raw", runs, [], {"tool": "MooBench"}, [note])


def _levels(stem: str) -> dict[str, str]:
    matched = _NAME.match(stem)
    if matched is None:
        return {WORKLOAD: "moobench", "recursion_depth": "unstated", "configuration": "unstated"}
    return {
        WORKLOAD: matched["tool"] or "moobench",
        "recursion_depth": matched["depth"],
        "configuration": matched["configuration"],
    }


IMPORTER: Final = ForeignImporter("moobench", "MooBench's raw files: a file is a run", EXPECTED, read)
