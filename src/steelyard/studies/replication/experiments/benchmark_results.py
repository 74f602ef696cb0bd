"""The results of a user's own benchmark: requests or a summary, CSV or JSON, as its description says."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from steelyard.errors import DataError
from steelyard.studies.replication.experiments.own_benchmark import PAGE, PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.studies.replication.experiments.own_benchmark import Results

HINT: Final = f"`own_benchmark.results` says what is in it: {PAGE}"
NO_FAILURE: Final = frozenset({"", "0", "false", "none", "null", "no"})
FIRST_STATUS: Final = 100
FIRST_BAD_STATUS: Final = 400
NS_PER_S: Final = 1_000_000_000
P90: Final = 90.0
SHOWN_NAMES: Final = 12


@dataclass(frozen=True, slots=True)
class Requests:
    """Single requests.

    Parameters
    ----------
    operation : ndarray
        Shape (n,), of texts.
    response_ns : ndarray
        Shape (n,), int64 [ns].
    has_failed : ndarray
        Shape (n,), bool.
    begin_ns : ndarray or None
        Shape (n,), int64: when each was due, from the first one [ns]; ``None`` where the file does not say.
    """

    operation: NDArray[np.object_]
    response_ns: NDArray[np.int64]
    has_failed: NDArray[np.bool_]
    begin_ns: NDArray[np.int64] | None


@dataclass(frozen=True, slots=True)
class Measured:
    """What a benchmark has reached; ``None``: its results do not say.

    Parameters
    ----------
    throughput_per_s : float or None
        Requests without failure per second [1/s].
    p90_ms : float or None
        90th percentile of the response times of requests without failure [ms].
    errors_percent : float or None
        Share of failed requests [%].
    requests : Requests or None
        The single requests, where there are some.
    """

    throughput_per_s: float | None
    p90_ms: float | None
    errors_percent: float | None
    requests: Requests | None = None


def read_results(path: Path, results: Results, seconds: float) -> Measured:
    """Read the results of a benchmark; throughput of requests without begins counts over `seconds`.

    Raises
    ------
    DataError
        If the file is not what was described.
    """
    try:
        text = path.read_text(encoding="utf-8")
        rows = _csv_rows(text) if results.format == "csv" else _json_rows(text)
    except (OSError, ValueError, csv.Error) as error:
        message = f"cannot read the results `{results.file}` as {results.format}: {error}"
        raise DataError(message, hint=HINT, code="experiment.benchmark") from error
    if not rows:
        message = f"the results `{results.file}` are empty"
        raise DataError(message, hint=HINT, code="experiment.benchmark")
    if results.kind == "summary":
        return _summary(rows[0], results)
    return _measured(_requests(rows, results), seconds)


def _csv_rows(text: str) -> list[dict[str, Any]]:
    return list(csv.DictReader(text.splitlines()))


def _json_rows(text: str) -> list[dict[str, Any]]:
    content = json.loads(text)
    rows = content if isinstance(content, list) else [content]
    if not all(isinstance(row, dict) for row in rows):
        message = "expected an object, or a list of objects"
        raise ValueError(message)
    return rows


def _value(row: Mapping[str, Any], name: str, results: Results, number: int) -> Any:
    found: Any = row
    for key in [name] if name in row else name.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    if found is None:
        names = ", ".join(f"`{key}`" for key in list(row)[:SHOWN_NAMES])
        message = f"the results `{results.file}` lack `{name}` in entry {number}; there: {names}"
        raise DataError(message, hint=HINT, code="experiment.benchmark")
    return found


def _number(row: Mapping[str, Any], name: str, results: Results, number: int = 1) -> float:
    found = _value(row, name, results, number)
    try:
        value = float(found)
    except (TypeError, ValueError) as error:
        message = (
            f"results `{results.file}` contain `{found}` as `{name}` in entry {number}; expected a number"
        )
        raise DataError(message, hint=HINT, code="experiment.benchmark") from error
    if not np.isfinite(value) or value < 0:
        message = (
            f"results `{results.file}` contain `{found}` as `{name}` in entry {number}; expected 0 or more"
        )
        raise DataError(message, hint=HINT, code="experiment.benchmark")
    return value


def _summary(row: Mapping[str, Any], results: Results) -> Measured:
    p90 = _number(row, results.p90, results) if results.p90 else None
    return Measured(
        throughput_per_s=_number(row, results.throughput_per_s, results),
        p90_ms=None if p90 is None else p90 / PER_SECOND[results.response_unit] * PER_SECOND["ms"],
        errors_percent=_number(row, results.errors_percent, results) if results.errors_percent else None,
    )


def _requests(rows: list[dict[str, Any]], results: Results) -> Requests:
    entries = list(enumerate(rows, 1))

    def times_ns(name: str, unit: str) -> NDArray[np.int64]:
        values = np.array([_number(row, name, results, number) for number, row in entries])
        return np.rint(values * (NS_PER_S / PER_SECOND[unit])).astype(np.int64)

    begin_ns = None
    if results.begin:
        # Whole numbers: stamps of today in nanoseconds need more digits than a float has.
        scale = NS_PER_S / PER_SECOND[results.begin_unit]
        first = min(_number(row, results.begin, results, number) for number, row in entries)
        values = [_number(row, results.begin, results, number) - first for number, row in entries]
        begin_ns = np.rint(np.array(values) * scale).astype(np.int64)
    return Requests(
        np.array([str(_value(row, results.operation, results, number)) for number, row in entries], object),
        times_ns(results.response, results.response_unit),
        np.array([_has_failed(row, results) for row in rows], bool),
        begin_ns,
    )


def _has_failed(row: Mapping[str, Any], results: Results) -> bool:
    if not results.failed:
        return False
    found = row.get(results.failed)
    text = "" if found is None else str(found).strip().lower()
    if text.isdigit() and int(text) >= FIRST_STATUS:
        return int(text) >= FIRST_BAD_STATUS
    return text not in NO_FAILURE


def _measured(requests: Requests, seconds: float) -> Measured:
    good = ~requests.has_failed
    if requests.begin_ns is not None:
        seconds = float((requests.begin_ns + requests.response_ns).max() / NS_PER_S)
    times = requests.response_ns[good]
    return Measured(
        throughput_per_s=float(good.sum() / seconds) if seconds > 0 else None,
        # SOURCE: Hyndman and Fan (1996), definition 1: the smallest time that 90 % do not exceed.
        p90_ms=float(np.percentile(times, P90, method="inverted_cdf") / 1e6) if times.size else None,
        errors_percent=float(100 * requests.has_failed.mean()),
        requests=requests,
    )
