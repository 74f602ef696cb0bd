"""What Apache Otava finds in histories as those of `test_history_power`, for the guide to histories.

It pins other versions of packages than Steelyard, so it is run by itself:
``uv run --no-project --with apache-otava==0.8.0 python benches/otava_history.py``.
"""

from __future__ import annotations

import sys
from typing import Final

import numpy as np
from otava.series import AnalysisOptions, Metric, Series

NOISE: Final = 0.02
HISTORIES: Final = 200
LOOKS: Final = 100
FEWEST: Final = 6


def history(rho: float, size: int, after: int, number: int) -> np.ndarray:
    """Give a history with autocorrelation rho whose last results are slower by 5 %."""
    rng = np.random.default_rng([83, number, size, after, round(1000 * rho)])
    shocks = np.sqrt(1 - rho * rho) * rng.standard_normal(size + 100)
    path, value = np.empty_like(shocks), 0.0
    for place, shock in enumerate(shocks):
        path[place] = value = rho * value + shock
    values = np.exp(NOISE * path[100:])
    values[size - after :] *= 1.05
    return values


def is_red(values: np.ndarray) -> bool:
    """Tell whether the newest level is slower than the one before, by the defaults of Apache Otava."""
    metrics = {"m": Metric(1, 1.0)}
    series = Series("history", None, list(range(values.size)), metrics, {"m": values.tolist()}, {})
    found = series.analyze(AnalysisOptions()).change_points["m"]
    return bool(found) and found[-1].stats.mean_2 > found[-1].stats.mean_1


def main() -> None:
    """Print the share that is found at 10 to 20 results, and that is red at any look without a change."""
    for rho in (0.0, 0.3):
        for size in (10, 12, 16, 20):
            found = sum(is_red(history(rho, size, size // 2, each)) for each in range(5 * HISTORIES))
            sys.stdout.write(f"{rho} {size} results: {found / (5 * HISTORIES):.1%} found\n")
    for rho in (0.0, 0.3, 0.4, 0.7):
        red = 0
        for each in range(HISTORIES):
            values = history(rho, LOOKS, 0, each)
            red += any(is_red(values[:size]) for size in range(FEWEST, LOOKS + 1))
        sys.stdout.write(f"{rho}: {red / HISTORIES:.1%} red at any of {LOOKS} looks\n")


if __name__ == "__main__":
    main()
