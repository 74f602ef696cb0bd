"""A comparison computed again from what was recorded: the runs, and when they were looked at."""

from __future__ import annotations

import math
import shlex
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.analyse.comparison.duel import Duel, difference_of
from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.comparison.sequential import SequentialComparison
from steelyard.model import Estimate, Finding, RunStatus
from steelyard.record.interim_log import FAILED, OPEN, read_looks
from steelyard.record.provenance import PROVENANCE_NAME, read_provenance
from steelyard.record.tables import read_runs
from steelyard.studies.comparison.contender import Contender
from steelyard.studies.comparison.outcome import Measured, conclude
from steelyard.studies.comparison.sample import RUN_COLUMNS, Run
from steelyard.studies.comparison.terms import BENCHMARK, MEASURE, SIDE, planned_terms
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.studies.comparison.outcome import Comparison
    from steelyard.studies.comparison.terms import Terms
    from steelyard.study import RunSoFar


def replay(result: Path, plan: Plan, margin: float | None = None) -> Comparison:
    """Give what a recorded comparison says: the same bits as when it was measured.

    Each comparison is looked at again with the blocks and the part of the error that each recorded look had.
    A comparison that was killed is looked at once more with what is complete, as if it had been interrupted.

    Parameters
    ----------
    result : Path
        Result folder with ``looks.json`` and ``runs.parquet``.
    plan : Plan
        Its plan.
    margin : float or None
        Another margin than the plan's. The intervals do not depend on it; the verdicts do.

    Raises
    ------
    DataError
        If a file is absent or damaged, or they do not belong together.
    """
    terms, pairs = planned_terms(plan)
    if margin is not None:
        terms = replace(terms, margin=Margin(margin, terms.margin.level), margins=())
    times = read_looks(result, plan.id, len(pairs))
    contenders = _contenders(plan)
    rows = _rows(result)
    runs = list(_runs(rows, len(contenders), terms))
    values = _values(runs, terms)
    duels = tuple(
        _duel(pair, SequentialComparison(design), values, looks)
        for pair, design, looks in zip(pairs, terms.designs(len(pairs)), times.looks, strict=True)
    )
    if times.end in {OPEN, FAILED}:
        fraction = terms.extent.fraction(len(values), _elapsed_s(rows))
        for duel, pair in zip(duels, pairs, strict=True):
            if duel.is_open:
                duel.differences = _differences(pair, values)
                duel.look(fraction)
    measured = Measured(terms, contenders, tuple(runs), duels, times.end, times.elapsed_s)
    return conclude(measured, _notes(result), result)


def findings_so_far(result: Path, plan: Plan, runs: Sequence[RunSoFar]) -> list[Finding]:
    """Give what the looks so far say of each pair: their intervals hold at whichever look somebody stops.

    Parameters
    ----------
    result : Path
        Result folder with ``looks.json``.
    plan : Plan
        Its plan.
    runs : sequence of RunSoFar
        Completed runs, warm-up included.

    Raises
    ------
    DataError
        If ``looks.json`` is absent or damaged.
    """
    terms, pairs = planned_terms(plan)
    times = read_looks(result, plan.id, len(pairs))
    contenders = _contenders(plan)
    blocks: dict[int, dict[int, float]] = {}
    for run in runs:
        value = getattr(run, terms.metric.quantity)
        if value and plan.cells[run.cell].levels.get("phase") == MEASURE:
            blocks.setdefault(run.block, {})[run.cell % len(contenders)] = value
    values = [blocks[number] for number in sorted(blocks)]
    found = []
    for pair, design, looks in zip(pairs, terms.designs(len(pairs)), times.looks, strict=True):
        duel = _duel(pair, SequentialComparison(design), values, looks)
        first, second = (contenders[number].name for number in pair)
        subject = {"first": first, "second": second}
        verdict = "undecided so far" if duel.is_open or duel.known is None else str(duel.known.verdict)
        estimate = _estimate_so_far(duel, _differences(pair, values), terms)
        found.append(Finding(f"so_far/{first}/{second}", "so_far", subject, verdict, {"ratio": estimate}))
    return found


