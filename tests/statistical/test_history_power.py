"""How often short histories show a change, beside a t-test that knows its place; the guide shows the table.

``python -m statistical.test_history_power`` in ``tests`` writes the table of the guide again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pytest
from scipy import stats

from steelyard.analyse.history import FEWEST, HistoryOptions, find_changes

GUIDE: Final = Path(__file__).resolve().parents[2] / "docs/guides/history.md"
SIZES: Final = (8, 10, 12, 16, 20)
HISTORIES: Final = 400
HEAD: Final = "| noise | change | test | 8 results | 10 | 12 | 16 | 20 |"
DEPENDENT, INDEPENDENT = HistoryOptions(margin=0.0), HistoryOptions(margin=0.0, is_independent=True)


def history(noise: float, change: float, size: int, number: int) -> np.ndarray:
    rng = np.random.default_rng([83, number, size, round(1000 * noise), round(1000 * change)])
    levels = np.log1p(change) * (np.arange(size) >= size // 2)
    return np.exp(noise * rng.standard_normal(size) + levels)


def is_found(values: np.ndarray, options: HistoryOptions) -> bool:
    return bool(find_changes([values], options)[0].changes)


def is_known(values: np.ndarray) -> bool:
    half = values.size // 2
    return bool(stats.ttest_ind(np.log(values[:half]), np.log(values[half:])).pvalue <= 0.05)


TESTS: Final = {
    "default": lambda values: values.size >= FEWEST and is_found(values, DEPENDENT),
    "`--independent`": lambda values: is_found(values, INDEPENDENT),
    "oracle": is_known,
}


def share(name: str, noise: float, change: float, size: int) -> float:
    test = TESTS[name]
    return sum(test(history(noise, change, size, number)) for number in range(HISTORIES)) / HISTORIES


def rows() -> list[str]:
    found = []
    for noise in (0.02, 0.05):
        for change in (0.05, 0.1, 0.2):
            for name in TESTS:
                cells = (f"{share(name, noise, change, size):.0%}".replace("%", " %") for size in SIZES)
                found.append(f"| {noise:.0%} | {change:.0%} | {name} | {' | '.join(cells)} |")
    return [row.replace("2%", "2 %").replace("5%", "5 %").replace("0%", "0 %") for row in found]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_guide_shows_the_power_that_is_measured() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    shown = text.partition(HEAD)[2].splitlines()[2:]
    assert shown[: len(rows())] == rows()


@pytest.mark.slow
def test_without_dependence_the_place_costs_little() -> None:
    for noise, change, size in ((0.02, 0.05, 16), (0.05, 0.1, 20), (0.05, 0.2, 10)):
        known = share("oracle", noise, change, size)
        assert share("`--independent`", noise, change, size) >= known - 0.2


def write() -> None:
    """Write the table into the guide."""
    before, _, after = GUIDE.read_text(encoding="utf-8").partition(HEAD)
    rule = after.splitlines()[1]
    rest = [line for line in after.splitlines()[2:] if not line.startswith("|") and line != "POWER"]
    GUIDE.write_text("\n".join([before + HEAD, rule, *rows(), *rest]).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
