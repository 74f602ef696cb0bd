from __future__ import annotations

import decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from steelyard.analyse.comparison.column import column_of, labels_of
from steelyard.errors import AnalysisError, SteelyardError, UsageError


class Wrapped:
    """What pandas and others look like."""

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        del dtype, copy
        return np.array([1, 2, 3])


@pytest.mark.parametrize(
    "values",
    [
        np.array([1, 2, 3], dtype=np.uint8),
        np.array([1.0, 0.0, 2.0, 0.0, 3.0])[::2],
        [1, 2, 3],
        (1.0, 2.0, 3.0),
        range(1, 4),
        Wrapped(),
        pa.array([1, 2, 3]),
        pa.chunked_array([[1, 2], [3]]),
        pa.array([decimal.Decimal("1.0"), decimal.Decimal("2.0"), decimal.Decimal("3.0")]),
        pl.Series("time_ns", [1, 2, 3]),
        pl.DataFrame({"time_ns": [1, 2, 3]})["time_ns"],
    ],
)
def test_every_kind_of_column_gives_the_same_numbers(values: object) -> None:
    found = column_of(values, "sample")
    assert found.dtype == np.float64
    assert found.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("values", "kind", "text"),
    [
        (pa.array([1, None, 3]), AnalysisError, "1 missing values of 3"),
        (pl.Series([1.0, None]), AnalysisError, "missing"),
        (pl.DataFrame({"a": [1.0], "b": [2.0]}), UsageError, "more than one column"),
        (np.array([1], dtype="timedelta64[ns]"), UsageError, "timedelta64"),
        ([[1.0, 2.0], [3.0]], UsageError, "not one column"),
        (3.0, UsageError, "0 dimensions"),
        (np.array([1 + 2j]), UsageError, "complex"),
        ([1.0, -np.inf], AnalysisError, "position 1"),
    ],
)
def test_what_is_no_column_of_numbers_is_refused(
    values: object, kind: type[SteelyardError], text: str
) -> None:
    with pytest.raises(kind, match=text) as caught:
        column_of(values, "sample")
    assert caught.value.hint


@pytest.mark.parametrize(
    "labels",
    [["run b", "run a", "run b"], pl.Series(["b", "a", "b"]), np.array([9, 2, 9]), pa.array([5, 1, 5])],
)
def test_labels_of_any_type_become_numbers_in_sorted_order(labels: object) -> None:
    assert labels_of(labels, "clusters", 3).tolist() == [1, 0, 1]


def test_labels_that_do_not_go_with_the_values_are_refused() -> None:
    with pytest.raises(UsageError, match="one label for each value"):
        labels_of([1, 2], "clusters", 3)
