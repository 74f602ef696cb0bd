"""A history of revisions that were each compared with another one: levels by least squares over the links.

Absolute times of two jobs mean little: the jobs ran on two machines. A job that measures a revision and an
earlier one on the same machine knows their ratio, and its standard error. The logarithms of the levels of
all revisions are the weighted least squares solution over these ratios; with one link per revision it is the
sum along the chain. Machines drop out, of whatever model they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy

from steelyard.analyse.comparison.signed_rank import pseudomedian, pseudomedian_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

LOOKS: Final = 100
"""Revisions that an error is divided among, at least: a history is looked at after each of them."""
FEWEST_BLOCKS: Final = 5
"""Fewer blocks know too little of their own spread."""
_FEWEST_RANKED: Final = 10
"""The signed-rank interval of fewer differences is much wider than its level asks for."""
_TAIL: Final = 0.025
_FEWEST_MODERATED: Final = 4
"""Fewer links say too little of how alike their noise is."""
_FEWEST_SCATTERED: Final = 8
"""Fewer links do not tell what is usual from what changed."""
_POWER: Final = 0.8
_LEAST_VARIANCE: Final = 1e-12
"""Of a link whose differences are all equal, such as those of a peak of memory."""
_EXACT_FREEDOM: Final = 400
"""Larger histories take the fewest degrees of freedom of any of their links for every difference."""


@dataclass(frozen=True, slots=True)
class Link:
    """What one job knows of two revisions.

    Parameters
    ----------
    first, second : int
        Numbers of the revisions.
    log_ratio : float
        Logarithm of the second's level over the first's.
    standard_error : float
        Of it.
    freedom : float
        Degrees of freedom of the standard error.
    """

    first: int
    second: int
    log_ratio: float
    standard_error: float
    freedom: float


@dataclass(frozen=True, slots=True)
class Window:
    """Two revisions of one piece of a history, and how their levels differ.

    Parameters
    ----------
    first, second : int
        Numbers of the revisions.
    log_ratio : float
        Logarithm of second over first.
    half : float
        Half of the width of its interval, which holds for all pairs of revisions, all series and the first
        hundred looks together.
    error : float
        Its standard error.
    """

    first: int
    second: int
    log_ratio: float
    half: float
    error: float

    @property
    def ratio(self) -> float:
        """Second over first."""
        return _exp(self.log_ratio)

    @property
    def low(self) -> float:
        """Lower limit of the ratio."""
        return _exp(self.log_ratio - self.half)

    @property
    def high(self) -> float:
        """Upper limit of the ratio."""
        return _exp(self.log_ratio + self.half)

    @property
    def is_slower(self) -> bool:
        """Whether the second level is higher for sure."""
        return self.log_ratio > self.half

    @property
    def is_faster(self) -> bool:
        """Whether the second level is lower for sure."""
        return -self.log_ratio > self.half

    def is_regression(self, margin: float) -> bool:
        """Whether the second level is higher for sure, and by more than the margin."""
        return self.is_slower and self.log_ratio > math.log1p(margin)

    @property
    def visible(self) -> float:
        """Smallest slowdown that is found between the two in 8 of 10 cases, as a ratio less 1."""
        return _exp(self.half + float(scipy.special.ndtri(_POWER)) * self.error) - 1


@dataclass(frozen=True, slots=True)
class _Equations:
    """What the links say: differences of levels, their values, variances, and degrees of freedom of these."""

    design: scipy.sparse.csr_array
    values: NDArray[np.float64]
    variances: NDArray[np.float64]
    freedoms: NDArray[np.float64]
    is_path: bool
    """Whether each link leads from a revision to the next, all in order."""

    @classmethod
    def of(cls, count: int, links: Sequence[Link]) -> _Equations:
        rows = np.arange(len(links))
        columns = [link.second for link in links] + [link.first for link in links]
        signs = np.repeat([1.0, -1.0], len(links))
        design = scipy.sparse.csr_array((signs, (np.tile(rows, 2), columns)), (len(links), count))
        return cls(
            design,
            np.array([link.log_ratio for link in links]),
            np.maximum([link.standard_error**2 for link in links], _LEAST_VARIANCE),
            np.array([link.freedom for link in links]),
            [(link.first, link.second) for link in links] == [(at, at + 1) for at in range(count - 1)],
        )


@dataclass(frozen=True, slots=True)
class Chain:
    """Levels of revisions that links hold together.

    Parameters
    ----------
    pieces : ndarray of int, shape (n,)
        Number of the piece of each revision; levels of two pieces cannot be compared.
    levels : ndarray, shape (n,)
        Logarithm of each level over that of the first revision of its piece.
    covariance : ndarray, shape (n, n)
        Of the levels.
    scatter : float
        Standard deviation of what jobs differ by of their own, beyond what their blocks explain; counted as
        noise of each link.
    disagreement : float
        Factor by which all standard errors were widened, since links around a circle disagree by more than
        these explain; 1 where there is no circle, or it agrees (Birge, Phys. Rev. 40, 207, 1932).
    """

    pieces: NDArray[np.int64]
    levels: NDArray[np.float64]
    covariance: NDArray[np.float64]
    scatter: float
    disagreement: float
    _equations: _Equations
    _flows: NDArray[np.float64]
    _family: int

    @classmethod
    def of(cls, count: int, links: Sequence[Link], *, family: int = 1) -> Chain:
        """Find the levels of some revisions.

        Parameters
        ----------
        count : int
            Revisions, numbered from 0 in the order of time.
        links : sequence of Link
            What jobs know; several of the same pair weigh together.
        family : int
            Series that the error is divided among.
        """
        pieces = _pieces(count, links)
        links = _moderated(links)
        scatter, factor = _scatter(links)
        links = [
            replace(
                link,
                standard_error=max(math.hypot(link.standard_error, scatter), link.standard_error * factor),
            )
            for link in links
        ]
        equations = _Equations.of(count, links)
        design, values, variances = equations.design, equations.values, equations.variances
        weighted = scipy.sparse.diags_array(1 / variances) @ design
        # The first revision of a piece is where its levels are measured from.
        firsts = np.unique(pieces, return_index=True)[1]
        free = np.setdiff1d(np.arange(count), firsts)
        covariance = np.zeros((count, count))
        if equations.is_path:
            sums = np.concatenate([[0.0], np.cumsum(variances)])
            np.minimum.outer(sums, sums, out=covariance)
        else:
            covariance[np.ix_(free, free)] = np.linalg.inv(
                (design.T @ weighted).toarray()[np.ix_(free, free)]
            )
        levels = covariance @ (weighted.T @ values)
        surplus = len(links) - free.size
        disagreement = 1.0
        if surplus > 0:
            misfit = float((np.square(values - design @ levels) / variances).sum())
            disagreement = max(1.0, math.sqrt(misfit / surplus))
        is_exact = not equations.is_path and count <= _EXACT_FREEDOM
        flows = (design @ covariance) / variances[:, None] if is_exact else np.zeros((0, 0))
        return cls(
            pieces, levels, covariance * disagreement**2, scatter, disagreement, equations, flows, family
        )

    @property
    def misfits(self) -> NDArray[np.float64]:
        """How far each link lies from what all say together, in its standard errors."""
        left = self._equations.values - self._equations.design @ self.levels
        return np.asarray(np.abs(left) / np.sqrt(self._equations.variances))

    @property
    def errors(self) -> NDArray[np.float64]:
        """Standard error of each level."""
        return np.sqrt(np.maximum(self.covariance.diagonal(), 0))

    @property
    def own_errors(self) -> NDArray[np.float64]:
        """Standard error of each level against the one before it in its piece; 0 for the first."""
        found = np.zeros(len(self.levels))
        newest: dict[int, int] = {}
        spread = self.covariance
        for place, piece in enumerate(self.pieces.tolist()):
            before = newest.get(piece)
            if before is not None:
                variance = spread[place, place] + spread[before, before] - 2 * spread[place, before]
                found[place] = math.sqrt(max(variance, 0.0))
            newest[piece] = place
        return found

    def without_covariance(self) -> Chain:
        """Give the levels alone: what the windows follow from grows with the square of the revisions."""
        return replace(self, covariance=np.zeros((0, 0)), _flows=np.zeros((0, 0)))

    def windows_to(self, last: int, level: float) -> list[Window]:
        """Give how a revision differs from each one before it in its piece, the earliest first.

        Parameters
        ----------
        last : int
            Number of the revision.
        level : float
            Coverage of all intervals of all series together, over a hundred looks.
        """
        return self._windows(last, level, are_sure=False)

    def changes(self, level: float) -> list[Window]:
        """Give the narrowest windows within which the level changed for sure, in the order of time."""
        found: list[Window] = []
        sure = [
            each for last in range(len(self.levels)) for each in self._windows(last, level, are_sure=True)
        ]
        for window in sorted(sure, key=lambda each: each.second - each.first):
            if not any(_overlap(window, other) for other in found):
                found.append(window)
        return sorted(found, key=lambda each: each.first)

    def _windows(self, last: int, level: float, *, are_sure: bool) -> list[Window]:
        """Give the windows to a revision, or those whose interval excludes 1."""
        before = np.flatnonzero(self.pieces[:last] == self.pieces[last])
        if not before.size:
            return []
        spread = self.covariance
        variances = spread[last, last] + spread[before, before] - 2 * spread[before, last]
        tail = (1 - level) / 2 * _part(last, len(self.levels)) / self._family
        errors = np.sqrt(np.maximum(variances, 0))
        halves = scipy.special.stdtrit(self._freedoms(last, before), 1 - tail) * errors
        differences = self.levels[last] - self.levels[before]
        kept = np.abs(differences) > halves if are_sure else np.ones(before.size, dtype=bool)
        return [
            Window(int(first), last, float(value), float(half), float(error))
            for first, value, half, error in zip(
                before[kept], differences[kept], halves[kept], errors[kept], strict=True
            )
        ]

    def _freedoms(self, last: int, before: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give degrees of freedom of differences (Satterthwaite, Biometrics Bulletin 2, 110, 1946)."""
        freedoms, variances = self._equations.freedoms, self._equations.variances
        if self._equations.is_path:
            # From the last on: of a difference of sums, a small variance behind a large one leaves nothing.
            sums, squares = (
                np.cumsum(each[:last][::-1])[::-1] for each in (variances, variances**2 / freedoms)
            )
            return np.asarray(sums[before] ** 2 / squares[before])
        if len(self.levels) > _EXACT_FREEDOM:
            return np.full(before.size, freedoms.min())
        # Of a unit that flows from one revision to the other, the part that each link carries.
        carried = self._flows[:, [last]] - self._flows[:, before]
        parts = np.square(carried) * self._equations.variances[:, None]
        total = parts.sum(axis=0)
        return np.asarray(total**2 / np.maximum((parts**2 / freedoms[:, None]).sum(axis=0), 1e-300))


