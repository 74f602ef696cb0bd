"""The search for the commit that changed a program: what is known after each block, and what to do next."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.comparison.interim_schedule import next_look
from steelyard.analyse.comparison.sequential import Design, SequentialComparison
from steelyard.analyse.comparison.signed_rank import pseudomedian
from steelyard.analyse.culprit.choice import Choice, choose, seconds_left
from steelyard.analyse.culprit.evidence import INFORMATION, STEPS, Blocks, favour, gather
from steelyard.analyse.culprit.posterior import posterior_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.analyse.comparison.sequential import Look
    from steelyard.analyse.culprit.choice import Costs
    from steelyard.analyse.culprit.evidence import Evidence
    from steelyard.analyse.culprit.history import History
    from steelyard.analyse.culprit.posterior import Posterior

FIRST_LOOK: Final = 10
"""Blocks of both revisions before anything is said of them."""
MOST_BLOCKS_OF_ENDS: Final = 400
"""Blocks in which both revisions must differ: beyond, each commit would take as many."""
DECISION_BLOCKS: Final = 16
"""Blocks so far for each one that is measured before the next decision: fewer would hardly change it."""
CONFIRM_FROM: Final = 0.7
"""Probability of a commit from which on it is measured beside its parent: that says of both sides at once."""
FIRST_PAIRS: Final = 6
"""Blocks of a commit and its parent before anything is said of them."""
LEAST_SDS: Final = 1.645
"""Standard errors by which the difference of both revisions may be smaller than it seems."""
SURE_BLOCKS: Final = 4
"""Blocks of a commit beside a step of several."""
SURE_SDS: Final = 6.0
"""Standard errors of a level that a step must have before it is said to lie beside that commit."""
MOST_STEP_BLOCKS: Final = 64
"""Blocks of a commit beside a step; a step that takes more is not followed any further."""


class Answer(StrEnum):
    """What is known of the change."""

    OPEN = "open"
    """More measurements are wanted."""
    FOUND = "found"
    """One commit, or commits that no measurement can tell apart, has the stated probability."""
    SEVERAL = "several"
    """More than one commit made the change."""
    SAME = "same"
    """Both revisions do not differ by more than the margin."""
    UNSEEN = "unseen"
    """No difference of both revisions was seen in the blocks that may be spent on it."""


@dataclass(frozen=True, slots=True)
class Level:
    """What a measured commit takes.

    Parameters
    ----------
    commit : int
        Which one; -1 for the first revision.
    place, sd : float
        Logarithm of its value over the first revision's, with standard error.
    blocks : int
        Blocks it was measured in.
    """

    commit: int
    place: float
    sd: float
    blocks: int


@dataclass(frozen=True, slots=True)
class Step:
    """A step between two measured commits.

    Parameters
    ----------
    before, after : int
        Places of the commits, the first revision being -1; where they are neighbours, one commit made it.
    size, sd : float
        Logarithm of the level behind it over that before it, with standard error.
    """

    before: int
    after: int
    size: float
    sd: float


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What the blocks so far say.

    Parameters
    ----------
    answer : Answer
        Whether and how the question is answered.
    look : Look or None
        The comparison of both revisions; ``None`` before the first look.
    weights : ndarray
        Probability that each commit alone made the change, shape (n_commits,).
    several : float
        Probability that more than one did.
    suspects : ndarray
        The most probable commit with those that cannot be told apart from it, shape (n_commits,).
    evidence, posterior : Evidence, Posterior or None
        What they follow from; ``None`` before both revisions are known to differ.
    """

    answer: Answer
    look: Look | None
    weights: NDArray[np.float64]
    several: float
    suspects: NDArray[np.bool_]
    evidence: Evidence | None = None
    posterior: Posterior | None = None

    @property
    def probability(self) -> float:
        """Probability of the suspects."""
        return float(self.weights[self.suspects].sum())


