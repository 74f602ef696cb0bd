"""A comparison computed again from what was recorded: the runs, and when they were looked at."""

from __future__ import annotations

import math
import shlex
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from steelyard.analyse.comparison.duel import Duel, difference_of, eliminate
from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.comparison.sequential import SequentialComparison
from steelyard.model import Estimate, Finding, RunStatus
from steelyard.model.run_outcome import PADDING, RANDOMISED
from steelyard.record.interim_log import FAILED, OPEN, read_looks
from steelyard.record.placed.hosts import host_names, machine_of, machines_of
from steelyard.record.provenance import PROVENANCE_NAME, read_provenance
from steelyard.record.tables import read_measurements, read_runs
from steelyard.studies.comparison.claim import subject_of
from steelyard.studies.comparison.contender import Contender
from steelyard.studies.comparison.hosts.merged import Question, Sample, of_hosts
from steelyard.studies.comparison.outcome import Measured, conclude
from steelyard.studies.comparison.sample import REPORTED, RUN_COLUMNS, Run
from steelyard.studies.comparison.terms import BENCHMARK, MEASURE, SIDE, Metric, command_count, planned_terms
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.model import Plan
    from steelyard.studies.comparison.hosts.merged import Merged
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
    notes, builds = _recorded(result)
    measured = replayed(result, plan, margin)
    hosts = _over_hosts(result, plan, measured.terms) if measured.terms.hosts else ()
    return replace(conclude(measured, notes, result, hosts), builds=builds)


def replayed(result: Path, plan: Plan, margin: float | None = None) -> Measured:
    """Give what `replay` concludes from, with the state of every comparison.

    Raises
    ------
    DataError
        If a file is absent or damaged, or they do not belong together.
    """
    terms, pairs = planned_terms(plan)
    if margin is not None:
        terms = replace(terms, margin=Margin(margin, terms.margin.level), margins=())
    questions = terms.questions(pairs)
    times = read_looks(result, plan.id, len(questions))
    contenders = _contenders(plan)
    rows = _rows(result)
    runs = list(_runs(rows, len(contenders), terms))
    if terms.metric is Metric.REPORTED:
        _add_reported(result, rows, runs)
    values = values_by_block(runs, terms)
    duels = tuple(
        _duel(pair, SequentialComparison(design), values, looks)
        for (pair, design), looks in zip(questions, times.looks, strict=True)
    )
    if terms.is_best:
        eliminate(duels)
    if times.end in {OPEN, FAILED} and not terms.hosts:
        fraction = terms.extent.fraction(len(values), _elapsed_s(rows))
        for duel in duels:
            if duel.is_open:
                _fill(duel, values)
                duel.look(fraction)
    return Measured(terms, contenders, tuple(runs), duels, times.end, times.elapsed_s)


def pairs_by_host(result: Path, plan: Plan) -> Iterator[dict[str, NDArray[np.float64]]]:
    """Give the blocks of each comparison by the machine that measured them, as `SequentialComparison` reads.

    A block counts where one machine has both sides.

    Raises
    ------
    DataError
        If ``runs.parquet`` is absent or damaged.
    """
    terms, pairs = planned_terms(plan)
    hosts = {row["position"]: machine_of(row["host_id"]) for row in _rows(result)}
    by_host: dict[str, list[Run]] = {}
    for run in recorded_runs(result, plan, terms):
        by_host.setdefault(hosts[run.position], []).append(run)
    values = {host: values_by_block(by_host[host], terms) for host in sorted(by_host)}
    for pair, design in terms.questions(pairs):
        found = {}
        for host, of_host in values.items():
            duel = Duel(*pair, SequentialComparison(design))
            _fill(duel, of_host)
            found[host] = np.array(duel.blocks)
        yield found