def since_best(
    changes: Sequence[Window], to_newest: Sequence[Window], accepted: Sequence[int]
) -> Window | None:
    """Give how the newest level differs from a faster one before it, as far as that is sure.

    Where no change is sure, none is assumed: the sum of all links would forget a change, since their errors
    add up. A slow drift is surest as a whole: so both are tried, the product of the changes since a revision,
    and its window to the newest one.

    Parameters
    ----------
    changes : sequence of Window
        In the order of time, none overlapping.
    to_newest : sequence of Window
        From each revision to the newest.
    accepted : sequence of int
        Numbers of revisions whose level is accepted: nothing before the last of them counts.

    Returns
    -------
    Window or None
        The one with the highest lower limit; ``None`` where nothing is sure to have changed.
    """
    last = max(accepted, default=-1)
    counted = [change for change in changes if change.second > last]
    found = [_product(counted[place:]) for place in range(len(counted))]
    found += [window for window in to_newest if window.first >= last and window.is_slower and counted]
    return max(found, key=lambda window: window.log_ratio - window.half, default=None)


def _product(changes: Sequence[Window]) -> Window:
    """Give several changes as one; their errors are independent."""
    value = sum(change.log_ratio for change in changes)
    half = math.hypot(*(change.half for change in changes))
    error = math.hypot(*(change.error for change in changes))
    return Window(changes[0].first, changes[-1].second, value, half, error)


