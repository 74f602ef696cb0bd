"""Parameters of the PLogP model, `size os or g`: overhead of sender and receiver, and gap, per size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.errors import UsageError
from steelyard.record.importers.foreign import DECIMAL_EXPONENTS, ForeignFile
from steelyard.record.importers.foreign_importer import Alternatives, ForeignImporter
from steelyard.record.importers.message_calls import MessageCalls
from steelyard.record.importers.problem_list import ProblemList

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "`size os or g` per line, comments after `#`, the unit of the times by `--unit`, e.g. `1024: 5 6 9`"
)
OPERATIONS: Final = ("os", "or", "g")


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
    calls = MessageCalls(problems, options.unit)
    left_out = 0
    for line, text in enumerate(source.text().splitlines(), start=1):
        row = text.partition("#")[0].replace(":", " ").split()
        if not row:
            continue
        if len(row) <= len(OPERATIONS):
            problems.add(line, f"{len(row)} fields; expected at least {len(OPERATIONS) + 1}")
            continue
        left_out += len(row) > len(OPERATIONS) + 1
        size = calls.size(line, row[0])
        if size is not None:
            for operation, duration in zip(OPERATIONS, row[1:], strict=False):
                calls.add(line, (operation, size), duration)
    problems.raise_if_any()
    notes = ["PLogP prints parameters that are means; single values are not in the file"]
    if left_out:
        notes.append(f"columns behind the gap were not taken, in {left_out} lines")
    return ForeignFile("PLogP", calls.runs, [], {"tool": "PLogP"}, notes)


IMPORTER: Final = ForeignImporter(
    "plogp", "parameters of the PLogP model per size", EXPECTED, read, Alternatives.NONE
)
