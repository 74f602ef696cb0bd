from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.errors import DataError
from steelyard.studies.replication.experiments.benchmark_results import Measured, read_results
from steelyard.studies.replication.experiments.own_benchmark import Results

if TYPE_CHECKING:
    from pathlib import Path

FILE = Results(file="r")


def _read(folder: Path, text: str, *, seconds: float = 2.0, **keys: str) -> Measured:
    path = folder / "r"
    path.write_text(text, encoding="utf-8")
    return read_results(path, Results.model_validate({"file": "r", **keys}), seconds)


def test_requests_of_a_csv_are_counted_over_the_life_of_the_load(tmp_path: Path) -> None:
    rows = "".join(f"{'buy' if i % 2 else 'look'},{i},{i > 8}\n" for i in range(1, 11))
    found = _read(tmp_path, f"operation,response_ms,bad\n{rows}", failed="bad")
    assert found.throughput_per_s == 4
    assert found.errors_percent == pytest.approx(20)
    # Of 1 to 8 ms, nine of ten do not exceed 8 ms.
    assert found.p90_ms == pytest.approx(8)
    assert found.requests is not None
    assert found.requests.begin_ns is None
    assert list(found.requests.operation[:2]) == ["buy", "look"]


def test_begins_give_the_time_over_which_throughput_counts(tmp_path: Path) -> None:
    first = 1_700_000_000.0
    rows = [{"op": "a", "s": 0.5, "at": first + at, "code": code} for at, code in ((9.5, 200), (0, 503))]
    found = _read(
        tmp_path,
        json.dumps(rows),
        seconds=99,
        format="json",
        operation="op",
        response="s",
        response_unit="s",
        begin="at",
        begin_unit="s",
        failed="code",
    )
    assert found.throughput_per_s == pytest.approx(1 / 10)
    assert found.errors_percent == pytest.approx(50)
    assert found.requests is not None
    assert found.requests.begin_ns is not None
    assert np.array_equal(found.requests.begin_ns, [9_500_000_000, 0])


def test_a_summary_names_its_numbers_by_path(tmp_path: Path) -> None:
    text = json.dumps({"total": {"rate": "12.5", "p90": 1.5}, "errors": 0})
    found = _read(
        tmp_path,
        text,
        format="json",
        kind="summary",
        throughput_per_s="total.rate",
        p90="total.p90",
        response_unit="s",
        errors_percent="errors",
    )
    assert found == Measured(12.5, 1500.0, 0.0)
    assert _read(tmp_path, "throughput_per_s\n7\n", kind="summary") == Measured(7.0, None, None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "are empty"),
        ("operation,ms\na,1\n", "lack `response_ms` in entry 1; there: `operation`, `ms`"),
        ("operation,response_ms\na,1\nb,soon\n", "contain `soon` as `response_ms` in entry 2"),
        ("operation,response_ms\na,-1\n", "expected 0 or more"),
        ("operation,response_ms\na,nan\n", "expected 0 or more"),
    ],
)
def test_results_that_are_not_what_was_described_are_named(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        _read(tmp_path, text)
    assert problem in caught.value.message


def test_json_that_holds_no_objects_is_refused(tmp_path: Path) -> None:
    for text in ("[1]", "{", '"x"'):
        with pytest.raises(DataError, match=r"cannot read the results .* as json"):
            _read(tmp_path, text, format="json")
