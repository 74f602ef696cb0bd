"""Analysis of the communication study: from the traces of a result to models and every claim."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from steelyard.analyse.cost_curve.piece_search import FEWEST_RECORDED
from steelyard.analyse.mapping.over_cells import IN_TURN, map_each
from steelyard.errors import AnalysisError
from steelyard.model import FindingSet
from steelyard.record.seal import hash_tables
from steelyard.record.tables import read_runs
from steelyard.record.trace_folder import SIMULATIONS_NAME
from steelyard.studies.analysis_options import AnalysisOptions, read_options
from steelyard.studies.analysis_parts import finding
from steelyard.studies.communication.cells import cell_records
from steelyard.studies.communication.findings.link import frame_places, link_findings
from steelyard.studies.communication.findings.model import model_findings
from steelyard.studies.communication.findings.prediction import prediction_findings
from steelyard.studies.communication.findings.recording import recording_findings
from steelyard.studies.communication.findings.replication import replication_findings
from steelyard.studies.communication.findings.runs import (
    absent_findings,
    clock_findings,
    coverage_finding,
    ended_findings,
    pair_findings,
)
from steelyard.studies.communication.findings.states import state_findings
from steelyard.studies.communication.findings.transport_facts import threshold_findings, transport_facts
from steelyard.studies.communication.fixtures import options_of
from steelyard.studies.communication.model.files import model_file, write_models
from steelyard.studies.communication.model.fit import FitOptions, model_of
from steelyard.studies.communication.model.fitted import Fitted
from steelyard.studies.communication.recorded import read_recorded
from steelyard.studies.communication.simulation.simulated import (
    NOTHING_HELD_OUT,
    simulation_of,
    why_not_simulated,
)
from steelyard.studies.communication.sizes import SizeLaw
from steelyard.studies.communication.trace import Operation
from steelyard.studies.finding_tables import FOLDER, write_claim_tables
from steelyard.studies.quiet_machine import quiet_machine
from steelyard.studies.study_plan import plan_to_analyse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from steelyard.analyse.mapping.over_cells import OverCells
    from steelyard.model import Finding, Plan
    from steelyard.model.cost_model import CostModel
    from steelyard.studies.communication.cells import CellRecord
    from steelyard.studies.communication.findings.transport_facts import TransportFacts
    from steelyard.studies.communication.model.fit import FitDetails
    from steelyard.studies.communication.recorded import RecordedRun
    from steelyard.studies.communication.simulation.validation import Validation

IMPORTED: Final = "import"
"""Mode of a plan that was made from recordings of a foreign program."""

METHOD_VERSION: Final = 6
"""Raised whenever a change of the analysis alters numbers."""

_TABLES_ALWAYS: Final = {
    "model": "models",
    "coefficient": "coefficients",
    "boundary": "boundaries",
    "noise": "noise",
    "clock": "clocks",
    "prediction": "prediction_errors",
    "prediction_by_size": "prediction_errors_by_size",
}
"""CSV files by kind of claim, each written by every analysis."""
_TABLES_IF_FOUND: Final = {
    "call": "calls",
    "carry_over": "carry_over",
    "carry_over_class": "carry_over_by_previous_size",
    "crossed_prediction": "crossed_predictions",
    "host_state": "host_states",
    "outliers": "outliers",
    "threshold": "thresholds",
    "ended_early": "ended_early",
    "absent": "absent_transports",
    "replications": "replications",
    "noise_distance": "noise_distances",
    "fidelity": "fidelity",
    "link": "links",
    "pair": "pairs",
    "mixed_run": "mixed_runs",
    "disturbed": "disturbed",
}


def analyse(result: Path, options: AnalysisOptions | None = None, over: OverCells = IN_TURN) -> FindingSet:
    """Compute models and findings of a result folder.

    Writes ``models/*.json``, ``findings.json`` and ``tables/*.csv``.
    """
    plan = plan_to_analyse(result, "communication", options)
    runs = read_recorded(result, plan)
    records = cell_records(runs)
    fits = tuple(_fits(records, runs, plan, over))
    if not fits:
        message = f"`{result}` has no trace to fit a model to: {_why_none(runs)}"
        hint = "raise `--budget` or `--operations`, or lower `--largest`; `runs.parquet` says how runs ended"
        if plan.options.get("mode") == IMPORTED:
            message = f"`{result}` has no recording to fit a model to: {_too_little(runs)}"
            hint = (
                f"record at least {FEWEST_RECORDED} messages of one operation, with the time that each took"
            )
        raise AnalysisError(message, hint=hint, code="analysis.no-trace")
    findings = tuple(_claims(result, plan, runs, fits))
    found = FindingSet(plan.study, plan.id, METHOD_VERSION, hash_tables(result), findings)
    write_models(result, [(fitted.file, fitted.model) for _, fitted in fits])
    _write_tables(result, found)
    found.write(result / "findings.json")
    return found


def _why_none(runs: Sequence[RecordedRun]) -> str:
    """Say how the first run ended that left too little."""
    if not runs:
        return "no run is complete"
    run = runs[0]
    said = f" ({run.message or run.problem})" if run.message or run.problem else ""
    return f"{run.levels['transport']} {run.status}{said} after {run.finished} operations"


def _too_little(runs: Sequence[RecordedRun]) -> str:
    """Say what the largest recording holds."""
    counts: dict[str, int] = {}
    for run in runs:
        if run.trace is not None:
            ops, numbers = np.unique(run.trace.endpoints[0].operations["op"], return_counts=True)
            for op, number in zip(ops.tolist(), numbers.tolist(), strict=True):
                counts[Operation(op).name.lower()] = max(counts.get(Operation(op).name.lower(), 0), number)
    return ", ".join(f"{number} of `{name}`" for name, number in counts.items()) or "it is empty"


def _fits(
    records: Sequence[CellRecord], runs: Sequence[RecordedRun], plan: Plan, over: OverCells
) -> Iterator[tuple[CellRecord, Fitted]]:
    cells = [record.runs[0].cell for record in records]
    facts = [transport_facts([run for run in runs if run.cell == cell]) for cell in cells]
    named = [
        (f"cell {cell}", each) for cell, each in zip(cells, zip(records, facts, strict=True), strict=True)
    ]
    for record, models in zip(records, map_each(over, partial(_models, plan=plan), named), strict=True):
        for model, details in models:
            members = record.fitted(model.state)
            file = model_file(members[0].levels, model.state)
            yield record, Fitted(model, details, members, file)


def _models(cell: tuple[CellRecord, TransportFacts], *, plan: Plan) -> list[tuple[CostModel, FitDetails]]:
    record, facts = cell
    found = []
    for state in record.states:
        members = record.fitted(state)
        traces = [run.trace for run in members if run.trace is not None]
        try:
            model, details = model_of(traces, _known_before(facts, members[0], plan))
        except AnalysisError:
            continue  # too few round trips: the runs behind it are named among those that ended early
        found.append((replace(model, state=state), details))
    return found


def _known_before(facts: TransportFacts, run: RecordedRun, plan: Plan) -> FitOptions:
    return FitOptions(
        seed=plan.seed,
        known=(*facts.places(), *frame_places(run)),
        asynchronous_bytes=facts.bytes_of("asynchronous"),
        detached_bytes=facts.bytes_of("detached"),
    )


def _simulated(result: Path, fitted: Fitted, run: RecordedRun) -> Validation | None:
    return simulation_of(result, fitted.file, run, fitted.model)


def _outdated(result: Path, fits: Sequence[tuple[CellRecord, Fitted]]) -> str:
    """Say that models changed since SimGrid was asked; empty as long as it was not asked at all."""
    asked = [
        _simulated(result, fitted, run)
        for record, fitted in fits
        for run in record.held_out(fitted.model.state)
    ]
    if None not in asked or not (result / SIMULATIONS_NAME).is_dir():
        return ""
    return "models changed since it was asked; `steelyard run communication --resume --out DIR` asks again"


def _claims(
    result: Path, plan: Plan, runs: Sequence[RecordedRun], fits: Sequence[tuple[CellRecord, Fitted]]
) -> Iterator[Finding]:
    settings = read_options(result, plan)
    for record, fitted in fits:
        yield from model_findings(fitted)
        yield from prediction_findings(fitted, record, plan, partial(_simulated, result, fitted))
        yield from link_findings(fitted)
        yield from replication_findings(fitted, settings.margin_percent / 100)
    for record in dict.fromkeys(record for record, _ in fits):
        yield from recording_findings(record)
        yield from state_findings(record)
        for run, clocks in zip(record.runs, record.clocks, strict=True):
            yield from clock_findings(run, clocks)
    for cell in sorted({run.cell for run in runs}):
        members = [run for run in runs if run.cell == cell]
        yield from pair_findings(members)
        yield from threshold_findings(members)
    yield from absent_findings(plan)
    reason = why_not_simulated(result)
    if not reason and plan.options.get("validation") is True:
        reason = _outdated(result, fits)
    if reason:
        verdict = "nothing left" if reason == NOTHING_HELD_OUT else "absent"
        yield finding("not_simulated", {}, verdict, facts={"reason": reason})
    yield from ended_findings(runs)
    sizes = [size for record, _ in fits for size in record.operations.size.tolist()]
    is_recorded = plan.options.get("mode") == IMPORTED
    yield coverage_finding(plan, None if is_recorded else SizeLaw(options_of(plan).sizes), sizes)
    yield from quiet_machine(result, pl.DataFrame(read_runs(result).select(["steal_ns", "wall_ns"])))
    yield finding(
        "settings",
        {},
        "recorded" if is_recorded else "stated",
        facts={
            "margin_percent": settings.margin_percent,
            "seed": plan.seed,
            "replications": plan.blocks,
            "held_out": int(plan.options.get("held_out") or 0),
            "warm_up": int(plan.options.get("warm_up") or 0) or None,
        },
    )


def _write_tables(result: Path, findings: FindingSet) -> None:
    """Write the tables, and remove those of an earlier analysis; the same findings give the same bytes."""
    found = {claim: name for claim, name in _TABLES_IF_FOUND.items() if findings.of(claim)}
    for name in set(_TABLES_IF_FOUND.values()) - set(found.values()):
        (result / FOLDER / f"{name}.csv").unlink(missing_ok=True)
    write_claim_tables(result, findings, {**_TABLES_ALWAYS, **found})
