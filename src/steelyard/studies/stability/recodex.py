"""Timings of the ReCodEx evaluation: nine columns without header, or program against isolate.

The nine columns are isolation, setup type, setup size, worker, workload, input size, iteration,
metric, value [s]. The setup type carries the CPU affinity as a suffix, which becomes a factor of
its own. Values are kept as printed, to the digit.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.model import Affinity
from steelyard.model.plain_file import read_plain_file
from steelyard.record.importers.foreign_importer import refuse_twins, refused_together
from steelyard.record.importers.imported_result import Design, ImportedRun, Levels, write_imported
from steelyard.record.importers.problem_list import ProblemList
from steelyard.record.provenance import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from steelyard.record.importers.interface import ImportSummary

METRICS: Final = {
    "cpu": "cpu",
    "wall": "wall",
    "iso-cpu": "outside-cpu",
    "iso-wall": "outside-wall",
    "start-wall": "start-wall",
}
"""Steelyard's name of each metric of the nine-column file."""

COLUMNS: Final = (
    "isolation",
    "setup type",
    "setup size",
    "worker",
    "workload",
    "input size",
    "iteration",
    "metric",
    "value [s]",
)
PAIRED_HEADER: Final = ["metric", "workload", "program_seconds", "isolate_seconds"]
UNSTATED: Final = "unstated"
"""Level of a factor the file says nothing about."""

DESIGN: Final = Design(
    study="stability",
    groups=(
        ("isolation",),
        ("setup_type", "setup_size"),
        ("affinity",),
        ("workload", "input"),
        ("counters",),
    ),
    options={"mode": "import", "tolerance_percent": 2.0, "margin_percent": 2.0},
)

_SECONDS: Final = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,2})?", re.ASCII)
_WHOLE: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_PAIRED_METRICS: Final = ("cpu", "wall")


def split_setup(setup_type: str) -> tuple[str, str]:
    """Split a setup type of the source into the kind of load and the affinity.

    Examples
    --------
    >>> split_setup("parallel-homogenous-taskset-multi")
    ('parallel-homogenous', 'taskset-multi')
    >>> split_setup("single")
    ('single', 'none')
    """
    for affinity in sorted(Affinity, key=len, reverse=True):
        kind = setup_type.removesuffix(f"-{affinity}")
        if affinity is not Affinity.NONE and kind not in {"", setup_type}:
            return kind, affinity.value
    return setup_type, Affinity.NONE.value


def join_setup(setup_type: str, affinity: str) -> str:
    """Fold an affinity back into the setup type; the inverse of `split_setup`.

    Examples
    --------
    >>> join_setup("single", "numa")
    'single-numa'
    """
    return setup_type if affinity == Affinity.NONE else f"{setup_type}-{affinity}"


class RecodexImporter:
    """Importer of both forms; the form is recognised by its first line."""

    name = "recodex"
    description = "nine-column timings of the ReCodEx evaluation (no header), or program against isolate"

    def import_file(self, path: Path, result: Path) -> ImportSummary:
        """Read a file and write plan, tables and provenance."""
        return self.import_files([path], result)

    def import_files(self, paths: Sequence[Path], result: Path) -> ImportSummary:
        """Read files, each of which is a block in this order, and write plan, tables and provenance.

        Raises
        ------
        DataError
            If a file cannot be read or is damaged, or they are of two forms; the first 20 kinds of problems
            of each are listed with their lines and what was expected, and nothing is written.
        """
        refuse_twins(paths)
        read, refused = [], []
        for block, path in enumerate(paths):
            try:
                read.append(self._read(path, block))
            except DataError as error:
                refused.append(error)
        if refused:
            raise refused_together(refused)
        origins = [origin for origin, _, _ in read]
        for path, origin in zip(paths, origins, strict=True):
            if origin.form != origins[0].form:
                message = f"`{paths[0]}` is of the form {origins[0].form}, `{path}` of {origin.form}"
                raise DataError(message, hint="import each form into a folder of its own", code="data.import")
        runs = [run for _, found, _ in read for run in found]
        return write_imported(result, runs, design=DESIGN, origins=origins, notes=read[0][2])

    def _read(self, path: Path, block: int) -> tuple[Origin, list[ImportedRun], tuple[str, ...]]:
        content = _read(path)
        rows = list(_rows(path, content))
        if not rows:
            message = f"`{path}` is empty"
            raise DataError(message, hint=f"expected {_NINE}", code="data.import")
        is_paired = rows[0][1] == PAIRED_HEADER
        runs, notes = _read_paired(path, rows[1:]) if is_paired else (_read_nine(path, rows), ())
        form = "program-against-isolate" if is_paired else "nine-columns"
        origin = Origin(self.name, form, path.name, hashlib.sha256(content).hexdigest(), len(content))
        return origin, [replace(run, block=block) for run in runs], notes


