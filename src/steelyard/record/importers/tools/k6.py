"""k6: its points (`--out json` or `csv`), or the summary at the end of a test; a test is a run.

Of points, those of a trend are samples and those of a gauge a series; each is an iteration. Points of a
counter are summed, and points of a rate are counted: the run has one value of them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.delimited import number_of, rows
from steelyard.record.importers.foreign import ForeignFile
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.json_node import read_json, read_json_line
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

    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.json_node import Node
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "points of k6 (`k6 run --out json=FILE` or `--out csv=FILE`), or its summary (`--summary-export FILE`, "
    "or the data of `handleSummary` as JSON)"
)
COUNTER, RATE, GAUGE, TREND = "counter", "rate", "gauge", "trend"
_BUILT_IN: Final = {
    **dict.fromkeys(("http_reqs", "iterations", "data_sent", "data_received", "dropped_iterations"), COUNTER),
    **dict.fromkeys(("ws_sessions", "ws_msgs_sent", "ws_msgs_received"), COUNTER),
    **dict.fromkeys(("checks", "http_req_failed"), RATE),
    **dict.fromkeys(("vus", "vus_max"), GAUGE),
}
"""Kinds of metrics that k6 makes itself; its CSV tells none."""
_TIMES: Final = ("http_req_", "iteration_duration", "group_duration", "ws_connecting", "ws_session_duration")
_UNITS: Final = {"time": "ms", "data": "bytes"}
_STATISTICS: Final = {"avg": "mean", "min": "min", "max": "max", "med": "p50", "count": "count"}
_FEWEST: Final = ["metric_name", "timestamp", "metric_value"]
_TEST: Final = "test"
"""Workload of what is about no request."""


@dataclass(slots=True)
class _Points:
    """Points of one target: a request's name, or the test.

    Parameters
    ----------
    run : Summary
        Where its numbers go.
    sums : dict
        Metric to the sum of its points, of counters and rates.
    counts : Counter
        Number of points of each metric.
    units : dict
        Unit of each counter.
    """

    run: Summary
    sums: defaultdict[str, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    counts: Counter[str] = field(default_factory=Counter)
    units: dict[str, str] = field(default_factory=dict)


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


def _of_points(points: Iterator[_Point], form: str) -> ForeignFile:
    found = ForeignFile(form, facts={"tool": "k6"})
    targets: dict[tuple[str, str], _Points] = {}
    for point in points:
        cell = levels(point.target, scenario=point.scenario)
        at = targets.setdefault((point.target, point.scenario), _Points(Summary(found, cell)))
        at.counts[point.metric] += 1
        if point.kind in (COUNTER, RATE):
            at.sums[point.metric] += point.value
            at.units[point.metric] = point.unit if point.kind == COUNTER else RATE
        else:
            at.run.value(point.metric, point.value, point.unit, at.counts[point.metric])
    for at in targets.values():
        for metric, total in at.sums.items():
            if at.units[metric] == RATE:
                at.run.value(f"{metric}_share", total / at.counts[metric], "ratio")
            else:
                at.run.value(metric, total, at.units[metric])
        at.run.end()
    return found


def _json_points(source: Source, lines: list[tuple[int, str]]) -> Iterator[_Point]:
    kinds: dict[str, tuple[str, str]] = {}
    for number, line in lines:
        node = read_json_line(source, number, line)
        metric, data = node.member("metric").text(), node.member("data")
        if node.member("type").text() == "Metric":
            kinds[metric] = data.member("type").text(), _UNITS.get(data.member("contains").text(), "")
            continue
        kind, unit = kinds.get(metric) or (_BUILT_IN.get(metric, TREND), _unit(metric))
        tags = data.optional("tags")
        target, scenario = (
            ("", "") if tags is None else (_tag(tags, "name") or _tag(tags, "url"), _tag(tags, "scenario"))
        )
        unit = unit or ("count" if kind != TREND else AS_RECORDED)
        yield _Point(metric, kind, unit, data.member("value").number(), target or _TEST, scenario)


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
        kind = _BUILT_IN.get(metric, TREND)
        unit = _unit(metric) or ("count" if kind != TREND else AS_RECORDED)
        number_at(source, line, found["timestamp"])
        value = number_at(source, line, found["metric_value"])
        target = found.get("name") or found.get("url") or _TEST
        yield _Point(metric, kind, unit, value, target, found.get("scenario", ""))


def _unit(metric: str) -> str:
    if metric.startswith("data_"):
        return "bytes"
    return "ms" if metric.startswith(_TIMES) and metric not in _BUILT_IN else ""


def _summary(document: Node) -> ForeignFile:
    found = ForeignFile("summary", facts={"tool": "k6"})
    run = Summary(found, levels(_TEST))
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
    unit = _unit(name) if contains is None else _UNITS.get(contains.text(), "")
    if values.optional("avg") is not None:
        for member, number in values.members():
            statistic = _STATISTICS.get(member) or _percentile(member)
            if statistic is not None and isinstance(number.value, int | Decimal):
                run.statistic(name, statistic, number.number(), unit or AS_RECORDED)
    elif (total := values.optional("count")) is not None:
        run.value(name, total.duration(), unit or "count")
        if (rate := values.optional("rate")) is not None:
            run.value(f"{name}_per_s", rate.duration(), f"{unit or '1'}/s")
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
    sign=re.compile(r"^ +execution: local|^ +http_req_duration\.\.", re.MULTILINE | re.ASCII),
)