def _over_hosts(result: Path, plan: Plan, terms: Terms) -> tuple[Merged, ...]:
    """Give the answer to each comparison over the hosts that it was placed on."""
    _, pairs = planned_terms(plan)
    contenders = _contenders(plan)
    by_host = list(pairs_by_host(result, plan))
    has_provenance = (result / PROVENANCE_NAME).exists()
    ids = read_runs(result)["host_id"].to_pylist()
    names = host_names(read_provenance(result) if has_provenance else None, ids)
    machines = {each: " ".join(names[node] for node in nodes) for each, nodes in machines_of(ids).items()}
    found = []
    for (pair, design), blocks in zip(terms.questions(pairs), by_host, strict=True):
        first, second = (contenders[number].name for number in pair)
        samples = [Sample(machines[host], host, each) for host, each in blocks.items()]
        found.append(of_hosts(Question(design, (first, second), str(terms.metric)), samples))
    return tuple(found)


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
    if terms.metric is Metric.REPORTED:
        return []  # what a harness reports is not among the quantities of a run
    questions = terms.questions(pairs)
    times = read_looks(result, plan.id, len(questions))
    contenders = _contenders(plan)
    blocks: dict[int, dict[int, float]] = {}
    for run in runs:
        value = getattr(run, terms.metric.quantity)
        if value and plan.cells[run.cell].levels.get("phase") == MEASURE:
            blocks.setdefault(run.block, {})[run.cell % len(contenders)] = value
    values = [blocks[number] for number in sorted(blocks)]
    found = []
    for (pair, design), looks in zip(questions, times.looks, strict=True):
        duel = _duel(pair, SequentialComparison(design), values, looks)
        first, second = (contenders[number].name for number in pair)
        subject = {"first": first, "second": second, **subject_of(str(design.statistic))}
        verdict = "undecided so far" if duel.is_open or duel.known is None else str(duel.known.verdict)
        everything = Duel(*pair, duel.sequence)
        _fill(everything, values)
        estimate = _estimate_so_far(duel, everything.differences, terms)
        name = "/".join(["so_far", *subject.values()])
        found.append(Finding(name, "so_far", subject, verdict, {"ratio": estimate}))
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
    rows = _rows(result)
    runs = list(_runs(rows, command_count(plan), terms))
    if terms.metric is Metric.REPORTED:
        _add_reported(result, rows, runs)
    return runs


def _add_reported(result: Path, rows: Sequence[Mapping[str, Any]], runs: Sequence[Run]) -> None:
    """Give runs the value that their harness reported."""
    table = pl.DataFrame(read_measurements(result).select(["run_id", "metric", "value"]))
    reported = dict(table.filter(pl.col("metric") == REPORTED).select(["run_id", "value"]).iter_rows())
    values = {row["position"]: reported.get(row["run_id"]) for row in rows}
    for run in runs:
        run.reported_ns = values[run.position]


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
    table = read_runs(result)
    drawn = [name for name in (PADDING, RANDOMISED) if name in table.column_names]
    table = table.select(["run_id", "cell", "host_id", *RUN_COLUMNS, "flags", "start_ns", "end_ns", *drawn])
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
            start_ns=row["start_ns"],
            end_ns=row["end_ns"],
            environment_padding_bytes=row.get(PADDING),
            randomised_addresses=row.get(RANDOMISED),
        )


def values_by_block(runs: Sequence[Run], terms: Terms) -> list[dict[int, float]]:
    """Give the measured values of each block in order, by contender."""
    blocks: dict[int, dict[int, float]] = {}
    for run in runs:
        if run.phase == MEASURE:
            block = blocks.setdefault(run.block, {})
            value = getattr(run, terms.metric.quantity)
            if value:
                block[run.contender] = float(value)
    return [blocks[number] for number in sorted(blocks)]


def differences_of(pair: tuple[int, int], values: Sequence[Mapping[int, float]]) -> list[float]:
    """Give the logarithm of contender over baseline in each block that has both, by their numbers."""
    baseline, contender = pair
    return [
        difference_of(block[baseline], block[contender])
        for block in values
        if baseline in block and contender in block
    ]


def _fill(duel: Duel, values: Sequence[Mapping[int, float]]) -> None:
    """Give a comparison all blocks that have both sides."""
    duel.differences, duel.values = [], []
    for block in values:
        if duel.baseline in block and duel.contender in block:
            duel.add(block[duel.baseline], block[duel.contender])


def _duel(
    pair: tuple[int, int],
    sequence: SequentialComparison,
    values: Sequence[Mapping[int, float]],
    looks: Sequence[tuple[int, float]],
) -> Duel:
    """Look again; a look at blocks that were lost with the power is left out."""
    everything, duel = Duel(*pair, sequence), Duel(*pair, sequence)
    _fill(everything, values)
    for blocks, fraction in looks:
        if blocks <= len(everything.differences):
            duel.differences = everything.differences[:blocks]
            duel.values = everything.values[:blocks]
            duel.look(fraction)
    return duel


def _elapsed_s(rows: Sequence[Mapping[str, Any]]) -> float:
    """Give the time between the first exec and the last exit [s]; 0 without runs."""
    stamps = np.array(
        [(row["start_ns"], row["end_ns"]) for row in rows if row["start_ns"] and row["end_ns"]],
        dtype=np.int64,
    )
    return float(stamps[:, 1].max() - stamps[:, 0].min()) / NS_PER_S if stamps.size else 0.0


def _recorded(result: Path) -> tuple[tuple[str, ...], tuple[dict[str, Any], ...]]:
    """Give remarks and builds."""
    if not (result / PROVENANCE_NAME).exists():
        return (), ()
    provenance = read_provenance(result)
    return provenance.notes, provenance.builds