_NINE: Final = f"nine columns without header: {', '.join(COLUMNS)}; metric is one of {', '.join(METRICS)}"
_PAIRED: Final = f"the header `{','.join(PAIRED_HEADER)}` and rows of these four columns"


def _read(path: Path) -> bytes:
    try:
        return read_plain_file(path)
    except OSError as error:
        message = f"cannot read `{path}`: {error.strerror}"
        raise DataError(message, hint="give the path of a CSV file", code="data.absent") from error


def _rows(path: Path, content: bytes) -> Iterator[tuple[int, list[str]]]:
    """Give the rows that are not blank, with their lines."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        message = f"`{path}`, line {line}: byte {content[error.start]:#04x} is not UTF-8"
        raise DataError(message, hint=f"expected a text file of {_NINE}", code="data.import") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        message = f"`{path}`, line {reader.line_num}: not CSV: {error}"
        raise DataError(message, hint=f"expected {_NINE}", code="data.import") from error


def _read_nine(path: Path, rows: list[tuple[int, list[str]]]) -> list[ImportedRun]:
    problems = ProblemList(path, _NINE)
    runs: dict[tuple[Levels, str, int], dict[str, str]] = {}
    lines: dict[tuple[Levels, str, int, str], int] = {}
    for line, row in rows:
        if len(row) != len(COLUMNS):
            problems.add(line, _fault_of_width(row, len(COLUMNS)))
            continue
        faults = list(_faults(row))
        if faults:
            problems.add(line, "; ".join(faults))
            continue
        isolation, setup, size, worker, workload, size_of_input, iteration, metric, value = row
        kind, affinity = split_setup(setup)
        key = (
            (isolation, kind, str(int(size)), affinity, workload, size_of_input, "off"),
            worker,
            int(iteration),
        )
        first = lines.setdefault((*key, metric), line)
        if first != line:
            problems.add(line, f"the same run and metric as line {first}; expected each once")
            continue
        runs.setdefault(key, {})[METRICS[metric]] = value
    problems.raise_if_any()
    return [ImportedRun(*key, printed) for key, printed in runs.items()]


def _faults(row: list[str]) -> Iterator[str]:
    """Give what is wrong with the fields of a row of nine columns."""
    for column in (0, 1, 3, 4):
        if not row[column].strip():
            yield f"{COLUMNS[column]} is empty; expected a name"
    if not _WHOLE.fullmatch(row[2]) or int(row[2]) < 1:
        yield f"setup size is `{row[2]}`; expected a whole number from 1"
    if not _WHOLE.fullmatch(row[6]):
        yield f"iteration is `{row[6]}`; expected a whole number"
    if row[7] not in METRICS:
        yield f"metric is `{row[7]}`; expected one of {', '.join(METRICS)}"
    yield from _fault_of_seconds("value", row[8])


def _fault_of_width(row: list[str], expected: int) -> str:
    return f"{len(row)} {'column' if len(row) == 1 else 'columns'}; expected {expected}"


def _fault_of_seconds(name: str, text: str) -> Iterator[str]:
    if _SECONDS.fullmatch(text):
        return
    is_negative = text.startswith("-") and _SECONDS.fullmatch(text[1:])
    reason = "is negative" if is_negative else "is not a number"
    yield f"{name} `{text}` {reason}; expected seconds, 0 or more"


def _read_paired(path: Path, rows: list[tuple[int, list[str]]]) -> tuple[list[ImportedRun], tuple[str, ...]]:
    """Read pairs. Each row is a run of its own: the file does not say which rows share a launch."""
    problems = ProblemList(path, _PAIRED)
    runs: list[ImportedRun] = []
    iterations: dict[str, int] = {}
    for line, row in rows:
        faults = list(_faults_of_pair(row))
        if faults:
            problems.add(line, "; ".join(faults))
            continue
        metric, workload, own, outside = row
        iteration = iterations[workload] = iterations.get(workload, 0) + 1
        levels = ("isolate", UNSTATED, "1", Affinity.NONE.value, workload, UNSTATED, "off")
        runs.append(ImportedRun(levels, "0", iteration, {metric: own, f"outside-{metric}": outside}))
    if not rows:
        problems.add(1, "no row after the header; expected at least one")
    problems.raise_if_any()
    notes = (
        "the file names no setup, worker or input: setup type and input are `unstated`, setup size is 1",
        "each row is a run of its own, numbered in the order of the file: cpu and wall rows are not paired",
    )
    return runs, notes


def _faults_of_pair(row: list[str]) -> Iterator[str]:
    if len(row) != len(PAIRED_HEADER):
        yield _fault_of_width(row, len(PAIRED_HEADER))
        return
    if row[0] not in _PAIRED_METRICS:
        yield f"metric is `{row[0]}`; expected one of {', '.join(_PAIRED_METRICS)}"
    if not row[1].strip():
        yield "workload is empty; expected a name"
    yield from _fault_of_seconds("program_seconds", row[2])
    yield from _fault_of_seconds("isolate_seconds", row[3])


IMPORTER: Final = RecodexImporter()
