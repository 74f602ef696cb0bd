"""Layout in memory as a random level: what is drawn for each run, and how much of the scatter it causes.

A program may be faster or slower by where its stack, heap and code lie, whatever it does. Where each run
lies elsewhere, layout is noise and not a difference. Some blocks are measured in layouts that come back: they
scatter by all but layout, and so say how much of the scatter of the others layout is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.comparison.duel import difference_of
from steelyard.analyse.comparison.scale_ratio import deviations, scale_ratio
from steelyard.design.seeds import Purpose, generator
from steelyard.model.plan import RANDOM_LAYOUT
from steelyard.studies.comparison.terms import MEASURE, REPEAT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.analyse.comparison.duel import Duel
    from steelyard.studies.comparison.contender import Contender
    from steelyard.studies.comparison.sample import Run
    from steelyard.studies.comparison.terms import Terms

PADDING_VARIABLE: Final = "STEELYARD_PADDING"
STEP_BYTES: Final = 16
"""The kernel aligns the stack to so many bytes; smaller steps would change nothing."""
STEPS: Final = 512
"""Two pages: each place in a page is as likely as any other, and the pages of the stack differ too."""
REPEATED: Final = 2
"""Layouts that come back in turn. More would cost degrees of freedom, one would stand for itself alone."""
SMALL_SHARE: Final = 0.1
"""Share of the variance below which layout does not matter: the interval is wider by a twentieth."""
LEVEL: Final = 0.95
"""Of the interval of a share."""
_DRAWN, _COMES_BACK = 0, 1
_KERNEL_SETTING: Final = Path("/proc/sys/kernel/randomize_va_space")


class LayoutVerdict(StrEnum):
    """What is known of the share of layout."""

    PRESENT = "present"
    """More than nothing for sure."""
    SMALL = "small"
    """Less than a tenth for sure."""
    UNDECIDED = "undecided"
    """Neither."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a run lies.

    Parameters
    ----------
    padding_bytes : int
        Bytes added to the environment, which move the stack.
    is_randomised : bool
        Whether the kernel is asked to draw addresses.
    """

    padding_bytes: int
    is_randomised: bool


def layout_of(terms: Terms, place: tuple[int, int, int]) -> Layout | None:
    """Give the layout of a run; ``None`` where it is the host's.

    The kernel's own draws cannot be repeated, so a layout that comes back has none of them.

    Parameters
    ----------
    terms : Terms
        Of the comparison.
    place : tuple of int
        Number of the command, of the block, and of the run in the order of the plan.
    """
    if terms.layout != RANDOM_LAYOUT:
        return None
    contender, block, batch = place
    group = repeated_layout(terms, block)
    keys = (_DRAWN, batch) if group is None else (_COMES_BACK, group, contender)
    steps = int(generator(terms.seed, Purpose.LAYOUT, *keys).integers(STEPS))
    return Layout(STEP_BYTES * steps, group is None)


def repeated_layout(terms: Terms, block: int) -> int | None:
    """Give the number of the layout that comes back in a block; ``None`` where each run has its own."""
    if terms.phase_of(block) != REPEAT:
        return None
    return (block - terms.warmup) // (terms.repeat_every + 1) % REPEATED


def kernel_randomises() -> bool:
    """Whether the kernel of this host draws addresses at all."""
    try:
        return _KERNEL_SETTING.read_text(encoding="ascii").strip() != "0"
    except OSError:
        return True


@dataclass(frozen=True, slots=True)
class LayoutShare:
    """How much of the variance of a log ratio comes from layout.

    Parameters
    ----------
    baseline, contender : str
        The pair.
    verdict : LayoutVerdict
        What is known.
    share, low, high : float
        Part of the variance with its interval at 95 %, in [0, 1]; NaN where too little is known.
    blocks : tuple of int
        Blocks with layouts of their own, and with layouts that came back.
    """

    baseline: str
    contender: str
    verdict: LayoutVerdict
    share: float
    low: float
    high: float
    blocks: tuple[int, int]

    @property
    def sentence(self) -> str:
        """What is known, without a full stop."""
        of = f"of the variance of `{self.contender}` against `{self.baseline}`"
        basis = f"{self.blocks[0]} blocks in layouts of their own, {self.blocks[1]} in layouts that came back"
        if np.isnan(self.share):
            return f"layout: too few blocks to say which share {of} it causes ({basis})"
        interval = f"95 % interval {100 * self.low:.0f} to {100 * self.high:.0f} %, {basis}"
        if self.verdict is LayoutVerdict.SMALL:
            return f"layout causes less than {100 * SMALL_SHARE:.0f} % {of} ({interval})"
        if self.verdict is LayoutVerdict.UNDECIDED:
            estimate = f"estimate {100 * self.share:.0f} %"
            return f"layout: undecided whether it causes a share {of} ({estimate}, {interval})"
        return f"layout causes {100 * self.share:.0f} % {of} ({interval})"


def layout_shares(
    terms: Terms, contenders: Sequence[Contender], runs: Sequence[Run], duels: Sequence[Duel]
) -> tuple[LayoutShare, ...]:
    """Give the share of layout for each pair; nothing where layouts were not drawn.

    Parameters
    ----------
    terms : Terms
        How it was measured.
    contenders : sequence of Contender
        Commands.
    runs : sequence of Run
        All of them.
    duels : sequence of Duel
        The pairs.
    """
    if terms.layout != RANDOM_LAYOUT:
        return ()
    values: dict[int, dict[int, float]] = {}
    for run in runs:
        value = getattr(run, terms.metric.quantity)
        if value and run.phase in {MEASURE, REPEAT}:
            values.setdefault(run.block, {})[run.contender] = float(value)
    pairs = dict.fromkeys((duel.baseline, duel.contender) for duel in duels)
    return tuple(
        _share(terms, (contenders[pair[0]].name, contenders[pair[1]].name), pair, values) for pair in pairs
    )


def _share(
    terms: Terms, names: tuple[str, str], pair: tuple[int, int], values: Mapping[int, Mapping[int, float]]
) -> LayoutShare:
    groups: dict[int | None, list[float]] = {}
    for block, found in values.items():
        if pair[0] in found and pair[1] in found:
            groups.setdefault(repeated_layout(terms, block), []).append(
                difference_of(found[pair[0]], found[pair[1]])
            )
    own = groups.pop(None, [])
    blocks = (len(own), sum(map(len, groups.values())))
    ratio = scale_ratio(
        deviations([np.array(own)]),
        deviations([np.array(group) for group in groups.values()]),
        LEVEL,
        generator(terms.seed, Purpose.RESAMPLING, *pair),
    )
    if not ratio.is_known:
        return LayoutShare(*names, LayoutVerdict.UNDECIDED, np.nan, np.nan, np.nan, blocks)
    share, low, high = (max(1 - each**-2, 0.0) for each in (ratio.ratio, max(ratio.low, 1e-9), ratio.high))
    verdict = LayoutVerdict.UNDECIDED
    if ratio.low > 1:
        verdict = LayoutVerdict.PRESENT
    elif high < SMALL_SHARE:
        verdict = LayoutVerdict.SMALL
    return LayoutShare(*names, verdict, share, low, high, blocks)
