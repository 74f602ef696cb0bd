"""asv's results (``.asv/results``): a file is a run of each benchmark, each sample an iteration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Final

from steelyard.model.plain_file import read_plain_file
from steelyard.record.importers.foreign import WORKLOAD, ForeignFile, ForeignRun, Source, unreadable
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.harnesses.harness_values import (
    FAILED,
    MEDIANS,
    PUBLISHED,
    SKIPPED,
    facts_of,
    is_number,
    published,
    remark,
    section,
    with_parameters,
)
from steelyard.record.importers.json_node import Node, read_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.record.importers.foreign import Published, Section
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "a result of asv (`.asv/results/MACHINE/COMMIT-ENVIRONMENT.json`, with samples by `asv run "
    "--record-samples`): an object with `commit_hash`, `result_columns` and `results`"
)
_VERSION: Final = 2
_NAMES: Final = "benchmarks.json"
"""Written by asv one folder above the results; has the unit and the names of the parameters."""
_KINDS: Final = {
    "time": ("time", "s"),
    "timeraw": ("time", "s"),
    "mem": ("memory", "bytes"),
    "peakmem": ("peak_memory", "bytes"),
    "track": ("value", "as counted"),
}
_PUBLISHED: Final = {
    "stats_ci_99_a": "mean, lower bound (0.99)",
    "stats_ci_99_b": "mean, upper bound (0.99)",
    "stats_q_25": "p25",
    "stats_q_75": "p75",
}
_FACTS: Final = {"commit_hash": "commit", "date": "commit_date_ms", "python": "python"}


@dataclass(slots=True)
class _Counts:
    """How many results are not samples."""

    failed: int = 0
    skipped: int = 0
    medians: int = 0


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the JSON path of what is wrong.
    """
    del options
    document = read_json(source)
    columns = [each.text() for each in document.member("result_columns").elements()]
    if (version := document.member("version")).value != _VERSION:
        version.refuse(f"version {_VERSION} of asv's results")
    found = ForeignFile("json", facts={"tool": "asv", **facts_of(document, _FACTS)})
    environment = document.member("env_name").text()
    described = _described(source.path)
    counts = _Counts()
    for name, entry in document.member("results").members():
        values = entry.elements()
        if len(values) > len(columns):
            entry.refuse(f"a list of at most {len(columns)} entries, one per entry of `result_columns`")
        row = dict(zip(columns, values, strict=False))
        if "result" not in row or "params" not in row:
            entry.refuse("a result with `result` and `params`")
        _benchmark(_Benchmark(name, environment, row, described), found, counts)
    remark(found, MEDIANS, counts.medians)
    remark(found, FAILED, counts.failed)
    remark(found, SKIPPED, counts.skipped)
    remark(found, PUBLISHED, len(found.published))
    return found


@dataclass(frozen=True, slots=True)
class _Benchmark:
    """A benchmark with its columns, and what `benchmarks.json` says about all."""

    name: str
    environment: str
    row: dict[str, Node]
    described: Node | None

    @property
    def metric(self) -> tuple[str, str]:
        """What is measured and its unit, which the beginning of the function's name tells."""
        function = self.name.rpartition(".")[2]
        kind = next((each for each in _KINDS if function.startswith(f"{each}_")), "")
        if not kind and (of_class := self.name.rpartition(".")[0].rpartition(".")[2]):
            kind = next((each for each in _KINDS if of_class.startswith(each.title())), "")
        metric, unit = _KINDS.get(kind, _KINDS["track"])
        if metric == "value" and (stated := self._stated("unit")) is not None:
            return metric, stated.shown() or unit
        return metric, unit

    def axes(self) -> list[Node]:
        """Give the list of levels of each parameter."""
        return self.row["params"].elements()

    def levels(self) -> list[dict[str, str]]:
        """Give the levels of each combination of parameters, in the order of the results."""
        axes = [[level.shown() for level in axis.elements()] for axis in self.axes()]
        stated = self._stated("param_names")
        names = [] if stated is None else [each.shown() for each in stated.elements()]
        names += [f"param{place}" for place in range(len(names) + 1, len(axes) + 1)]
        own = {WORKLOAD: self.name, "environment": self.environment}
        return [with_parameters(own, zip(names, point, strict=False)) for point in product(*axes)]

    def column(self, name: str, count: int) -> list[Node | None]:
        """Give a column's value for each combination, and nothing where there is none."""
        node = self.row.get(name)
        if node is None or node.value is None:
            return [None] * count
        values = node.elements()
        if len(values) != count:
            node.refuse(f"a list of {count} entries, one per combination of parameters")
        return [None if each.value is None else each for each in values]

    def _stated(self, name: str) -> Node | None:
        own = None if self.described is None else self.described.optional(self.name)
        return None if own is None else own.optional(name)


def _described(path: Path) -> Node | None:
    """Give the descriptions of the benchmarks where asv left them beside the results."""
    for place in (path.with_name(_NAMES), path.absolute().parent.parent / _NAMES):
        if place.is_file() and place != path:
            try:
                content = read_plain_file(place)
            except OSError as error:
                raise unreadable(place, error, EXPECTED) from error
            return read_json(Source(place, content, EXPECTED))
    return None


def _benchmark(benchmark: _Benchmark, found: ForeignFile, counts: _Counts) -> None:
    if benchmark.row["result"].value is None:
        counts.failed += 1
        return
    metric, unit = benchmark.metric
    # Counted before they are made: a few damaged axes have more combinations than any memory.
    results = benchmark.column("result", math.prod(len(each.elements()) for each in benchmark.axes()))
    levels = benchmark.levels()
    samples = benchmark.column("samples", len(levels))
    statistics = {name: benchmark.column(name, len(levels)) for name in _PUBLISHED}
    for place, point in enumerate(levels):
        result, kept = results[place], samples[place]
        if result is None:
            counts.failed += 1
            continue
        if isinstance(result.value, Decimal) and result.value.is_nan():  # a set-up asked to be skipped
            counts.skipped += 1
            continue
        sections: list[Section] = []
        if kept is not None:
            sections = [
                section(metric, unit, each.number(), iteration)
                for iteration, each in enumerate(kept.elements(), start=1)
            ]
            found.published.append(published(point, metric, "median", unit, result.number()))
        elif metric == "time":
            counts.medians += 1
            sections = [section("median_time", unit, result.duration())]
        else:
            sections = [section(metric, unit, result.number())]
        found.runs.append(ForeignRun(point, sections))
        found.published += _statistics(point, metric, unit, {n: c[place] for n, c in statistics.items()})


def _statistics(
    levels: dict[str, str], metric: str, unit: str, values: dict[str, Node | None]
) -> Sequence[Published]:
    return [
        published(levels, metric, _PUBLISHED[name], unit, node.number())
        for name, node in values.items()
        if node is not None and is_number(node)
    ]


IMPORTER: Final = ForeignImporter(
    "asv", "asv's results of a commit: each sample is an iteration", EXPECTED, read
)
