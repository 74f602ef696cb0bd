"""What a driver of a harness does: it lists the benchmarks of a checkout and reads what a run reports."""

from __future__ import annotations

import math
import re
import shlex
import shutil
import statistics
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError, RunError
from steelyard.record.importers.foreign import MEASURE, Source
from steelyard.record.importers.reading import ReadOptions
from steelyard.run.environment import callers_environment
from steelyard.run.executor.resident import located
from steelyard.run.redact import last_lines, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from steelyard.record.importers.foreign import ForeignFile, Section

LONGEST_LISTING_S: Final = 900.0
"""Listing may compile a suite."""
SCRATCH: Final = "%SCRATCH%"
"""Stands in recorded commands for the folder that a session has for what harnesses write: the commands of two
sessions are the same."""
MEAN: Final = "mean"
"""What a harness reports for a process, unless the suite names another statistic of it."""
OF_VALUES: Final[Mapping[str, Callable[[list[float]], float]]] = {
    MEAN: statistics.fmean,
    "median": statistics.median,
    "min": min,
}
_SAID_BYTES: Final = 1 << 14
_SPECIAL: Final = re.compile(r"[.^$*+?()\[\]{}|\\]")


@dataclass(frozen=True, slots=True)
class Scratch:
    """A folder outside of the checkouts for what harnesses write: the same for all sides and runs.

    Arguments and environment are part of a program's memory layout, so that no run has a path of its own.

    Parameters
    ----------
    folder : Path
        An existing folder.
    """

    folder: Path

    @property
    def kept(self) -> Path:
        """What stays between runs, such as compiled modules of Python."""
        return self.folder / "kept"

    @property
    def run(self) -> Path:
        """What a run writes; emptied before each."""
        return self.folder / "run"

    @property
    def output(self) -> Path:
        """Standard output of a run."""
        return self.run / "output"

    @property
    def python_environment(self) -> dict[str, str]:
        """Keeps compiled modules out of the checkout, where a build must stay as it was made.

        They are written also where the caller's environment forbids it, as images of containers do: a run of
        pytest that compiles all its modules again takes a second more.
        """
        return {"PYTHONPYCACHEPREFIX": str(self.kept / "pycache"), "PYTHONDONTWRITEBYTECODE": ""}

    def clear(self) -> None:
        """Remove what the run before wrote."""
        shutil.rmtree(self.run, ignore_errors=True)
        self.run.mkdir(parents=True)
        self.kept.mkdir(exist_ok=True)

    def said(self) -> str:
        """Give the end of the standard output of a run, without secrets."""
        try:
            with self.output.open("rb") as file:
                file.seek(max(self.output.stat().st_size - _SAID_BYTES, 0))
                return without_secrets(file.read().decode(errors="replace"))
        except OSError:
            return ""


@dataclass(frozen=True, slots=True)
class Place:
    """A checkout in which the benchmarks of a harness are listed.

    Parameters
    ----------
    words : tuple of str
        How the suite is started.
    folder : Path
        Where, in the checkout.
    scratch : Scratch
        For what is written.
    seconds : float
        How long a run is to measure, where the harness allows it [s].
    number : int
        Of the checkout, from 0.
    settled : dict
        What the first checkout settled for all, such as numbers of loops.
    begun : mapping
        What ran each benchmark, by its name, before the comparison goes on.
    statistic : str
        Of what a process measures, its time is.
    """

    words: tuple[str, ...]
    folder: Path
    scratch: Scratch
    seconds: float
    number: int = 0
    settled: dict[str, str] = field(default_factory=dict)
    begun: Mapping[str, Sequence[str]] = field(default_factory=dict)
    statistic: str = MEAN

    def ask(
        self,
        words: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        folder: Path | None = None,
        accepted: Sequence[int] = (0,),
    ) -> str:
        """Run a command that says something about the suite, and give its standard output.

        Raises
        ------
        RunError
            If it cannot be run, takes too long, or fails; the message has its last lines.
        """
        self.scratch.clear()
        place = folder or self.folder
        try:
            done = subprocess.run(
                [located(words[0], place), *words[1:]],
                cwd=place,
                env={**callers_environment(), **(environment or {})},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=LONGEST_LISTING_S,
            )
        except OSError as error:
            message = f"cannot run `{words[0]}`: {error.strerror}"
            hint = "a relative path begins in the checkout, which has what Git has and what `build` makes"
            raise RunError(message, hint=hint, code="run.not-executed") from error
        except subprocess.TimeoutExpired as error:
            message = f"`{shlex.join(words)}` has not ended after {LONGEST_LISTING_S:g} s"
            raise RunError(message, hint="build the suite in `build`") from error
        if done.returncode not in accepted:
            said = last_lines((done.stderr or done.stdout).decode(errors="replace"))
            message = f"`{shlex.join(words)}` failed with exit code {done.returncode}: {said}"
            raise RunError(without_secrets(message), hint="repair `command` or `build`", code="run.failed")
        return done.stdout.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Listed:
    """A benchmark as a checkout has it.

    Parameters
    ----------
    name : str
        As the harness calls it.
    words : tuple of str
        What runs it alone.
    folder : Path or None
        Where; the checkout's unless given.
    environment : dict
        Variables beyond those of every run.
    """

    name: str
    words: tuple[str, ...]
    folder: Path | None = None
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Driver:
    """Driver of one harness.

    Parameters
    ----------
    listed : callable
        Gives the benchmarks of a place, in their order.
    read : callable
        Gives the time that a run reports for one operation [ns], by a statistic of what it measured;
        `DataError` where it reports none.
    """

    listed: Callable[[Place], list[Listed]]
    read: Callable[[Scratch, str], float]


