"""What one verdict from several results promises, each of which stopped when it was settled."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from statistical.test_sequential import at_most
from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.comparison.interim_schedule import next_look
from steelyard.analyse.comparison.pooling import pooled
from steelyard.analyse.comparison.sequential import Design, SequentialComparison, fixed_look

if TYPE_CHECKING:
    from collections.abc import Callable

STUDIES = 400
MOST = 120
Z = 1.959963984540054


def stopped(rng: np.random.Generator, true: float, spread: float) -> tuple[float, float]:
    """Give log-ratio and standard error of a comparison that stopped when it was settled."""
    differences = true + spread * rng.standard_normal(MOST)
    comparison, size = SequentialComparison(Design()), 10
    while not comparison.look(differences[:size], size / MOST).is_settled and size < MOST:
        size = min(next_look(size), MOST)
    alone = fixed_look(Design(Margin(0.5)), differences[:size])
    return math.log(alone.ratio), alone.log_width / 2 / Z


@pytest.mark.parametrize("between", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("hosts", [1, 2, 3, 6])
def test_the_common_interval_holds_the_mean_over_hosts(
    hosts: int, between: float, simulated: Callable[[int], int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Two hosts that differ are no part of the promise: nothing is claimed of them where that shows."""
    missed, studies = 0, simulated(STUDIES)
    for study in range(studies):
        rng = np.random.default_rng([111, hosts, round(1000 * between), study])
        spreads = rng.choice([0.02, 0.04, 0.1], hosts)
        parts = [stopped(rng, 0.01 + between * rng.standard_normal(), spread) for spread in spreads]
        found = pooled(*zip(*parts, strict=True), is_random=True)
        low, high = found.limits(0.025)
        is_silent = hosts == 2 and found.p_disagreement < 0.05
        missed += not (low <= 0.01 <= high) and not is_silent
    with capsys.disabled():
        sys.stdout.write(f"\n{hosts} hosts, between {between}: {missed / studies:.1%} missed\n")
    if not (hosts <= 2 and between):
        assert at_most(missed, studies, 0.06), missed
