"""Where the values of an imported cell lie."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.studies.imported.location import location_of
from steelyard.studies.imported.samples import Sample


@pytest.mark.parametrize(
    ("unit", "values", "is_cut"),
    [
        ("ms", (1.0, 9.0), True),
        ("MB/s", (1.0, 9.0), True),
        ("count", (0.0, 9.0), True),
        ("ms", (-1.0, 9.0), False),
        ("percent", (1.0, 9.0), False),
        ("ms", (8.9, 9.0), False),
    ],
)
def test_the_interval_of_an_amount_ends_at_zero(
    unit: str, values: tuple[float, ...], *, is_cut: bool
) -> None:
    one_run = np.array([len(values)]), np.zeros(1, dtype=np.int64)
    found = location_of(Sample(0, {}, "m", unit, np.array(values), *one_run, warm_ups=0), seed=1)
    assert found.low is not None
    assert found.high is not None
    assert (found.low == 0) is is_cut
    if not is_cut:
        # Student's t: as far below the mean as above it.
        assert found.high + found.low == pytest.approx(sum(values))
