"""Parameters of the PLogP model, `size os or g`: overhead of sender and receiver, and gap, per size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.errors import UsageError
from steelyard.record.importers.foreign import DECIMAL_EXPONENTS, ForeignFile
from steelyard.record.importers.foreign_importer import Alternatives, ForeignImporter
from steelyard.record.importers.problem_list import ProblemList
from steelyard.studies.communication.importers.recording import Column, Recording, durations, in_order
from steelyard.studies.communication.importers.recording_result import write_recordings
from steelyard.studies.communication.trace import Operation

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "`size os or g` per line, comments after `#`, the unit of the times by `--unit`, e.g. `1024: 5 6 9`"
)
PARAMETERS: Final = {"os": Operation.SEND, "or": Operation.RECV, "g": Operation.STREAM}
"""Overhead of sender and receiver, and the gap between messages, as operations of a recording."""


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file; a colon behind the size and columns behind the gap are left out.

    Raises
    ------
    DataError
        Listing the first 20 lines that are wrong.
    UsageError
        If the unit is not given or is none of time.
    """
    if options.unit not in DECIMAL_EXPONENTS:
        allowed = ", ".join(f"`{unit}`" for unit in DECIMAL_EXPONENTS)
        message = (
            f"the unit of the times is `{options.unit}`, and the files do not tell it; allowed: {allowed}"
        )
        raise UsageError(message, hint="add e.g. `--unit us`", code="usage.unit")
    problems = ProblemList(source.path, EXPECTED)
    lines: list[int] = []
    taken: list[list[str]] = []
    left_out = 0
    for line, text in enumerate(source.text().splitlines(), start=1):
        row = text.partition("#")[0].replace(":", " ").split()
        if not row:
            continue
        if len(row) <= len(PARAMETERS):
            problems.add(line, f"{len(row)} fields; expected at least {len(PARAMETERS) + 1}")
            continue
        left_out += len(row) > len(PARAMETERS) + 1
        lines.append(line)
        taken.append(row[: len(PARAMETERS) + 1])
    sizes, *fields = zip(*taken, strict=True) if taken else ((),) * (len(PARAMETERS) + 1)
    size = Column("size", sizes, lines).whole(problems)
    op = np.repeat([int(each) for each in PARAMETERS.values()], size.size)
    lasted = np.concatenate(
        [
            Column(name, texts, lines).nanoseconds(options.unit, problems)
            for name, texts in zip(PARAMETERS, fields, strict=True)
        ]
    )
    for at in np.flatnonzero(lasted < 0).tolist():
        name = list(PARAMETERS)[at // size.size]
        problems.add(lines[at % size.size], f"{name} is below 0; expected a number from 0")
    problems.raise_if_any()
    sizes_of_all = np.tile(size, len(PARAMETERS))
    first, second = durations(op, *in_order(lasted))
    name = options.transport or "plogp"
    timed = {Operation.STREAM: "the gap between messages (PLogP)"}
    # Each value stands for several messages, and the file does not say for how many.
    recording = Recording(name, op, sizes_of_all, first, second, timed=timed, repetitions=(0, 0))
    notes = ["PLogP prints parameters that are means; single values are not in the file"]
    if left_out:
        notes.append(f"columns behind the gap were not taken, in {left_out} lines")
    return ForeignFile("PLogP", facts={"tool": "PLogP"}, notes=notes, recordings=[recording])


IMPORTER: Final = ForeignImporter(
    "plogp",
    "parameters of the PLogP model per size",
    EXPECTED,
    read,
    Alternatives.NONE,
    write=write_recordings,
)
