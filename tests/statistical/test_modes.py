"""What comparisons in duets and in drawn layouts promise: the measuring loop, with simulated values."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from steelyard.analyse.comparison.equivalence import Verdict
from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.model.plan import RANDOM_LAYOUT
from steelyard.studies.comparison.contender import Commands
from steelyard.studies.comparison.modes.choice import choice_of, trial_of
from steelyard.studies.comparison.modes.layout import LayoutVerdict
from steelyard.studies.comparison.outcome import Measured, conclude
from steelyard.studies.comparison.run.execution import Unwatched
from steelyard.studies.comparison.run.measuring import Measuring
from steelyard.studies.comparison.terms import Mode, Terms, draw_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.studies.comparison.outcome import Comparison

STUDIES = 100
DIFFERENT = {Verdict.SLOWER, Verdict.FASTER}
ENTRANTS = Commands(("a", "b"), ("a", "b")).field()
BLOCKS = 60
NOISE = 0.03
SLOW_PLACE = 48
"""A quarter of all places of a stack in a cache line: a word crosses its end there."""


def allowed(rate: float) -> float:
    """Give the share that a true rate exceeds in one of a hundred tests."""
    return rate + 2.33 * (rate * (1 - rate) / STUDIES) ** 0.5


class Machine:
    """Runs take what noise, layout and cores make of a millisecond."""

    def __init__(self, seed: int, *, penalty: float = 0.0, common: float = 0.0, core: float = 0.0) -> None:
        self._rng = np.random.default_rng(seed)
        self._penalty, self._common, self._core = penalty, common, core
        self.home = {0: 0, 1: SLOW_PLACE}
        """Places of the stacks where nobody draws them: the environments of both sides differ in size."""

    def _outcome(self, contender: Any, layout: Any, shared: float, core: float) -> SimpleNamespace:
        place = self.home[contender.number] if layout is None else layout.padding_bytes
        if layout is not None and layout.is_randomised:
            place += 16 * int(self._rng.integers(256))
        penalty = self._penalty * (place % 64 == SLOW_PLACE)
        value = 1e6 * np.exp(shared + core + penalty + NOISE * self._rng.standard_normal())
        span = {"start_ns": 0, "end_ns": round(value)}
        return SimpleNamespace(
            status="completed", exit_code=0, flags=(), own=(), quantities={}, value=lambda _: value, **span
        )

    def execute(self, contender: Any, _: int, layout: Any = None) -> SimpleNamespace:
        return self._outcome(contender, layout, self._common * self._rng.standard_normal(), 0.0)

    def execute_together(self, entries: Sequence[tuple[Any, int, Any]]) -> list[SimpleNamespace]:
        shared = self._common * self._rng.standard_normal()
        return [
            self._outcome(contender, layout, shared, self._core * worker)
            for worker, (contender, _, layout) in enumerate(entries)
        ]

    def judge(self, *_: object) -> None:
        """Accept every run."""


def measured(machine: Machine, **how: Any) -> Comparison:
    terms = Terms(extent=Extent(blocks_max=BLOCKS, budget_s=1e6), **how)
    silent: Any = SimpleNamespace(**dict.fromkeys(("admit", "keep", "note", "settle"), lambda *_: None))
    plan = draw_plan(ENTRANTS, terms)
    loop = Measuring(plan, ENTRANTS, terms, machine, silent)  # type: ignore[arg-type]
    loop.execute(Unwatched())
    found = Measured(terms, ENTRANTS.contenders, tuple(loop.runs), tuple(loop.duels), loop.end, 1.0)
    return conclude(found, (), None)


def differing(found: Sequence[Comparison]) -> float:
    return sum(each.claims[0].verdict in DIFFERENT for each in found) / len(found)


@pytest.mark.slow
def test_a_place_of_the_stack_is_a_difference_unless_it_is_drawn() -> None:
    fixed = [measured(Machine(seed, penalty=0.3), seed=seed) for seed in range(5)]
    assert differing(fixed) == 1, "one program beside itself, in environments of two sizes"
    drawn = [measured(Machine(seed, penalty=0.3), seed=seed, layout=RANDOM_LAYOUT) for seed in range(STUDIES)]
    assert differing(drawn) <= allowed(0.05)
    shares = [each.layouts[0] for each in drawn]
    # A quarter of the places is slow: 2 x 0.3^2 x 3/16 of the variance beside 2 x 0.03^2.
    true = 0.3**2 * 3 / 16
    true /= true + NOISE**2
    known = [each for each in shares if not np.isnan(each.share)]
    assert sum(each.verdict is LayoutVerdict.PRESENT for each in known) >= 0.9 * len(known)
    assert sum(not each.low <= true <= each.high for each in known) / len(known) <= allowed(0.1)


@pytest.mark.slow
def test_layout_that_does_nothing_is_seldom_found() -> None:
    found = [measured(Machine(seed), seed=seed, layout=RANDOM_LAYOUT).layouts[0] for seed in range(STUDIES)]
    assert sum(each.verdict is LayoutVerdict.PRESENT for each in found) / STUDIES <= allowed(0.025)
    assert sum(each.verdict is LayoutVerdict.UNDECIDED for each in found) >= 0.9 * STUDIES


@pytest.mark.slow
def test_duets_of_one_program_differ_as_rarely_as_promised_also_on_unlike_cores() -> None:
    duets = [
        measured(Machine(seed, common=0.1, core=0.04), seed=seed, mode=Mode.DUET) for seed in range(STUDIES)
    ]
    assert differing(duets) <= allowed(0.05)


def width(found: Comparison) -> float:
    return float(np.log(found.claims[0].high / found.claims[0].low))


def test_what_disturbs_both_sides_of_a_duet_cancels() -> None:
    how: dict[str, Any] = {"seed": 3}
    turns = measured(Machine(3, common=0.2), **how)
    duet = measured(Machine(3, common=0.2), mode=Mode.DUET, **how)
    assert width(duet) < width(turns) / 2
    assert duet.duet is not None
    assert duet.duet.median > 0.8
    assert turns.duet is None


@pytest.mark.parametrize(("turns", "core", "verdict"), [(0.3, 0.0, "duet"), (0.0, 1.0, "turns")])
def test_a_trial_chooses_what_needs_less_time(turns: float, core: float, verdict: str) -> None:
    machines: list[Any] = [Machine(1, common=turns), Machine(2, core=core)]
    terms = Terms(extent=Extent(budget_s=600.0))
    found = choice_of(trial_of(terms, ENTRANTS.contenders[0], *machines), seed=1)
    assert found.pairs == (60, 60)
    assert found.verdict == verdict
