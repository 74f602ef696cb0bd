"""Analysis of imported results: from the recorded tables to every claim of the report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TypeVar

from steelyard.analyse.mapping.over_cells import IN_TURN, equal_parts, split
from steelyard.errors import AnalysisError
from steelyard.model import FindingSet
from steelyard.record.seal import hash_tables
from steelyard.record.tables import count_runs
from steelyard.studies.analysis_options import AnalysisOptions, read_options, write_options
from steelyard.studies.analysis_parts import with_unique_ids
from steelyard.studies.finding_tables import write_claim_tables
from steelyard.studies.imported.cell_tasks import CompareCells, DescribeCells, Described, Source, key_of
from steelyard.studies.imported.comparisons import comparisons, pairs_of
from steelyard.studies.study_plan import plan_of_study

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from steelyard.analyse.mapping.over_cells import OverCells
    from steelyard.model import Finding, Plan

Part = TypeVar("Part")

METHOD_VERSION: Final = 8
"""Raised whenever a change of the analysis alters numbers.

2: changes of the level of a series are confirmed by a test; two modes that take turns are none.
4: launches that failed do not count.
5: intervals and comparisons follow the one rule of `steelyard.analyse.intervals.guarantee`.
6: of runs of unequal length as many values count as make them of one kind; short runs weigh in the guarantee.
8: intervals of amounts that are never negative end at zero.
"""

MOST_RUNS: Final = 2_000_000
"""Runs that are read at once; of more the ids and labels alone take more memory than the analysis."""
RUNS_PER_PART: Final = 500_000

TABLES: Final = {"cell": "cells", "comparison": "comparisons", "published_value": "published"}


def analyse(result: Path, options: AnalysisOptions | None = None, over: OverCells = IN_TURN) -> FindingSet:
    """Compute the findings of an imported result; write ``findings.json`` and ``tables/*.csv``."""
    plan = plan_of_study(result, "imported", "not an imported one")
    settings = read_options(result, plan) if options is None else options
    findings = tuple(with_unique_ids(_claims(result, plan, settings, over)))
    if not findings:
        message = f"`{result}` has no measured value of a launch that completed"
        raise AnalysisError(message, hint="import files that contain measured values of completed launches")
    if options is not None:
        write_options(result, plan, options)
    found = FindingSet(plan.study, plan.id, METHOD_VERSION, hash_tables(result), findings)
    write_claim_tables(result, found, TABLES)
    found.write(result / "findings.json")
    return found


def _claims(result: Path, plan: Plan, options: AnalysisOptions, over: OverCells) -> Iterator[Finding]:
    margin = options.margin_percent / 100
    runs = count_runs(result)
    in_parts = over.workers == 1 and runs > MOST_RUNS
    source = Source(result.resolve(), plan, is_whole=over.workers == 1 and not in_parts)

    def cut(items: Sequence[Part]) -> list[Sequence[Part]]:
        return equal_parts(items, runs // RUNS_PER_PART) if in_parts else split(items, over)

    labels = block_labels(plan)
    describing = [
        DescribeCells(source, part, plan.seed, margin, labels) for part in cut(range(len(plan.cells)))
    ]
    described = Described()
    for part in over.map(describing):
        described.add(part)
    described = described.in_order()
    yield from described.findings
    pairs = pairs_of(described.samples, plan)
    keys = [(key_of(first), key_of(second)) for _, first, second in pairs]
    tested = over.map([CompareCells(source, part, margin) for part in cut(keys)])
    yield from comparisons(pairs, [each for part in tested for each in part])
    has_failed = any(sample.failed for sample in described.samples)
    for _, each in described.published_of_all if has_failed else described.published:
        yield each


def block_labels(plan: Plan) -> list[str]:
    """Give the name of each block of an imported result: its file, or the label in the file."""
    try:
        labels = json.loads(str(plan.options.get("block_labels", "[]")))
    except ValueError:
        labels = []
    named = [str(label) for label in labels] if isinstance(labels, list) else []
    return named if len(named) == plan.blocks else [f"block {place}" for place in range(plan.blocks)]
