"""pyperf: a worker process that pyperf itself would start, for one benchmark of a script."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import RunError
from steelyard.record.importers.pyperf import read
from steelyard.studies.comparison.harness.driver import Driver, Listed, sections_of_file, value_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.studies.comparison.harness.driver import Place, Scratch

_FILE: Final = "benchmark.json"
_LOOPS: Final = "--loops="
_VALUES: Final = 3
"""Values of a process; one more is its warm-up."""


def _listed(place: Place) -> list[Listed]:
    target = place.scratch.run / _FILE
    environment = place.scratch.python_environment
    place.ask([*place.words, "--debug-single-value", "--quiet", "-o", str(target)], environment)
    found = []
    for task, name in enumerate(_names(target)):
        worker = [*place.words, "--worker", f"--worker-task={task}", "--warmups=1", f"--values={_VALUES}"]
        if name not in place.settled and (loops := _loops_of(place.begun.get(name, ()))):
            place.settled[name] = loops
        if name not in place.settled:
            seconds = f"--min-time={place.seconds / _VALUES:g}"
            place.ask([*worker, "--calibrate-loops", seconds, "-o", str(target)], environment)
            place.settled[name] = str(_content(target)["metadata"]["loops"])
        # The loops of the first revision, and of the first session: all runs do the same work.
        words = (*worker, f"{_LOOPS}{place.settled[name]}", "-o", str(target))
        found.append(Listed(name, words, environment=environment))
    return found


def _loops_of(words: Sequence[str]) -> str:
    """Give the number of loops of a run; empty where there is none."""
    return next((word.removeprefix(_LOOPS) for word in reversed(words) if word.startswith(_LOOPS)), "")


def _names(path: Path) -> list[str]:
    content = _content(path)
    shared = content.get("metadata", {})
    return [
        {**shared, **benchmark.get("metadata", {})}.get("name", f"benchmark {place}")
        for place, benchmark in enumerate(content["benchmarks"], start=1)
    ]


def _content(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        message = f"the script wrote no file of pyperf: {error}"
        raise RunError(
            message, hint="`command` starts a script that measures with `pyperf.Runner`"
        ) from error
    return dict(found)


def _read(scratch: Scratch, statistic: str) -> float:
    return value_of(sections_of_file(scratch.run / _FILE, read, ("time",)), statistic)


DRIVER: Final = Driver(_listed, _read)
