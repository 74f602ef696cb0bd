"""vegeta: the requests of an attack (`vegeta encode`, JSON or CSV), or its report as JSON."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steelyard.record.importers.column_blocks import (
    ABSENT,
    NUMBER,
    TEXT,
    JsonColumn,
    NotPlainError,
    PlainText,
    json_blocks,
)
from steelyard.record.importers.delimited import rows
from steelyard.record.importers.foreign import ForeignFile
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.json_node import read_json, read_json_line
from steelyard.record.importers.point_runs import PointRuns, Points, combined, value_columns
from steelyard.record.importers.tools.summary import (
    OF_A_RUN,
    Bin,
    Summary,
    count_at,
    levels,
    note,
    note_counts,
    numbered_lines,
)
from steelyard.record.table_file import ahead

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from steelyard.record.importers.foreign import Source
    from steelyard.record.importers.json_node import Node
    from steelyard.record.importers.reading import ReadOptions

EXPECTED: Final = (
    "what `vegeta encode -to json` or `-to csv` prints, a request a line, or `vegeta report -type=json`, "
    "an object with `latencies` and `requests`; the binary form is turned into one by `vegeta encode`"
)
_COLUMNS: Final = 12
_STATISTICS: Final = {"mean": "mean", "50th": "p50", "90th": "p90", "95th": "p95", "99th": "p99"} | {
    name: name for name in ("min", "max")
}
_NUMBERS: Final = {"latency": "ns", "bytes_out": "bytes", "bytes_in": "bytes"}
_PATHS: Final = ("attack", "method", "url", "code", *_NUMBERS)
_WHOLE: Final = r"^(0|[1-9]\d{0,17})$"
_FAILED: Final = "requests that failed with status {}"
_Request = tuple[str, int, int, int, int]
"""Target, status, latency [ns], bytes out and bytes in."""


def read(source: Source, options: ReadOptions) -> ForeignFile:
    """Read a file: of requests each attack is a run, with its requests as iterations.

    Raises
    ------
    DataError
        Naming the line or the JSON path of what is wrong.
    """
    del options
    if not source.content.lstrip().startswith(b"{"):
        return _requests(_csv(source), "csv")
    lines = numbered_lines(source)
    if len(lines) == 1 or not lines[0][1].endswith("}"):
        document = read_json(source)
        if "latencies" in document.value or "code" not in document.value:
            return _report(document)
    return _requests((_of_json(read_json_line(source, line, text)) for line, text in lines), "json")


def read_plain(source: Source, text: PlainText, options: ReadOptions) -> ForeignFile | None:
    """Read requests in lines of JSON, which need not fit into memory, if they are as plain as most are."""
    del source, options
    return _read_columns(text)


def _requests(requests: Iterator[_Request], form: str) -> ForeignFile:
    found = ForeignFile(form, facts={"tool": "vegeta"})
    runs: dict[str, Summary] = {}
    counts: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for target, status, latency_ns, sent, received in requests:
        run = runs.setdefault(target, Summary(found, levels(target)))
        counts[target] += 1
        if not _is_success(status):
            failures[target] += 1
            failed[_FAILED.format(status)] += 1
            continue
        for (metric, unit), number in zip(_NUMBERS.items(), (latency_ns, sent, received), strict=True):
            run.value(metric, Decimal(number), unit, counts[target])
    for target, run in runs.items():
        run.value("failures", Decimal(failures[target]), "count")
        run.end()
    note_counts(found, failed)
    return found


def _is_success(status: int) -> bool:
    """Tell what vegeta calls a success; a request without an answer has status 0."""
    return 200 <= status < 400  # noqa: PLR2004 - codes of HTTP


def _of_json(request: Node) -> _Request:
    target = f"{request.member('method').text()} {request.member('url').text()}"
    attack = request.optional("attack")
    return (
        target if attack is None or not attack.value else f"{attack.text()}: {target}",
        request.member("code").count(2**63),
        request.member("latency").count(2**63),
        request.member("bytes_out").count(2**63),
        request.member("bytes_in").count(2**63),
    )


def _csv(source: Source) -> Iterator[_Request]:
    for line, row in rows(source, ","):
        if len(row) != _COLUMNS:
            source.refuse(f"line {line}", f"{len(row)} fields; expected {_COLUMNS}")
        count_at(source, line, row[0])
        count_at(source, line, row[8])
        status, latency, sent, received = (count_at(source, line, field) for field in row[1:5])
        target = f"{row[9]} {row[10]}"
        yield f"{row[7]}: {target}" if row[7] else target, status, latency, sent, received


def _read_columns(text: PlainText) -> ForeignFile | None:
    """Read requests in lines of JSON by column, or give nothing where a line needs a second look."""
    reader = _Columns()
    try:
        for block in ahead(json_blocks(text, _PATHS)):
            reader.take(block)
    except NotPlainError:
        return None
    return reader.file() if reader.lines > 1 else None


class _Columns:
    """Requests that were read by column so far."""

    def __init__(self) -> None:
        self.lines = 0
        self._found = ForeignFile("json", facts={"tool": "vegeta"})
        self._runs: dict[str, Summary] = {}
        self._numbers: dict[str, int] = {}
        self._failures: Counter[int] = Counter()
        self._failed: Counter[str] = Counter()
        self._points = Points()

    def take(self, block: Mapping[str, JsonColumn]) -> None:
        """Take a block of lines."""
        run = self._run_of(block)
        self.lines += run.size
        status = _whole_numbers(block["code"])
        columns = {"iteration": pa.array(self._points.numbered(run, 0))}
        for metric in _NUMBERS:
            number = _whole_numbers(block[metric])
            is_short = not number.size or number.max() <= np.iinfo(np.int32).max
            columns[metric] = pa.array(number.astype(np.int32) if is_short else number)
        is_success = (status >= 200) & (status < 400)  # noqa: PLR2004 - as of `_is_success`
        self._failures.update(run[~is_success].tolist())
        self._failed.update(_FAILED.format(each) for each in status[~is_success].tolist())
        kept = pa.array(is_success)
        self._points.add(run[is_success], {name: each.filter(kept) for name, each in columns.items()})

    def file(self) -> ForeignFile:
        """Give what was read."""
        for number, run in enumerate(self._runs.values()):
            run.value("failures", Decimal(self._failures[number]), "count")
        note_counts(self._found, self._failed)
        runs = self._runs.values()
        endings = [run.sections for run in runs]
        self._found.table = PointRuns(
            [run.levels for run in runs], endings, self._points, _values_of, len(_NUMBERS)
        )
        return self._found

    def _run_of(self, block: Mapping[str, JsonColumn]) -> NDArray[np.int64]:
        """Give the number of the run of each request: of its attack and target."""
        texts = [block["attack"].require(ABSENT, TEXT)]
        return combined([*texts, *(block[path].require(TEXT) for path in ("method", "url"))], self._number_of)

    def _number_of(self, attack: str, method: str, url: str) -> int:
        if not (method.strip() and url.strip()) or (attack and not attack.strip()):
            raise NotPlainError
        target = f"{attack}: {method} {url}" if attack else f"{method} {url}"
        self._runs.setdefault(target, Summary(self._found, levels(target)))
        return self._numbers.setdefault(target, len(self._numbers))


def _whole_numbers(column: JsonColumn) -> NDArray[np.int64]:
    texts = column.require(NUMBER)
    if not pc.all(pc.match_substring_regex(texts, _WHOLE)).as_py():
        raise NotPlainError
    numbers: NDArray[np.int64] = texts.cast(pa.int64()).to_numpy()
    return numbers


def _values_of(part: pa.RecordBatch) -> dict[str, pa.Array]:
    numbers = np.stack([part[metric].to_numpy().astype(np.int64) for metric in _NUMBERS], axis=1).ravel()
    metric = np.tile(np.arange(len(_NUMBERS)), len(part))
    return value_columns(pa.array(numbers).cast(pa.string()), metric, _NUMBERS)


def _report(document: Node) -> ForeignFile:
    found = ForeignFile("report", facts={"tool": "vegeta"})
    run = Summary(found, levels("vegeta"))
    latencies = document.member("latencies")
    run.value("requests", Decimal(document.member("requests").count()), "count")
    for member, metric, unit in (
        ("duration", "duration", "ns"),
        ("rate", "requests_per_s", "1/s"),
        ("throughput", "successes_per_s", "1/s"),
        ("success", "success", "ratio"),
    ):
        run.value(metric, document.member(member).duration(), unit)
    for member in ("bytes_in", "bytes_out"):
        run.value(f"{member}_total", document.member(member).member("total").duration(), "bytes")
    failures = sum(
        node.count()
        for status, node in document.member("status_codes").members()
        if not (status.isdecimal() and _is_success(int(status)))
    )
    run.value("failures", Decimal(failures), "count")
    if failures:
        note(found, f"latencies of the report include those of {failures} requests that failed")
    answered = failures < document.member("requests").count()
    run.statistics("latency", latencies, _STATISTICS, "ns", OF_A_RUN if answered else ())
    if (buckets := document.optional("buckets")) is not None:
        run.histogram("latency", _bins(buckets, latencies), "ns")
    if (date := document.optional("earliest")) is not None:
        found.facts["date"] = date.text()
    run.end()
    return found


def _bins(buckets: Node, latencies: Node) -> Iterator[Bin]:
    """Give the buckets, each from the bound that names it to the next one."""
    counts = [
        (Decimal(name) if name.isdecimal() else node.refuse("a bucket"), node.count())
        for name, node in buckets.members()
    ]
    bounds = [low for low, _ in counts[1:]] + [latencies.member("max").duration()]
    for (low, count), high in zip(counts, bounds, strict=True):
        yield Bin(low, max(low, high), count, is_open=low == counts[-1][0])


IMPORTER: Final = ForeignImporter(
    "vegeta",
    "requests of vegeta, or its report: an attack is a run, a request an iteration",
    EXPECTED,
    read,
    read_plain=read_plain,
    sign=re.compile(
        r'^Requests +\[total, rate|\A\{"attack":"[^"]*","seq":\d+,"code":', re.MULTILINE | re.ASCII
    ),
)
