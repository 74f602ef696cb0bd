"""Calls of an MPI calibration, `operation,size,start,duration`: a file is a run, a call an iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.record.importers.delimited import require_number, rows
from steelyard.record.importers.foreign import WORKLOAD, ForeignFile, ForeignRun, Section, to_nanoseconds
from steelyard.record.importers.foreign_importer import Alternatives, ForeignImporter
from steelyard.record.importers.problem_list import ProblemList

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "`operation,size in bytes,start in s,duration in s` per line, no header, e.g. `MPI_Send,1024,0.5,3.2e-06`"
)
_COLUMNS: Final = ("operation", "size", "start", "duration")


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Listing the first 20 lines that are wrong.
    """
    del options
    problems = ProblemList(source.path, EXPECTED)
    runs: dict[tuple[str, str], ForeignRun] = {}
    for line, row in rows(source, ","):
        if len(row) != len(_COLUMNS):
            problems.add(line, f"{len(row)} fields; expected {len(_COLUMNS)}")
            continue
        operation, size, start, duration = row
        if not operation:
            problems.add(line, "operation is empty; expected a name")
        if not (size.isascii() and size.isdecimal()):
            problems.add(line, f"size is `{size[:40]}`; expected a whole number from 0")
        begun = require_number(problems, line, "start", start)
        lasted = require_number(problems, line, "duration", duration)
        if begun is None or lasted is None:
            continue
        run = runs.setdefault((operation, size), ForeignRun({WORKLOAD: operation, "size_bytes": size}, []))
        iteration = len(run.sections) // 2 + 1
        run.sections.append(Section("time", "ns", to_nanoseconds(lasted, "s"), iteration, printed=duration))
        run.sections.append(Section("start", "ns", to_nanoseconds(begun, "s"), iteration, printed=start))
    problems.raise_if_any()
    return ForeignFile("calls", list(runs.values()), [], {"tool": "MPI calibration"})


IMPORTER: Final = ForeignImporter(
    "mpi", "calls of an MPI calibration: a file is a run", EXPECTED, read, Alternatives.NONE
)
