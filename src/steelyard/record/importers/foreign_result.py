"""From foreign files to a complete result folder: plan, tables, published numbers, provenance."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from steelyard.errors import unwritable
from steelyard.model import Batch, Cell, Execution, Plan
from steelyard.record.importers.columnar import NOT_STATED
from steelyard.record.importers.foreign import NOT_APPLICABLE, WORKLOAD
from steelyard.record.importers.imported_result import require_free
from steelyard.record.importers.interface import ImportSummary
from steelyard.record.outcome_rows import run_columns, run_identity
from steelyard.record.provenance import begin_provenance, end_session, write_provenance
from steelyard.record.published import write_published
from steelyard.record.schema import KNOWN_COLUMNS
from steelyard.record.seal import seal_tables
from steelyard.record.table_file import ROWS_PER_GROUP
from steelyard.record.tables import ResultTables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import TypeAlias

    from numpy.typing import NDArray

    from steelyard.record.importers.foreign import ForeignFile, ForeignRun, RunColumns, Section
    from steelyard.record.provenance import Origin
    from steelyard.record.table_file import Value

    Part: TypeAlias = "ForeignRun | _Picked"
    Batches: TypeAlias = "dict[tuple[Levels, tuple[int, str]], list[Part]]"

STUDY: Final = "imported"
MARGIN_PERCENT: Final = 2.0
FAILED_LAUNCHES: Final = "launches that failed: {}; they are kept, and count in no figure or verdict"
_LONG_RUNS: Final = 16
"""Values of a run from which on its name takes less time and space as a number and a text for many rows."""
_RESERVED: Final = KNOWN_COLUMNS | {"metric"}
Levels = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Picked:
    """Some runs of a file that was read by column."""

    runs: RunColumns
    places: NDArray[np.int64]


@dataclass(slots=True)
class _Counts:
    """How much was written."""

    runs: int = 0
    measurements: int = 0
    failed: int = 0

    def add(self, runs: int, measurements: int, failed: int) -> None:
        self.runs += runs
        self.measurements += measurements
        self.failed += failed


@dataclass(frozen=True, slots=True)
class ReadFile:
    """One file and what was read from it.

    Parameters
    ----------
    block : int
        Position of the file, or of the folder it is part of, on the command line.
    origin : Origin
        The file.
    content : ForeignFile
        What it holds.
    """

    block: int
    origin: Origin
    content: ForeignFile


@dataclass(frozen=True, slots=True)
class ForeignResult:
    """What a result folder of foreign files is.

    Parameters
    ----------
    importer : str
        Name of the importer.
    alternatives : str
        What is compared, as `steelyard.record.importers.foreign_importer.Alternatives` has it.
    study : str
        Study that analyses it.
    stated : dict
        Further options of the plan.
    """

    importer: str
    alternatives: str
    study: str = STUDY
    stated: dict[str, float | str] = field(default_factory=dict)


def write_foreign(result: Path, files: Sequence[ReadFile], kind: ForeignResult) -> ImportSummary:
    """Write a result folder from foreign files.

    Raises
    ------
    DataError
        If the folder holds something else, or cannot be written.
    """
    factors = _factors(files)
    batches: Batches = {}
    for file in files:
        for found, block, part in _parts(file.content):
            batches.setdefault((_levels(found, factors), (file.block, block)), []).append(part)
    plan = _plan(batches, factors, files, kind)
    require_free(result, plan)
    try:
        result.mkdir(parents=True, exist_ok=True)
        plan.write(result / "plan.json")
    except OSError as error:
        raise unwritable(result, error, "give another folder with --out") from error
    generation = hashlib.sha256(f"{plan.id} {plan.options['origin_sha256']}".encode()).hexdigest()
    members = list(batches.values())
    with ResultTables(result, plan, generation, coded=_coded(files)) as tables:
        counts = _write_runs(tables, plan, members)
    numbers = {tuple(cell.levels.values()): cell.number for cell in plan.cells}
    published = [
        (numbers.get(_levels(each.levels, factors)), file.block, each)
        for file in files
        for each in file.content.published
    ]
    housed = [(cell, block, each) for cell, block, each in published if cell is not None]
    write_published(result, plan, generation, housed)
    homeless = len(published) - len(housed)
    notes = (
        *_notes(files),
        *([FAILED_LAUNCHES.format(counts.failed)] if counts.failed else []),
        *([f"published numbers of benchmarks without a value, left out: {homeless}"] if homeless else []),
    )
    write_import_provenance(result, plan, files, notes)
    seal_tables(result)
    form = files[0].origin.form
    return ImportSummary(
        result, plan.study, form, len(plan.cells), 0, counts.runs, counts.measurements, notes
    )


def _coded(files: Sequence[ReadFile]) -> tuple[str, ...]:
    """Give the columns of measurements whose texts repeat; names of runs where these hold many values."""
    runs = values = 0
    for content in (file.content for file in files):
        if content.table is not None:
            runs += len(content.table)
            values += content.table.size
        runs += len(content.runs)
        values += sum(len(run.sections) for run in content.runs)
    return ("phase", "metric", "unit", *(("run_id",) if values >= _LONG_RUNS * runs else ()))


def _parts(content: ForeignFile) -> Iterator[tuple[dict[str, str], str, Part]]:
    """Give the levels and the block of each run that measured something, or of many together."""
    if content.table is not None:
        for found in content.table.batches():
            yield found.levels, found.block, _Picked(content.table, found.places)
    for run in content.runs:
        if run.sections:
            yield run.levels, run.block, run


def _write_runs(tables: ResultTables, plan: Plan, members: Sequence[list[Part]]) -> _Counts:
    counts = _Counts()

    def source_of(batch: Batch) -> RunColumns | None:
        parts = members[batch.number]
        return parts[0].runs if len(parts) == 1 and isinstance(parts[0], _Picked) else None

    for source, group in groupby(plan.batches, key=source_of):
        if source is not None:
            picked = [(batch, part.places) for batch in group for part in _picked(members[batch.number])]
            _write_columns(tables, plan, source, picked)
            places = np.concatenate([each for _, each in picked])
            failed = ~np.isin(source.exit_codes[places], (0, NOT_STATED))
            counts.add(places.size, source.count(places), int(failed.sum()))
            continue
        for batch in group:
            for row, sections in _rows(plan, batch, list(_one_by_one(members[batch.number]))):
                tables.add(row, (_measurement(str(row["run_id"]), section) for section in sections))
                counts.add(1, len(sections), int(row["status"] != "completed"))
    return counts


def _picked(parts: Sequence[Part]) -> Iterator[_Picked]:
    return (part for part in parts if isinstance(part, _Picked))


def _one_by_one(parts: Sequence[Part]) -> Iterator[ForeignRun]:
    for part in parts:
        if isinstance(part, _Picked):
            yield from (part.runs[int(place)] for place in part.places)
        else:
            yield part


def _write_columns(
    tables: ResultTables,
    plan: Plan,
    source: RunColumns,
    picked: Sequence[tuple[Batch, NDArray[np.int64]]],
) -> None:
    """Write runs of one file, many at a time."""
    sizes = np.array([places.size for _, places in picked])
    places = np.concatenate([each for _, each in picked])
    which = np.repeat(np.arange(sizes.size), sizes)
    launch = np.arange(1, places.size + 1) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    numbers = np.array([(batch.number, batch.block, batch.cell) for batch, _ in picked])
    for begin in range(0, places.size, ROWS_PER_GROUP):
        some = slice(begin, begin + ROWS_PER_GROUP)
        runs = run_columns(plan, numbers[which[some]], launch[some])
        codes = source.exit_codes[places[some]]
        failed = (codes != 0) & (codes != NOT_STATED)
        runs |= {
            "status": pa.array(np.where(failed, "nonzero_exit", "completed")),
            "exit_code": pa.array(codes, mask=codes == NOT_STATED),
        }
        tables.add_columns(runs, source.measurements(places[some], runs["run_id"]))


def _factors(files: Sequence[ReadFile]) -> dict[str, str]:
    """Give the column of each factor: the workload first, then parameters in order of appearance."""
    names = {WORKLOAD: WORKLOAD}
    for file in files:
        of_columns = () if file.content.table is None else file.content.table.cells()
        for levels in [*of_columns, *(run.levels for run in file.content.runs)]:
            for name in levels:
                if name not in names:
                    names[name] = _column(name, set(names.values()))
    return names


def _column(name: str, taken: set[str]) -> str:
    column = name.strip() or "parameter"
    while column in _RESERVED or column in taken:
        column = f"parameter_{column}"
    return column


def _levels(levels: dict[str, str], factors: dict[str, str]) -> Levels:
    return tuple(levels.get(name, NOT_APPLICABLE) for name in factors)


def _plan(
    batches: Batches,
    factors: dict[str, str],
    files: Sequence[ReadFile],
    kind: ForeignResult,
) -> Plan:
    columns = tuple(factors.values())
    numbers = {levels: place for place, levels in enumerate(dict.fromkeys(levels for levels, _ in batches))}
    # In the order of the files, and inside one in order of appearance.
    seen = dict.fromkeys(block for _, block in batches)
    blocks = {block: place for place, block in enumerate(sorted(seen, key=lambda block: block[0]))}
    cells = tuple(
        Cell(number, dict(zip(columns, levels, strict=True)), Execution(isolation="", command=(levels[0],)))
        for levels, number in numbers.items()
    )
    # Tables are sorted by cell; the batches are numbered in that order.
    ordered = sorted(batches, key=lambda key: (numbers[key[0]], blocks[key[1]]))
    members = {key: batches[key] for key in ordered}
    batches.clear()
    batches.update(members)
    names = {file.block: file.origin.file_name for file in reversed(files)}
    labels = [label or names[place] for place, label in blocks]
    digest = hashlib.sha256(" ".join(file.origin.sha256 for file in files).encode()).hexdigest()
    plan = Plan(
        study=kind.study,
        seed=1,
        factors={
            column: tuple(dict.fromkeys(levels[place] for levels in numbers))
            for place, column in enumerate(columns)
        },
        cells=cells,
        batches=tuple(
            Batch(number, blocks[block], numbers[levels]) for number, (levels, block) in enumerate(ordered)
        ),
        blocks=len(blocks),
        options={
            "mode": "import",
            "margin_percent": MARGIN_PERCENT,
            "origin": kind.importer,
            "alternatives": kind.alternatives,
            "origin_sha256": digest,
            "block_labels": json.dumps(labels, ensure_ascii=False),
            **kind.stated,
        },
    )
    return plan.freeze()


def _rows(
    plan: Plan, batch: Batch, runs: Sequence[ForeignRun]
) -> Iterator[tuple[dict[str, Value], Sequence[Section]]]:
    labels = list(dict.fromkeys(run.worker_label for run in runs))
    launches = dict.fromkeys(labels, 0)
    for run in sorted(runs, key=lambda each: labels.index(each.worker_label)):
        launches[run.worker_label] += 1
        worker, iteration = labels.index(run.worker_label), launches[run.worker_label]
        row: dict[str, Value] = {
            **run_identity(plan, batch, attempt=1, worker=worker, iteration=iteration, host_id=""),
            "status": _status(run),
            "exit_code": run.exit_code,
            "flags": [],
            "worker_label": run.worker_label,
        }
        yield row, run.sections


def _measurement(run_id: str, section: Section) -> dict[str, Value]:
    return {
        "run_id": run_id,
        "iteration": section.iteration,
        "phase": section.phase,
        "metric": section.metric,
        "value": section.value,
        "unit": section.unit,
        "printed": section.printed,
    }


def _status(run: ForeignRun) -> str:
    if run.is_signalled:
        return "signalled"
    return "nonzero_exit" if run.exit_code else "completed"


def _notes(files: Sequence[ReadFile]) -> tuple[str, ...]:
    """Give the remarks of the files, each once, with the file's name where there are several."""
    by_note: dict[str, list[str]] = {}
    for file in files:
        for note in file.content.notes:
            by_note.setdefault(note, []).append(file.origin.file_name)
    if len(files) == 1:
        return tuple(by_note)
    return tuple(
        note if len(names) == len(files) else f"{note} ({', '.join(names)})"
        for note, names in by_note.items()
    )


def write_import_provenance(
    result: Path, plan: Plan, files: Sequence[ReadFile], notes: tuple[str, ...]
) -> None:
    """Write where an import comes from, and the remarks on it."""
    origins = tuple(file.origin for file in files)
    command = ("steelyard", "import", origins[0].importer, *(origin.file_name for origin in origins))
    begun = begin_provenance(plan, command)
    write_provenance(result, end_session(replace(begun, origin=origins[0], origins=origins, notes=notes)))
