"""What the charts of the stability report read."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import hashlib
from types import SimpleNamespace

import pyarrow as pa

from steelyard.studies.stability.report.data import series_of

cells = [f"w{number}" for number in range(24)]
numbers = range(60_000)
of_run = [number // 6 for number in numbers]
runs = {
    "run_id": pa.array([f"{number:06d}" for number in range(10_000)]),
    "block": [number // 1_000 for number in range(10_000)],
    "iteration": [number % 40 for number in range(10_000)],
    "worker": [0] * 10_000,
    **{name: ["bare"] * 10_000 for name in ("isolation", "setup_type", "affinity", "input")},
    "setup_size": ["1"] * 10_000,
    "workload": [cells[number % 24] for number in range(10_000)],
}
values = {
    "run_id": [f"{(7_919 * number) % 10_000:06d}" for number in of_run],
    "metric": ["cpu"] * len(numbers),
    "phase": ["measure"] * len(numbers),
    "unit": ["s"] * len(numbers),
    "value": [float(number) for number in numbers],
}
recorded = SimpleNamespace(runs=pa.table(runs), measurements=pa.concat_tables([pa.table(values)] * 5))
print("\\n".join(f"{one.workload} {hashlib.sha256(one.time_ms.tobytes()).hexdigest()}"
                 for one in series_of(recorded, "cpu")))
"""


def test_series_come_in_one_order_in_every_process() -> None:
    """Of so many rows a join in several threads gives another order each time."""
    orders = set()
    for seed in ("1", "2", "3", "4"):
        found = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        orders.add(found.stdout)
    (order,) = orders
    expected = [f"w{(7_919 * number) % 10_000 % 24}" for number in range(24 * 50)]
    assert [line.split()[0] for line in order.splitlines()] == list(dict.fromkeys(expected))
