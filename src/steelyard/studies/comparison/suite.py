"""Suites: the benchmarks of a project in a file of its repository."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, Field, ValidationInfo, field_validator

from steelyard.design.study_file import Kind, read_options_file
from steelyard.errors import RunError, StudyFileError, UsageError
from steelyard.report.shown_text import AS_ONE_LINE
from steelyard.studies.comparison.contender import SHELL, Commands, Hooks, split_words
from steelyard.studies.comparison.harness.driver import Scratch
from steelyard.studies.comparison.harness.listing import (
    STATISTICS,
    Harness,
    HarnessKind,
    Statistic,
    absences,
    is_named,
)
from steelyard.studies.comparison.outcome import FAILED_BENCHMARK, OF_REVISIONS
from steelyard.studies.comparison.parameter import filled
from steelyard.studies.option_types import CLOSED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from steelyard.studies.comparison.contender import Driven, Side

SUITE_NAME: Final = "steelyard.toml"
_SUITE: Final = Kind("suite", "docs/guides/suites.md")
_SHOWN: Final = 12
"""Names that an error lists."""
_MINUTES_PER_YEAR: Final = 365 * 24 * 60
_Percent = Annotated[float, Field(gt=0, lt=100)]
_Line = Annotated[str, Field(min_length=1)]


class BenchmarkOptions(BaseModel):
    """A benchmark, or a family of them: one for each combination of its parameters."""

    model_config = CLOSED

    command: _Line
    margin_percent: _Percent | None = None
    parameters: dict[str, Annotated[tuple[str | int | float, ...], Field(min_length=1)]] = {}
    shell: bool = False
    setup: _Line | None = None
    prepare: _Line | None = None
    conclude: _Line | None = None
    cleanup: _Line | None = None


class HarnessOptions(BaseModel):
    """A harness whose benchmarks are all taken, or those that patterns name."""

    model_config = CLOSED

    kind: HarnessKind
    command: _Line
    select: tuple[_Line, ...] = ()
    margin_percent: _Percent | None = None
    seconds: Annotated[float, Field(gt=0, le=60)] = 0.2
    statistic: Statistic = "mean"

    @field_validator("statistic")
    @classmethod
    def _reported(cls, value: Statistic, known: ValidationInfo) -> Statistic:
        kind = known.data.get("kind")
        if kind in STATISTICS and value not in STATISTICS[kind]:
            message = f"allowed for `{kind}`: {', '.join(f'`{each}`' for each in STATISTICS[kind])}"
            raise ValueError(message)
        return value


class SuiteOptions(BaseModel):
    """What a suite's file says."""

    model_config = CLOSED

    revisions: tuple[_Line, ...] = ()
    build: _Line | None = None
    build_timeout_minutes: Annotated[float, Field(gt=0, le=_MINUTES_PER_YEAR)] | None = None
    minutes: Annotated[float, Field(gt=0)] = 10.0
    margin_percent: _Percent = 2.0
    level_percent: Annotated[float, Field(gt=50, lt=100)] = 95.0
    warmup: Annotated[int, Field(ge=0)] = 1
    runs_max: Annotated[int, Field(ge=10)] = 1000
    benchmark: dict[str, BenchmarkOptions] = {}
    harness: dict[str, HarnessOptions] = {}


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark of a suite.

    Parameters
    ----------
    name : str
        Unique in the suite.
    text : str
        Its command.
    hooks : Hooks
        Lines around its runs.
    margin : float
        Largest difference that counts as none.
    driven : mapping
        What runs it in each side, where it is one of a harness.
    """

    name: str
    text: str
    hooks: Hooks
    margin: float
    driven: Mapping[str, Driven] = field(default_factory=dict)


def read_suite(path: Path) -> SuiteOptions:
    """Read the file of a suite.

    Raises
    ------
    StudyFileError
        If it cannot be read, or something in it is wrong; all problems are listed, each with its line.
    """
    found = read_options_file(path, SuiteOptions, _SUITE)
    if not found.benchmark and not found.harness:
        message = f"suite `{path}` has no benchmark"
        raise StudyFileError(
            message, hint="add `[benchmark.NAME]` or `[harness.NAME]`: docs/guides/suites.md"
        )
    return found


def benchmarks_of(suite: SuiteOptions, wanted: Sequence[str] = ()) -> list[Benchmark]:
    """Give the benchmarks of a suite that are commands, in the order of the file.

    Parameters
    ----------
    suite : SuiteOptions
        What its file says.
    wanted : sequence of str
        Names, or patterns such as ``sort*``; all benchmarks where empty.

    Raises
    ------
    UsageError
        If a name fits none, and none of a harness either; or a command cannot be split into words.
    """
    everything = [each for name, options in suite.benchmark.items() for each in _family(suite, name, options)]
    for pattern in wanted:
        if not any(_fits(each, pattern) for each in everything) and not any(harnesses_of(suite, [pattern])):
            raise _unknown(pattern, [*suite.benchmark, *(f"{name}/..." for name in suite.harness)])
    return [each for each in everything if not wanted or any(_fits(each, pattern) for pattern in wanted)]


def harnesses_of(suite: SuiteOptions, wanted: Sequence[str] = ()) -> list[Harness]:
    """Give the harnesses of a suite that may have a benchmark of those that are wanted.

    Raises
    ------
    UsageError
        If a command cannot be split into words.
    """
    return [
        Harness(
            name,
            options.kind,
            split_words(options.command),
            options.select,
            options.seconds,
            options.statistic,
        )
        for name, options in suite.harness.items()
        if not wanted or any(_may_name(pattern, f"{name}/") for pattern in wanted)
    ]


def with_harnesses(
    suite: SuiteOptions,
    wanted: Sequence[str],
    sides: tuple[Side, ...],
    scratch: Path,
    *,
    begun: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Commands:
    """Give the commands of a suite with the benchmarks that its harnesses list in each side.

    Parameters
    ----------
    suite : SuiteOptions
        What its file says.
    wanted : sequence of str
        Names, or patterns such as ``core/parse*``; all benchmarks where empty.
    sides : tuple of Side
        Built revisions, the baseline first.
    scratch : Path
        A folder for what harnesses write.
    begun : mapping
        What ran each benchmark, by its name, before the comparison goes on.

    Raises
    ------
    UsageError
        If a name fits no benchmark, or none is in the baseline and another revision.
    RunError
        If the benchmarks of a revision cannot be listed, and there are no others.
    CapabilityError
        If something is not installed.
    """
    commands = benchmarks_of(suite, wanted)
    found: dict[str, Mapping[str, Driven]] = {}
    margins: dict[str, float] = {}
    failures: list[RunError] = []
    for number, harness in enumerate(harnesses_of(suite, wanted)):
        options = suite.harness[harness.name]
        percent = suite.margin_percent if options.margin_percent is None else options.margin_percent
        # A folder for each: what one keeps is not another's.
        place = Scratch(scratch / str(number))
        try:
            for name, runs in harness.listed(sides, place, begun):
                if name in found or any(name == each.name for each in commands):
                    raise _twice(name)
                found[name], margins[name] = runs, percent / 100
        except RunError as error:
            failures.append(error)  # the other benchmarks are compared all the same
    driven = [Benchmark(name, "", Hooks(), margins[name], runs) for name, runs in found.items()]
    for pattern in wanted:
        if not failures and not any(_fits(each, pattern) for each in (*commands, *driven)):
            raise _unknown(pattern, [*suite.benchmark, *found])
    driven = [each for each in driven if not wanted or any(_fits(each, pattern) for pattern in wanted)]
    remarks = [f"{FAILED_BENCHMARK}{error.message}" for error in failures]
    remarks += absences({each.name: each.driven for each in driven}, sides)
    both = [each for each in driven if sides[0].name in each.driven and len(each.driven) > 1]
    if not both and not commands and failures:
        raise failures[0]
    if not both and not commands:
        message = f"no benchmark is both in {sides[0].name} and in another revision"
        raise UsageError(message, hint="compare revisions that share a benchmark; new ones have no baseline")
    if both and commands:
        remarks.append(f"{OF_REVISIONS}commands report no time of their own: their wall time is compared")
    everything = [*commands, *(replace(each, text=shlex.join(_any_words(each))) for each in both)]
    return replace(commands_of(everything, sides), remarks=tuple(remarks))


def _any_words(benchmark: Benchmark) -> tuple[str, ...]:
    return next(iter(benchmark.driven.values())).words


def _twice(name: str) -> UsageError:
    message = f"the suite has two benchmarks `{name}`: their verdicts could not be told apart"
    return UsageError(message, hint="rename one of the two tables of its file")


def _unknown(pattern: str, known: Sequence[str]) -> UsageError:
    shown = ", ".join(f"`{name}`" for name in known[:_SHOWN]) + (" ..." if len(known) > _SHOWN else "")
    message = f"the suite has no benchmark `{pattern}`; it has {shown}"
    return UsageError(message, hint="patterns such as 'sort*' are allowed; quote them")


def commands_of(benchmarks: Sequence[Benchmark], sides: tuple[Side, ...]) -> Commands:
    """Give the commands that are compared: each benchmark with itself in the first side."""
    return Commands(
        texts=tuple(each.text for each in benchmarks),
        names=tuple(each.name for each in benchmarks),
        hooks=tuple(each.hooks for each in benchmarks),
        sides=sides,
        margins=tuple(each.margin for each in benchmarks),
        driven=tuple(each.driven for each in benchmarks),
    )


def _family(suite: SuiteOptions, name: str, options: BenchmarkOptions) -> Iterator[Benchmark]:
    """Give one benchmark for each combination of the values of a family."""
    percent = suite.margin_percent if options.margin_percent is None else options.margin_percent
    lines = (options.setup, options.prepare, options.conclude, options.cleanup)
    for values in product(*options.parameters.values()):
        chosen = dict(zip(options.parameters, map(str, values), strict=True))
        stated = ", ".join(f"{each}={value}" for each, value in chosen.items())
        text = filled(options.command, chosen)
        yield Benchmark(
            (f"{name} ({stated})" if stated else name).translate(AS_ONE_LINE),
            shlex.join([*SHELL, text]) if options.shell else text,
            Hooks(*lines).filled(chosen),
            percent / 100,
        )


def _fits(benchmark: Benchmark, pattern: str) -> bool:
    """Whether a pattern names a benchmark, its whole family, or its harness."""
    family = benchmark.name.partition("/" if benchmark.driven else " (")[0]
    return any(is_named(name, [pattern]) for name in (benchmark.name, family))


def _may_name(pattern: str, begin: str) -> bool:
    """Whether a pattern may fit a name of which only the begin is known."""
    literal = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
    is_whole = literal == pattern
    return pattern == begin[:-1] or literal.startswith(begin) or (not is_whole and begin.startswith(literal))
