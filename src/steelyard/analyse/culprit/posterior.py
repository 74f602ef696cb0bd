"""How probable it is that each commit made the change."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.culprit.evidence import DELTAS, LEAST, OFFSETS, SCALES, STEPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.analyse.culprit.evidence import Evidence
    from steelyard.analyse.culprit.history import History

SEVERAL_PRIOR: Final = 0.03
"""Probability, before anything is measured, that two commits made the change together: own choice."""
SHARES: Final = (-0.5, 0.25, 0.5, 0.75, 1.5)
"""Shares of the difference that the first of two commits may have made."""
_OFFSET_PRIOR: Final = np.array([0.4, 0.3, 0.2, 0.1])
_OFFSETS_OF_SEVERAL: Final = 2
"""A build as peculiar as the larger ones may be is what a share of the difference looks like."""


@dataclass(frozen=True, slots=True)
class Posterior:
    """What is known by now.

    Parameters
    ----------
    weights : ndarray
        Probability that each commit alone made the change, shape (n_commits,). Together with `several` 1.
    several : float
        Probability that two commits made it together.
    offset : float
        Expected square of what is peculiar to a build, over the square of the difference.
    """

    weights: NDArray[np.float64]
    several: float
    offset: float


def posterior_of(history: History, evidence: Evidence) -> Posterior:
    """Give the probability of each commit, all being equally probable before.

    Scale of the noise, size of the difference and what is peculiar to single builds are not known: each value
    of a grid counts as much as the blocks support it.

    Parameters
    ----------
    history : History
        Commits.
    evidence : Evidence
        Of the same commits.
    """
    having_it = [history.contains(commit) for commit in evidence.commits]
    at = dict(zip(evidence.commits, having_it, strict=True))
    stepping = [at[after] & ~at[before] if before >= 0 else at[after] for before, after in evidence.pairs]
    states = np.array([*having_it, *stepping], dtype=np.float64)
    prior = np.full(len(history), 1.0 / len(history))
    patterns, belongs = _patterns(states, len(history))
    without = np.concatenate([table(np.zeros_like(DELTAS)) for table in (evidence.around, evidence.stepping)])
    having = np.concatenate([table(DELTAS) for table in (evidence.around, evidence.stepping)])
    sizes = (SCALES.size, DELTAS.size, len(OFFSETS))
    shape = (len(states), math.prod(sizes))
    base = (evidence.ends[:, :, None] + np.log(_OFFSET_PRIOR)).reshape(-1)
    gain = (having - without).reshape(shape)
    each = base + without.reshape(shape).sum(axis=0) + patterns @ gain
    # Rows: what the measured commits are like; columns: scales, differences, offsets.
    top = each.max()
    masses = np.exp(each - top)
    of_pattern = masses.sum(axis=1)
    weights = prior * of_pattern[belongs]
    total = weights.sum()
    by_offset = (masses.T @ np.bincount(belongs, prior, len(patterns))).reshape(sizes).sum(axis=(0, 1))
    offset = float(by_offset @ np.square(OFFSETS) / by_offset.sum()) / STEPS**2
    alone = math.log(total) + top - math.log(each.shape[1])
    several = _several(prior, evidence, without, having)
    odds = SEVERAL_PRIOR / (1 - SEVERAL_PRIOR) * math.exp(min(several - alone, 700.0))
    share = odds / (1 + odds)
    return Posterior((1 - share) * weights / total, share, offset)


def _patterns(states: NDArray[np.float64], size: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Give the different columns of a matrix of states, and which one each commit has."""
    if not len(states):
        return np.zeros((1, 0)), np.zeros(size, dtype=np.int64)
    packed = np.packbits(states.astype(np.bool_).T, axis=1)
    _, first, belongs = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    return states.T[first], belongs.reshape(-1)


def _several(
    prior: NDArray[np.float64],
    evidence: Evidence,
    without: NDArray[np.float64],
    having: NDArray[np.float64],
) -> float:
    """Give the logarithm of the mean likelihood of two changes, at places in the order of the history.

    What is measured depends only on between which measured commits they are.
    """
    count = len(evidence.commits)
    if not count:
        return -math.inf
    edges = np.array([0, *(commit + 1 for commit in evidence.commits), prior.size])
    inside = np.diff(np.concatenate([[0.0], np.cumsum(prior)])[edges])
    # Two different commits: of one interval with so much mass only this part of the pairs exists.
    most = np.array([prior[low:high].max(initial=0.0) for low, high in pairwise(edges)])
    both = 0.5 * inside * np.maximum(inside - most, 0.0)
    behind = np.cumsum(inside[::-1])[::-1] - inside
    total = float(inside @ behind + both.sum())
    if total <= 0:
        return -math.inf
    of_commits = (slice(None, count), ..., slice(None, _OFFSETS_OF_SEVERAL))
    of_pairs = (slice(count, None), ..., slice(None, _OFFSETS_OF_SEVERAL))
    base = (evidence.ends[:, :, None] + np.log(_OFFSET_PRIOR[:_OFFSETS_OF_SEVERAL])).reshape(-1)
    low, high = _ascending(without[of_commits]), _ascending(having[of_commits])
    # A pair says of the changes between its commits how large they are together.
    spans = np.array([(edges[:-1] > before) & (edges[:-1] <= after) for before, after in evidence.pairs])
    spans = spans.reshape(-1, inside.size).T.astype(np.float64)
    none, whole = (each[of_pairs].reshape(len(evidence.pairs), base.size) for each in (without, having))
    base = base + none.sum(axis=0)
    at_once = spans @ (whole - none)
    found = []
    for share in SHARES:
        level = np.rint(share * DELTAS).astype(np.int64)
        part = _ascending(evidence.around(level, _OFFSETS_OF_SEVERAL))
        first, second = low - part, part + (high[-1] - high)
        together = first + second + at_once
        one, other = (
            evidence.stepping(size, _OFFSETS_OF_SEVERAL).reshape(none.shape)
            for size in (level, DELTAS - level)
        )
        first, second = first + spans @ (one - none), second + spans @ (other - none)
        tops = first.max(axis=0), second.max(axis=0)
        ahead, after = np.exp(first - tops[0]), np.exp(second - tops[1])
        same = np.exp(np.minimum(together - tops[0] - tops[1], 700.0))
        later = np.cumsum((inside[:, None] * after)[::-1], axis=0)[::-1] - inside[:, None] * after
        sums = inside @ (ahead * later) + both @ same
        each = np.log(np.maximum(sums / total, LEAST)) + tops[0] + tops[1] + base
        top = each.max()
        found.append(top + math.log(np.exp(each - top).sum()))
    top = max(found)
    mean = float(top) + math.log(sum(math.exp(each - top) for each in found) / len(SHARES))
    # As many values of the offset as the single change has, so that both means are over the same grid.
    full = SCALES.size * DELTAS.size * len(OFFSETS)
    return mean - math.log(full) - math.log(float(_OFFSET_PRIOR[:_OFFSETS_OF_SEVERAL].sum()))


def _ascending(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the sums of the first commits, none to all, shape (n_commits + 1, n_parameters)."""
    flat = values.reshape(len(values), -1)
    return np.concatenate([np.zeros((1, flat.shape[1])), np.cumsum(flat, axis=0)])
