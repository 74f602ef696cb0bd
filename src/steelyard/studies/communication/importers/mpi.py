"""Calls of an MPI calibration, `operation,size,start,duration`, as the communication study reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.record.importers.delimited import rows
from steelyard.record.importers.foreign import ForeignFile
from steelyard.record.importers.foreign_importer import Alternatives, ForeignImporter
from steelyard.record.importers.problem_list import ProblemList
from steelyard.studies.communication.importers.message_columns import MessageColumns, stated_operation
from steelyard.studies.communication.importers.recording import Column
from steelyard.studies.communication.importers.recording_result import write_recordings

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "`operation,size in bytes,start in s,duration in s` per line, with or without the heading "
    "`op,size,start,duration`, e.g. `MPI_Send,1024,0.5,3.2e-06`"
)
_COLUMNS: Final = ("op", "size", "start", "time")
_NAMES: Final = ("operation", "size", "start", "duration")
_HEADINGS: Final = (["op", *_NAMES[1:]], list(_NAMES))


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Listing the first 20 lines that are wrong.
    """
    problems = ProblemList(source.path, EXPECTED)
    lines: list[int] = []
    taken: list[list[str]] = []
    for number, (line, row) in enumerate(rows(source, ",")):
        if number == 0 and [field.lower() for field in row] in _HEADINGS:
            continue
        if len(row) != len(_COLUMNS):
            problems.add(line, f"{len(row)} fields; expected {len(_COLUMNS)}")
            continue
        lines.append(line)
        taken.append(row)
    fields = zip(*taken, strict=True) if taken else ((),) * len(_COLUMNS)
    columns = {
        role: Column(name, texts, lines) for role, name, texts in zip(_COLUMNS, _NAMES, fields, strict=True)
    }
    operation = stated_operation(options.operation)
    table = MessageColumns(columns, {"start": "s", "time": "s"}, problems, operation)
    recording = table.recording(options.transport or "mpi")
    problems.raise_if_any()
    facts = {"tool": "MPI calibration"}
    return ForeignFile("calls", facts=facts, notes=table.notes, recordings=[recording])


IMPORTER: Final = ForeignImporter(
    "mpi", "calls of an MPI calibration", EXPECTED, read, Alternatives.NONE, write=write_recordings
)