def link_of(first: int, second: int, differences: NDArray[np.float64], *, is_mean: bool) -> Link | None:
    """Give what the blocks of one comparison know.

    The standard error is half of the fixed-sample interval of 95 % over the quantile of Student's
    distribution.

    Parameters
    ----------
    first, second : int
        Numbers of the revisions.
    differences : ndarray, shape (n,)
        Logarithm of second over first in each block.
    is_mean : bool
        Whether the mean is compared, or else what is typical (the pseudomedian).

    Returns
    -------
    Link or None
        ``None`` for fewer than five blocks, and where so few agree by chance.
    """
    count = differences.size
    if count < FEWEST_BLOCKS or (count < _FEWEST_RANKED and np.ptp(differences) == 0):
        return None
    freedom = count - 1.0
    # Ranks of a coarse clock's ticks know too little of their spread.
    if is_mean or count < _FEWEST_RANKED or np.unique(differences).size < count / 2:
        error = float(differences.std(ddof=1)) / math.sqrt(count)
        return Link(first, second, float(differences.mean()), error, freedom)
    low, high = pseudomedian_interval(differences, _TAIL)
    error = (high - low) / 2 / float(scipy.special.stdtrit(freedom, 1 - _TAIL))
    return Link(first, second, pseudomedian(differences), error, freedom)


