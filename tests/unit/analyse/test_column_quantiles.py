"""Quantiles and histograms of columns that are read in batches, beside numpy's of the whole column."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.analyse.column_quantiles import column_quantiles, column_shape
from steelyard.errors import AnalysisError, DataError

if TYPE_CHECKING:
    from steelyard.analyse.column_quantiles import Column

PROBABILITIES = (0.0, 0.001, 0.25, 0.5, 0.95, 0.99, 0.9999, 1.0)
DRAW = np.random.default_rng(7)
SAMPLES = {
    "log-normal": DRAW.lognormal(10.0, 2.0, 300_001),
    "both signs": DRAW.normal(0.0, 1.0, 300_000),
    "few values": DRAW.integers(-3, 4, 200_000).astype(float),
    # Too many to be kept before their last bits are counted.
    "close together": 1.0 + DRAW.integers(0, 9, 1_200_000) * 2.0**-52,
    "mostly one": np.where(DRAW.random(1_300_000) < 0.9, -7.25, DRAW.random(1_300_000)),
    "constant": np.full(1000, 1e300),
    "one": np.array([-0.0]),
    "two": np.array([5e-324, 1.0]),
    "neighbours": np.array([1.0, np.nextafter(1.0, 2.0)] * 500),
    "extremes": np.array([-1.7e308, -5e-324, 0.0, -0.0, 5e-324, 1.7e308]),
}


def _column(values: np.ndarray, size: int = 70_000) -> Column:
    return lambda: iter([values[begin : begin + size] for begin in range(0, len(values), size)])


@pytest.mark.parametrize("size", [1, 999, 70_000])
@pytest.mark.parametrize("name", SAMPLES)
def test_equals_numpy_on_the_whole_column(name: str, size: int) -> None:
    values = SAMPLES[name]
    if size == 1:
        values = values[:3000]
    found = column_quantiles(_column(values, size), PROBABILITIES)
    assert found.count == len(values)
    assert (found.smallest, found.largest) == (values.min(), values.max())
    with np.errstate(over="ignore"):
        expected = np.quantile(np.sort(values), PROBABILITIES)
    assert np.array(list(found.quantiles.values())) == pytest.approx(expected, rel=1e-15)


def test_the_order_of_the_values_does_not_matter() -> None:
    values = np.sort(SAMPLES["log-normal"])
    expected = np.quantile(values, PROBABILITIES)
    for each in (values, values[::-1].copy(), np.roll(values, 1000)):
        found = column_quantiles(_column(each), PROBABILITIES)
        assert np.array(list(found.quantiles.values())) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("pieces", [1, 7, 600])
def test_a_shape_leaves_nothing_out(pieces: int) -> None:
    values = SAMPLES["both signs"][:60_001]
    edges = np.linspace(values.min(), values.max(), 31)
    shape = column_shape(_column(values, 1234), edges, len(values), pieces)
    assert np.array_equal(shape.counts, np.histogram(values, edges)[0])
    parts = np.split(values, shape.begin[1:])
    assert len(parts) == pieces
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for found, least in ((shape.low, np.min), (shape.middle, np.median), (shape.high, np.max)):
        assert found.tolist() == [least(part) for part in parts]


def test_refuses_no_values_and_probabilities_out_of_range() -> None:
    with pytest.raises(AnalysisError, match="no values"):
        column_quantiles(_column(np.empty(0)))
    for probability in (1.1, -0.1, float("nan")):
        with pytest.raises(AnalysisError, match="out of range"):
            column_quantiles(_column(np.ones(1)), (probability,))


def test_memory_does_not_grow_with_the_column() -> None:
    program = (
        "import re; from pathlib import Path; import numpy as np;"
        "from steelyard.analyse.column_quantiles import column_quantiles;"
        # Not ru_maxrss: it begins with the peak of the process that forked.
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]);"
        "column = lambda n: lambda: (np.random.default_rng(k).random(1 << 17) for k in range(n));"
        "column_quantiles(column(2)); small = peak();"
        "column_quantiles(column(64)); print(peak() - small)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert int(done.stdout) < 16 * 1024, "KiB more: a quarter of the values would fit"


def test_interpolates_where_the_difference_is_no_number() -> None:
    assert column_quantiles(_column(np.array([-1.7e308, 1.7e308])), (0.5,)).quantiles == {0.5: 0.0}


def test_refuses_a_column_that_changes_between_passes() -> None:
    passes = iter([np.arange(1000.0), np.arange(1000.0) + 700.0, np.arange(999.0)])
    with pytest.raises(DataError, match="changed while they were read"):
        column_quantiles(lambda: iter([next(passes)]), (0.2,))
    with pytest.raises(DataError, match="changed while they were read"):
        column_shape(lambda: iter([next(passes)]), np.array([0.0, 1.0]), 1000, 10)
