"""``steelyard bench``: the benchmarks of a suite, compared between revisions within a number of minutes."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.cli.catalogue.registering import OWN_CATALOGUE, CatalogueOption
from steelyard.cli.fail_on import SLOWER, FailOnOption
from steelyard.cli.measuring.compare import RESULTS, begun_with, measured
from steelyard.cli.measuring.comparison_answer import KEEP, KeepOptions, told_in_ci
from steelyard.cli.measuring.revisions import NO_REVISIONS, RevisionOptions
from steelyard.errors import UsageError
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.record.clock import now_utc
from steelyard.record.folder_lock import default_result
from steelyard.studies.comparison.harness.listing import STATISTICS, HarnessKind, Statistic
from steelyard.studies.comparison.run.execution import GoingOn
from steelyard.studies.comparison.suite import (
    SUITE_NAME,
    HarnessOptions,
    SuiteOptions,
    benchmarks_of,
    commands_of,
    harnesses_of,
    read_suite,
    with_harnesses,
)
from steelyard.studies.comparison.terms import BENCHMARK, OF_COMMANDS, Metric, Terms

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
        `wall` time, `cpu` time of the whole process tree, or its peak `memory`; of a harness the `reported`
        time. `wall` by default, `reported` where there is a harness.
    harness
        Take all benchmarks of a harness, without a file; the command that starts them stands after `--`.
    statistic
        With `--harness`: what is taken of the times of a process, as `statistic` in a suite's file;
        `mean` by default.
    fail_on
        What gives exit code 1: `slower` (a benchmark, by more than its margin), `changed`, `undecided`; may
        be given several times. `slower` by default.
    resume
        Result folder of a suite that was interrupted or killed, or is not settled: go on with it, for
        `--minutes`. Benchmarks, revisions and options are those it was begun with. Where its minutes were
        used up, the level is lower afterwards.
    """

    file: Path = Path(SUITE_NAME)
    minutes: Annotated[float | None, Parameter(show_default=False)] = None
    metric: Annotated[Metric | None, Parameter(show_default=False)] = None
    harness: Annotated[HarnessKind | None, Parameter(show_default=False)] = None
    statistic: Annotated[Statistic | None, Parameter(show_default=False)] = None
    fail_on: FailOnOption = SLOWER
    resume: Annotated[Path | None, Parameter(show_default=False)] = None


_WHOLE = SuiteRequest()


def bench(
    *benchmarks: str,
    request: SuiteRequest = _WHOLE,
    revisions: RevisionOptions = NO_REVISIONS,
    keep: KeepOptions = KEEP,
    listed: CatalogueOption = OWN_CATALOGUE,
) -> int:
    """Compare the benchmarks of a suite between revisions, within a number of minutes.

    The suite is a file of the repository, `steelyard.toml`. Its benchmarks are commands, or those of a
    harness such as pytest-benchmark or Google Benchmark, which run one per process and are compared by the
    time they report. Each revision is built once. The runs of a benchmark take turns between the revisions.
    The next turn belongs to the benchmark on which the least time was spent and whose verdict is open; what
    is settled is not run any more. The level holds for all verdicts together. The exit code is 1 when a
    benchmark is slower by more than its margin.

    Parameters
    ----------
    benchmarks
        Names or patterns of benchmarks, such as `'sort*'`, or `'core/parse*'` of a harness; all by default.
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

    steelyard bench --harness google-benchmark --rev main --rev HEAD --build make -- ./build/bench

    steelyard bench --export pull-request comment.md --export junit report.xml

    steelyard bench --resume steelyard-results/bench-2026-05-04-1 --minutes 5
    """
    with told_in_ci(keep):
        result, going_on = request.resume, None
        fail_on, more = request.fail_on, request.minutes
        if result is not None:
            is_more = request != SuiteRequest(minutes=more, fail_on=fail_on, resume=result)
            if benchmarks or is_more or revisions != NO_REVISIONS or keep.out or keep.no_record:
                message = "`--resume` takes benchmarks and options from its folder; allowed beside it: "
                message += "`--minutes`, `--fail-on`, `--json`, `--export`, `--report`, `--ci`"
                raise UsageError(message, hint=f"steelyard bench --resume {shlex.quote(str(result))}")
            options = begun_with(result, "bench")
            benchmarks = options.get("benchmarks", ())
            request, revisions = options.get("request", _WHOLE), options.get("revisions", NO_REVISIONS)
        suite, benchmarks = _suite(request, benchmarks)
        chosen = benchmarks_of(suite, benchmarks)
        timeout = suite.build_timeout_minutes
        revisions = replace(
            revisions,
            rev=revisions.rev or suite.revisions,
            build=revisions.build or suite.build,
            build_timeout=revisions.build_timeout or (None if timeout is None else f"{timeout:f}min"),
        )
        if not revisions.rev:
            message = "`steelyard bench` compares revisions, and none is given"
            hint = f'--rev main --rev HEAD, or `revisions = ["main", "HEAD"]` in `{request.file}`'
            raise UsageError(message, hint=hint)
        minutes = _minutes(suite.minutes if request.minutes is None else request.minutes)
        if result is not None:
            going_on = GoingOn((minutes if more is None else _minutes(more)) * _SECONDS)
        elif not keep.no_record:
            result = keep.out or default_result("bench", now_utc()[:10], RESULTS)
        harnesses = harnesses_of(suite, benchmarks)
        terms = Terms(
            metric=_metric(request.metric, has_harness=bool(harnesses)),
            margin=Margin(suite.margin_percent / 100, suite.level_percent / 100),
            warmup=suite.warmup,
            extent=Extent(blocks_max=suite.runs_max, budget_s=minutes * _SECONDS, is_strict=True),
            longest_run_s=minutes * _SECONDS,
        )
        asked = commands_of(chosen, ())
        if harnesses:
            asked = replace(
                asked,
                programs=tuple(shlex.join(each.words) for each in harnesses),
                listing=partial(
                    with_harnesses, suite, benchmarks, begun=_begun(result if going_on else None)
                ),
            )
        return measured(asked, (terms, result), (fail_on, keep), revisions, listed, going_on=going_on)


