"""Which events come together with peaks more than by chance, and how much of the excess they explain."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import stats

from steelyard.analyse.comparison.multiplicity import holm
from steelyard.analyse.peaks.event_kinds import Depth, Events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.peaks.peak_search import Episodes

    Stamps = NDArray[np.int64]

SHIFTS: Final = 999
"""Circular shifts of the null distribution: the smallest p-value is 1 / 1000."""
MOST_SHIFTED: Final = 1000
"""Episodes that are shifted; of more, so many are drawn at random."""
FEWEST: Final = 5
"""Episodes below which nothing is said."""
FEWEST_MET: Final = 3
"""Peaks that an event must meet to be a cause: one or two are an anecdote."""
SIGNIFICANT: Final = 0.05
MAIN_SHARE: Final = 0.5
"""Share of the excess that a cause must explain to be named with certainty."""
PART_SHARE: Final = 0.1
"""Share below which a cause is no part of the explanation."""
DEEPER: Final = 0.8
"""A deeper cause comes first if it explains so much of what a shallower one does."""


class VerdictKind(StrEnum):
    """What the co-occurrence says."""

    NAMED = "named"
    PARTLY = "partly explained"
    UNEXPLAINED = "unexplained"
    TOO_FEW = "too few peaks"


@dataclass(frozen=True, slots=True)
class CoOccurrence:
    """One kind of event beside the peaks.

    Parameters
    ----------
    kind : str
        The kind.
    events : int
        How many there were during the run.
    overlapping : int
        Episodes of peaks that overlap one.
    share, expected_share : float
        Share of the episodes that do, and the share expected if the events came at any other time.
    lift, lift_low, lift_high : float
        `share` over `expected_share`, with its 95 % interval; infinite where nothing was expected.
    p_value, adjusted_p : float
        One-sided, of circular shifts: of explaining so much excess time, for instants of meeting so many
        peaks; adjusted by Holm for the number of kinds.
    explained_share, chance_share : float
        Share of the excess time of all peaks during which such an event lasted, and that share on average
        over the circular shifts.
    attributed_share : float
        The same, without what a cause before it in the order explains already.
    is_significant : bool
        Whether they explain more, or for instants meet more, than by chance.
    """

    kind: str
    events: int
    overlapping: int
    share: float
    expected_share: float
    lift: float
    lift_low: float
    lift_high: float
    p_value: float
    chance_share: float
    adjusted_p: float = 1.0
    explained_share: float = 0.0
    attributed_share: float = 0.0
    is_significant: bool = False


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the peaks of a run come from.

    Parameters
    ----------
    verdict : VerdictKind
        ``named``: one cause explains at least half of the excess; ``partly explained``: at least a tenth.
    cause : str or None
        The kind of event that explains most.
    unexplained_share : float
        Share of the excess that no cause explains.
    episodes : int
        Episodes of peaks.
    kinds : tuple of CoOccurrence
        All kinds, causes first, by what they explain.
    """

    verdict: VerdictKind
    cause: str | None
    unexplained_share: float
    episodes: int
    kinds: tuple[CoOccurrence, ...] = field(default=())

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if self.verdict is VerdictKind.TOO_FEW:
            return f"{self.episodes} peaks are too few to say what comes with them"
        rest = f"{100 * self.unexplained_share:.0f} % of it remain unexplained"
        if self.cause is None:
            return f"unexplained: no kind of event comes with the {self.episodes} peaks more than by chance"
        main = next(each for each in self.kinds if each.kind == self.cause)
        if self.verdict is VerdictKind.UNEXPLAINED:
            return (
                f"unexplained: `{self.cause}` comes with peaks, but explains hardly any excess time; {rest}"
            )
        by_chance = (
            f"by chance {100 * main.chance_share:.1f} %; {100 * main.share:.0f} % of the peaks overlap it,"
            f" by chance {100 * main.expected_share:.1f} %"
        )
        also = ", ".join(
            f"`{each.kind}` {100 * each.attributed_share:.0f} %"
            for each in self.kinds
            if each.is_significant and each.attributed_share >= PART_SHARE and each is not main
        )
        return (
            f"`{self.cause}` explains {100 * main.attributed_share:.0f} % of the excess time of"
            f" {self.episodes} peaks ({by_chance}){f'; besides {also}' if also else ''}; {rest}"
        )


