"""Analysis of imported results: from the recorded tables to every claim of the report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from steelyard.errors import AnalysisError
from steelyard.model import FindingSet
from steelyard.record.seal import hash_tables
from steelyard.studies.analysis_options import AnalysisOptions, read_options, write_options
from steelyard.studies.analysis_parts import with_unique_ids
from steelyard.studies.finding_tables import write_claim_tables
from steelyard.studies.imported.cells import cell_finding
from steelyard.studies.imported.comparisons import comparisons
from steelyard.studies.imported.published import published_findings
from steelyard.studies.imported.samples import read_samples
from steelyard.studies.study_plan import plan_of_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.model import Finding, Plan

METHOD_VERSION: Final = 6
"""Raised whenever a change of the analysis alters numbers.

2: changes of the level of a series are confirmed by a test; two modes that take turns are none.
4: launches that failed do not count.
5: intervals and comparisons follow the one rule of `steelyard.analyse.intervals.guarantee`.
6: of runs of unequal length as many values count as make them of one kind; short runs weigh in the guarantee.
"""

TABLES: Final = {"cell": "cells", "comparison": "comparisons", "published_value": "published"}


def analyse(result: Path, options: AnalysisOptions | None = None) -> FindingSet:
    """Compute the findings of an imported result; write ``findings.json`` and ``tables/*.csv``."""
    plan = plan_of_study(result, "imported", "not an imported one")
    if options is not None:
        write_options(result, plan, options)
    findings = tuple(with_unique_ids(_claims(result, plan, read_options(result, plan))))
    if not findings:
        message = f"`{result}` has no measured value of a launch that completed"
        raise AnalysisError(message, hint="import files that contain measured values of completed launches")
    found = FindingSet(plan.study, plan.id, METHOD_VERSION, hash_tables(result), findings)
    write_claim_tables(result, found, TABLES)
    found.write(result / "findings.json")
    return found


def _claims(result: Path, plan: Plan, options: AnalysisOptions) -> Iterator[Finding]:
    samples = read_samples(result, plan)
    margin = options.margin_percent / 100
    for sample in samples:
        yield cell_finding(sample, seed=plan.seed, margin=margin)
    yield from comparisons(samples, plan, margin)
    # A tool's own statistics are of all its launches.
    has_failed = any(sample.failed for sample in samples)
    counted = read_samples(result, plan, with_failed=True) if has_failed else samples
    yield from published_findings(result, counted, block_labels(plan))


def block_labels(plan: Plan) -> list[str]:
    """Give the name of each block of an imported result: its file, or the label in the file."""
    try:
        labels = json.loads(str(plan.options.get("block_labels", "[]")))
    except ValueError:
        labels = []
    named = [str(label) for label in labels] if isinstance(labels, list) else []
    return named if len(named) == plan.blocks else [f"block {place}" for place in range(plan.blocks)]
