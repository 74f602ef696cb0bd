"""Calls of an MPI calibration, `operation,size,start,duration`: a file is a run, a call an iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.record.importers.delimited import rows
from steelyard.record.importers.foreign import ForeignFile
from steelyard.record.importers.foreign_importer import Alternatives, ForeignImporter
from steelyard.record.importers.message_calls import MessageCalls
from steelyard.record.importers.problem_list import ProblemList

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "`operation,size in bytes,start in s,duration in s` per line, with or without the heading "
    "`op,size,start,duration`, e.g. `MPI_Send,1024,0.5,3.2e-06`"
)
_COLUMNS: Final = ("operation", "size", "start", "duration")
_HEADINGS: Final = (["op", *_COLUMNS[1:]], list(_COLUMNS))


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Listing the first 20 lines that are wrong.
    """
    del options
    problems = ProblemList(source.path, EXPECTED)
    calls = MessageCalls(problems)
    for number, (line, row) in enumerate(rows(source, ",")):
        if number == 0 and [field.lower() for field in row] in _HEADINGS:
            continue
        if len(row) != len(_COLUMNS):
            problems.add(line, f"{len(row)} fields; expected {len(_COLUMNS)}")
            continue
        operation, text, start, duration = row
        if not operation:
            problems.add(line, "operation is empty; expected a name")
        size = calls.size(line, text)
        if size is not None:
            calls.add(line, (operation, size), duration, start)
    problems.raise_if_any()
    return ForeignFile("calls", calls.runs, [], {"tool": "MPI calibration"})


IMPORTER: Final = ForeignImporter(
    "mpi", "calls of an MPI calibration: a file is a run", EXPECTED, read, Alternatives.NONE
)
