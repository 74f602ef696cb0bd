"""hyperfine's JSON (`--export-json`): every timed launch is a run."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import (
    WORKLOAD,
    ForeignFile,
    ForeignRun,
    Published,
    Section,
    to_nanoseconds,
)
from steelyard.record.importers.foreign_importer import Alternatives, ForeignImporter
from steelyard.record.importers.harnesses.harness_values import NUMBERED, remark, with_parameters
from steelyard.record.importers.json_node import Node, read_json

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "hyperfine's JSON (`hyperfine --export-json FILE`): an object with `results`, each with `command` and "
    "`times`"
)
_PUBLISHED: Final = {
    "mean": "wall",
    "stddev": "wall",
    "median": "wall",
    "min": "wall",
    "max": "wall",
    "user": "cpu_user",
    "system": "cpu_system",
}


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the JSON path of what is wrong.
    """
    del options
    found = ForeignFile("json", facts={"tool": "hyperfine"})
    seen: Counter[tuple[tuple[str, str], ...]] = Counter()
    for result in read_json(source).member("results").elements():
        levels = {WORKLOAD: result.member("command").text()}
        if (parameters := result.optional("parameters")) is not None:
            levels = with_parameters(levels, ((name, value.shown()) for name, value in parameters.members()))
        seen[key := tuple(levels.items())] += 1
        if seen[key] > 1:  # what was prepared for each, say, is not in the file
            levels[WORKLOAD] += f" ({seen[key]})"
        found.runs += _runs(result, levels)
        found.published += _published(result, levels)
    remark(found, NUMBERED, seen.total() - len(seen))
    if any(each.metric == "cpu_user" for each in found.published):
        found.notes.append(
            "user and system times are means in the file; they are kept as published numbers, not as samples"
        )
    return found


def _runs(result: Node, levels: dict[str, str]) -> list[ForeignRun]:
    times = result.member("times").elements()
    codes = _beside(result, "exit_codes", len(times))
    memory = _beside(result, "memory_usage_byte", len(times))
    runs = []
    for place, time in enumerate(times):
        seconds = time.duration()
        sections = [Section("wall", "ns", to_nanoseconds(seconds, "s"), 1, printed=str(seconds))]
        if memory and memory[place].value is not None:
            size = memory[place].count(2**62)
            sections.append(Section("peak_memory", "bytes", float(size), 1, printed=str(size)))
        code = codes[place] if codes else None
        is_signalled = code is not None and code.value is None
        exit_code = None if code is None or is_signalled else _exit_code(code)
        runs.append(ForeignRun(dict(levels), sections, exit_code=exit_code, is_signalled=is_signalled))
    return runs


def _beside(result: Node, name: str, count: int) -> list[Node]:
    """Give a list that has one entry per time; nothing where the file has none."""
    node = result.optional(name)
    found = [] if node is None else node.elements()
    if node is not None and found and len(found) != count:
        node.refuse(f"a list of {count} entries, one per time")
    return found


def _exit_code(node: Node) -> int:
    number = node.number()
    if number != int(number) or abs(number) >= 2**31:
        node.refuse("an exit code")
    return int(number)


def _published(result: Node, levels: dict[str, str]) -> list[Published]:
    found = []
    for statistic, metric in _PUBLISHED.items():
        node = result.optional(statistic)
        if node is None:
            continue
        value = node.number()
        name = "mean" if metric != "wall" else statistic
        found.append(Published(dict(levels), metric, name, "ns", to_nanoseconds(value, "s"), f"{value} s"))
    return found


IMPORTER: Final = ForeignImporter(
    "hyperfine",
    "hyperfine's JSON: every launch is a run",
    EXPECTED,
    read,
    Alternatives.CELLS,
    sign=re.compile(r"^Benchmark #?\d+: |^command,mean,stddev,", re.MULTILINE | re.ASCII),
)