def _estimate_so_far(duel: Duel, differences: Sequence[float], terms: Terms) -> Estimate:
    look, count = duel.known, len(differences)
    if look is None or look.low <= 0 or not math.isfinite(look.high):
        value = math.exp(statistics.median(differences)) if differences else None
        return Estimate(value, "ratio", "median ratio of the blocks so far", units=count, measurements=count)
    method = "repeated confidence interval over all looks"
    level = terms.margin.level
    return Estimate(look.ratio, "ratio", method, look.low, look.high, level, look.blocks, count)


def recorded_runs(result: Path, plan: Plan, terms: Terms) -> list[Run]:
    """Give the recorded runs that count, warm-up included, in the order of execution.

    Raises
    ------
    DataError
        If ``runs.parquet`` is absent or damaged.
    """
    return list(_runs(_rows(result), len(plan.cells) // 2, terms))


def _contenders(plan: Plan) -> tuple[Contender, ...]:
    measured = [cell for cell in plan.cells if cell.levels.get("phase") == MEASURE]
    return tuple(
        Contender(
            number,
            cell.levels["command"],
            shlex.join(cell.execution.command) if cell.execution else "",
            cell.execution.command if cell.execution else (),
            benchmark=cell.levels.get(BENCHMARK, ""),
            side=cell.levels.get(SIDE, ""),
        )
        for number, cell in enumerate(measured)
    )


def _rows(result: Path) -> list[dict[str, Any]]:
    table = read_runs(result).select(["cell", *RUN_COLUMNS, "flags", "start_ns", "end_ns"])
    return sorted(table.to_pylist(), key=lambda row: int(row["position"]))


def _runs(rows: Sequence[Mapping[str, Any]], count: int, terms: Terms) -> Iterator[Run]:
    """Give the runs that count: a failure that was not to be ignored ended the measuring."""
    for row in rows:
        status = RunStatus(row["status"])
        if status.is_failure and not (status.is_own_failure and terms.ignores_failure):
            continue
        yield Run(
            row["cell"] % count,
            row["block"],
            row["position"],
            row["phase"],
            row["status"],
            row["exit_code"],
            wall_ns=row["wall_ns"],
            cpu_ns=row["cpu_ns"],
            peak_memory_bytes=row["peak_memory_bytes"],
            flags=list(row["flags"] or []),
            cpu_user_ns=row["cpu_user_ns"],
            cpu_system_ns=row["cpu_system_ns"],
        )


def _values(runs: Sequence[Run], terms: Terms) -> list[dict[int, float]]:
    """Give the measured values of each block in order, by contender."""
    blocks: dict[int, dict[int, float]] = {}
    for run in runs:
        if run.phase == MEASURE:
            block = blocks.setdefault(run.block, {})
            value = getattr(run, terms.metric.quantity)
            if value:
                block[run.contender] = float(value)
    return [blocks[number] for number in sorted(blocks)]


def _differences(pair: tuple[int, int], values: Sequence[Mapping[int, float]]) -> list[float]:
    baseline, contender = pair
    return [
        difference_of(block[baseline], block[contender])
        for block in values
        if baseline in block and contender in block
    ]


def _duel(
    pair: tuple[int, int],
    sequence: SequentialComparison,
    values: Sequence[Mapping[int, float]],
    looks: Sequence[tuple[int, float]],
) -> Duel:
    """Look again; a look at blocks that were lost with the power is left out."""
    differences = _differences(pair, values)
    duel = Duel(*pair, sequence)
    for blocks, fraction in looks:
        if blocks <= len(differences):
            duel.differences = differences[:blocks]
            duel.look(fraction)
    return duel


def _elapsed_s(rows: Sequence[Mapping[str, Any]]) -> float:
    """Give the time between the first exec and the last exit [s]; 0 without runs."""
    stamps = np.array(
        [(row["start_ns"], row["end_ns"]) for row in rows if row["start_ns"] and row["end_ns"]],
        dtype=np.int64,
    )
    return float(stamps[:, 1].max() - stamps[:, 0].min()) / NS_PER_S if stamps.size else 0.0


def _notes(result: Path) -> tuple[str, ...]:
    return read_provenance(result).notes if (result / PROVENANCE_NAME).exists() else ()
