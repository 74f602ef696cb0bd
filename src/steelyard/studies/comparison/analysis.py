"""Analysis of a recorded comparison: from the runs and the looks at them to every claim of its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.errors import AnalysisError, UsageError
from steelyard.model.finding import FindingSet
from steelyard.record.ledger import LEDGER_NAME
from steelyard.record.seal import hash_tables
from steelyard.record.tables import RUNS_NAME, write_tables
from steelyard.studies.analysis_options import chosen_options, read_options, write_options
from steelyard.studies.comparison.findings import findings_of
from steelyard.studies.comparison.replay import replay
from steelyard.studies.comparison.terms import STUDY
from steelyard.studies.finding_tables import write_claim_tables
from steelyard.studies.study_plan import plan_of_study

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.studies.analysis_options import AnalysisOptions

METHOD_VERSION: Final = 3
"""Raised whenever a change of the analysis alters numbers.

2: everything the report shows is in a finding.
"""

FINDINGS_NAME: Final = "findings.json"
TABLES: Final = {"comparison": "comparisons", "sample": "commands"}
TABLES_OF_MODES: Final = {
    "mode": "mode",
    "overlap": "overlap",
    "layout": "layouts",
    "on_host": "hosts",
}
"""Written where there is such a finding."""


def analyse(result: Path, options: AnalysisOptions | None = None) -> FindingSet:
    """Compute the findings of a comparison; write ``findings.json`` and ``tables/*.csv``."""
    plan = plan_of_study(result, STUDY, "no comparison")
    if options is not None:
        _refuse_tolerance(plan, options)
    if (result / LEDGER_NAME).exists() and not (result / RUNS_NAME).exists():
        write_tables(result)
    if options is not None:
        write_options(result, plan, options)
    found = replay(result, plan, _margin(plan, read_options(result, plan)))
    if not found.runs:
        message = f"`{result}` has no completed run"
        raise AnalysisError(message, hint=f"`steelyard {found.terms.verb} --resume` goes on with it")
    findings = FindingSet(plan.study, plan.id, METHOD_VERSION, hash_tables(result), findings_of(found))
    further = {claim: name for claim, name in TABLES_OF_MODES.items() if findings.of(claim)}
    write_claim_tables(result, findings, TABLES | further)
    findings.write(result / FINDINGS_NAME)
    return findings


def _refuse_tolerance(plan: Plan, options: AnalysisOptions) -> None:
    if options.tolerance_percent != chosen_options(plan).tolerance_percent:
        message = "`--tolerance` changes nothing in a comparison: no claim depends on it"
        raise UsageError(message, hint="leave it out; --margin states what counts as no difference")


def _margin(plan: Plan, options: AnalysisOptions) -> float | None:
    """Give the margin that the reader stated; ``None`` for the plan's own, to the last bit."""
    if options.margin_percent == chosen_options(plan).margin_percent:
        return None
    return options.margin_percent / 100
