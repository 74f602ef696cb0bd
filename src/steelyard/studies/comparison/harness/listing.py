"""The benchmarks of a harness in all revisions: which are compared, and which are new or gone."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal

from steelyard.errors import RunError, SteelyardError
from steelyard.studies.comparison.contender import Driven
from steelyard.studies.comparison.harness.driver import SCRATCH, Driver, Place, Reading, Scratch
from steelyard.studies.comparison.outcome import OF_REVISIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.studies.comparison.contender import Side

_SHOWN: Final = 5
"""Names that a remark gives."""


HarnessKind = Literal[
    "google-benchmark", "pytest-benchmark", "pytest", "pyperf", "criterion", "divan", "go", "jmh"
]
"""A harness whose suites can be driven."""

_DRIVERS: Final[dict[HarnessKind, str]] = {
    "google-benchmark": "google_benchmark:DRIVER",
    "pytest-benchmark": "pytest_suite:BENCHMARK",
    "pytest": "pytest_suite:FIXTURE",
    "pyperf": "pyperf:DRIVER",
    "criterion": "cargo:CRITERION",
    "divan": "cargo:DIVAN",
    "go": "go:DRIVER",
    "jmh": "jmh:DRIVER",
}

Statistic = Literal["mean", "median", "min", "slope"]
"""Of what a process measures."""

STATISTICS: Final[dict[HarnessKind, tuple[Statistic, ...]]] = {
    "google-benchmark": ("mean",),
    "pytest-benchmark": ("mean", "median", "min"),
    "pytest": ("mean", "median", "min"),
    "pyperf": ("mean", "median", "min"),
    "criterion": ("mean", "median", "min", "slope"),
    "divan": ("mean", "median", "min"),
    "go": ("mean",),
    "jmh": ("mean", "median", "min"),
}
"""What a process of a harness reports; the first unless the suite names another."""


def driver_of(kind: HarnessKind) -> Driver:
    """Give the driver of a harness; it is imported when it is needed."""
    module, _, name = _DRIVERS[kind].partition(":")
    found = getattr(import_module(f"steelyard.studies.comparison.harness.{module}"), name)
    assert isinstance(found, Driver)  # noqa: S101 - the table above names drivers alone
    return found


@dataclass(frozen=True, slots=True)
class Harness:
    """A harness of a suite.

    Parameters
    ----------
    name : str
        In the suite.
    kind : str
        Which.
    words : tuple of str
        How its benchmarks are started.
    select : tuple of str
        Patterns of the names that are taken; all where empty.
    seconds : float
        How long a run is to measure, where the harness allows it [s].
    statistic : str
        Of what a process measures, its time is.
    """

    name: str
    kind: HarnessKind
    words: tuple[str, ...]
    select: tuple[str, ...]
    seconds: float
    statistic: Statistic = "mean"

    def listed(
        self, sides: Sequence[Side], scratch: Scratch, begun: Mapping[str, Sequence[str]]
    ) -> Iterator[tuple[str, dict[str, Driven]]]:
        """Give each benchmark, with what runs it in each side that has it.

        Parameters
        ----------
        sides : sequence of Side
            The baseline first.
        scratch : Scratch
            For what the harness writes.
        begun : mapping
            What ran each benchmark of the suite, by its name, before the comparison goes on.

        Raises
        ------
        RunError
            If the benchmarks of a side cannot be listed.
        CapabilityError
            If something is not installed.
        """
        driver = driver_of(self.kind)
        found: dict[str, dict[str, Driven]] = {}
        settled: dict[str, str] = {}
        own = f"{self.name}/"
        before = {name.removeprefix(own): words for name, words in begun.items() if name.startswith(own)}
        for number, side in enumerate(sides):
            place = Place(
                self.words, side.folder, scratch, self.seconds, number, settled, before, self.statistic
            )
            try:
                listed = driver.listed(place)
            except SteelyardError as error:
                message = f"cannot list the benchmarks of `{self.name}` in {side.name}: {error.message}"
                raise type(error)(message, hint=error.hint, code=error.code) from error
            chosen = [each for each in listed if not self.select or is_named(each.name, self.select)]
            counts = Counter(each.name for each in chosen)
            if twice := [name for name, count in counts.items() if count > 1]:
                message = f"{side.name} has several benchmarks `{twice[0]}` in `{self.name}`"
                hint = "give each a name of its own, or leave the name out by `select`"
                raise RunError(message, hint=hint, code="run.failed")
            for each in chosen:
                reading = Reading(scratch, driver.read, each.environment, self.statistic)
                words = tuple(word.replace(str(scratch.folder), SCRATCH) for word in each.words)
                run = Driven(words, each.folder or side.folder, reading)
                found.setdefault(f"{own}{each.name}", {})[side.name] = run
        if not found:
            patterns = ", ".join(f"`{pattern}`" for pattern in self.select)
            message = f"`{shlex.join(self.words)}` has no benchmark" + (
                f" that {patterns} names" if patterns else ""
            )
            hint = f"correct `command` or `select` of `harness.{self.name}`"
            raise RunError(message, hint=hint, code="run.failed")
        yield from found.items()


def is_named(name: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern fits a name; a name of its own fits too, whatever brackets it has."""
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def absences(found: Mapping[str, Mapping[str, Driven]], sides: Sequence[Side]) -> Iterator[str]:
    """Say which benchmarks some sides lack: new ones and ones that are gone are not compared."""
    first, *others = (side.name for side in sides)
    new = [name for name, runs in found.items() if first not in runs]
    if new:
        yield f"{OF_REVISIONS}not compared, as {first} lacks {_counted(new)}"
    for other in others:
        gone = [name for name, runs in found.items() if first in runs and other not in runs]
        if gone:
            yield f"{OF_REVISIONS}not compared, as {other} lacks {_counted(gone)}"


def _counted(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{shown}{more}"
