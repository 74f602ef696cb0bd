"""From imported runs to a complete result folder: plan, tables, provenance."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeVar

from steelyard.design.factorial import cross
from steelyard.design.factors import Factor, MissingRule
from steelyard.errors import DataError, unwritable
from steelyard.model import Affinity, Batch, Cell, Execution, NeighbourKind, Neighbours, Plan
from steelyard.model.plan import read_plan
from steelyard.record.importers.interface import ImportSummary
from steelyard.record.outcome_rows import START_METRIC, run_identity
from steelyard.record.provenance import (
    Origin,
    Provenance,
    begin_provenance,
    end_session,
    write_provenance,
)
from steelyard.record.seal import seal_tables
from steelyard.record.tables import ResultTables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from steelyard.record.table_file import Value

NOT_IN_FILE: Final = "not in the imported file"
LARGEST_CROSSING: Final = 10_000
"""Cells up to which combinations absent from a file are kept as missing cells."""

_LARGEST_NS: Final = 2**63 - 1
Levels = tuple[str, ...]
T = TypeVar("T", str, Levels)


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """One launch as a foreign file tells it.

    Parameters
    ----------
    levels : tuple of str
        Level of each column of the design.
    worker_label : str
        Name of the worker in the file.
    iteration : int
        Launch of the worker.
    printed : dict
        Digits of each metric as the file has them [s].
    block : int
        Number of its file.
    """

    levels: Levels
    worker_label: str
    iteration: int
    printed: dict[str, str]
    block: int = 0


@dataclass(frozen=True, slots=True)
class Design:
    """Columns of the factors of an import, grouped as they vary together.

    Parameters
    ----------
    study : str
        Study the data belong to.
    groups : tuple of tuple of str
        Columns of each factor, in the order of the levels of a run.
    options : dict
        Options of the plan.
    """

    study: str
    groups: tuple[tuple[str, ...], ...]
    options: dict[str, str | int | float | bool | None]

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns in order."""
        return tuple(column for group in self.groups for column in group)


def write_imported(
    result: Path,
    runs: Sequence[ImportedRun],
    *,
    design: Design,
    origins: Sequence[Origin],
    notes: Sequence[str] = (),
) -> ImportSummary:
    """Write a result folder from imported runs; each file is a block.

    Raises
    ------
    DataError
        If the folder holds something else, or cannot be written.
    """
    by_cell: dict[Levels, list[ImportedRun]] = {}
    members: dict[tuple[Levels, int], list[ImportedRun]] = {}
    for run in runs:
        by_cell.setdefault(run.levels, []).append(run)
        members.setdefault((run.levels, run.block), []).append(run)
    plan, remarks = _plan(by_cell, design, origins)
    require_free(result, plan)
    all_notes = (*notes, *remarks)
    measurements = sum(len(run.printed) for run in runs)
    try:
        result.mkdir(parents=True, exist_ok=True)
        plan.write(result / "plan.json")
    except OSError as error:
        raise unwritable(result, error, "give another folder with --out") from error
    generation = hashlib.sha256(f"{plan.id} {plan.options['origin_sha256']}".encode()).hexdigest()
    with ResultTables(result, plan, generation) as tables:
        for batch in sorted(plan.batches, key=lambda each: each.cell):
            levels = tuple(plan.cells[batch.cell].levels.values())
            for row, measured in _rows(plan, batch, members[levels, batch.block]):
                tables.add(row, measured)
    write_provenance(result, _provenance(plan, origins, all_notes))
    seal_tables(result)
    missing = sum(cell.missing is not None for cell in plan.cells)
    return ImportSummary(
        result,
        plan.study,
        origins[0].form,
        len(plan.cells) - missing,
        missing,
        len(runs),
        measurements,
        all_notes,
    )


def _provenance(plan: Plan, origins: Sequence[Origin], notes: Sequence[str]) -> Provenance:
    command = ("steelyard", "import", origins[0].importer, *(origin.file_name for origin in origins))
    several = tuple(origins) if len(origins) > 1 else ()
    begun = begin_provenance(plan, command)
    return end_session(replace(begun, origin=origins[0], origins=several, notes=tuple(notes)))


def require_free(result: Path, plan: Plan) -> None:
    """Refuse a folder that holds something else than this very import.

    Raises
    ------
    DataError
        If it is not empty and of another plan.
    """
    if not result.exists() or (result.is_dir() and not any(result.iterdir())):
        return
    if (result / "plan.json").exists() and read_plan(result / "plan.json").id == plan.id:
        return  # the same import again
    message = f"`{result}` is not empty and contains another result"
    raise DataError(message, hint="give a new folder with --out", code="data.folder-taken")


