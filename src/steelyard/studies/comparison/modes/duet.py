"""Duets: both sides of a block at the same time, on cores of their own, and how long they overlap.

What disturbs the machine while both are running disturbs both, and leaves their ratio.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from steelyard.errors import DesignError, UsageError
from steelyard.model.plan import RANDOM_LAYOUT
from steelyard.run.isolation.registry import technology
from steelyard.run.machine.affinity import place_side_by_side
from steelyard.run.machine.host import read_topology
from steelyard.studies.comparison.modes.layout import kernel_randomises
from steelyard.studies.comparison.terms import MEASURE, Mode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import RunOutcome
    from steelyard.studies.comparison.contender import Field
    from steelyard.studies.comparison.sample import Run
    from steelyard.studies.comparison.terms import Terms

SMALL_OVERLAP: Final = "small_overlap"
"""Flag of the runs of a block in which the longer one was alone for more than half of its time."""
LEAST_OVERLAP: Final = 0.5
MOST_NAMED: Final = 8
_SIDES: Final = 2

CpuSets = tuple[tuple[int, ...], ...]


def cpu_sets_of(terms: Terms, entrants: Field) -> CpuSets:
    """Give the CPUs of both sides of a duet on this machine; none where the sides take turns anyway.

    Raises
    ------
    UsageError
        If more than two commands take turns with each other, or programs in the isolation cannot start
        together.
    DesignError
        If there are fewer than two cores.
    """
    if terms.mode is Mode.TURNS:
        return ()
    most = max(map(len, entrants.contests))
    if most > _SIDES:
        message = f"`--mode {terms.mode}` runs two commands at the same time; given: {most}"
        raise UsageError(message, hint="compare two at a time, or leave out `--mode`")
    if not technology(terms.isolation).shares_kernel:
        message = f"`--mode {terms.mode}`: programs in `{terms.isolation}` cannot be started together"
        raise UsageError(message, hint="--isolation bare, or `--mode turns`")
    try:
        return place_side_by_side(read_topology(), terms.cpus)
    except DesignError as error:
        message = f"`--mode {terms.mode}`: {error.message}"
        raise DesignError(message, hint=error.hint, code=error.code) from error


def mode_notes(terms: Terms, cpu_sets: CpuSets) -> list[str]:
    """Say what must be known of how a comparison is measured here."""
    found = []
    if terms.mode is Mode.DUET:
        places = " and ".join(",".join(map(str, cpus)) for cpus in cpu_sets)
        found.append(f"the sides of the duet swapped the CPUs {places} after every block")
    if terms.layout == RANDOM_LAYOUT and not kernel_randomises():
        found.append("the kernel draws no addresses (kernel.randomize_va_space is 0): only stacks move")
    return found


def overlap_share(runs: Sequence[Run] | Sequence[RunOutcome]) -> float | None:
    """Give the time in which all runs were running over that of the longest; ``None`` where nobody knows."""
    spans = [
        (run.start_ns, run.end_ns) for run in runs if run.start_ns is not None and run.end_ns is not None
    ]
    if len(spans) < _SIDES or len(spans) < len(runs):
        return None
    longest = max(end - start for start, end in spans)
    together = min(end for _, end in spans) - max(start for start, _ in spans)
    return max(together, 0) / longest if longest > 0 else None


def flagged(outcomes: list[RunOutcome]) -> list[RunOutcome]:
    """Label the outcomes of a block whose overlap is small."""
    share = overlap_share(outcomes)
    if share is None or share >= LEAST_OVERLAP:
        return outcomes
    return [replace(outcome, flags=(*outcome.flags, SMALL_OVERLAP)) for outcome in outcomes]


@dataclass(frozen=True, slots=True)
class DuetSummary:
    """How far the runs of the blocks overlapped.

    Parameters
    ----------
    blocks : int
        Measured blocks.
    least, median : float
        Overlap over the longer run, in [0, 1].
    small : tuple of int
        Numbers of the blocks with less than half.
    """

    blocks: int
    least: float
    median: float
    small: tuple[int, ...]

    @property
    def sentence(self) -> str:
        """What is known, without a full stop."""
        text = (
            f"duet: both sides ran at the same time in {self.blocks} blocks; they overlapped for "
            f"{100 * self.median:.0f} % of the longer run (median; least {100 * self.least:.0f} %)"
        )
        if not self.small:
            return text
        named = ", ".join(map(str, self.small[:MOST_NAMED]))
        further = f" and {len(self.small) - MOST_NAMED} more" if len(self.small) > MOST_NAMED else ""
        return f"{text}; less than half, where little cancels, in the blocks {named}{further}"


def duet_summary(terms: Terms, runs: Sequence[Run]) -> DuetSummary | None:
    """Describe the overlap of the measured blocks; ``None`` where they took turns."""
    if terms.mode is not Mode.DUET:
        return None
    blocks: dict[tuple[int, int], list[Run]] = {}
    for run in runs:
        if run.phase == MEASURE:
            blocks.setdefault((run.block, run.contender // _SIDES), []).append(run)
    found = [
        (share, block)
        for (block, _), members in blocks.items()
        if len(members) == _SIDES and (share := overlap_share(members)) is not None
    ]
    if not found:
        return None
    shares = sorted(share for share, _ in found)
    small = tuple(sorted({block for share, block in found if share < LEAST_OVERLAP}))
    return DuetSummary(len(found), shares[0], shares[len(shares) // 2], small)
