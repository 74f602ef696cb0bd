"""``steelyard analyse``: recorded tables become findings."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotation
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from steelyard.cli.catalogue.registering import OWN_CATALOGUE, CatalogueOption

if TYPE_CHECKING:
    from steelyard.model import FindingSet


def analyse(
    directory: Path,
    *,
    tolerance: float | None = None,
    margin: float | None = None,
    on: str | None = None,
    listed: CatalogueOption = OWN_CATALOGUE,
    json_: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> None:
    """Compute the findings of a result folder.

    Writes ``findings.json`` and ``tables/*.csv``. The same tables and settings give the same findings, on
    every machine.

    Parameters
    ----------
    directory
        Result folder that ``steelyard run`` or ``steelyard import`` wrote.
    tolerance
        Largest acceptable coefficient of variation, error of a clock, and increase of a service's latency
        beside jobs, in percent; the plan's by default (2, in a quick study 5; of latency 10).
    margin
        Largest difference of times that counts as none, in percent; the plan's by default (2).
    on
        Where cells are computed: `pool:N`, N processes; `local-cluster:N` of Dask; `dask:ADDRESS`, a
        scheduler of Dask whose workers see the folder. In this process by default.
    listed
        Catalogue of results.
    json_
        Print the findings as JSON.

    Examples
    --------
    How many workers, if times may scatter by 5 %::

        steelyard analyse results/night --tolerance 5
    """
    from steelyard.model.plan import read_plan  # noqa: PLC0415 - start-up time
    from steelyard.studies.analysis_options import chosen_options  # noqa: PLC0415 - start-up time
    from steelyard.study import study_of  # noqa: PLC0415 - start-up time

    plan = read_plan(directory / "plan.json")
    options = chosen_options(plan, tolerance_percent=tolerance, margin_percent=margin)
    study = study_of(plan.study, directory)
    findings = study.analyse(directory, options, on=on)
    if json_:
        sys.stdout.writelines(findings.written())
    else:
        sys.stdout.write(_summary(directory, findings))
    sys.stdout.flush()
    del findings
    listed.refresh(directory)


def _summary(directory: Path, findings: FindingSet) -> str:
    verdicts: dict[str, Counter[str]] = {}
    for finding in findings.findings:
        verdicts.setdefault(finding.claim, Counter())[finding.verdict] += 1
    width = max(map(len, verdicts))
    lines = [
        f"  {claim:<{width}}  " + ", ".join(f"{count} {verdict}" for verdict, count in counter.most_common())
        for claim, counter in verdicts.items()
    ]
    return "\n".join(
        [
            f"{len(findings.findings)} findings",
            *lines,
            f"findings  {directory / 'findings.json'}",
            f"tables    {directory / 'tables'}",
            "",
        ]
    )
