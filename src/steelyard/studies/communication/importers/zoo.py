"""Messages traced on both ranks, `size type0 start0 end0 type1 start1 end1`: a line is both its ends."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import ForeignFile
from steelyard.record.importers.foreign_importer import Alternatives, ForeignImporter
from steelyard.record.importers.problem_list import ProblemList
from steelyard.studies.communication.importers.message_columns import (
    BOTH_ENDS,
    MessageColumns,
    stated_operation,
)
from steelyard.studies.communication.importers.recording import Column
from steelyard.studies.communication.importers.recording_result import write_recordings
from steelyard.studies.communication.trace import Operation

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "`size type0 start0 end0 type1 start1 end1` per line, bytes and seconds, "
    "e.g. `1024 MPI_Send 0.5 0.51 MPI_Recv 0.49 0.52`"
)
TIMED: Final = "the sending call of a message"
_SHOWN: Final = 5
COLUMNS: Final = ("size", "type0", "start0", "end0", "type1", "start1", "end1")


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file: the send lasts from ``start0`` to ``end0``, the receive from ``start1`` to ``end1``.

    Raises
    ------
    DataError
        Listing the first 20 lines that are wrong.
    """
    problems = ProblemList(source.path, EXPECTED)
    lines: list[int] = []
    taken: list[list[str]] = []
    left_out: Counter[str] = Counter()
    for line, text in enumerate(source.text().splitlines(), start=1):
        row = text.partition("#")[0].split()
        if not row or (not taken and tuple(row) == COLUMNS):
            continue
        if len(row) != len(COLUMNS):
            problems.add(line, f"{len(row)} fields; expected {len(COLUMNS)}")
            continue
        if not (row[1].lower().endswith("send") and row[4].lower().endswith("recv")):
            left_out[f"{row[1][:40]} and {row[4][:40]}"] += 1
            continue
        lines.append(line)
        taken.append(row)
    fields = zip(*taken, strict=True) if taken else ((),) * len(COLUMNS)
    columns = {name: Column(name, texts, lines) for name, texts in zip(COLUMNS, fields, strict=True)}
    table = MessageColumns(
        {role: columns[role] for role in ("size", *BOTH_ENDS)},
        dict.fromkeys(BOTH_ENDS, "s"),
        problems,
        stated_operation(options.operation) or Operation.STREAM,
    )
    recording = table.recording(options.transport or "zoo")
    problems.raise_if_any()
    recording = replace(recording, timed={Operation.STREAM: TIMED}, is_one_clock=options.is_one_clock)
    notes = [*table.notes]
    if left_out:
        named = ", ".join(f"{count} of {names}" for names, count in left_out.most_common(_SHOWN))
        notes.append(
            f"lines that are not a send with its receive were left out: {left_out.total()} ({named})"
        )
    facts = {"tool": "message trace"}
    return ForeignFile("messages of two ranks", facts=facts, notes=notes, recordings=[recording])


IMPORTER: Final = ForeignImporter(
    "zoo",
    "messages traced on both ranks: a line is a send and its receive",
    EXPECTED,
    read,
    Alternatives.NONE,
    write=write_recordings,
)
