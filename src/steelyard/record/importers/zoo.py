"""Messages traced on both ranks, `size type0 start0 end0 type1 start1 end1`: a line is both its ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import ForeignFile
from steelyard.record.importers.foreign_importer import Alternatives, ForeignImporter
from steelyard.record.importers.message_calls import MessageCalls
from steelyard.record.importers.problem_list import ProblemList

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "`size type0 start0 end0 type1 start1 end1` per line, bytes and seconds, "
    "e.g. `1024 MPI_Send 0.5 0.51 MPI_Recv 0.49 0.52`"
)
_FIELDS: Final = 7


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file: the send lasts from ``start0`` to ``end0``, the receive from ``start1`` to ``end1``.

    Raises
    ------
    DataError
        Listing the first 20 lines that are wrong.
    """
    del options
    problems = ProblemList(source.path, EXPECTED)
    calls = MessageCalls(problems)
    for line, text in enumerate(source.text().splitlines(), start=1):
        row = text.partition("#")[0].split()
        if not row:
            continue
        if len(row) != _FIELDS:
            problems.add(line, f"{len(row)} fields; expected {_FIELDS}")
            continue
        size = calls.size(line, row[0])
        if size is not None:
            calls.add_span(line, (row[1], size), row[2], row[3])
            calls.add_span(line, (row[4], size), row[5], row[6])
    problems.raise_if_any()
    return ForeignFile("messages of two ranks", calls.runs, [], {"tool": "message trace"})


IMPORTER: Final = ForeignImporter(
    "zoo",
    "messages traced on both ranks: a line is a send and its receive",
    EXPECTED,
    read,
    Alternatives.NONE,
)
