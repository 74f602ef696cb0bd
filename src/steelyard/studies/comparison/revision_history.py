"""A history of revisions: what changed, where, and whether the newest level is slower than it was."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from steelyard.analyse.series.chain import Chain, since_best
from steelyard.studies.comparison.claim import WITHIN_WORDS, signed_percent
from steelyard.studies.comparison.contender import short
from steelyard.studies.comparison.terms import Metric

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.series.chain import Window
    from steelyard.record.accepted_levels import AcceptedLevel
    from steelyard.studies.comparison.links import Revision, RevisionSeries

_MOST_VISIBLE: Final = 10.0
"""A slowdown by more than ten times itself is none that anybody looks for."""
_CONTRADICTION: Final = 5.0
"""Intervals that are widened by more say that a job was wrong."""
SCHEMA: Final = "steelyard/revision-history/1"


@dataclass(frozen=True, slots=True)
class Followed:
    """One benchmark over the revisions of a history, and what it does.

    Parameters
    ----------
    series : RevisionSeries
        Revisions, and what links them.
    chain : Chain
        Their levels, without their covariance.
    errors, own_errors : ndarray
        Standard error of each level, and against the one before it in its piece.
    changes : tuple of Window
        Where the level changed for sure, in the order of time.
    newest : Window or None
        How the newest level differs from the fastest before it, or from the accepted one; ``None`` where
        nothing is sure to have changed.
    last : Window or None
        The newest revision against the one before it in its piece.
    margin : float
        Largest difference that counts as none.
    """

    series: RevisionSeries
    chain: Chain
    errors: NDArray[np.float64]
    own_errors: NDArray[np.float64]
    changes: tuple[Window, ...]
    newest: Window | None
    last: Window | None
    margin: float

    @property
    def name(self) -> str:
        """Benchmark and metric, for people."""
        return called(self.series)[-1]

    @property
    def is_slower(self) -> bool:
        """Whether the newest level is slower for sure, and by more than the margin."""
        return self.newest is not None and self.newest.is_regression(self.margin)

    @property
    def pieces(self) -> list[tuple[Revision, Revision]]:
        """First and last revision of each piece, in the order of time."""
        found = []
        for piece in dict.fromkeys(self.chain.pieces.tolist()):
            members = np.flatnonzero(self.chain.pieces == piece)
            found.append((self.series.revisions[members[0]], self.series.revisions[members[-1]]))
        return found

    @property
    def is_contradicted(self) -> bool:
        """Whether jobs about the same revisions contradict each other."""
        return self.chain.disagreement > _CONTRADICTION

    @property
    def worst_job(self) -> str:
        """The two revisions whose job lies farthest from what the others say."""
        link = self.series.links[int(np.argmax(self.chain.misfits))]
        first, second = (self.series.revisions[number].short for number in (link.first, link.second))
        return f"`{first}` to `{second}`"

    def place_of(self, window: Window) -> str:
        """Say where a change is."""
        first, second = (self.series.revisions[number].short for number in (window.first, window.second))
        if window.second == window.first + 1:
            return f"at `{second}` (after `{first}`)"
        return f"between `{first}` and `{second}` ({window.second - window.first} revisions)"

    def word_of(self, window: Window) -> str:
        """Say in a word what a change is."""
        if self.series.metric == Metric.MEMORY:
            return "larger" if window.is_slower else "smaller"
        return "slower" if window.is_slower else "faster"

    def sentence(self, window: Window) -> str:
        """Say what a change is."""
        return f"{self.word_of(window)} {self.place_of(window)}: {size_of(window)}"


def called(series: RevisionSeries) -> tuple[str, ...]:
    """Give what people may call a series: its benchmark, and that with its metric, as it is printed."""
    metric, within = series.metric, series.within
    words = Metric(metric).words if metric in list(Metric) else metric
    mean = "geometric mean of " if series.is_mean else ""
    of = f", the {WITHIN_WORDS[within]} of a process" if within else ""
    return series.benchmark, f"{short(series.benchmark)}, {mean}{words}{of}"


def followed(
    series: Sequence[RevisionSeries], accepted: Sequence[AcceptedLevel], margin: float, level: float
) -> list[Followed]:
    """Follow series.

    Parameters
    ----------
    series : sequence of RevisionSeries
        At least one.
    accepted : sequence of AcceptedLevel
        Levels that are accepted, by the short commits of their revisions.
    margin : float
        Largest relative difference that counts as none.
    level : float
        Part of unchanged histories in which no series shows a change at any of a hundred looks, above 0.5.
    """
    found = []
    for each in series:
        chain = Chain.of(len(each.revisions), each.links, family=len(series))
        changes = tuple(chain.changes(level))
        names = {level.result for level in accepted if level.is_for(each.metric, *called(each))}
        places = [place for place, revision in enumerate(each.revisions) if revision.short in names]
        windows = chain.windows_to(len(each.revisions) - 1, level)
        newest = since_best(changes, windows, places)
        last = windows[-1] if windows else None
        levels = chain.without_covariance()
        found.append(Followed(each, levels, chain.errors, chain.own_errors, changes, newest, last, margin))
    return found


def size_of(window: Window) -> str:
    """Write a change with its interval."""
    low, high = signed_percent(window.low), signed_percent(window.high)
    return f"{signed_percent(window.ratio)} (interval {low} to {high})"


def lines_of(found: Sequence[Followed], jobs: int, hosts: int, level: float) -> Iterator[str]:
    """Say what was found."""
    revisions = max(len(each.series.revisions) for each in found)
    on = f" on {hosts} models of processor" if hosts > 1 else ""
    count = f"{len(found)} benchmarks" if len(found) > 1 else "1 benchmark"
    yield (
        f"{revisions} revisions, linked by {jobs} {'jobs' if jobs > 1 else 'job'}{on}; {count}; margin "
        f"{100 * found[0].margin:g} %; at most {100 * (1 - level):g} % of unchanged histories show a change "
        "at one or more of 100 looks"
    )
    for each in found:
        if each.changes:
            yield f"{each.name}:"
            yield from (f"  {each.sentence(change)}" for change in each.changes)
    quiet = [each for each in found if not each.changes]
    seen = [each.last.visible for each in quiet if each.last is not None]
    could = ""
    if seen and max(seen) <= _MOST_VISIBLE:
        could = f"; at the newest revision a slowdown of {100 * max(seen):.2g} % is found in 8 of 10"
    elif seen:
        could = "; at the newest revision no slowdown can be seen: its job had too few blocks"
    yield f"no change: {len(quiet)}{could}"
    yield from _torn(found)
    yield from _apart(found)
    worst = max(found, key=lambda each: each.chain.disagreement)
    if worst.is_contradicted:
        yield (
            f"undecided: jobs about the same revisions of {worst.name} contradict each other; the worst is "
            f"{worst.worst_job}"
        )
    elif worst.chain.disagreement > 1:
        yield (
            "jobs about the same revisions disagree: intervals are up to "
            f"{worst.chain.disagreement:.2g} times as wide"
        )
    scatter = max(each.chain.scatter for each in found)
    if scatter > 0:
        yield f"jobs differ by up to {100 * scatter:.2g} % of their own, which counts as noise"
    slower = [
        f"{each.name} ({signed_percent(each.newest.ratio)})"
        for each in found
        if each.newest and each.is_slower
    ]
    if slower:
        yield f"slower now than before: {', '.join(slower)}"
        yield 'to accept that level: repeat the command with --accept COMMIT --why "REASON"'


def _torn(found: Sequence[Followed]) -> Iterator[str]:
    """Say where no job holds two pieces of a history together, and how one would."""
    said = set()
    for each in found:
        pieces = each.pieces
        for (_, last), (first, _) in pairwise(pieces):
            if (last.tree, first.tree) not in said:
                said.add((last.tree, first.tree))
                yield (
                    f"not linked: no job compares `{last.short}` or an earlier revision with "
                    f"`{first.short}` or a later one; this would link them: "
                    f"steelyard bench --exact --rev {last.short} --rev {first.short}"
                )


def _apart(found: Sequence[Followed]) -> Iterator[str]:
    """Say which benchmarks have several series, as their jobs did not compare the same."""
    names: dict[tuple[str, str], list[str]] = {}
    for each in found:
        names.setdefault((each.series.benchmark, each.series.metric), []).append(each.name)
    for several in names.values():
        if len(several) > 1:
            yield f"not linked, as their jobs compare different statistics: {'; '.join(several)}"


def document_of(found: Sequence[Followed], jobs: int, level: float) -> dict[str, Any]:
    """Give JSON values."""
    return {
        "schema": SCHEMA,
        "margin_percent": 100 * found[0].margin,
        "level_percent": 100 * level,
        "jobs": jobs,
        "series": [
            {
                "benchmark": each.series.benchmark,
                "metric": each.series.metric,
                "is_mean": each.series.is_mean,
                "within": each.series.within,
                "is_newest_slower": each.is_slower,
                "newest": None if each.newest is None else _window(each, each.newest),
                "changes": [_window(each, change) for change in each.changes],
                "disagreement": each.chain.disagreement,
                "scatter": each.chain.scatter,
                "revisions": [
                    {
                        "commit": revision.commit,
                        "tree": revision.tree,
                        "piece": int(piece),
                        "level": math.exp(max(min(value, 700.0), -700.0)),
                        "standard_error": float(error),
                    }
                    for revision, piece, value, error in zip(
                        each.series.revisions,
                        each.chain.pieces,
                        each.chain.levels,
                        each.errors,
                        strict=True,
                    )
                ],
            }
            for each in found
        ],
    }


def _window(followed_series: Followed, window: Window) -> dict[str, Any]:
    first, second = (followed_series.series.revisions[each] for each in (window.first, window.second))
    return {
        "after": first.commit,
        "at": second.commit,
        "revisions": window.second - window.first,
        "ratio": window.ratio,
        "low": window.low,
        "high": window.high,
    }
