"""k6: its points (`--out json` or `csv`), or the summary at the end of a test; a test is a run.

Of points, those of a trend are samples and those of a gauge a series; each is an iteration. Points of a
counter are summed, and points of a rate are counted: the run has one value of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.delimited import number_of, rows
from steelyard.record.importers.foreign import ForeignFile
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.json_node import read_json, read_json_line
from steelyard.record.importers.tools.k6_points import (
    COUNTER,
    DEFINITION,
    RATE,
    TEST,
    UNITS,
    Totals,
    kind_of,
    read_points,
    unit_of,
)
from steelyard.record.importers.tools.summary import (
    AS_RECORDED,
    Summary,
    levels,
    note,
    number_at,
    numbered_lines,
    percentile,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.record.importers.column_blocks import PlainText
    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.json_node import Node
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "points of k6 (`k6 run --out json=FILE` or `--out csv=FILE`), or its summary (`--summary-export FILE`, "
    "or the data of `handleSummary` as JSON)"
)
_STATISTICS: Final = {"avg": "mean", "min": "min", "max": "max", "med": "p50", "count": "count"}
_FEWEST: Final = ["metric_name", "timestamp", "metric_value"]


@dataclass(frozen=True, slots=True)
class _Point:
    """One point as a line tells it."""

    metric: str
    kind: str
    unit: str
    value: Decimal
    target: str
    scenario: str


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file.

    Raises
    ------
    DataError
        Naming the line or the JSON path of what is wrong.
    """
    del options
    start = source.content.lstrip()[:1]
    if start != b"{":
        return _of_points(_csv_points(source), "csv")
    lines = numbered_lines(source)
    if len(lines) > 1 and lines[0][1].endswith("}"):
        return _of_points(_json_points(source, lines), "json")
    return _summary(read_json(source))


def read_plain(source: Source, text: PlainText, options: ReadOptions) -> ForeignFile | None:
    """Read points in lines of JSON, which need not fit into memory, if they are as plain as most are."""
    del source, options
    return read_points(text)


def _of_points(points: Iterator[_Point], form: str) -> ForeignFile:
    found = ForeignFile(form, facts={"tool": "k6"})
    targets: dict[tuple[str, str], Totals] = {}
    for point in points:
        cell = levels(point.target, scenario=point.scenario)
        at = targets.setdefault((point.target, point.scenario), Totals(Summary(found, cell)))
        at.counts[point.metric] += 1
        if point.kind in (COUNTER, RATE):
            at.sums[point.metric] += point.value
            at.units[point.metric] = point.unit if point.kind == COUNTER else RATE
        else:
            at.run.value(point.metric, point.value, point.unit, at.counts[point.metric])
    for at in targets.values():
        at.end()
        at.run.end()
    return found


def _json_points(source: Source, lines: list[tuple[int, str]]) -> Iterator[_Point]:
    kinds: dict[str, tuple[str, str]] = {}
    for number, line in lines:
        node = read_json_line(source, number, line)
        metric, data = node.member("metric").text(), node.member("data")
        if node.member("type").text() == DEFINITION:
            kinds[metric] = data.member("type").text(), UNITS.get(data.member("contains").text(), "")
            continue
        kind, unit = kind_of(metric, kinds.get(metric))
        tags = data.optional("tags")
        target, scenario = (
            ("", "") if tags is None else (_tag(tags, "name") or _tag(tags, "url"), _tag(tags, "scenario"))
        )
        yield _Point(metric, kind, unit, data.member("value").number(), target or TEST, scenario)


def _tag(tags: Node, name: str) -> str:
    return "" if (tag := tags.optional(name)) is None else tag.shown()


def _csv_points(source: Source) -> Iterator[_Point]:
    heading: list[str] = []
    for line, row in rows(source, ","):
        if not heading:
            heading = row
            if heading[: len(_FEWEST)] != _FEWEST or len(set(heading)) < len(heading):
                source.refuse(f"line {line}", f"the heading does not begin with {','.join(_FEWEST)}")
            continue
        if len(row) != len(heading):
            source.refuse(f"line {line}", f"{len(row)} fields; expected {len(heading)}")
        found = dict(zip(heading, row, strict=True))
        metric = found["metric_name"] or source.refuse(f"line {line}", "the metric has no name")
        kind, unit = kind_of(metric)
        number_at(source, line, found["timestamp"])
        value = number_at(source, line, found["metric_value"])
        target = found.get("name") or found.get("url") or TEST
        yield _Point(metric, kind, unit, value, target, found.get("scenario", ""))


def _summary(document: Node) -> ForeignFile:
    found = ForeignFile("summary", facts={"tool": "k6"})
    run = Summary(found, levels(TEST))
    if (state := document.optional("state")) is not None and (
        ms := state.optional("testRunDurationMs")
    ) is not None:
        run.value("duration", ms.duration(), "ms")
    if (results := document.optional("results")) is not None:  # of `--new-machine-readable-summary`
        metadata = document.member("metadata")
        found.facts["version"] = metadata.member("k6_version").text()
        run.value("duration", document.member("config").member("duration").duration(), "s")
        metrics = [(each.member("name").text(), each) for each in results.member("metrics").elements()]
    else:
        document.member("root_group")
        metrics = list(document.member("metrics").members())
    for name, metric in metrics:
        if not name:
            metric.refuse("a metric with a name")
        if "{" in name:
            note(found, f"`{name}` is about part of the requests, left out")
            continue
        _metric(run, name, metric)
    run.end()
    return found


def _metric(run: Summary, name: str, metric: Node) -> None:
    """Add a metric of a summary; the older form states no kind, which follows from the members."""
    values = metric.optional("values") or metric
    contains = metric.optional("contains")
    unit = unit_of(name) if contains is None else UNITS.get(contains.text(), "")
    if values.optional("avg") is not None:
        for member, number in values.members():
            statistic = _STATISTICS.get(member) or _percentile(member)
            if statistic is not None and isinstance(number.value, int | Decimal):
                run.statistic(name, statistic, number.number(), unit or AS_RECORDED)
    elif (total := values.optional("count")) is not None:
        run.value(name, total.duration(), unit or "count")
        if (rate := values.optional("rate")) is not None:
            # Of iterations that were dropped, more is worse.
            what = unit or ("dropped" if name.startswith("dropped_") else "1")
            run.value(f"{name}_per_s", rate.duration(), f"{what}/s")
    elif values.optional("passes") is not None or values.optional("matches") is not None:
        share = values.optional("rate") or values.member("value")
        run.value(f"{name}_share", share.duration(), "ratio")
    else:
        run.value(name, values.member("value").number(), unit or "count")


def _percentile(member: str) -> str | None:
    text = member.removeprefix("p").strip("()")
    number = number_of(text) if member.startswith("p") else None
    return None if number is None or number < 0 else percentile(number)


IMPORTER: Final = ForeignImporter(
    "k6",
    "points or summary of k6: a test is a run",
    EXPECTED,
    read,
    read_plain=read_plain,
    sign=re.compile(
        r'^ +execution: local|^ +http_req_duration\.\.|\A\{"type":"Metric","data":|'
        r'\A\{"metric":"[^"]*","type":"Point"|\Ametric_name,timestamp,metric_value,',
        re.MULTILINE | re.ASCII,
    ),
)