def _begun(result: Path | None) -> dict[str, tuple[str, ...]]:
    """Give what ran each benchmark of the baseline when a suite began that goes on."""
    if result is None:
        return {}
    runs = [(cell.levels.get(BENCHMARK, ""), cell.execution) for cell in read_plan(result / PLAN_NAME).cells]
    return {name: execution.command for name, execution in reversed(runs) if execution is not None}


def _minutes(given: float) -> float:
    if not 0 < given < float("inf"):
        message = f"`--minutes {given:g}`: allowed: more than 0"
        raise UsageError(message)
    return given


def _suite(request: SuiteRequest, words: tuple[str, ...]) -> tuple[SuiteOptions, tuple[str, ...]]:
    """Give the suite, and the names that are wanted of it; without a file the words are a command."""
    if request.harness is None:
        if request.statistic is not None:
            message = "`--statistic` is about `--harness`, which is missing"
            hint = f"give `statistic` of a harness in `{request.file}`, or name the harness by `--harness`"
            raise UsageError(message, hint=hint)
        return read_suite(request.file), words
    if not words:
        message = f"`--harness {request.harness}` needs the command that starts its benchmarks"
        hint = f"steelyard bench --harness {request.harness} --rev main --rev HEAD -- COMMAND"
        raise UsageError(message, hint=hint)
    command = words[0] if len(words) == 1 else shlex.join(words)
    allowed = STATISTICS[request.harness]
    statistic = request.statistic or allowed[0]
    if statistic not in allowed:
        named = ", ".join(f"`{each}`" for each in allowed)
        message = f"`--statistic {statistic}`: allowed for `{request.harness}`: {named}"
        raise UsageError(message)
    harness = HarnessOptions(kind=request.harness, command=command, statistic=statistic)
    return SuiteOptions(harness={request.harness: harness}), ()


def _metric(asked: Metric | None, *, has_harness: bool) -> Metric:
    """Give what is compared; how long a process of a harness runs is its own choice, and says nothing."""
    if asked is None:
        return Metric.REPORTED if has_harness else Metric.WALL
    allowed = (Metric.REPORTED, Metric.MEMORY) if has_harness else OF_COMMANDS
    if asked not in allowed:
        words = " or ".join(f"`{each}`" for each in allowed)
        of = "a benchmark of a harness" if has_harness else "a benchmark that is a command"
        message = f"`--metric {asked}`: allowed for {of}: {words}"
        raise UsageError(message, hint="leave it out, or name benchmarks of one kind")
    return asked