@dataclass
class Search:
    """All blocks of a search, and what follows from them; it does not depend on when it is asked.

    Parameters
    ----------
    history : History
        Commits behind the first revision up to the last one.
    confidence : float
        Probability at which the search ends, in (0.5, 1).
    margin : Margin
        Difference of both revisions that counts as none.
    """

    history: History
    confidence: float = 0.95
    margin: Margin = field(default_factory=Margin)
    blocks: Blocks = field(default_factory=Blocks)
    failed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Prepare the comparison of both revisions."""
        self._ends = SequentialComparison(Design(Margin(self.margin.relative, self.confidence)))
        self._next_look = FIRST_LOOK
        self._look: Look | None = None

    def add_ends(self, first: float, last: float) -> None:
        """Add a block of both revisions.

        Parameters
        ----------
        first, last : float
            What they took, above 0.
        """
        self.blocks.ends.append(math.log(last / first))
        count = len(self.blocks.ends)
        if count >= self._next_look and not self.blocks.candidates:
            self._look = self._ends.look(np.array(self.blocks.ends), min(count / MOST_BLOCKS_OF_ENDS, 1.0))
            self._next_look = min(next_look(count), max(MOST_BLOCKS_OF_ENDS, count + 1))

    def add_step(self, before: int, after: int, ratio: float) -> None:
        """Add a block of two commits, the first of which may be -1: what the second took over the first."""
        self.blocks.steps.setdefault((before, after), []).append(math.log(ratio))

    def add(self, commit: int, first: float, candidate: float, last: float) -> None:
        """Add a block of both revisions and a commit between them, all above 0."""
        pair = (math.log(candidate / first), math.log(candidate / last))
        self.blocks.candidates.setdefault(commit, []).append(pair)

    @property
    def differs(self) -> bool:
        """Whether both revisions are known to differ."""
        look = self._look
        return look is not None and (look.low > 1 or look.high < 1)

    def know(self) -> Knowledge:
        """Give what the blocks say."""
        size = len(self.history)
        if not self.differs:
            prior = np.full(size, 1.0 / size)
            answer = Answer.OPEN
            if self._look is not None and self._look.is_settled:
                answer = Answer.SAME
            elif len(self.blocks.ends) >= MOST_BLOCKS_OF_ENDS:
                answer = Answer.UNSEEN
            return Knowledge(answer, self._look, prior, 0.0, np.ones(size, dtype=np.bool_))
        evidence = gather(self.blocks)
        posterior = posterior_of(self.history, evidence)
        classes = self.history.classes(frozenset(self.failed))
        suspects = classes == int(np.argmax(np.bincount(classes, posterior.weights)))
        answer = Answer.OPEN
        if posterior.weights[suspects].sum() >= self.confidence:
            answer = Answer.OPEN if self._unsure_side(evidence, suspects) else Answer.FOUND
        elif posterior.several >= self.confidence and self._next_step(evidence) is None:
            answer = Answer.SEVERAL
        return Knowledge(
            answer, self._look, posterior.weights, posterior.several, suspects, evidence, posterior
        )

    def choose(self, known: Knowledge, costs: Costs) -> Choice | None:
        """Give what to measure next; ``None`` where nothing says more.

        Parameters
        ----------
        known : Knowledge
            Of this search, whose answer is open; both revisions differ.
        costs : Costs
            What it costs.
        """
        if known.evidence is None or known.posterior is None:
            return None
        if known.posterior.several >= self.confidence:
            return self._next_step(known.evidence)
        if known.probability >= min(CONFIRM_FROM, self.confidence):
            side = self._unsure_side(known.evidence, known.suspects)
            if side is not None:
                return self._pairs(side)
        choice = choose(self.history, known.evidence, known.posterior, costs, self.failed)
        few = self.blocks.count // DECISION_BLOCKS
        return None if choice is None else replace(choice, blocks=max(choice.blocks, few))

    def seconds_left(self, known: Knowledge, costs: Costs) -> float:
        """Give the time that the search may still take [s]; infinite where that is unknown."""
        if known.posterior is None or known.evidence is None:
            look = known.look
            further = None if look is None else look.further_blocks
            return math.inf if further is None else further * costs.block_s
        choice = choose(self.history, known.evidence, known.posterior, costs, self.failed)
        return max(seconds_left(known.posterior, self.confidence, choice), costs.block_s)

    def is_confirmed(self, pair: tuple[int, int], size: float, scale: float) -> bool:
        """Whether two commits that were measured beside each other are more than a part of a step apart.

        All steps that are asked about share the error of the confidence: the first one has three quarters of
        it, each further one three quarters of the rest.
        """
        values = self.blocks.steps.get(pair)
        if not values:
            return False
        p_wrong = (1 - self.confidence) * 0.75 * 0.25 ** list(self.blocks.steps).index(pair)
        return favour(np.array(values), size, scale) >= -math.log(p_wrong)

    def _unsure_side(self, evidence: Evidence, suspects: NDArray[np.bool_]) -> tuple[int, int] | None:
        """Give the commits before and behind the suspects that are not known to be a step apart."""
        count = self.blocks.differences().size
        sd = evidence.scale / math.sqrt(evidence.independence * INFORMATION * count)
        whole = evidence.sign * max(STEPS * evidence.step - LEAST_SDS * sd, STEPS * evidence.step / 2)
        for pair in self.history.sides(suspects, frozenset(self.failed)):
            if not self.is_confirmed(pair, whole, evidence.scale):
                return pair
        return None

    def _pairs(self, pair: tuple[int, int]) -> Choice:
        done = len(self.blocks.steps.get(pair, ()))
        # Half of them are measured before the next decision.
        return Choice(pair[1], 2 * max(FIRST_PAIRS - done, done // 8, 1), 0.0, pair[0])

    def levels(self, evidence: Evidence) -> list[Level]:
        """Give what the first revision, each measured commit and the last revision take, in order."""
        differences = self.blocks.differences()
        whole = pseudomedian(differences)
        per_run = evidence.scale / math.sqrt(evidence.independence)
        sd_of_whole = per_run / math.sqrt(INFORMATION * differences.size)
        found = [Level(-1, 0.0, 0.0, differences.size)]
        for commit in sorted(self.blocks.candidates):
            first, last = np.array(self.blocks.candidates[commit]).T
            place = (pseudomedian(first) + pseudomedian(last) + whole) / 2
            found.append(Level(commit, place, per_run / math.sqrt(INFORMATION * first.size), first.size))
        size = len(self.history)
        found.append(Level(size - 1, whole, sd_of_whole, differences.size))
        return found

    def steps(self, evidence: Evidence) -> list[Step]:
        """Give the steps of the piecewise constant level that fits best, the largest first.

        Two commits between which none can be measured have a step if they were measured beside each other and
        confirm it; else it lies somewhere between the measured commits around them.
        """
        levels = self.levels(evidence)
        found = []
        for at, step in self._fitted(levels):
            if not self._inside(step) and not self._has_step(step, evidence):
                low, high = levels[max(at - 2, 0)], levels[min(at + 1, len(levels) - 1)]
                sd = math.hypot(low.sd, high.sd)
                found.append(Step(low.commit, high.commit, high.place - low.place, sd))
            else:
                found.append(step)
        return sorted(found, key=lambda step: -abs(step.size))

    def _fitted(self, levels: list[Level]) -> list[tuple[int, Step]]:
        """Give the steps of the fit, the largest first, and at which level each begins."""
        found = []
        for before, after in pairwise(_parts(levels)):
            low, high = _pooled(levels[slice(*before)]), _pooled(levels[slice(*after)])
            size, sd = high[0] - low[0], math.hypot(low[1], high[1])
            found.append((after[0], Step(levels[after[0] - 1].commit, levels[after[0]].commit, size, sd)))
        return sorted(found, key=lambda each: -abs(each[1].size))

    def _inside(self, step: Step) -> list[int]:
        """Give the commits between those of a step that can be measured."""
        return [at for at in range(step.before + 1, step.after) if at not in self.failed]

    def _has_step(self, step: Step, evidence: Evidence) -> bool:
        return self.is_confirmed((step.before, step.after), step.size, evidence.scale)

    def _next_step(self, evidence: Evidence) -> Choice | None:
        """Give what narrows the largest step that is wider than a commit, or confirms it."""
        per_run = evidence.scale / math.sqrt(evidence.independence * INFORMATION)
        for _, step in self._fitted(self.levels(evidence)):
            inside, pair = self._inside(step), (step.before, step.after)
            if inside:
                commit = inside[len(inside) // 2]
                wanted = math.ceil((SURE_SDS * per_run / abs(step.size)) ** 2)
                wanted = min(max(wanted, SURE_BLOCKS), MOST_STEP_BLOCKS)
                lacking = wanted - len(self.blocks.candidates.get(commit, ()))
                if lacking > 0:
                    # Half of them are measured before the next decision.
                    return Choice(commit, 2 * lacking, 0.0)
            elif (
                not self._has_step(step, evidence) and len(self.blocks.steps.get(pair, ())) < MOST_STEP_BLOCKS
            ):
                return self._pairs(pair)
        return None


def _parts(levels: list[Level]) -> list[tuple[int, int]]:
    """Give the parts of equal level, as ranges of places: those of the least squares plus a price for each.

    References
    ----------
    .. [1] Jackson et al. (2005), IEEE Signal Process. Lett. 12 (optimal partitioning). The price is that of
       the Bayesian information criterion for a level and a place, doubled.
    """
    places = np.array([level.place for level in levels])
    weights = 1.0 / _variances(levels)
    sums = [np.concatenate([[0.0], np.cumsum(weights * places**power)]) for power in range(3)]
    price = 4.0 * math.log(max(len(levels), 3))
    best, begins = [0.0], [0]
    for end in range(1, len(levels) + 1):
        weight, first, second = (each[end] - each[:end] for each in sums)
        costs = np.array(best) + second - first**2 / weight + price
        begins.append(int(np.argmin(costs)))
        best.append(float(costs[begins[-1]]))
    found, end = [], len(levels)
    while end > 0:
        found.append((begins[end], end))
        end = begins[end]
    return found[::-1]


def _variances(levels: list[Level]) -> NDArray[np.float64]:
    """Give the squared errors of levels; the first one, to which all others refer, is not exact either."""
    sds = np.array([level.sd for level in levels])
    positive = sds[sds > 0]
    return np.asarray(np.maximum(sds, positive.min(initial=math.inf) if positive.size else 1.0) ** 2)


def _pooled(levels: list[Level]) -> tuple[float, float]:
    """Give the common level and its error."""
    weights = 1.0 / _variances(levels)
    mean = float(np.average([level.place for level in levels], weights=weights))
    return mean, float(1.0 / math.sqrt(weights.sum()))
