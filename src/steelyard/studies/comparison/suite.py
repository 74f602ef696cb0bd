"""Suites: the benchmarks of a project in a file of its repository."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, Field

from steelyard.design.study_file import Kind, read_options_file
from steelyard.errors import UsageError
from steelyard.studies.comparison.contender import SHELL, Commands, Hooks
from steelyard.studies.comparison.parameter import filled
from steelyard.studies.option_types import CLOSED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from steelyard.studies.comparison.contender import Side

SUITE_NAME: Final = "steelyard.toml"
_SUITE: Final = Kind("suite", "docs/guides/suites.md")
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


class SuiteOptions(BaseModel):
    """What a suite's file says."""

    model_config = CLOSED

    revisions: tuple[_Line, ...] = ()
    build: _Line | None = None
    minutes: Annotated[float, Field(gt=0)] = 10.0
    margin_percent: _Percent = 2.0
    level_percent: Annotated[float, Field(gt=50, lt=100)] = 95.0
    warmup: Annotated[int, Field(ge=0)] = 1
    runs_max: Annotated[int, Field(ge=10)] = 1000
    benchmark: Annotated[dict[str, BenchmarkOptions], Field(min_length=1)]


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
    """

    name: str
    text: str
    hooks: Hooks
    margin: float


def read_suite(path: Path) -> SuiteOptions:
    """Read the file of a suite.

    Raises
    ------
    StudyFileError
        If it cannot be read, or something in it is wrong; all problems are listed, each with its line.
    """
    return read_options_file(path, SuiteOptions, _SUITE)


def benchmarks_of(suite: SuiteOptions, wanted: Sequence[str] = ()) -> list[Benchmark]:
    """Give the benchmarks of a suite in the order of the file.

    Parameters
    ----------
    suite : SuiteOptions
        What its file says.
    wanted : sequence of str
        Names, or patterns such as ``sort*``; all benchmarks where empty.

    Raises
    ------
    UsageError
        If a name fits none, or a command cannot be split into words.
    """
    everything = [each for name, options in suite.benchmark.items() for each in _family(suite, name, options)]
    for pattern in wanted:
        if not any(_fits(each, pattern) for each in everything):
            known = ", ".join(f"`{name}`" for name in suite.benchmark)
            message = f"the suite has no benchmark `{pattern}`; it has {known}"
            raise UsageError(message, hint="patterns such as 'sort*' are allowed; quote them")
    return [each for each in everything if not wanted or any(_fits(each, pattern) for pattern in wanted)]


def commands_of(benchmarks: Sequence[Benchmark], sides: tuple[Side, ...]) -> Commands:
    """Give the commands that are compared: each benchmark with itself in the first side."""
    return Commands(
        texts=tuple(each.text for each in benchmarks),
        names=tuple(each.name for each in benchmarks),
        hooks=tuple(each.hooks for each in benchmarks),
        sides=sides,
        margins=tuple(each.margin for each in benchmarks),
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
            f"{name} ({stated})" if stated else name,
            shlex.join([*SHELL, text]) if options.shell else text,
            Hooks(*lines).filled(chosen),
            percent / 100,
        )


def _fits(benchmark: Benchmark, pattern: str) -> bool:
    """Whether a pattern names a benchmark, or its whole family."""
    family = benchmark.name.partition(" (")[0]
    return any(name == pattern or fnmatchcase(name, pattern) for name in (benchmark.name, family))
