"""nanobench's JSON (template ``json``): the process is the run, each epoch an iteration."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import WORKLOAD, ForeignFile, ForeignRun
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.harnesses.harness_values import (
    PUBLISHED,
    published,
    remark,
    section,
    statistics_of,
)
from steelyard.record.importers.json_node import Node, read_json

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import Section, Source
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "nanobench's JSON (`bench.render(ankerl::nanobench::templates::json(), file)`): an object with `results`"
    ", each with `title`, `name`, `epochs` and `measurements` of `iterations` and `elapsed`"
)
_COUNTERS: Final = {
    "pagefaults": "page_faults",
    "cpucycles": "cycles",
    "contextswitches": "context_switches",
    "instructions": "instructions",
    "branchinstructions": "branches",
    "branchmisses": "branch_misses",
}


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the JSON path of what is wrong.
    """
    del options
    found = ForeignFile("json", facts={"tool": "nanobench"})
    results = read_json(source).member("results").elements()
    counted = _counted(results)
    runs: defaultdict[tuple[str, ...], list[Section]] = defaultdict(list)
    for result in results:
        levels = {WORKLOAD: result.member("name").text(), "title": result.member("title").shown()}
        # The size that `complexityN` states is what the same name was measured with.
        if (size := result.optional("complexityN")) is not None and size.number() > 0:
            levels["complexity_n"] = size.shown()
        result.member("epochs").count()
        sections = runs[tuple(levels.values())]
        if not sections:
            found.runs.append(ForeignRun(levels, sections))
        first = 1 + max((each.iteration for each in sections), default=0)
        for iteration, epoch in enumerate(result.member("measurements").elements(), start=first):
            sections.append(section("time", "s", epoch.member("elapsed").duration(), iteration))
            sections.append(section("loops", "count", epoch.member("iterations").number(), iteration))
            for name in counted:
                sections.append(section(_COUNTERS[name], "count", epoch.member(name).number(), iteration))
        batch = result.member("batch").duration()
        if batch != 1:  # the tool divides by it where it prints; the values of the file are of whole calls
            sections.append(section("batch", result.member("unit").shown(), batch, first))
        found.published += statistics_of(result, levels, "time", "s", {"median(elapsed)": "median"})
        for name, metric in ((name, metric) for name, metric in _COUNTERS.items() if name in counted):
            found.published += statistics_of(result, levels, metric, "count", {f"median({name})": "median"})
        error = result.member("medianAbsolutePercentError(elapsed)").number()
        found.published.append(published(levels, "time", "median absolute relative error", "ratio", error))
    remark(found, PUBLISHED, len(found.published))
    if results and len(counted) < len(_COUNTERS):
        absent = ", ".join(f"`{name}`" for name in _COUNTERS if name not in counted)
        found.notes.append(f"counters that are 0 everywhere are those the machine did not count: {absent}")
    return found


def _counted(results: list[Node]) -> list[str]:
    """Give the counters that are not 0 everywhere; without a right to count, nanobench writes 0."""
    epochs = [epoch for result in results for epoch in result.member("measurements").elements()]
    return [name for name in _COUNTERS if any(epoch.member(name).number() for epoch in epochs)]


IMPORTER: Final = ForeignImporter(
    "nanobench",
    "nanobench's JSON: the process is the run, each epoch an iteration",
    EXPECTED,
    read,
    sign=re.compile(r"^\|\s+ns/\w+ \|", re.MULTILINE | re.ASCII),
)
