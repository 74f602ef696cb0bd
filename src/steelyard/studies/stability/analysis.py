"""Analysis of the stability study: from the recorded tables to every claim of its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.analyse.mapping.over_cells import IN_TURN
from steelyard.errors import AnalysisError
from steelyard.model import FindingSet
from steelyard.model.plan import read_plan
from steelyard.record.seal import hash_tables
from steelyard.record.tables import RUNS_NAME
from steelyard.record.tables import write_tables as write_recorded
from steelyard.studies.analysis_options import AnalysisOptions, read_options, write_options
from steelyard.studies.quiet_machine import quiet_machine
from steelyard.studies.stability.findings.cells import read_recorded
from steelyard.studies.stability.findings.clocks import clock_granularity
from steelyard.studies.stability.findings.comparisons import class_counts, compare_cells
from steelyard.studies.stability.findings.dispersion import dispersion_findings
from steelyard.studies.stability.findings.errors import clock_trust, error_groups, outside_errors
from steelyard.studies.stability.findings.hosts import host_findings
from steelyard.studies.stability.findings.inputs import counter_correlations, input_dependence
from steelyard.studies.stability.findings.pairs import pairs
from steelyard.studies.stability.findings.parallel import overlaps, parallel_ratios
from steelyard.studies.stability.findings.remarks import calibration, contamination, failed_runs, settings
from steelyard.studies.stability.findings.series import warm_ups, worker_differences
from steelyard.studies.stability.findings.shift import identical_cells, location_shifts, pinning_effects
from steelyard.studies.stability.findings.tables import write_tables
from steelyard.studies.study_plan import plan_of_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.analyse.mapping.over_cells import OverCells
    from steelyard.model import Finding
    from steelyard.studies.stability.findings.cells import Recorded

METHOD_VERSION: Final = 4
"""Raised whenever a change of the analysis alters numbers.

2: the least steady cell at each load, the state of the machine, intervals behind each recommendation.
3: changes of the level of a series are confirmed by a test; two modes that take turns are none.
"""

FINDINGS_NAME: Final = "findings.json"
LEDGER_NAME: Final = "ledger.sqlite"


def analyse(result: Path, options: AnalysisOptions | None = None, over: OverCells = IN_TURN) -> FindingSet:
    """Compute the findings of a result folder; write ``findings.json`` and ``tables/*.csv``."""
    plan = read_plan(result / "plan.json")
    if (result / LEDGER_NAME).exists() and not (result / RUNS_NAME).exists():
        write_recorded(result)
    if options is not None:
        write_options(result, plan, options)
    findings = compute(result, over)
    write_tables(result, findings)
    findings.write(result / FINDINGS_NAME)
    return findings


def compute(result: Path, over: OverCells = IN_TURN) -> FindingSet:
    """Compute the findings of a result folder and write nothing.

    Raises
    ------
    DataError
        If the tables are absent, damaged or of another study.
    AnalysisError
        If there is nothing to analyse.
    """
    plan = plan_of_study(result, "stability")
    options = read_options(result, plan)
    recorded = read_recorded(result, plan)
    if not recorded.cells:
        message = f"`{result}` has no completed run that measured something"
        raise AnalysisError(message, hint="run the study first, or check the status of its runs")
    return FindingSet(
        study=plan.study,
        plan_id=plan.id,
        method_version=METHOD_VERSION,
        inputs=hash_tables(result),
        findings=tuple(_claims(result, recorded, options, over)),
    )


def _claims(result: Path, recorded: Recorded, options: AnalysisOptions, over: OverCells) -> Iterator[Finding]:
    errors = outside_errors(recorded, options, over)
    yield from errors
    yield from error_groups(errors)
    yield from clock_granularity(recorded, over)
    comparisons = compare_cells(recorded, pairs(recorded), options, over)
    yield from comparisons
    yield from class_counts(comparisons)
    yield from parallel_ratios(recorded)
    yield from warm_ups(recorded, options, over)
    yield from worker_differences(recorded, options, over)
    yield from input_dependence(recorded, options)
    yield from location_shifts(recorded, options)
    yield from pinning_effects(recorded, options)
    yield from overlaps(recorded)
    yield from clock_trust(errors, options)
    yield from dispersion_findings(recorded, options, over)
    yield from identical_cells(recorded, options)
    yield from host_findings(result, recorded, options)
    yield from quiet_machine(result, recorded.runs)
    yield from contamination(recorded)
    yield from counter_correlations(recorded)
    yield from failed_runs(recorded)
    yield from calibration(result)
    yield settings(recorded, options)
