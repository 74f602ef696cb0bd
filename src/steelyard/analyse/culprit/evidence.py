"""What the blocks of a bisection say: how likely each level of a commit is, whatever the noise is like."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.intervals.describe import inner_product

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

STEPS: Final = 24
"""Steps of the grid of levels for the difference that was seen."""
SPAN: Final = 2 * STEPS
"""The grid reaches to twice the difference on either side of the first revision."""
DELTAS: Final[NDArray[np.int64]] = np.arange(6, SPAN + 1, 2)
"""Differences that the two revisions may really have, in steps: a quarter to twice of what was seen."""
SCALES: Final[NDArray[np.float64]] = np.geomspace(0.5, 2.0, 9)
"""Scales of the noise over the one that was seen."""
OFFSETS: Final = (0, 2, 5, 8)
"""Standard deviation of what is peculiar to one build (layout, alignment), in steps: up to a third of the
difference."""
_REACH: Final = 2.5
"""Standard deviations to which what is peculiar to a build is followed."""
PAIR_WEIGHT: Final = 2 / 3
"""Three differences of three runs have the information of two: with normal noise this weight makes the
product of their likelihoods the likelihood of the block."""
NU: Final = 4.0
"""Degrees of freedom of the noise: tails in which an outlier decides nothing (Lange et al. 1989)."""
INFORMATION: Final = 2 * PAIR_WEIGHT * (NU + 1) / (NU + 3)
"""Information of a block on the level of its candidate, in units of one over the squared scale."""
PART: Final = 1 / 3
"""Part of a difference that the step at a commit must exceed before it is named: half, as much as nothing but
one step explains, would take twice as many runs."""
PER_PAIR: Final = (NU + 1) / (NU + 3)
"""Information of a block of two commits on the step between them, in the same units."""
_QUARTILE: Final = 0.7407
"""Upper quartile of Student's t with `NU` degrees of freedom."""
_FEW: Final = 8
_CLIP: Final = 3.0
LEAST: Final = 1e-300
"""Below it nothing is told apart from nothing; its logarithm still exists."""