@dataclass(frozen=True, slots=True)
class Reading:
    """How the time of a run of a benchmark is learned.

    Parameters
    ----------
    scratch : Scratch
        What the run writes.
    read : callable
        As `Driver.read`.
    environment : dict
        Variables beyond those of every run.
    statistic : str
        Of what a run measures, its time is.
    """

    scratch: Scratch
    read: Callable[[Scratch, str], float]
    environment: dict[str, str]
    statistic: str = MEAN

    def filled(self, words: Sequence[str]) -> tuple[str, ...]:
        """Give the words of a run with the folder of this session."""
        return tuple(word.replace(SCRATCH, str(self.scratch.folder)) for word in words)

    def value_ns(self) -> float:
        """Give the reported time of the last run [ns].

        Raises
        ------
        DataError
            If there is none, or it is not above 0.
        """
        value_ns = self.read(self.scratch, self.statistic)
        if not 0 < value_ns < math.inf:
            message = f"it reported {value_ns:g} ns"
            raise DataError(message, code="data.import")
        return value_ns


def exactly(name: str) -> str:
    r"""Give the regular expression that only this name fits, in the dialects of C++, Go and Java.

    Examples
    --------
    >>> exactly("make<std::map<int, int>>/8.5")
    '^make<std::map<int, int>>/8\\.5$'
    """
    return f"^{_SPECIAL.sub(lambda sign: chr(92) + sign[0], name)}$"


def sections_of_file(
    path: Path, read: Callable[[Source, ReadOptions], ForeignFile], metrics: Sequence[str]
) -> list[Section]:
    """Give what was measured according to a file that a run wrote, by the reader of its format.

    Parameters
    ----------
    path : Path
        The file.
    read : callable
        Reader of an importer.
    metrics : sequence of str
        Metrics in the order of preference; the sections are of the first that is there.

    Raises
    ------
    DataError
        If the file is absent or damaged, has no such section, or is about several benchmarks.
    """
    try:
        found = read(Source(path, path.read_bytes(), "what the harness writes"), ReadOptions())
    except OSError as error:
        message = f"it wrote no `{path.name}`"
        raise DataError(message, code="data.import") from error
    cells = {str(sorted(run.levels.items())) for run in found.runs}
    if len(cells) > 1:
        message = f"it ran {len(cells)} benchmarks: leave names out of `command`, `select` chooses"
        raise DataError(message, code="data.import")
    sections = [each for run in found.runs for each in run.sections if each.phase == MEASURE]
    for metric in metrics:
        chosen = [each for each in sections if each.metric == metric]
        if chosen:
            return chosen
    message = "; ".join(found.notes) or f"`{path.name}` has no value"
    raise DataError(message, code="data.import")


def value_of(sections: Sequence[Section], statistic: str = MEAN) -> float:
    """Give a statistic of what a run measured: ``mean``, ``median`` or ``min``."""
    return OF_VALUES[statistic]([each.value for each in sections])
