"""Points of k6: what becomes of each kind of metric, and lines of JSON read by column."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal, Inexact, Rounded, getcontext, localcontext
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steelyard.record.importers.column_blocks import (
    ABSENT,
    NUMBER,
    OBJECT,
    TEXT,
    JsonColumn,
    NotPlainError,
    PlainText,
    json_blocks,
)
from steelyard.record.importers.foreign import ForeignFile, is_plausible
from steelyard.record.importers.point_runs import PointRuns, Points, combined, value_columns
from steelyard.record.importers.tools.summary import AS_RECORDED, Summary, levels
from steelyard.record.table_file import ahead

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

COUNTER, RATE, GAUGE, TREND = "counter", "rate", "gauge", "trend"
_BUILT_IN: Final = {
    **dict.fromkeys(("http_reqs", "iterations", "data_sent", "data_received", "dropped_iterations"), COUNTER),
    **dict.fromkeys(("ws_sessions", "ws_msgs_sent", "ws_msgs_received"), COUNTER),
    **dict.fromkeys(("checks", "http_req_failed"), RATE),
    **dict.fromkeys(("vus", "vus_max"), GAUGE),
}
"""Kinds of metrics that k6 makes itself; its CSV tells none."""
_TIMES: Final = ("http_req_", "iteration_duration", "group_duration", "ws_connecting", "ws_session_duration")
UNITS: Final = {"time": "ms", "data": "bytes"}
TEST: Final = "test"
"""Workload of what is about no request."""
DEFINITION: Final = "Metric"
"""Type of a line that says what a metric is."""
_PATHS: Final = (
    "type",
    "metric",
    "data.type",
    "data.contains",
    "data.value",
    "data.tags",
    "data.tags.name",
    "data.tags.url",
    "data.tags.scenario",
)
_MOST_DEFINITIONS: Final = 1000
_PLAIN: Final = r"^(0|[1-9]\d{0,17})(\.\d{1,18})?$"
_TINY: Final = r"^0\.000000\d"
"""From here on Python writes an exponent."""
Kind = tuple[str, str]


@dataclass(slots=True)
class Totals:
    """Counters and rates of one target: a request's name, or the test.

    Parameters
    ----------
    run : Summary
        Where its numbers go.
    sums : dict
        Metric to the sum of its points.
    counts : Counter
        Number of points of each metric.
    units : dict
        Unit of each counter; `RATE` of a rate.
    """

    run: Summary
    sums: defaultdict[str, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    counts: Counter[str] = field(default_factory=Counter)
    units: dict[str, str] = field(default_factory=dict)

    def end(self) -> None:
        """Add the sums, and the shares of the rates, to the run."""
        for metric, total in self.sums.items():
            if self.units[metric] == RATE:
                self.run.value(f"{metric}_share", total / self.counts[metric], "ratio")
            else:
                self.run.value(metric, total, self.units[metric])


def kind_of(metric: str, stated: Kind | None = None) -> Kind:
    """Give kind and unit of a metric, as the file states them or as k6 has them."""
    kind, unit = stated or (_BUILT_IN.get(metric, TREND), unit_of(metric))
    return kind, unit or ("count" if kind != TREND else AS_RECORDED)


def unit_of(metric: str) -> str:
    """Give the unit of a metric that k6 makes itself; empty for a count, and where it is not known."""
    if metric.startswith("data_"):
        return "bytes"
    return "ms" if metric.startswith(_TIMES) and metric not in _BUILT_IN else ""


def read_points(text: PlainText) -> ForeignFile | None:
    """Read points in lines of JSON by column, or give nothing where a line needs a second look."""
    reader = _Reader()
    exactly = getcontext().copy()
    # A sum that has to be rounded depends on the order of the points.
    exactly.traps[Inexact] = exactly.traps[Rounded] = True
    try:
        with localcontext(exactly):
            for block in ahead(json_blocks(text, _PATHS)):
                reader.take(block)
    except (NotPlainError, Inexact, Rounded):
        return None
    return reader.file() if reader.lines > 1 else None


class _Reader:
    """Points read so far."""

    def __init__(self) -> None:
        self.lines = 0
        self._stated: dict[str, Kind] = {}
        self._metrics: dict[str, int] = {}
        self._units: dict[str, str] = {}
        self._is_total: list[bool] = []
        self._targets: dict[tuple[str, str], int] = {}
        self._totals: list[Totals] = []
        self._found = ForeignFile("json", facts={"tool": "k6"})
        self._points = Points()
        self._sizes: defaultdict[tuple[int, str], Decimal] = defaultdict(Decimal)

    def take(self, block: Mapping[str, JsonColumn]) -> None:
        """Take a block of lines."""
        kinds, names = (_named(block[path].require(TEXT)) for path in ("type", "metric"))
        self.lines += len(kinds)
        of_kind, of_name = kinds.indices.to_numpy(), names.indices.to_numpy()
        is_point = np.array([kind.as_py() != DEFINITION for kind in kinds.dictionary], dtype=np.bool_)[
            of_kind
        ]
        self._define(block, is_point, names)
        rows = np.flatnonzero(is_point)
        if not rows.size:
            return
        some = pa.array(rows)
        block = {path: JsonColumn(each.kind[rows], each.text.take(some)) for path, each in block.items()}
        block["data.tags"].require(ABSENT, OBJECT)
        run = self._run_of(block)
        metric = self._metric_of(names.dictionary.to_pylist(), of_name[rows])
        values = block["data.value"].require(NUMBER)
        is_total = np.array(self._is_total, dtype=np.bool_)[metric]
        self._sum(run[is_total], metric[is_total], values.filter(pa.array(is_total)))
        run, metric = run[~is_total], metric[~is_total]
        columns = {
            "metric": pa.array(metric.astype(np.int32)),
            "printed": _as_python_writes(values.filter(pa.array(~is_total))),
            "iteration": pa.array(self._points.numbered(run, metric)),
        }
        self._points.add(run, columns)

    def file(self) -> ForeignFile:
        """Give what was read."""
        for each in self._totals:
            each.end()
        self._found.table = PointRuns(
            [each.run.levels for each in self._totals],
            [each.run.sections for each in self._totals],
            self._points,
            lambda part: value_columns(part["printed"], part["metric"].to_numpy(), self._units),
        )
        return self._found

    def _define(
        self, block: Mapping[str, JsonColumn], is_point: NDArray[np.bool_], names: pa.DictionaryArray
    ) -> None:
        rows = np.flatnonzero(~is_point)
        if rows.size > _MOST_DEFINITIONS:
            raise NotPlainError
        of_name = names.indices.to_numpy()
        for row in rows.tolist():
            said = [block[path] for path in ("data.type", "data.contains")]
            kind, contains = (each.text[row].as_py() for each in said)
            if any(each.kind[row] != TEXT for each in said) or not (kind.strip() and contains.strip()):
                raise NotPlainError
            metric = names.dictionary[int(of_name[row])].as_py()
            stated = kind, UNITS.get(contains, "")
            is_late = metric in self._metrics or bool(
                (is_point[:row] & (of_name[:row] == of_name[row])).any()
            )
            if is_late and kind_of(metric, stated) != kind_of(metric, self._stated.get(metric)):
                raise NotPlainError
            self._stated[metric] = stated

    def _metric_of(self, names: list[str], of_name: NDArray[np.integer]) -> NDArray[np.int64]:
        """Give the number of the metric of each point."""
        used = np.unique(of_name)
        number = np.zeros(len(names), dtype=np.int64)
        for place in used.tolist():
            name = names[place]
            if name not in self._metrics:
                kind, self._units[name] = kind_of(name, self._stated.get(name))
                self._metrics[name] = len(self._metrics)
                self._is_total.append(kind in (COUNTER, RATE))
            number[place] = self._metrics[name]
        found: NDArray[np.int64] = number[of_name]
        return found

    def _run_of(self, block: Mapping[str, JsonColumn]) -> NDArray[np.int64]:
        """Give the number of the run of each point: of its target and scenario."""
        names = ("name", "url", "scenario")
        return combined(
            [block[f"data.tags.{name}"].require(ABSENT, TEXT) for name in names], self._number_of_run
        )

    def _number_of_run(self, name: str, url: str, scenario: str) -> int:
        target = name or url or TEST, scenario
        if target not in self._targets:
            self._targets[target] = len(self._targets)
            self._totals.append(Totals(Summary(self._found, levels(target[0], scenario=scenario))))
        return self._targets[target]

    def _sum(self, run: NDArray[np.int64], metric: NDArray[np.int64], values: pa.Array) -> None:
        """Add points of counters and rates; equal ones of a run at once."""
        texts = values.dictionary_encode()
        sizes = (len(self._totals), len(self._metrics), max(len(texts.dictionary), 1))
        codes = np.ravel_multi_index([run, metric, texts.indices.to_numpy()], sizes)
        found = pa.array(codes).dictionary_encode()
        numbers = [_number(text) for text in texts.dictionary.to_pylist()]
        names = list(self._metrics)
        counts = np.bincount(found.indices.to_numpy(), minlength=len(found.dictionary)).tolist()
        places = np.unravel_index(found.dictionary.to_numpy(), sizes)
        for count, *place in zip(counts, *(each.tolist() for each in places), strict=True):
            totals, name, number = self._totals[place[0]], names[place[1]], numbers[place[2]]
            kind, unit = kind_of(name, self._stated.get(name))
            totals.units[name] = unit if kind == COUNTER else RATE
            totals.counts[name] += count
            totals.sums[name] += number * count
            # Where all of one sign are summed exactly, so is any part of the points.
            self._sizes[place[0], name] += abs(number) * count


def _named(texts: pa.Array) -> pa.DictionaryArray:
    """Give texts as codes, none of which is blank."""
    found = texts.dictionary_encode()
    if not all(text.strip() for text in found.dictionary.to_pylist()):
        raise NotPlainError
    return found


def _number(text: str) -> Decimal:
    number = Decimal(text)
    if not is_plausible(number) or (not number and text.startswith("-")):
        raise NotPlainError
    return number


def _as_python_writes(numbers: pa.Array) -> pa.Array:
    """Give numbers of JSON with the same digits, in the form of Python's decimal numbers."""
    is_plain = pc.and_not(pc.match_substring_regex(numbers, _PLAIN), pc.match_substring_regex(numbers, _TINY))
    if pc.all(is_plain).as_py() is not False:
        return numbers
    others = pc.invert(is_plain)
    written = [str(_number(text)) for text in numbers.filter(others).to_pylist()]
    return pc.replace_with_mask(numbers, others, pa.array(written, pa.string()))