@dataclass(slots=True)
class Blocks:
    """Logarithms of the values of all blocks.

    Parameters
    ----------
    ends : list of float
        Last revision over first, in blocks without a candidate.
    candidates : dict
        By commit: of each of its blocks (candidate over first, candidate over last).
    steps : dict
        By (before, after), of which the first may be -1 for the first revision: of each of their blocks
        (after over before). In the order in which they were begun.
    """

    ends: list[float] = field(default_factory=list)
    candidates: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    steps: dict[tuple[int, int], list[float]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Blocks of any kind."""
        return len(self.ends) + sum(map(len, self.candidates.values())) + sum(map(len, self.steps.values()))

    def drop(self, commit: int) -> None:
        """Leave out what was measured of a commit."""
        self.candidates.pop(commit, None)
        for pair in [each for each in self.steps if commit in each]:
            del self.steps[pair]

    def differences(self) -> NDArray[np.float64]:
        """Give last over first of all blocks that have both."""
        inside = [first - last for each in self.candidates.values() for first, last in each]
        return np.array([*self.ends, *inside])


@dataclass(frozen=True, slots=True)
class Evidence:
    """Logarithms of likelihoods on a grid of the scale of the noise and the difference of both revisions.

    Parameters
    ----------
    sign : int
        1 where the last revision is larger, else -1.
    step : float
        Width of a step of the grid, in logarithms.
    scale : float
        Scale of the noise that was seen.
    independence : float
        Part of the blocks that would say as much if they were independent, in (0, 1].
    commits : tuple of int
        Measured commits, ascending.
    pairs : tuple of (int, int)
        Commits that were measured beside each other.
    ends : ndarray
        Of the difference of both revisions, shape (n_scales, n_deltas).
    first, last : ndarray
        Of the levels of the grid against the first and the last revision, shape (n_commits, n_scales,
        2 * SPAN + 1); the level 0 is in the middle.
    apart : ndarray
        Of the steps between the commits of pairs, shape (n_pairs, n_scales, 2 * SPAN + 1).
    counts : ndarray
        Blocks of each commit, beside both revisions.
    """

    sign: int
    step: float
    scale: float
    independence: float
    commits: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    ends: NDArray[np.float64]
    first: NDArray[np.float64]
    last: NDArray[np.float64]
    apart: NDArray[np.float64]
    counts: NDArray[np.int64]

    def around(self, level: NDArray[np.int64], offsets: int = len(OFFSETS)) -> NDArray[np.float64]:
        """Give how likely it is that each commit is at a level, but for what is peculiar to its build.

        Parameters
        ----------
        level : ndarray
            In steps from the first revision, one for each difference, shape (n_deltas,).
        offsets : int
            How many of the sizes of `OFFSETS`, the smallest first.

        Returns
        -------
        ndarray
            Shape (n_commits, n_scales, n_deltas, offsets).
        """
        against_last = level - DELTAS
        return _peculiar(
            lambda places: _at(self.first, level, places) + _at(self.last, against_last, places), offsets, 1.0
        )

    def stepping(self, size: NDArray[np.int64], offsets: int = len(OFFSETS)) -> NDArray[np.float64]:
        """Give how likely it is that the commits of each pair are a step apart.

        Parameters
        ----------
        size : ndarray
            Of the step, one for each difference, shape (n_deltas,).
        offsets : int
            As of `around`.

        Returns
        -------
        ndarray
            Shape (n_pairs, n_scales, n_deltas, offsets).
        """
        return _peculiar(lambda places: _at(self.apart, size, places), offsets, math.sqrt(2))


def _at(
    table: NDArray[np.float64], level: NDArray[np.int64], places: NDArray[np.int64]
) -> NDArray[np.float64]:
    return table[:, :, np.clip(level[:, None] + places, -SPAN, SPAN) + SPAN]


def _peculiar(
    likelihood: Callable[[NDArray[np.int64]], NDArray[np.float64]], offsets: int, factor: float
) -> NDArray[np.float64]:
    """Give a likelihood, but for what is peculiar to builds: it lies so many steps beside a level."""
    farthest = math.ceil(_REACH * factor * OFFSETS[offsets - 1])
    places = np.arange(-farthest, farthest + 1)
    beside = likelihood(places)
    top = beside.max(axis=-1)
    weights = np.zeros((places.size, offsets))
    weights[farthest, 0] = 1.0
    for at, sd in enumerate(OFFSETS[1:offsets], 1):
        density = np.exp(-0.5 * (places / (factor * sd)) ** 2) * (np.abs(places) <= _REACH * factor * sd)
        weights[:, at] = density / density.sum()
    beside -= top[..., None]
    masses = np.exp(beside, out=beside) @ weights
    return np.asarray(top[..., None] + np.log(np.maximum(masses, LEAST)), dtype=np.float64)


def gather(blocks: Blocks) -> Evidence:
    """Give the evidence of blocks in which both revisions differ.

    Inside of a block two runs of equally fast programs can be exchanged, so each of the three differences of
    its runs lies symmetrically about its level, whatever the noise is like; a difference to the mean of two
    would not where the noise is skewed.

    Parameters
    ----------
    blocks : Blocks
        At least one; the differences of both revisions are not all 0.

    References
    ----------
    .. [1] Varin, Reid & Firth (2011), Statistica Sinica 21 (composite likelihoods of pairs).
    .. [2] Lange, Little & Taylor (1989), J. Am. Stat. Assoc. 84 (t errors).
    """
    differences = blocks.differences()
    middle = float(np.median(differences))
    sign = 1 if middle >= 0 else -1
    stepped = tuple(pair for pair, each in blocks.steps.items() if each)
    inside = {commit for commit, each in blocks.candidates.items() if each}
    commits = tuple(sorted(inside.union(*stepped) - {-1}))
    pairs = [
        sign * np.array(blocks.candidates.get(commit, []), dtype=np.float64).reshape(-1, 2)
        for commit in commits
    ]
    residuals = [sign * differences - sign * middle]
    residuals += [side - np.median(side) for pair in pairs if len(pair) >= _FEW for side in pair.T]
    spread = np.concatenate(residuals)
    # Where most values are equal, as counts of pages are, their spread is not 0.
    scale = max(float(np.median(np.abs(spread))) / _QUARTILE, abs(middle) / 1e3, 1e-9)
    # The grid needs a width although nothing may have been seen.
    step = max(abs(middle), 0.25 * scale) / STEPS
    independence = _independence(blocks, sign, middle)
    levels = step * np.arange(-SPAN, SPAN + 1, dtype=np.float64)
    deltas = step * DELTAS.astype(np.float64)
    first = np.array([_summed(pair[:, 0], levels, scale) for pair in pairs])
    last = np.array([_summed(pair[:, 1], levels, scale) for pair in pairs])
    apart = np.array([_summed(sign * np.array(blocks.steps[pair]), levels, scale) for pair in stepped])
    between = np.array([each[0] - each[1] for pair in pairs for each in pair], dtype=np.float64)
    ends = _summed(sign * np.array(blocks.ends, dtype=np.float64), deltas, scale)
    ends = ends + PAIR_WEIGHT * _summed(between, deltas, scale)
    shape = (-1, SCALES.size, levels.size)
    weight = independence * PAIR_WEIGHT
    return Evidence(
        sign,
        step,
        scale,
        independence,
        commits,
        stepped,
        independence * ends,
        weight * first.reshape(shape),
        weight * last.reshape(shape),
        independence * apart.reshape(shape),
        np.array([len(pair) for pair in pairs], dtype=np.int64),
    )


def _summed(values: NDArray[np.float64], levels: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Give the logarithm of the likelihood of levels, shape (n_scales, n_levels)."""
    scales = scale * SCALES
    if not values.size:
        return np.zeros((scales.size, levels.size))
    squares = (values[:, None] - levels[None, :]) ** 2
    found = [
        -0.5 * (NU + 1) * np.log1p(squares / (NU * each * each)).sum(axis=0) - values.size * math.log(each)
        for each in scales
    ]
    return np.array(found)


def _independence(blocks: Blocks, sign: int, middle: float) -> float:
    """Give the part of the blocks that counts where neighbours resemble each other.

    What is common to all runs of a block is in none of the differences; what stays for several blocks and
    belongs to one program alone is in them.
    """
    series = [sign * (np.array(blocks.ends) - middle)]
    for pairs in map(np.array, blocks.candidates.values()):
        sides = (pairs[:, 0], pairs[:, 1], pairs[:, 0] - pairs[:, 1])
        series += [values - np.median(values) for values in sides]
    long = [values for values in series if values.size >= _FEW]
    if not long:
        return 1.0
    products, squares, count = 0.0, 0.0, 0
    bound = _CLIP * float(np.median(np.abs(np.concatenate(long)))) / _QUARTILE
    for each in long:
        values = np.clip(each, -bound, bound)
        products += inner_product(values[1:], values[:-1])
        squares += inner_product(values[1:], values[1:])
        count += values.size - 1
    if squares <= 0:
        return 1.0
    # The median of each series was subtracted, which makes neighbours look less alike than they are.
    correlation = products / squares + len(long) / count
    # Three differences of a block are two numbers.
    noise = 1.0 / math.sqrt(count * PAIR_WEIGHT)
    if correlation < 1.645 * noise:
        return 1.0
    return (1 - min(correlation, 0.95)) / (1 + min(correlation, 0.95))


def information_per_block(evidence: Evidence) -> float:
    """Give the squared distance of both states of a commit that one block adds, in units of the noise."""
    difference = STEPS * evidence.step
    return INFORMATION * evidence.independence * (difference / evidence.scale) ** 2


def favour(values: NDArray[np.float64], size: float, scale: float) -> float:
    """Give the evidence that a step is more than `PART` of a size, as the logarithm of an e-value.

    Whatever their noise, differences of two runs in random order lie symmetrically about the step. Each one
    multiplies the evidence by twice what its density with the whole step is of the sum of that and its mirror
    image about the part: where the step is no more than the part, the mean of that is at most 1, so that the
    product ever exceeds 1/p with a probability of at most p, however often one looks. That is exact for a
    given size and scale; where both are estimated from the same runs, simulation says what holds.

    Parameters
    ----------
    values : ndarray
        Logarithms of ratios of both commits, one for each block.
    size : float
        Logarithm of the ratio, not 0; the direction counts.
    scale : float
        Scale of the noise; it decides about power alone.

    References
    ----------
    .. [1] Ramdas et al. (2020), "Admissible anytime-valid sequential inference must rely on nonnegative
       martingales" (e-values for symmetric differences).
    """
    beyond = math.copysign(1.0, size) * values - PART * abs(size)
    rest = (1 - PART) * abs(size)
    near, far = ((beyond - rest) / scale) ** 2, ((beyond + rest) / scale) ** 2
    odds = 0.5 * (NU + 1) * (np.log1p(near / NU) - np.log1p(far / NU))
    return float((math.log(2.0) - np.logaddexp(0.0, odds)).sum())