def explain(
    episodes: Episodes, kinds: Sequence[Events], start_ns: int, end_ns: int, *, seed: int = 0
) -> Explanation:
    """Lay peaks and events over each other.

    Chance is the circular shift: all events of a kind together moved by a random time around the run, which
    keeps their lengths and gaps, and those of the peaks.

    Parameters
    ----------
    episodes : Episodes
        Peaks of a run.
    kinds : sequence of Events
        Events of the same time; what lies outside of the run is left out.
    start_ns, end_ns : int
        Begin and end of the run's calls [ns].
    seed : int
        Of the shifts.

    Returns
    -------
    Explanation

    References
    ----------
    .. [1] Holm (1979), Scand. J. Stat. 6, 65.
    .. [2] Circular shifts as the null of two point processes: Lotwick & Silverman (1982), J. R. Stat. Soc. B
       44, 406. The attribution by order is an own definition.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard.analyse.peaks.event_kinds import Events
    >>> from steelyard.analyse.peaks.peak_search import find_episodes
    >>> at = np.arange(20) * 1000
    >>> peaks = find_episodes(np.arange(20) * 9, at, np.full(20, 100), 10.0)
    >>> found = explain(peaks, [Events("burner", at + 5, at + 95)], 0, 20_000)
    >>> found.cause, round(found.kinds[0].explained_share, 2), found.kinds[0].expected_share
    ('burner', 1.0, 0.19)
    """
    if episodes.count < FEWEST:
        return Explanation(VerdictKind.TOO_FEW, None, 1.0, episodes.count)
    used = [cut for cut in (_within(each, start_ns, end_ns) for each in kinds) if cut.start_ns.size]
    rng = np.random.default_rng(seed)
    rows = [_one_kind(episodes, each, (start_ns, end_ns), rng) for each in used]
    adjusted = holm([row.p_value for row in rows])
    total = max(float(episodes.excess_ns.sum()), 1.0)
    is_cause = [
        p <= SIGNIFICANT and row.overlapping >= FEWEST_MET for row, p in zip(rows, adjusted, strict=True)
    ]
    alone = [_explained(episodes, [each]) for each in used]
    attributed = _attribute(episodes, used, alone, is_cause)
    full = [
        replace(
            row,
            adjusted_p=adjusted[index],
            explained_share=float(alone[index].sum()) / total,
            attributed_share=attributed.get(index, 0.0) / total,
            is_significant=is_cause[index],
        )
        for index, row in enumerate(rows)
    ]
    order = [*attributed, *(index for index in range(len(full)) if index not in attributed)]
    rest = max(0.0, 1.0 - sum(attributed.values()) / total)
    ranked = sorted((full[index] for index in order), key=lambda each: -each.attributed_share)
    return _verdict(episodes.count, rest, tuple(ranked))


def _verdict(episodes: int, rest: float, ranked: tuple[CoOccurrence, ...]) -> Explanation:
    first = ranked[0] if ranked and ranked[0].is_significant else None
    if first is None:
        return Explanation(VerdictKind.UNEXPLAINED, None, rest, episodes, ranked)
    if first.attributed_share >= MAIN_SHARE:
        verdict = VerdictKind.NAMED
    elif first.attributed_share >= PART_SHARE:
        verdict = VerdictKind.PARTLY
    else:
        verdict = VerdictKind.UNEXPLAINED
    return Explanation(verdict, first.kind, rest, episodes, ranked)


def _within(events: Events, start_ns: int, end_ns: int) -> Events:
    inside = (events.end_ns >= start_ns) & (events.start_ns <= end_ns)
    return Events(
        events.kind,
        np.clip(events.start_ns[inside], start_ns, end_ns),
        np.clip(events.end_ns[inside], start_ns, end_ns),
        None if events.amount_ns is None else events.amount_ns[inside],
        events.depth,
    )


