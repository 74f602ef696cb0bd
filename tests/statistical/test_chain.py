"""How often a history of revisions without a change shows one, and how often a change is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.analyse.series.chain import Chain, link_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.analyse.series.chain import Link

pytestmark = pytest.mark.slow
HISTORIES = 100
REVISIONS = 60
NOISE = 0.02

Random = np.random.Generator
SCALES: dict[str, Callable[[Random], float]] = {
    "one machine": lambda _: NOISE,
    "machines of all kinds": lambda random: NOISE * float(np.exp(random.normal(0, 0.8))),
    "some ten times as noisy": lambda random: NOISE * (10 if random.random() < 0.1 else 1),
}
SHAPES: dict[str, Callable[[Random, int], np.ndarray]] = {
    "normal": lambda random, size: random.standard_normal(size),
    "heavy tails": lambda random, size: random.standard_t(3, size) / 3**0.5,
    "skewed": lambda random, size: random.exponential(1, size) - random.exponential(1, size),
    "ticks of a coarse clock": lambda random, size: random.choice([-2.0, 0, 0, 0, 0, 0, 0, 2.0], size),
    "an offset of each job": lambda random, size: random.normal(0, 0.5) + random.standard_normal(size) / 2,
}


def drawn(random: Random, blocks: int, scale: str, shape: str, levels: np.ndarray) -> list[Link]:
    """Draw what one job after each revision knows."""
    links = [
        link_of(
            place,
            place + 1,
            step + SCALES[scale](random) * SHAPES[shape](random, blocks),
            is_mean=False,
        )
        for place, step in enumerate(np.diff(levels))
    ]
    return [link for link in links if link is not None]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("blocks", [5, 12])
def test_histories_without_a_change_show_one_in_at_most_5_percent(
    blocks: int, scale: str, shape: str
) -> None:
    random = np.random.default_rng(11)
    levels = np.zeros(REVISIONS)
    shown = sum(
        bool(Chain.of(REVISIONS, drawn(random, blocks, scale, shape, levels)).changes(0.95))
        for _ in range(HISTORIES)
    )
    # As many as 5 % give in one of a thousand cases.
    assert shown <= 13


def test_a_step_and_a_drift_are_found() -> None:
    random = np.random.default_rng(12)
    step = np.where(np.arange(60) < 30, 0.0, 0.05)
    # Eleven standard errors of one link; six of all links together.
    drift = np.linspace(0, 0.2, 60)
    for levels, least in ((step, 0.98), (drift, 0.8)):
        found = sum(
            any(
                change.is_slower
                for change in Chain.of(60, drawn(random, 20, "one machine", "normal", levels)).changes(0.95)
            )
            for _ in range(100)
        )
        assert found >= 100 * least


def test_windows_cover_the_truth() -> None:
    random = np.random.default_rng(13)
    levels = np.cumsum(random.normal(0, 0.03, 40))
    outside = 0
    for _ in range(100):
        chain = Chain.of(40, drawn(random, 10, "machines of all kinds", "normal", levels))
        windows = [window for last in range(40) for window in chain.windows_to(last, 0.95)]
        outside += any(
            not window.low <= np.exp(levels[window.second] - levels[window.first]) <= window.high
            for window in windows
        )
    assert outside <= 11
