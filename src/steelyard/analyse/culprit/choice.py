"""Which commit to measure next, and for how many blocks: the most information per second."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.culprit.evidence import information_per_block

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from steelyard.analyse.culprit.evidence import Evidence
    from steelyard.analyse.culprit.history import History
    from steelyard.analyse.culprit.posterior import Posterior

_BLOCKS: Final = (1, 2, 4, 8, 16, 32, 64, 128)
_NEAR: Final = 4.0
"""Commits over which failing builds are expected to spread."""
_SMALL: Final = 1e-12
_EFFORT: Final = 1.4
"""What searches take over what their rate of information promises, in the median of simulations."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What measuring costs.

    Parameters
    ----------
    build_s : float
        Time of a build that is not there yet [s].
    block_s : float
        Time of a block [s].
    built : collection of int
        Commits that are built.
    """

    build_s: float
    block_s: float
    built: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """What to measure next.

    Parameters
    ----------
    commit : int
        Which one.
    blocks : int
        How many blocks of it before the next decision, at least 1.
    rate : float
        Information that is expected [nats per second].
    beside : int or None
        Commit beside which it is measured, -1 for the first revision; ``None`` for both revisions.
    """

    commit: int
    blocks: int
    rate: float
    beside: int | None = None


def entropy(chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the entropy of a yes or no [nats]."""
    inside = np.clip(chance, _SMALL, 1 - _SMALL)
    found: NDArray[np.float64] = -inside * np.log(inside) - (1 - inside) * np.log1p(-inside)
    return found


def choose(
    history: History,
    evidence: Evidence,
    posterior: Posterior,
    costs: Costs,
    failed: Collection[int] = frozenset(),
) -> Choice | None:
    """Give the commit of which a second of building and measuring says most.

    Parameters
    ----------
    history : History
        Commits.
    evidence, posterior : Evidence, Posterior
        What is known.
    costs : Costs
        What it costs.
    failed : collection of int
        Commits that cannot be measured.

    Returns
    -------
    Choice or None
        ``None`` where no measurement of any commit says anything.
    """
    total = posterior.weights.sum()
    chance = np.clip(history.changed(posterior.weights / total), 0.0, 1.0)
    counts = np.zeros(len(history))
    counts[list(evidence.commits)] = evidence.counts
    per_block = information_per_block(evidence)
    is_built = np.zeros(len(history), dtype=np.bool_)
    is_built[list(costs.built)] = True
    success = _success(len(history), costs.built, failed)
    build_s = np.where(is_built, 0.0, costs.build_s)
    best: Choice | None = None
    for blocks in _BLOCKS:
        gained = _told(counts + blocks, per_block, posterior.offset) - _told(
            counts, per_block, posterior.offset
        )
        rates = success * _information(chance, gained) / (build_s + blocks * costs.block_s)
        at = int(np.argmax(rates))
        if rates[at] > _SMALL and (best is None or rates[at] > best.rate):
            best = Choice(at, blocks, float(rates[at]))
    return best


def _told(counts: NDArray[np.float64], per_block: float, offset: float) -> NDArray[np.float64]:
    """Give the squared distance of both states of a commit after so many blocks."""
    with np.errstate(divide="ignore"):
        noise = 1.0 / (counts * per_block) + offset
    return 1.0 / noise


def _information(chance: NDArray[np.float64], distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give about what a normal value tells of which of two means it has [nats]; exact where little or all."""
    whole = entropy(chance)
    small = 0.5 * chance * (1 - chance) * distance
    return whole * -np.expm1(-small / np.maximum(whole, _SMALL))


def _success(size: int, built: Collection[int], failed: Collection[int]) -> NDArray[np.float64]:
    """Give how probable it is that each commit can be measured: failures come in stretches."""
    places = np.arange(size)

    def near(commits: Collection[int]) -> NDArray[np.float64]:
        distances = np.abs(places[:, None] - np.array(sorted(commits), dtype=np.int64)[None, :])
        found: NDArray[np.float64] = np.exp(-distances / _NEAR).sum(axis=1)
        return found

    bad = near(failed)
    found = (1 + near(built)) / (1 + near(built) + 3 * bad)
    found[list(built)] = 1.0
    found[list(failed)] = 0.0
    return np.asarray(found, dtype=np.float64)


def seconds_left(posterior: Posterior, confidence: float, choice: Choice | None) -> float:
    """Give the time after which the confidence may be reached, if measuring goes on as well as now [s].

    Parameters
    ----------
    posterior : Posterior
        What is known.
    confidence : float
        In (0, 1).
    choice : Choice or None
        What would be measured next.
    """
    if choice is None:
        return math.inf
    chances = posterior.weights[posterior.weights > 0] / posterior.weights.sum()
    now = float(-(chances * np.log(chances)).sum())
    rest = float(entropy(np.array([confidence]))[0]) + (1 - confidence) * math.log(max(chances.size - 1, 1))
    return _EFFORT * max(now - rest, 0.0) / choice.rate