def _one_kind(
    episodes: Episodes, events: Events, window: tuple[int, int], rng: np.random.Generator
) -> CoOccurrence:
    length = max(window[1] - window[0], 1)
    starts, ends = _merge_intervals(events.start_ns - window[0], events.end_ns - window[0])
    first, last = episodes.start_ns - window[0], episodes.end_ns - window[0]
    overlapping = int(_overlap_any(starts, ends, first, last).sum())
    share = overlapping / episodes.count
    expected = float(_share_of_shifts(starts, ends, last - first, length).mean())
    limits = stats.binomtest(overlapping, episodes.count).proportion_ci(0.95, method="exact")
    lift = [value / expected if expected > 0 else math.inf for value in (share, limits.low, limits.high)]
    p_value, chance = _shift_p(episodes, events, window, rng)
    return CoOccurrence(
        kind=events.kind,
        events=int(events.start_ns.size),
        overlapping=overlapping,
        share=share,
        expected_share=expected,
        lift=lift[0],
        lift_low=lift[1],
        lift_high=lift[2],
        p_value=p_value,
        chance_share=chance,
    )


def _shift_p(
    episodes: Episodes, events: Events, window: tuple[int, int], rng: np.random.Generator
) -> tuple[float, float]:
    """Share of circular shifts that explain as much excess time, or of instants, meet as many peaks.

    And the share of the excess time that they explain on average; 0 for instants.

    Time is sharper than a count: where peaks and events are both periodic, many shifts let all of them meet,
    but few let events fill the peaks.
    """
    around = max(window[1] - window[0], 1)
    kept = np.arange(episodes.count)
    if kept.size > MOST_SHIFTED:
        kept = np.sort(rng.choice(kept.size, MOST_SHIFTED, replace=False))
    fixed = replace(
        episodes,
        start_ns=episodes.start_ns[kept] - window[0],
        end_ns=episodes.end_ns[kept] - window[0],
        first=episodes.first[kept],
        excess_ns=episodes.excess_ns[kept],
    )
    # Twice around, so that a shifted peak that leaves the run comes in again at its begin.
    begins, finishes = (
        np.concatenate([side, side + around]) - window[0] for side in (events.start_ns, events.end_ns)
    )
    amounts = None if events.amount_ns is None else np.tile(events.amount_ns, 2)
    twice = replace(events, start_ns=begins, end_ns=finishes, amount_ns=amounts)
    shifts = np.concatenate([[0], rng.integers(0, around, SHIFTS)])
    met = _met(fixed, twice, shifts)
    is_time = amounts is not None or bool((finishes > begins).any())
    total = max(float(fixed.excess_ns.sum()), 1.0)
    chance = float(met[1:].mean()) / total if is_time else 0.0
    return float((met >= met[0]).sum() / shifts.size), chance


def _met(episodes: Episodes, events: Events, shifts: Stamps) -> NDArray[np.float64]:
    """Excess time explained with each shift of the peaks; for instants how many peaks meet one."""
    excess = np.maximum(episodes.excess_ns, 0.0)
    if events.amount_ns is not None:
        amounts = events.amount_ns
        return np.array(
            [
                np.minimum(_shared_out(_moved(episodes, int(shift)), events, amounts), excess).sum()
                for shift in shifts
            ]
        )
    starts, ends = _merge_intervals(events.start_ns, events.end_ns)
    first, last = (side + shifts[:, None] for side in (episodes.start_ns, episodes.end_ns))
    if not (ends > starts).any():
        return np.asarray(_overlap_any(starts, ends, first, last).sum(axis=1), dtype=np.float64)
    times = _time_covered(starts, ends, last) - _time_covered(starts, ends, first)
    return np.asarray(np.minimum(times, excess).sum(axis=1), dtype=np.float64)


def _moved(episodes: Episodes, shift: int) -> Episodes:
    return replace(episodes, start_ns=episodes.start_ns + shift, end_ns=episodes.end_ns + shift)


def _explained(episodes: Episodes, kinds: Sequence[Events]) -> NDArray[np.float64]:
    """Excess of each episode during which one of the events lasted [ns]; a counter's amount is shared out."""
    lasting = [each for each in kinds if each.amount_ns is None]
    total = np.zeros(episodes.count)
    if lasting:
        starts, ends = _merge_intervals(
            np.concatenate([each.start_ns for each in lasting]),
            np.concatenate([each.end_ns for each in lasting]),
        )
        total = _time_covered(starts, ends, episodes.end_ns) - _time_covered(starts, ends, episodes.start_ns)
    for each in kinds:
        if each.amount_ns is not None:
            total = total + _shared_out(episodes, each, each.amount_ns)
    return np.minimum(total, np.maximum(episodes.excess_ns, 0.0))


