"""Analysis of the replication study: from the runs of a result to every claim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from steelyard.analyse.equivalence import Margin
from steelyard.errors import AnalysisError
from steelyard.model import FindingSet
from steelyard.record.seal import hash_tables
from steelyard.record.tables import read_runs
from steelyard.studies.analysis_options import LEVEL, AnalysisOptions, read_options
from steelyard.studies.analysis_parts import finding, with_unique_ids
from steelyard.studies.quiet_machine import quiet_machine
from steelyard.studies.replication.cause_tree import cause_findings
from steelyard.studies.replication.cell_findings import cell_findings
from steelyard.studies.replication.circumstances import (
    availability_findings,
    broken_findings,
    device_facts,
    failure_findings,
    remark_findings,
    software_findings,
    twin_finding,
)
from steelyard.studies.replication.comparisons import comparison_findings, device_findings
from steelyard.studies.replication.overheads import overhead_findings, recording_findings
from steelyard.studies.replication.plan_texts import remarks_of, sentences_of
from steelyard.studies.replication.published import source_findings
from steelyard.studies.replication.questions import question_findings
from steelyard.studies.replication.recorded import read_recorded
from steelyard.studies.replication.summaries import cells_of, summarise
from steelyard.studies.replication.tables import write_tables
from steelyard.studies.study_plan import plan_to_analyse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from steelyard.model import Finding, Plan
    from steelyard.studies.replication.recorded import RecordedRun
    from steelyard.studies.replication.summaries import Summary

METHOD_VERSION: Final = 3
"""Raised whenever a change of the analysis alters numbers."""


def analyse(result: Path, options: AnalysisOptions | None = None) -> FindingSet:
    """Compute the findings of a result folder; write ``findings.json`` and ``tables/*.csv``.

    Parameters
    ----------
    result : Path
        Result folder that ``steelyard run replication`` wrote.
    options : AnalysisOptions or None
        Settings to use and keep beside the result; ``None`` uses those kept there, else those of the plan.

    Raises
    ------
    DataError
        If the tables are absent, damaged or of another study.
    AnalysisError
        If no run came to its end.
    """
    plan = plan_to_analyse(result, "replication", options)
    runs = read_recorded(result, plan)
    summaries, refused = summarise(runs)
    if not summaries and not any(each.is_failed_benchmark for each in runs):
        message = f"`{result}` has no run that came to its end{_why(runs, refused)}"
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
    margin = Margin(read_options(result, plan).margin_percent / 100, LEVEL)
    found = list(_measured(plan, summaries, margin))
    found += failure_findings(runs)
    found += quiet_machine(result, pl.DataFrame(read_runs(result).select(["steal_ns", "wall_ns"])))
    yield from question_findings(found)
    yield from found
    yield from source_findings()
    yield from availability_findings(plan)
    yield from broken_findings(runs, refused)
    yield from device_facts(runs)
    yield from remark_findings({kind: remarks_of(plan, kind) for kind in ("lessons", "licences")})
    yield finding(
        "settings",
        {},
        "stated",
        facts={
            "margin_percent": 100 * margin.relative,
            "seed": plan.seed,
            "repetitions": plan.blocks,
            "runs": len(runs),
            "planted": _planted(plan),
        },
    )


def _measured(plan: Plan, summaries: Sequence[Summary], margin: Margin) -> Iterator[Finding]:
    cells = cells_of(summaries)
    yield from comparison_findings(cells, margin)
    yield from device_findings(cells, margin)
    overheads = list(overhead_findings(cells))
    yield from overheads
    yield from recording_findings(cells, overheads)
    yield from cause_findings(cells, sentences_of(plan), plan.seed)
    yield from cell_findings(cells)
    yield from software_findings(cells)
    twins = twin_finding(summaries, margin)
    if twins is not None:
        yield twins


def _planted(plan: Plan) -> str:
    planted = str(plan.options.get("planted") or "none")
    return "" if planted == "none" else planted
