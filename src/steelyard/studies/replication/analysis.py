"""Analysis of the replication study: from the runs of a result to every claim."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from steelyard.errors import AnalysisError, DataError
from steelyard.model import FindingSet
from steelyard.record.seal import hash_tables
from steelyard.record.tables import read_runs
from steelyard.studies.analysis_parts import finding, with_unique_ids
from steelyard.studies.placed.host_findings import placed_findings
from steelyard.studies.quiet_machine import quiet_machine
from steelyard.studies.replication.budget import blocks_of_each, placed_on
from steelyard.studies.replication.by_host import on_devices
from steelyard.studies.replication.findings.cause_tree import cause_findings
from steelyard.studies.replication.findings.cells import cell_findings
from steelyard.studies.replication.findings.circumstances import (
    availability_findings,
    broken_findings,
    device_facts,
    failure_findings,
    remark_findings,
    software_findings,
    twin_finding,
)
from steelyard.studies.replication.findings.comparisons import METRICS, comparison_findings, device_findings
from steelyard.studies.replication.findings.floor import floor_findings
from steelyard.studies.replication.findings.lateness import lateness_findings
from steelyard.studies.replication.findings.overheads import overhead_findings, recording_findings
from steelyard.studies.replication.findings.published import source_findings
from steelyard.studies.replication.findings.questions import question_findings
from steelyard.studies.replication.findings.until_decided import planned_looks
from steelyard.studies.replication.margins import margins_of
from steelyard.studies.replication.options import FEWEST_BLOCKS
from steelyard.studies.replication.recorded import read_recorded
from steelyard.studies.replication.tables import write_tables
from steelyard.studies.replication.values.summaries import cells_of, summarise
from steelyard.studies.study_plan import plan_to_analyse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from steelyard.analyse.comparison.equivalence import Margin
    from steelyard.model import Finding, Plan
    from steelyard.studies.analysis_options import AnalysisOptions
    from steelyard.studies.replication.findings.comparisons import Looks
    from steelyard.studies.replication.recorded import RecordedRun
    from steelyard.studies.replication.values.summaries import Summary

METHOD_VERSION: Final = 4
"""Raised whenever a change of the analysis alters numbers."""


def analyse(result: Path, options: AnalysisOptions | None = None) -> FindingSet:
    """Compute the findings of a result folder; write ``findings.json`` and ``tables/*.csv``."""
    plan = plan_to_analyse(result, "replication", options)
    runs = read_recorded(result, plan)
    if placed_on(plan):
        runs = on_devices(result, runs)
    summaries, refused = summarise(runs)
    if not summaries and not any(each.is_failed_benchmark for each in runs):
        message = f"`{result}` has no completed run{_why(runs, refused)}"
        hint = "`runs.parquet` says how the runs ended, and `traces/` what each left"
        raise AnalysisError(message, hint=hint, code="analysis.no-run")
    findings = tuple(with_unique_ids(_claims(result, plan, runs, (summaries, refused))))
    found = FindingSet(plan.study, plan.id, METHOD_VERSION, hash_tables(result), findings)
    write_tables(result, found, summaries)
    found.write(result / "findings.json")
    return found


def _why(runs: Sequence[RecordedRun], refused: Sequence[tuple[RecordedRun, str]]) -> str:
    said = [reason for _, reason in refused] or [each.problem or each.message for each in runs]
    return f": {said[0]}" if said and said[0] else ""


def _claims(
    result: Path,
    plan: Plan,
    runs: Sequence[RecordedRun],
    usable: tuple[Sequence[Summary], Sequence[tuple[RecordedRun, str]]],
) -> Iterator[Finding]:
    summaries, refused = usable
    margins = margins_of(result, plan)
    blocks = 1 + max(each.block for each in runs)
    looks = planned_looks(result, plan, blocks)
    found = list(_measured(plan, summaries, margins, looks))
    found += failure_findings(runs)
    found += quiet_machine(result, pl.DataFrame(read_runs(result).select(["steal_ns", "wall_ns"])))
    yield from question_findings(found)
    yield from found
    yield from source_findings()
    yield from availability_findings(plan)
    yield from broken_findings(runs, refused)
    yield from device_facts(runs)
    if placed_on(plan):
        yield from placed_findings(result, read_runs(result)["host_id"].unique().to_pylist())
    yield from remark_findings({kind: _remarks_of(plan, kind) for kind in ("lessons", "licences")})
    yield finding(
        "settings",
        {},
        "stated",
        facts={
            "margins": _said(plan, margins),
            "seed": plan.seed,
            "repetitions": blocks_of_each(plan) if looks is None else f"{FEWEST_BLOCKS} to {blocks}",
            "runs": len(runs),
            "planted": _planted(plan),
        },
    )


def _measured(
    plan: Plan, summaries: Sequence[Summary], margins: Mapping[str, Margin], looks: Looks
) -> Iterator[Finding]:
    cells = cells_of(summaries)
    yield from comparison_findings(cells, margins, looks)
    yield from device_findings(cells, margins)
    overheads = list(overhead_findings(cells))
    yield from overheads
    yield from recording_findings(cells, overheads)
    yield from cause_findings(cells, _sentences_of(plan), plan.seed)
    yield from cell_findings(cells)
    yield from software_findings(cells)
    yield from lateness_findings(cells, margins)
    yield from floor_findings(cells, margins, looks)
    yield from twin_finding(summaries, margins, looks)


def _said(plan: Plan, margins: Mapping[str, Margin]) -> str:
    """Say the margin, or those of the experiments where they differ."""
    compared = [name for name in METRICS if any(cell.levels["experiment"] == name for cell in plan.cells)]
    percent = {name: f"{100 * margins[name].relative:.3g} %" for name in compared or METRICS}
    if len(set(percent.values())) == 1:
        return next(iter(percent.values()))
    return ", ".join(f"{value} ({name})" for name, value in percent.items())


def _planted(plan: Plan) -> str:
    planted = str(plan.options.get("planted") or "none")
    return "" if planted == "none" else planted


def _sentences_of(plan: Plan) -> dict[str, str]:
    """Give what each intervention changes, by its name."""
    described = _option(plan, "interventions", [])
    return {str(each["name"]): str(each["sentence"]) for each in described}


def _remarks_of(plan: Plan, kind: str) -> tuple[str, ...]:
    """Give the ``lessons`` or the ``licences`` that the study file states, as they stand there."""
    return tuple(str(each) for each in _option(plan, "request", {}).get(kind) or ())


def _option(plan: Plan, option: str, otherwise: Any) -> Any:
    text = plan.options.get(option)
    if not text:
        return otherwise
    try:
        return json.loads(str(text))
    except ValueError as error:
        message = f"option `{option}` of the plan is not JSON: {error}"
        raise DataError(message, hint="the plan is damaged; repeat the study", code="data.plan") from error