def _plan(
    by_cell: Mapping[Levels, list[ImportedRun]], design: Design, origins: Sequence[Origin]
) -> tuple[Plan, list[str]]:
    factors = _factors(list(by_cell), design)
    crossing = 1
    for factor in factors:
        crossing *= len(factor.levels)
    notes = []
    if crossing <= LARGEST_CROSSING:
        absent = MissingRule("absent", NOT_IN_FILE, lambda levels: tuple(levels.values()) not in by_cell)
        combinations = [(found.levels, found.missing) for found in cross(factors, [absent])]
    else:
        columns = design.columns
        combinations = [(dict(zip(columns, levels, strict=True)), None) for levels in by_cell]
        notes.append(
            f"{crossing} combinations of levels are possible; those not in the file are not listed as missing"
        )
    cells = tuple(
        Cell(
            number,
            levels,
            _execution(levels, by_cell[tuple(levels.values())]) if missing is None else None,
            missing,
        )
        for number, (levels, missing) in enumerate(combinations)
    )
    held = {levels: sorted({run.block for run in runs}) for levels, runs in by_cell.items()}
    present = [
        (block, cell.number)
        for cell in cells
        if cell.missing is None
        for block in held[tuple(cell.levels.values())]
    ]
    digest = origins[0].sha256
    several: dict[str, str] = {}
    if len(origins) > 1:
        digest = hashlib.sha256(" ".join(origin.sha256 for origin in origins).encode()).hexdigest()
        labels = [origin.file_name for origin in origins]
        several = {"block_labels": json.dumps(labels, ensure_ascii=False)}
    plan = Plan(
        study=design.study,
        seed=1,
        factors={column: _distinct(cell.levels[column] for cell in cells) for column in design.columns},
        cells=cells,
        batches=tuple(Batch(number, block, cell) for number, (block, cell) in enumerate(present)),
        blocks=len(origins),
        options={
            **design.options,
            "origin": origins[0].importer,
            "origin_sha256": digest,
            **several,
        },
    )
    return plan.freeze(), notes


def _factors(levels: list[Levels], design: Design) -> list[Factor]:
    """Give the factors with their levels in order of appearance, numbers ascending."""
    factors = []
    start = 0
    for group in design.groups:
        parts = _distinct(each[start : start + len(group)] for each in levels)
        factors.append(Factor(group, _numbers_ascending(parts)))
        start += len(group)
    return factors


def _numbers_ascending(levels: tuple[Levels, ...]) -> tuple[Levels, ...]:
    """Sort levels that differ in a number only; texts keep their order of appearance."""
    rank: dict[str, int] = {}
    for level in levels:
        for part in level:
            rank.setdefault(part, len(rank))

    def key(level: Levels) -> tuple[tuple[int, int], ...]:
        return tuple((0, int(part)) if part.isdecimal() else (1, rank[part]) for part in level)

    return tuple(sorted(levels, key=key))


def _distinct(values: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(values))


def _execution(levels: Mapping[str, str], runs: Sequence[ImportedRun]) -> Execution:
    """Describe how the runs came about, as far as the file tells."""
    size = int(levels.get("setup_size", "1"))
    setup = levels.get("setup_type", "")
    kinds = {"parallel-synth-cpu": NeighbourKind.CPU, "parallel-synth-memcpy": NeighbourKind.MEMCPY}
    neighbours = Neighbours(kinds[setup], size - 1) if setup in kinds else None
    launches = Counter((run.worker_label, run.block) for run in runs)
    labels = {label for label, _ in launches}
    return Execution(
        isolation=levels.get("isolation", ""),
        command=(levels.get("workload", ""),),
        workers=len(labels) if setup != "parallel-homogenous" else size,
        iterations=max(launches.values()),
        affinity=Affinity(levels.get("affinity", "none")),
        neighbours=neighbours,
    )


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Give a key that sorts numbers inside texts by value.

    Examples
    --------
    >>> sorted(["cpu-10", "cpu-9"], key=natural_key)
    ['cpu-9', 'cpu-10']
    """
    parts = re.split(r"([0-9]+)", text)
    return tuple(
        (1, int(part), part) if part.isdecimal() and part.isascii() else (0, 0, part) for part in parts
    )


def _rows(
    plan: Plan, batch: Batch, runs: Sequence[ImportedRun]
) -> Iterator[tuple[dict[str, Value], list[dict[str, Value]]]]:
    ordered = sorted(runs, key=lambda run: (natural_key(run.worker_label), run.worker_label, run.iteration))
    for worker, (label, members) in enumerate(groupby(ordered, key=lambda run: run.worker_label)):
        for run in members:
            identity = run_identity(
                plan, batch, attempt=1, worker=worker, iteration=run.iteration, host_id=""
            )
            row: dict[str, Value] = {
                **identity,
                "status": "completed",
                "start_utc_ns": _start_utc_ns(run.printed.get(START_METRIC)),
                "flags": [],
                "worker_label": label,
            }
            run_id = str(identity["run_id"])
            yield row, [_measurement(run_id, metric, text) for metric, text in run.printed.items()]


def _start_utc_ns(printed: str | None) -> int | None:
    if printed is None:
        return None
    start = int(Decimal(printed) * 1_000_000_000)
    return start if start <= _LARGEST_NS else None


def _measurement(run_id: str, metric: str, printed: str) -> dict[str, Value]:
    return {
        "run_id": run_id,
        "iteration": 1,
        "phase": "measure",
        "metric": metric,
        "value": float(printed),
        "unit": "s",
        "printed": printed,
    }
