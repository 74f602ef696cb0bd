"""``steelyard bench``: the benchmarks of a suite, compared between revisions within a number of minutes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.cli.catalogue.registering import OWN_CATALOGUE, CatalogueOption
from steelyard.cli.fail_on import FailOnOption  # noqa: TC001 - cyclopts reads it
from steelyard.cli.measuring.compare import KEEP, RESULTS, SLOWER, KeepOptions, measured, told_in_ci
from steelyard.cli.measuring.revisions import NO_REVISIONS, RevisionOptions
from steelyard.errors import UsageError
from steelyard.record.clock import now_utc
from steelyard.record.folder_lock import default_result
from steelyard.studies.comparison.suite import SUITE_NAME, benchmarks_of, commands_of, read_suite
from steelyard.studies.comparison.terms import MOST_PLANNED, Metric, Terms

_SECONDS = 60.0


@Parameter(name="*")
@dataclass(frozen=True)
class SuiteRequest:
    """What is measured of a suite, and for how long.

    Parameters
    ----------
    file
        File of the suite.
    minutes
        Minutes of measuring for all benchmarks together; the suite's by default.
    metric
        `wall` time, `cpu` time of the whole process tree, or its peak `memory`.
    fail_on
        What gives exit code 1: `slower` (a benchmark, by more than its margin), `changed`, `undecided`; may
        be given several times. `slower` by default.
    """

    file: Path = Path(SUITE_NAME)
    minutes: Annotated[float | None, Parameter(show_default=False)] = None
    metric: Metric = Metric.WALL
    fail_on: FailOnOption = SLOWER


_WHOLE = SuiteRequest()


def bench(
    *benchmarks: str,
    request: SuiteRequest = _WHOLE,
    revisions: RevisionOptions = NO_REVISIONS,
    keep: KeepOptions = KEEP,
    listed: CatalogueOption = OWN_CATALOGUE,
) -> int:
    """Compare the benchmarks of a suite between revisions, within a number of minutes.

    The suite is a file of the repository, `steelyard.toml`. Each revision is built once. The runs of a
    benchmark take turns between the revisions. The next turn belongs to the benchmark on which the least
    time was spent and whose verdict is open; what is settled is not run any more. The level holds for all
    verdicts together. The exit code is 1 when a benchmark is slower by more than its margin.

    Parameters
    ----------
    benchmarks
        Names or patterns of benchmarks, such as `'sort*'`; all by default.
    request
        What is measured.
    revisions
        Revisions; those of the suite by default.
    keep
        What is kept.
    listed
        Catalogue of results.

    Examples
    --------
    steelyard bench --rev main --rev HEAD

    steelyard bench 'sort*' --minutes 2 --rev HEAD --rev .

    steelyard bench --export pull-request comment.md --export junit report.xml
    """
    with told_in_ci(keep):
        suite = read_suite(request.file)
        chosen = benchmarks_of(suite, benchmarks)
        revisions = replace(
            revisions, rev=revisions.rev or suite.revisions, build=revisions.build or suite.build
        )
        if not revisions.rev:
            message = "`steelyard bench` compares revisions, and none is given"
            hint = f'--rev main --rev HEAD, or `revisions = ["main", "HEAD"]` in `{request.file}`'
            raise UsageError(message, hint=hint)
        minutes = suite.minutes if request.minutes is None else request.minutes
        if not 0 < minutes < float("inf"):
            message = f"`--minutes {minutes:g}`: allowed: more than 0"
            raise UsageError(message)
        most = MOST_PLANNED // (len(chosen) * len(revisions.rev)) - suite.warmup
        terms = Terms(
            metric=request.metric,
            margin=Margin(suite.margin_percent / 100, suite.level_percent / 100),
            warmup=suite.warmup,
            extent=Extent(
                blocks_max=max(min(suite.runs_max, most), 1), budget_s=minutes * _SECONDS, is_strict=True
            ),
            longest_run_s=minutes * _SECONDS,
        )
        result = None if keep.no_record else keep.out or default_result("bench", now_utc()[:10], RESULTS)
        return measured(commands_of(chosen, ()), (terms, result), (request.fail_on, keep), revisions, listed)
