"""Analysis of the scaling study: from the recorded tables to every claim of its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.errors import AnalysisError
from steelyard.model import FindingSet
from steelyard.record.seal import hash_tables
from steelyard.studies.analysis_options import AnalysisOptions, read_options
from steelyard.studies.scaling.contests import contest_findings
from steelyard.studies.scaling.curves import curves
from steelyard.studies.scaling.findings.explanation import explanation_findings
from steelyard.studies.scaling.findings.fit import fit_findings
from steelyard.studies.scaling.findings.program import program_findings
from steelyard.studies.scaling.findings.recommendations import recommendation_findings
from steelyard.studies.scaling.findings.remarks import remark_findings
from steelyard.studies.scaling.findings.source_claims import source_claim_findings
from steelyard.studies.scaling.findings.speedup import speedup_findings
from steelyard.studies.scaling.findings.strategy import (
    choice_findings,
    gain_findings,
    overhead_findings,
    winner_findings,
)
from steelyard.studies.scaling.hypotheses import answered
from steelyard.studies.scaling.recorded import read_recorded
from steelyard.studies.scaling.tables import write_tables
from steelyard.studies.study_plan import plan_to_analyse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.model import Finding, Plan

METHOD_VERSION: Final = 3
"""Raised whenever a change of the analysis alters numbers."""


def analyse(result: Path, options: AnalysisOptions | None = None) -> FindingSet:
    """Compute the findings of a result folder; write ``findings.json`` and ``tables/*.csv``."""
    plan = plan_to_analyse(result, "scaling", options)
    findings = tuple(_claims(result, plan, read_options(result, plan)))
    if not findings:
        message = f"`{result}` has no completed run that gives a speed-up"
        raise AnalysisError(message, hint="run the study first, or check the status of its runs")
    found = FindingSet(plan.study, plan.id, METHOD_VERSION, hash_tables(result), findings)
    write_tables(result, found, plan)
    found.write(result / "findings.json")
    return found


def _claims(result: Path, plan: Plan, options: AnalysisOptions) -> Iterator[Finding]:
    recorded = read_recorded(result, plan, options.resamples)
    margin = options.margin_percent / 100
    found = curves(recorded)
    if not found and not recorded.cells:
        return
    claims = [
        *program_findings(found, recorded),
        *speedup_findings(found, recorded, margin),
        *overhead_findings(recorded, margin),
        *recommendation_findings(recorded, margin),
        *choice_findings(recorded, margin),
        *gain_findings(recorded, margin),
        *winner_findings(recorded),
        *fit_findings(found, recorded, margin),
        *explanation_findings(found, recorded, margin),
        *contest_findings(recorded),
        *source_claim_findings(recorded),
    ]
    yield from answered(plan, claims)
    yield from claims
    yield from remark_findings(result, recorded, options)
