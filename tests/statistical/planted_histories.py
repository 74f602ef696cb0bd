"""Histories in which one commit slows a program, on machines of known noise; time is counted, not taken."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.culprit.choice import Costs, choose
from steelyard.analyse.culprit.evidence import INFORMATION, STEPS, Evidence
from steelyard.analyse.culprit.history import CommitFacts, History
from steelyard.analyse.culprit.posterior import Posterior
from steelyard.analyse.culprit.search import Answer, Search

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Noise = Callable[[np.random.Generator], float]

BUILD_S: Final = 20.0
RUN_S: Final = 1.0
STEP: Final = 0.05
MOST_BLOCKS: Final = 4000
RUNS_OF_SCRIPT: Final = 5
"""What scripts for `git bisect run` commonly do: the median of five runs against a threshold half-way."""


def normal(rng: np.random.Generator) -> float:
    return float(rng.standard_normal())


def lognormal(rng: np.random.Generator) -> float:
    """Skewed: most runs are about equally fast, some take much longer."""
    return (float(rng.lognormal()) - math.exp(0.5)) / math.sqrt((math.e - 1) * math.e)


def heavy(rng: np.random.Generator) -> float:
    return float(rng.standard_t(3)) / math.sqrt(3)


def outliers(rng: np.random.Generator) -> float:
    """Now and then something else runs: one run of thirty takes up to thirty standard deviations longer."""
    return float(rng.standard_normal()) + (30 * float(rng.random()) if rng.random() < 1 / 30 else 0.0)


NOISES: Final[dict[str, Noise]] = {
    "normal": normal,
    "lognormal": lognormal,
    "heavy": heavy,
    "drift": normal,
    "outliers": outliers,
}
SHAPES: Final = (
    "one step",
    "step down",
    "up, down, up",
    "two steps",
    "three steps",
    "slow drift",
    "culprit does not build",
    "no step",
)
"""What happens in a history, all in all by `STEP` but for the last."""
SLOPE: Final = 200
"""Commits of a slow drift."""


@dataclass
class Machine:
    """A program at each commit, and a clock.

    ``levels`` are logarithms of its time, that of the good end last; ``walk`` is the drift from run to run in
    units of the noise.
    """

    levels: np.ndarray
    sd: float
    noise: Noise
    rng: np.random.Generator
    walk: float = 0.0
    peculiar: float = 0.0
    build_s: float = BUILD_S
    seconds: float = 0.0
    builds: int = 0
    runs: int = 0
    fails: frozenset[int] = frozenset()
    _built: set[int] = field(default_factory=set)
    _state: float = 0.0

    def build(self, commit: int) -> bool:
        """Build a commit, unless that was done; give whether it can be built."""
        if commit not in self._built:
            self._built.add(commit)
            self.builds += 1
            self.seconds += self.build_s
        return commit not in self.fails

    def run(self, commit: int) -> float:
        self.runs += 1
        self._state += self.walk * self.sd * normal(self.rng)
        taken = math.exp(self.levels[commit] + self._state + self.sd * self.noise(self.rng))
        self.seconds += RUN_S * taken
        return taken

    def block(self, commits: Sequence[int]) -> list[float]:
        """Run commits in random order; give what they took, in the order of the commits."""
        taken = dict.fromkeys(range(len(commits)), 0.0)
        for at in self.rng.permutation(len(commits)):
            taken[int(at)] = self.run(commits[at])
        return list(taken.values())


@dataclass(frozen=True)
class Planted:
    """A history with its truth: a culprit, or -1 where no single commit is."""

    history: History
    culprit: int
    machine: Machine

    def rise(self, suspects: Sequence[int]) -> float:
        """Give how much of the difference of both ends lies at commits that stand in a row."""
        levels = self.machine.levels
        return float((levels[suspects[-1]] - levels[suspects[0] - 1]) / (levels[-2] - levels[-1]))


def linear(size: int) -> History:
    return History(tuple(CommitFacts(f"{at:040x}", str(at), (at - 1,) if at else ()) for at in range(size)))


def planted(
    number: int,
    kind: str,
    sd: float,
    *,
    size: int | None = None,
    peculiar: float = 0.0,
    shape: str = "one step",
) -> Planted:
    """Give a history of 64 to 1024 commits with one step, a twentieth of whose commits do not build."""
    seed = [32, number, list(NOISES).index(kind), round(1000 * sd)]
    rng = np.random.default_rng(seed if shape == SHAPES[0] else [*seed, SHAPES.index(shape)])
    size = size or int(2 ** rng.uniform(8 if shape == "slow drift" else 6, 10))
    culprit = int(rng.integers(size))
    levels = np.zeros(size + 1)
    levels[:size] = math.log1p(STEP) * _shaped(shape, size, culprit, rng)
    levels += rng.normal(0, peculiar, size + 1)
    fails: set[int] = set()
    if shape == "culprit does not build":
        culprit = min(culprit, size - 2)
        fails.add(culprit)
    while len(fails) < size // 20:
        # Commits that do not build come in stretches.
        begin = int(rng.integers(size - 1))
        fails |= set(range(begin, min(begin + int(rng.integers(1, 5)), size - 1)))
    walk = 0.3 if kind == "drift" else 0.0
    machine = Machine(levels, sd, NOISES[kind], rng, walk, fails=frozenset(fails))
    is_one = shape in {"one step", "step down", "culprit does not build"}
    return Planted(linear(size), culprit if is_one else -1, machine)


def _shaped(shape: str, size: int, culprit: int, rng: np.random.Generator) -> np.ndarray:
    """Give the shares of the whole difference that each commit has."""
    found = np.zeros(size)
    if shape in {"one step", "step down", "culprit does not build"}:
        found[culprit:] = -1.0 if shape == "step down" else 1.0
    elif shape == "slow drift":
        begin = int(rng.integers(size - SLOPE))
        found = np.clip((np.arange(size) - begin) / SLOPE, 0.0, 1.0)
    elif shape != "no step":
        parts = {"up, down, up": (1.0, -1.0, 1.0), "two steps": (0.5,) * 2, "three steps": (1 / 3,) * 3}[
            shape
        ]
        for place, part in zip(sorted(rng.choice(size, len(parts), replace=False)), parts, strict=True):
            found[place:] += part
    return found


@dataclass(frozen=True)
class Outcome:
    """What a search gave: ``None`` where it named nothing; the largest step where it named several."""

    is_right: bool | None
    builds: int
    seconds: float
    suspects: int = 1
    probability: float = math.nan
    answer: Answer = Answer.FOUND
    is_largest_right: bool | None = None
    rises: tuple[float, ...] = ()
    """How much of the difference lies at each commit that was named, alone or as one of several."""


def searched(case: Planted, confidence: float = 0.95) -> Outcome:
    """Search as `steelyard bisect` does."""
    machine, last = case.machine, len(case.history) - 1
    search = Search(case.history, confidence)
    machine.build(-1)
    machine.build(last)
    built: set[int] = set()
    while (known := search.know()).answer is Answer.OPEN and search.blocks.count < MOST_BLOCKS:
        if not search.differs:
            search.add_ends(*machine.block((-1, last)))
            continue
        choice = search.choose(known, Costs(machine.build_s, 3 * RUN_S, frozenset(built)))
        if choice is None:
            break
        both = [choice.commit] if choice.beside is None else [choice.beside, choice.commit]
        if lacking := [commit for commit in both if not machine.build(commit)]:
            search.failed.update(lacking)
            continue
        built.update(at for at in both if at >= 0)
        for _ in range((choice.blocks + 1) // 2):
            if choice.beside is not None:
                before, after = machine.block(both)
                search.add_step(choice.beside, choice.commit, after / before)
                continue
            first, candidate, bad = machine.block((-1, choice.commit, last))
            search.add(choice.commit, first, candidate, bad)
    is_right = bool(known.suspects[case.culprit]) if known.answer is Answer.FOUND else None
    largest = None
    if known.answer is Answer.SEVERAL and known.evidence is not None:
        step = search.steps(known.evidence)[0]
        largest = step.before < case.culprit <= step.after
    named = [np.flatnonzero(known.suspects).tolist()] if known.answer is Answer.FOUND else []
    if known.answer is Answer.SEVERAL and known.evidence is not None:
        named = [[step.after] for step in search.steps(known.evidence) if step.after - step.before == 1]
    return Outcome(
        is_right,
        machine.builds,
        machine.seconds,
        int(known.suspects.sum()),
        known.probability,
        known.answer,
        largest,
        tuple(map(case.rise, named)),
    )


def run_by_script(case: Planted) -> Outcome:
    """Search as `git bisect run` does, by the usual script: it stays on one path, and skips as it does."""
    machine, last = case.machine, len(case.history) - 1
    machine.build(-1)
    machine.build(last)
    good = float(np.median([machine.run(-1) for _ in range(RUNS_OF_SCRIPT)]))
    bad = float(np.median([machine.run(last) for _ in range(RUNS_OF_SCRIPT)]))
    threshold = (good + bad) / 2
    low, high, skipped = -1, last, set[int]()
    while inside := [at for at in range(low + 1, high) if at not in skipped]:
        # Beside what was skipped, the nearest commit to the middle that was not.
        middle = min(inside, key=lambda at: abs(at - (low + high) / 2))
        if not machine.build(middle):
            skipped.add(middle)
            continue
        taken = float(np.median([machine.run(middle) for _ in range(RUNS_OF_SCRIPT)]))
        low, high = (low, middle) if taken > threshold else (middle, high)
    return Outcome(low < case.culprit <= high, machine.builds, machine.seconds, high - low)


def by_oracle(case: Planted, *, is_pooled: bool) -> Outcome:
    """Search as one who knows noise and step: the price of not knowing them is what others take beyond.

    The noise is normal for it. Pooled, it trusts ends that were measured once, at the begin; else each block
    has its own, as those of `searched`.
    """
    machine, size, step = case.machine, len(case.history), math.log1p(STEP)
    runs = 1 if is_pooled else 3
    per_block = (step / machine.sd) ** 2 / (1.0 if is_pooled else 1.5)
    machine.build(-1)
    machine.build(size - 1)
    begin = [machine.block((-1, size - 1)) for _ in range(10)] if is_pooled else []
    level = float(np.mean([np.log(each).sum() - step for each in begin])) / 2 if is_pooled else 0.0
    none = np.zeros((0, 0))
    scale = step * math.sqrt(INFORMATION / per_block)
    known = Evidence(1, step / STEPS, scale, 1.0, (), (), none, none, none, none, np.zeros(0, dtype=np.int64))
    odds, built, failed = np.zeros(size), set[int](), set[int]()
    while True:
        weights = np.exp(odds - odds.max())
        weights /= weights.sum()
        classes = case.history.classes(frozenset(failed))
        suspects = classes == int(np.argmax(np.bincount(classes, weights)))
        if weights[suspects].sum() >= 0.95:
            chance = float(weights[suspects].sum())
            right = bool(suspects[case.culprit])
            return Outcome(right, machine.builds, machine.seconds, int(suspects.sum()), chance)
        costs = Costs(machine.build_s, runs * RUN_S, frozenset(built))
        choice = choose(case.history, known, Posterior(weights, 0.0, 0.0), costs, failed)
        assert choice is not None
        if not machine.build(choice.commit):
            failed.add(choice.commit)
            continue
        built.add(choice.commit)
        for _ in range((choice.blocks + 1) // 2):
            if is_pooled:
                place = math.log(machine.run(choice.commit)) - level
            else:
                first, candidate, bad = np.log(machine.block((-1, choice.commit, size - 1)))
                place = candidate - (first + bad - step) / 2
            # Half of the squared distance to 0, less that to the step.
            odds += per_block * (place / step - 0.5) * case.history.contains(choice.commit)
