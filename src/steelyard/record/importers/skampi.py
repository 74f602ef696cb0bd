"""SkaMPI 5 output: one mean per message size, with its standard error and number of repetitions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.delimited import require_number
from steelyard.record.importers.foreign import (
    WORKLOAD,
    ForeignFile,
    ForeignRun,
    Published,
    Section,
    to_nanoseconds,
)
from steelyard.record.importers.foreign_importer import Alternatives, ForeignImporter
from steelyard.record.importers.problem_list import ProblemList

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "SkaMPI 5 output: lines `count= N  size  mean  standard-error  repetitions  mean-per-process...` in "
    "microseconds, comments begin with `#`"
)
# Tried at the begin of a word alone: at each of its letters, a long word would take the square of its length.
_LABEL: Final = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z_][A-Za-z0-9_]*)=\s*")
_BEGIN: Final = re.compile(r'^#\s*begin result\s+"([^"]+)"')
_FACTS: Final = {
    "version": re.compile(r"^#\s*SKaMPI Version\s+(\S.*)", re.IGNORECASE),
    "date": re.compile(r"^#\s*Started at\s+(\S.*)"),
    "machine": re.compile(r"^#\s*on cluster\s*:\s*(\S.*)"),
    "cpu": re.compile(r"^#\s*model name\s*:\s*(\S.*)"),
}
_FEWEST: Final = 4


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Listing the first 20 lines that are wrong.
    """
    del options
    problems = ProblemList(source.path, EXPECTED)
    found = ForeignFile("SkaMPI 5", facts={"tool": "SkaMPI"})
    name = "result"
    for line, text in enumerate(source.text().splitlines(), start=1):
        if text.lstrip().startswith("#"):
            begun = _BEGIN.match(text)
            name = begun[1] if begun else name
            for fact, pattern in _FACTS.items():
                if matched := pattern.match(text):
                    found.facts.setdefault(fact, matched[1].rstrip())
        elif text.strip():
            _result(found, problems, name, (line, text))
    problems.raise_if_any()
    found.notes.append(
        "SkaMPI prints a mean per size; single values are not in the file, so each size has one value"
    )
    return found


def _result(found: ForeignFile, problems: ProblemList, name: str, row: tuple[int, str]) -> None:
    line, text = row
    labels = _LABEL.findall(text)
    parts = _LABEL.sub(" ", text).split()
    values = parts[len(labels) :]
    if not labels or len(values) < _FEWEST:
        problems.add(line, f"`{text.strip()[:60]}` is no result")
        return
    columns = ("size", "mean", "standard error", "repetitions", *("mean of a process",) * len(values[4:]))
    numbers = [
        require_number(problems, line, column, part) for column, part in zip(columns, values, strict=True)
    ]
    if any(number is None for number in numbers):
        return
    levels = {WORKLOAD: name, **dict(zip(labels, parts, strict=False)), "size_bytes": values[0]}
    kept = [number for number in numbers if number is not None]
    sections = [Section("time", "ns", to_nanoseconds(kept[1], "us"), 1, printed=values[1])]
    for process, number in enumerate(kept[_FEWEST:]):
        metric = f"time of process {process}"
        printed = values[_FEWEST + process]
        sections.append(Section(metric, "ns", to_nanoseconds(number, "us"), 1, printed=printed))
    found.runs.append(ForeignRun(levels, sections))
    error, repetitions = to_nanoseconds(kept[2], "us"), float(kept[3])
    found.published += [
        Published(levels, "time", "standard error", "ns", error, f"{values[2]} us"),
        Published(levels, "time", "repetitions", "count", repetitions, values[3]),
    ]


IMPORTER: Final = ForeignImporter(
    "skampi", "SkaMPI 5 output: one mean per message size", EXPECTED, read, Alternatives.NONE
)
