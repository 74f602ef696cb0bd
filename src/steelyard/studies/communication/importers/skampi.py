"""SkaMPI 5 output: one mean per message size, with its standard error and number of repetitions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.record.importers.delimited import require_number
from steelyard.record.importers.foreign import ForeignFile, Published, to_nanoseconds
from steelyard.record.importers.foreign_importer import Alternatives, ForeignImporter
from steelyard.record.importers.problem_list import ProblemList
from steelyard.studies.communication.importers.message_columns import stated_operation
from steelyard.studies.communication.importers.recording import Column, Recording, durations, in_order
from steelyard.studies.communication.importers.recording_result import write_recordings
from steelyard.studies.communication.trace import Operation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

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
    problems = ProblemList(source.path, EXPECTED)
    found = ForeignFile("SkaMPI 5", facts={"tool": "SkaMPI"})
    name = "result"
    results: dict[str, list[_Result]] = {}
    for line, text in enumerate(source.text().splitlines(), start=1):
        if text.lstrip().startswith("#"):
            begun = _BEGIN.match(text)
            name = begun[1] if begun else name
            for fact, pattern in _FACTS.items():
                if matched := pattern.match(text):
                    found.facts.setdefault(fact, matched[1].rstrip())
        elif text.strip():
            _result(results, problems, name, (line, text))
    problems.raise_if_any()
    stated, is_trip = stated_operation(options.operation), False
    for title, rows in results.items():
        recording = _recording(title, rows, stated, options.transport)
        is_trip = is_trip or recording.op[0] == Operation.PINGPONG
        found.recordings.append(recording)
        found.published += [each for row in rows for each in row.published(recording.transport)]
    found.notes.append(
        "SkaMPI prints a mean per size; single values are not in the file, so each size has one value"
    )
    if is_trip:
        found.notes.append("SkaMPI's times of a ping-pong are those of the whole round trip; half is fitted")
    return found


@dataclass(frozen=True, slots=True)
class _Result:
    """One line: a mean, its standard error, how many repetitions are behind it, and means per process."""

    size: int
    mean: tuple[int, str]
    error: tuple[Decimal, str]
    repetitions: tuple[Decimal, str]
    processes: tuple[tuple[Decimal, str], ...]

    def published(self, transport: str) -> Iterator[Published]:
        """Give the numbers that no curve rests on."""
        levels, metric = {"transport": transport}, f"time of {self.size} B"
        yield Published(
            levels, metric, "repetitions", "count", float(self.repetitions[0]), self.repetitions[1]
        )
        named = {"standard error": self.error}
        named |= {f"mean of process {number}": each for number, each in enumerate(self.processes)}
        for statistic, (number, printed) in named.items():
            yield Published(levels, metric, statistic, "ns", to_nanoseconds(number, "us"), f"{printed} us")


def _recording(title: str, rows: list[_Result], stated: Operation | None, transport: str) -> Recording:
    is_trip = title.lower().startswith("pingpong")
    kind = stated or (Operation.PINGPONG if is_trip else Operation.STREAM)
    op = np.full(len(rows), int(kind))
    begin, end = in_order(np.array([row.mean[0] for row in rows]))
    shares = [float(row.error[0]) * 1e3 / row.mean[0] for row in rows if row.mean[0]]
    counts = [int(row.repetitions[0]) for row in rows]
    return Recording(
        " ".join(part for part in (transport, "" if transport and is_trip else title) if part),
        op,
        np.array([row.size for row in rows]),
        *durations(op, begin, end),
        timed={Operation.STREAM: f"`{title}`, as SkaMPI times it"},
        repetitions=(min(counts), max(counts)),
        error_share=float(np.median(shares)) if shares else None,
    )


def _result(found: dict[str, list[_Result]], problems: ProblemList, name: str, row: tuple[int, str]) -> None:
    line, text = row
    labels = _LABEL.findall(text)
    parts = _LABEL.sub(" ", text).split()
    values = parts[len(labels) :]
    if not labels or len(values) < _FEWEST:
        problems.add(line, f"`{text.strip()[:60]}` is not a result")
        return
    columns = ("size", "mean", "standard error", "repetitions", *("mean of a process",) * len(values[4:]))
    numbers = [
        require_number(problems, line, column, part) for column, part in zip(columns, values, strict=True)
    ]
    kept = [number for number in numbers if number is not None]
    if len(kept) < len(numbers):
        return
    size = Column("size", values[:1], [line]).whole(problems)
    mean = Column("mean", values[1:2], [line]).nanoseconds("us", problems)
    others = [f"{label}={part}" for label, part in zip(labels, parts, strict=False) if label != "count"]
    error, repetitions, *processes = zip(kept[2:], values[2:], strict=True)
    result = _Result(int(size[0]), (int(mean[0]), values[1]), error, repetitions, tuple(processes))
    found.setdefault(" ".join([name, *others]), []).append(result)


IMPORTER: Final = ForeignImporter(
    "skampi",
    "SkaMPI 5 output: one mean per message size",
    EXPECTED,
    read,
    Alternatives.NONE,
    write=write_recordings,
)