def _moderated(links: Sequence[Link]) -> list[Link]:
    """Let each link learn from the others how noisy blocks are.

    The more alike the noise of the jobs is, the more degrees of freedom each standard error gains: empirical
    Bayes by Smyth, Statistical Applications in Genetics and Molecular Biology 3, 3 (2004).
    """
    freedoms = np.array([link.freedom for link in links])
    blocks = freedoms + 1
    variances = np.array([link.standard_error**2 for link in links]) * blocks
    known = variances > 0
    if known.sum() < _FEWEST_MODERATED:
        return list(links)
    halves = freedoms[known] / 2
    noise = np.log(variances[known]) - scipy.special.digamma(halves) + np.log(halves)
    excess = float(noise.var(ddof=1) - scipy.special.polygamma(1, halves).mean())
    total = float(freedoms[known].sum())
    if excess > 0:
        prior = min(2 * _inverse_trigamma(excess), total)
        usual = math.exp(noise.mean() + scipy.special.digamma(prior / 2) - math.log(prior / 2))
    else:
        prior, usual = total, float((variances[known] * freedoms[known]).sum() / total)
    # Blocks that are equal by chance, as a coarse clock makes them, know nothing of the noise.
    own = np.where(known, freedoms, 0.0)
    pooled = (prior * usual + own * variances) / (prior + own)
    return [
        replace(link, standard_error=math.sqrt(variance / count), freedom=min(freedom + prior, total))
        for link, variance, count, freedom in zip(links, pooled, blocks, own, strict=True)
    ]


def _scatter(links: Sequence[Link]) -> tuple[float, float]:
    """Give how jobs differ beyond what their blocks explain: a standard deviation, and a factor of their own.

    Most commits change nothing, so that one half of all ratios lies as near to their median as noise alone
    puts it. The variance that is added, or the factor, makes the median of their squares over their variances
    that of Student's distribution (as Paule and Mandel, J. Res. NBS 87, 377, 1982, with the mean). Nobody
    knows whether a noisy machine's jobs differ more than a quiet one's, so that the larger one counts.
    """
    if len(links) < _FEWEST_SCATTERED:
        return 0.0, 1.0
    values = np.array([link.log_ratio for link in links])
    squares = np.square(values - np.median(values))
    variances = np.maximum([link.standard_error**2 for link in links], _LEAST_VARIANCE)
    expected = float(np.median(scipy.special.stdtrit([link.freedom for link in links], 0.75)) ** 2)

    def surplus(added: float) -> float:
        return float(np.median(squares / (variances + added))) - expected

    if surplus(0.0) <= 0:
        return 0.0, 1.0
    added = float(scipy.optimize.brentq(surplus, 0.0, float(squares.max()) / expected))
    return math.sqrt(added), math.sqrt(float(np.median(squares / variances)) / expected)


def _inverse_trigamma(value: float) -> float:
    """Give the argument of which the trigamma function has a value, by Newton's method on its reciprocal."""
    found = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(scipy.special.polygamma(1, found))
        step = trigamma * (1 - trigamma / value) / float(scipy.special.polygamma(2, found))
        found += step
        if -step / found < 1e-8:  # noqa: PLR2004 - relative
            break
    return found


def _pieces(count: int, links: Sequence[Link]) -> NDArray[np.int64]:
    """Give each revision the number of its piece: between two pieces there is no link."""
    rows, columns = [link.first for link in links], [link.second for link in links]
    joined = scipy.sparse.coo_array((np.ones(len(links)), (rows, columns)), shape=(count, count))
    _, labels = scipy.sparse.csgraph.connected_components(joined, directed=False)
    return np.asarray(labels, dtype=np.int64)


def _part(last: int, count: int) -> float:
    """Give the part of the error that each pair of a revision and an earlier one may spend.

    One half is divided among all pairs of a hundred revisions; the other falls with the square of the place,
    so that the first jobs of a history find nearly what they would find alone. All parts add up to 1.
    """
    looks = max(LOOKS, count)
    return 0.5 / (looks * (looks - 1) / 2) + 0.5 * 6 / (math.pi * last) ** 2 / last


def _overlap(one: Window, other: Window) -> bool:
    return one.first < other.second and other.first < one.second


def _exp(value: float) -> float:
    return math.exp(max(min(value, 700.0), -700.0))
