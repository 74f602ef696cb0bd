"""Criterion and divan: bench programs that Cargo compiles, listed and run one benchmark at a time."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.errors import DataError, RunError
from steelyard.record.importers.criterion import read, sample_files
from steelyard.studies.comparison.harness.driver import (
    MEAN,
    Driver,
    Listed,
    exactly,
    sections_of_file,
    value_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.studies.comparison.harness.driver import Place, Scratch

_HOME: Final = "criterion"
_FEWEST_SAMPLES: Final = 10
_RESAMPLES: Final = 1001
"""Criterion's own statistics are not read; with fewer resamples it warns."""
_LISTED: Final = re.compile(r"(?P<name>.+): bench(?:mark)?")
_BRANCH: Final = re.compile(r"(?P<above>(?:│  |   )*)(?:├─ |╰─ )(?P<name>.+)")
_LEVEL: Final = 3
"""Columns of a level of divan's tree."""
_THREADS: Final = re.compile(r"t=(\d+)")
_TIME: Final = re.compile(r"(?:^|\s)(?P<value>\d[\d.]*) (?P<unit>ns|us|µs|ms|s)\s*$")
_NS_PER: Final = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_COLUMNS: Final = {"min": 0, "median": 2, MEAN: 3}
SLOPE: Final = "slope"
"""Of the time of a sample over its iterations: criterion's own estimate where samples differ in length."""


@dataclass(frozen=True, slots=True)
class _Program:
    """A compiled bench program, with what is given to it, and the folder of its package."""

    name: str
    words: tuple[str, ...]
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """What Cargo sets for it."""
        return {"CARGO_MANIFEST_DIR": str(self.folder)}


def _programs(place: Place) -> list[_Program]:
    """Compile the bench programs that the command names; what is compiled already is left alone."""
    at = place.words.index("--") if "--" in place.words else len(place.words)
    words, arguments = place.words[:at], place.words[at + 1 :]
    if "bench" not in words:
        message = f"`{' '.join(place.words)}` is not `cargo bench`"
        raise RunError(message, hint='command = "cargo bench", or "cargo bench --bench NAME"')
    said = place.ask([*words, "--no-run", "--message-format=json-render-diagnostics"])
    messages = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    built = [
        each
        for each in messages
        if each.get("reason") == "compiler-artifact"
        and each["executable"]
        and each["target"]["kind"] == ["bench"]
    ]
    counts = Counter(each["target"]["name"] for each in built)
    found = []
    for each in built:
        program, folder = each["executable"], Path(each["manifest_path"]).parent
        if place.settled.setdefault(program, str(place.number)) != str(place.number):
            message = f"`{program}` is compiled from every revision: the target folder lies outside of them"
            raise RunError(message, hint="unset CARGO_TARGET_DIR and `target-dir`")
        name = each["target"]["name"]
        label = name if counts[name] == 1 else f"{folder.name}/{name}"
        found.append(_Program(label, (program, *arguments), folder))
    return found


def _criterion_listed(place: Place) -> list[Listed]:
    return [each for program in _programs(place) for each in _of_criterion(place, program)]


def _of_criterion(place: Place, program: _Program) -> Iterator[Listed]:
    said = place.ask([*program.words, "--list", "--bench"], program.environment, folder=program.folder)
    environment = program.environment | {"CRITERION_HOME": str(place.scratch.run / _HOME)}
    timed = [
        "--bench",
        "--noplot",
        f"--warm-up-time={place.seconds / 2:g}",
        f"--measurement-time={place.seconds:g}",
        f"--sample-size={_FEWEST_SAMPLES}",
        f"--nresamples={_RESAMPLES}",
    ]
    for line in said.splitlines():
        if (found := _LISTED.fullmatch(line)) is not None:
            words = (*program.words, *timed, exactly(found["name"]))
            yield Listed(f"{program.name}/{found['name']}", words, program.folder, environment)


def _read_criterion(scratch: Scratch, statistic: str) -> float:
    files = sample_files(scratch.run / _HOME)
    if len(files) != 1:
        message = f"it wrote {len(files)} samples instead of one"
        raise DataError(message, code="data.import")
    if statistic not in {MEAN, SLOPE}:
        return value_of(sections_of_file(files[0], read, ("time",)), statistic)
    times, counts = (
        [each.value for each in sections_of_file(files[0], read, (name,))]
        for name in ("batch_time", "batch_loops")
    )
    if statistic == MEAN:  # over all iterations: samples are of different length
        return sum(times) / sum(counts)
    if len(set(counts)) == 1:
        message = "its samples are equally long, so that they have no slope"
        raise DataError(message, code="data.import")
    return float(np.dot(times, counts) / np.dot(counts, counts))


def _divan_listed(place: Place) -> list[Listed]:
    return [each for program in _programs(place) for each in _of_divan(place, program)]


def _of_divan(place: Place, program: _Program) -> Iterator[Listed]:
    # `--list` names functions; `--test` runs each once, with each of its arguments.
    said = place.ask([*program.words, "--test", "--color=never"], program.environment, folder=program.folder)
    span = f"{place.seconds:g}"
    timed = ["--bench", "--color=never", f"--min-time={span}", f"--max-time={span}", "--exact"]
    for path in leaves(said):
        threads = _THREADS.fullmatch(path[-1])
        names, chosen = (path, []) if threads is None else (path[:-1], [f"--threads={threads[1]}"])
        words = (*program.words, *timed, *chosen, "::".join(names))
        yield Listed("::".join(path), words, program.folder, program.environment)


def leaves(text: str) -> Iterator[list[str]]:
    r"""Give the paths of the leaves of the tree that divan prints.

    Examples
    --------
    >>> list(leaves("suite\n├─ sort\n│  ├─ 10\n│  ╰─ 20\n╰─ same\n"))
    [['suite', 'sort', '10'], ['suite', 'sort', '20'], ['suite', 'same']]
    """
    path: list[str] = []
    found: list[list[str]] = []
    for line in text.splitlines():
        branch = _BRANCH.fullmatch(line.rstrip())
        if branch is not None and path:
            depth = 1 + len(branch["above"]) // _LEVEL
            path = [*path[:depth], branch["name"]]
            if found and found[-1] == path[:-1]:
                found.pop()
            found.append(path)
        elif branch is None and line.strip() and not line.startswith(" "):
            path = [line.strip()]
    yield from (each for each in found if not each[-1].endswith("(ignored)"))


def _read_divan(scratch: Scratch, statistic: str) -> float:
    found = list(times_ns(scratch.output.read_text(encoding="utf-8", errors="replace"), statistic))
    if len(found) != 1:
        message = f"it reported {len(found)} times instead of one"
        raise DataError(message, code="data.import")
    return found[0]


def times_ns(text: str, statistic: str) -> Iterator[float]:
    """Give a column of the rows of divan's table [ns]; rows of throughput and memory have no times."""
    for line in text.splitlines():
        cells = line.lstrip("│ ├╰─").split("│")
        if len(cells) > max(_COLUMNS.values()) and (time := _TIME.search(cells[_COLUMNS[statistic]])):
            yield float(time["value"]) * _NS_PER[time["unit"]]


CRITERION: Final = Driver(_criterion_listed, _read_criterion)
DIVAN: Final = Driver(_divan_listed, _read_divan)
