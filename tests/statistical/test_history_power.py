"""How often short histories show a change, beside an oracle and Apache Otava; the guide shows the tables.

``python -m statistical.test_history_power`` in ``tests`` writes the tables again; the row of Apache Otava is
what `benches/otava_history.py` prints.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest
from scipy import stats

from statistical.test_history import dependent, is_red, is_red_at_any_look

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

GUIDE: Final = Path(__file__).resolve().parents[2] / "docs/guides/history.md"
NOISE: Final = 0.02
SIZES: Final = (10, 12, 16, 20)
STEPS: Final = (0.05, 0.1, 0.2)
HISTORIES: Final = 2000
ALARMS: Final = 600
LOOKS: Final = 100
ALLOWED: Final = {"default": 0.7, "`--autocorrelation 0.3`": 0.3, "`--independent`": 0.0}

POWER_HEAD: Final = "| autocorrelation | change | | 10 results | 12 | 16 | 20 |"
LAST_HEAD: Final = "| last 3 of 16 slower by | 5 % | 10 % | 20 % | 50 % | 200 % |"
ALARM_HEAD: Final = "| autocorrelation | 0 | 0.3 | 0.4 | 0.7 |"
LAST_STEPS: Final = (0.05, 0.1, 0.2, 0.5, 2.0)
CORRELATIONS: Final = (0.0, 0.3, 0.4, 0.7)


def history(rho: float, change: float, size: int, after: int, number: int) -> np.ndarray:
    rng = np.random.default_rng([83, number, size, after, round(1000 * rho), round(1000 * change)])
    values = dependent(rho)(rng, size)
    values[size - after :] *= 1 + change
    return values


def share(
    allowed: float, rho: float, change: float, size: int, after: int, histories: int = HISTORIES
) -> float:
    found = sum(is_red(history(rho, change, size, after, each), allowed) for each in range(histories))
    return found / histories


def oracle(rho: float, change: float, size: int, after: int) -> float:
    """Give the power of who knows noise, autocorrelation and place, and looks once: a likelihood ratio."""
    places = np.arange(size)
    inverse = np.linalg.inv(NOISE**2 * rho ** np.abs(places[:, None] - places[None, :]))
    ones, step = np.ones(size), (places >= size - after).astype(float)
    information = step @ inverse @ step - (ones @ inverse @ step) ** 2 / (ones @ inverse @ ones)
    return float(stats.norm.cdf(math.log1p(change) * math.sqrt(information) - stats.norm.ppf(0.95)))


def percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def power_rows(histories: int = HISTORIES) -> list[str]:
    found = []
    for rho in (0.0, 0.3):
        for change in STEPS:
            head = [f"{rho:g}", percent(change)]
            for name, allowed in ALLOWED.items():
                if allowed >= rho:
                    shares = [share(allowed, rho, change, size, size // 2, histories) for size in SIZES]
                    found.append(row([*head, name, *map(percent, shares)]))
            known = [oracle(rho, change, size, size // 2) for size in SIZES]
            found.append(row([*head, "oracle", *map(percent, known)]))
    return found


def last_rows(histories: int = HISTORIES) -> list[str]:
    return [
        row([name, *(percent(share(allowed, 0.0, step, 16, 3, histories)) for step in LAST_STEPS)])
        for name, allowed in ALLOWED.items()
    ] + [row(["oracle", *(percent(oracle(0.0, step, 16, 3)) for step in LAST_STEPS)])]


def alarm_rows(histories: int = ALARMS) -> list[str]:
    """Give the share of unchanged histories that are red at any of 100 looks."""
    found = []
    for name, allowed in ALLOWED.items():
        cells = []
        for rho in CORRELATIONS:
            red = sum(
                is_red_at_any_look(history(rho, 0.0, LOOKS, 0, each), allowed) for each in range(histories)
            )
            cells.append(f"{100 * red / histories:.1f} %" if allowed >= rho else "not allowed for")
        found.append(row([name, *cells]))
    return found


@pytest.mark.parametrize(
    ("allowed", "rho", "least"),
    [
        (0.0, 0.0, (0.75, 0.85, 0.95, 0.98)),
        (0.3, 0.0, (0.45, 0.58, 0.75, 0.90)),
        (0.3, 0.3, (0.45, 0.58, 0.75, 0.90)),
    ],
)
def test_a_step_of_five_percent_is_found(
    allowed: float, rho: float, least: tuple[float, ...], simulated: Callable[[int], int]
) -> None:
    """Red at that very look, the error of all other looks paid for; one-sided, 1 in 1000."""
    histories = simulated(HISTORIES)
    for size, promised in zip(SIZES, least, strict=True):
        found = round(histories * share(allowed, rho, 0.05, size, size // 2, histories))
        assert float(stats.binom.cdf(found, histories, promised)) > 0.001, (size, found)


def test_power_grows_with_the_step() -> None:
    for allowed in ALLOWED.values():
        shares = [share(allowed, 0.0, step, 16, 3, 60) for step in LAST_STEPS]
        assert shares == sorted(shares)
        assert shares[-1] == 1


def shown(head: str) -> list[str]:
    lines = GUIDE.read_text(encoding="utf-8").partition(head)[2].splitlines()[2:]
    return lines[: next(place for place, line in enumerate(lines) if not line.startswith("|"))]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_guide_shows_what_is_measured() -> None:
    assert shown(POWER_HEAD) == power_rows()
    assert shown(LAST_HEAD) == last_rows()
    assert [line for line in shown(ALARM_HEAD) if "Otava" not in line] == alarm_rows()


def write() -> None:
    """Write the tables into the guide."""
    text = GUIDE.read_text(encoding="utf-8")
    otava = [line for line in shown(ALARM_HEAD) if "Otava" in line]
    for head, rows in (
        (POWER_HEAD, power_rows()),
        (LAST_HEAD, last_rows()),
        (ALARM_HEAD, [*alarm_rows(), *otava]),
    ):
        text = text.replace("\n".join(shown(head)), "\n".join(rows)) if shown(head) else text
    GUIDE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