def _shared_out(episodes: Episodes, events: Events, amount_ns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share the amount of each event among the episodes that overlap it, by their excess."""
    order = np.argsort(events.start_ns, kind="stable")
    starts, ends, amounts = events.start_ns[order], events.end_ns[order], amount_ns[order]
    first = np.searchsorted(ends, episodes.start_ns, side="right")
    last = np.searchsorted(starts, episodes.end_ns, side="left")
    counts = np.maximum(last - first, 0)
    episode = np.repeat(np.arange(episodes.count), counts)
    event = np.repeat(first - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) + np.arange(counts.sum())
    excess = np.maximum(episodes.excess_ns, 0.0)[episode]
    together = np.bincount(event, weights=excess, minlength=amounts.size)
    shares = np.divide(excess, together[event], out=np.zeros_like(excess), where=together[event] > 0)
    shared = np.bincount(episode, weights=shares * amounts[event], minlength=episodes.count)
    return shared.astype(np.float64)


def _attribute(
    episodes: Episodes,
    kinds: Sequence[Events],
    alone: Sequence[NDArray[np.float64]],
    is_cause: Sequence[bool],
) -> dict[int, float]:
    """Let causes explain one after the other what is left, the largest first [ns]; deeper ones before."""
    left = [index for index, known in enumerate(is_cause) if known]
    chosen: list[int] = []
    attributed: dict[int, float] = {}
    so_far = 0.0
    while left:
        gain = {
            index: float(_explained(episodes, [kinds[each] for each in (*chosen, index)]).sum()) - so_far
            for index in left
        }
        # What was seen of the thread itself goes before what was counted of the host as a whole.
        direct = [index for index in left if kinds[index].depth < Depth.HOST]
        best = max(direct or left, key=lambda index: gain[index])
        deeper = [
            index
            for index in left
            if kinds[index].depth < kinds[best].depth
            and kinds[index].depth < Depth.SCHEDULING
            and float(alone[index].sum()) >= DEEPER * float(alone[best].sum())
        ]
        best = min(deeper, key=lambda index: kinds[index].depth, default=best)
        attributed[best] = max(gain[best], 0.0)
        so_far += attributed[best]
        chosen.append(best)
        left.remove(best)
    return attributed


def _merge_intervals(start_ns: Stamps, end_ns: Stamps) -> tuple[Stamps, Stamps]:
    """Merge intervals that overlap or touch."""
    order = np.argsort(start_ns, kind="stable")
    starts, ends = start_ns[order], np.maximum.accumulate(end_ns[order])
    if starts.size == 0:
        return starts, ends
    begins = np.flatnonzero(np.concatenate([[True], starts[1:] > ends[:-1]]))
    return starts[begins], ends[np.append(begins[1:] - 1, starts.size - 1)]


def _overlap_any(starts: Stamps, ends: Stamps, first: Stamps, last: Stamps) -> NDArray[np.bool_]:
    """Whether each interval overlaps one of merged, sorted ones."""
    place = np.searchsorted(ends, first, side="left")
    known = place < starts.size
    return known & (starts[np.minimum(place, starts.size - 1)] <= last)


def _share_of_shifts(starts: Stamps, ends: Stamps, lengths: Stamps, around: int) -> NDArray[np.float64]:
    """Share of all circular shifts with which an interval of each length overlaps an event."""
    gaps = np.sort(np.append(starts[1:] - ends[:-1], around - ends[-1] + starts[0]))
    below = np.concatenate([[0], np.cumsum(gaps)])
    place = np.searchsorted(gaps, lengths, side="right")
    reached = below[place] + lengths * (gaps.size - place)
    covered = float((ends - starts).sum())
    return np.asarray(np.minimum((covered + reached) / around, 1.0), dtype=np.float64)


def _time_covered(starts: Stamps, ends: Stamps, until: Stamps) -> NDArray[np.float64]:
    """Time covered by merged, sorted intervals before each stamp [ns]."""
    before = np.concatenate([[0], np.cumsum(ends - starts)])
    place = np.searchsorted(starts, until, side="right")
    last = np.maximum(place - 1, 0)
    beyond = np.where(place > 0, np.maximum(ends[last] - until, 0), 0)
    return (before[place] - beyond).astype(np.float64)
