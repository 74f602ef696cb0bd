"""Lists of operations on messages: which operation with how many bytes, in which order.

Both endpoints work through one list. It is drawn from the seed of the study before anything is measured, so
that the same seed gives the same list, and an operation's size says nothing about when it comes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.design.seeds import Purpose, generator
from steelyard.errors import DesignError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Sizes = NDArray[np.int64]

LARGEST_BYTES: Final = 1 << 32
"""Beyond it no transport here takes a message in one piece."""

HEADING: Final = "op,size"


class SizeLaw(StrEnum):
    """How sizes are drawn."""

    DOUBLING = "doubling"
    """The powers of two, each as often as the others."""
    UNIFORM = "uniform"
    """Every number of bytes equally likely."""
    LOG_UNIFORM = "log-uniform"
    """10^U(lo, hi): every decade equally likely."""


@dataclass(frozen=True, slots=True)
class SizePlan:
    """What a list of operations is drawn from.

    Parameters
    ----------
    law : SizeLaw
        How sizes are drawn.
    smallest, largest : int
        Limits, bytes, both included; 0 <= smallest <= largest <= `LARGEST_BYTES`.
    operations : int
        Length of the list, at least 1.
    mix : mapping of str to int
        Weight of each kind of operation, at least one positive; kinds of weight 0 do not occur.
    """

    law: SizeLaw
    smallest: int
    largest: int
    operations: int
    mix: Mapping[str, int]

    def __post_init__(self) -> None:
        if not 0 <= self.smallest <= self.largest <= LARGEST_BYTES:
            allowed = f"0 <= smallest <= largest <= {LARGEST_BYTES}"
            msg = f"sizes from {self.smallest} to {self.largest} bytes are not a range; allowed: {allowed}"
            raise DesignError(msg, code="design.sizes")
        if self.operations < 1:
            msg = f"`operations` is {self.operations}; allowed: 1 or more"
            raise DesignError(msg, code="design.sizes")
        if any(weight < 0 for weight in self.mix.values()) or not any(self.mix.values()):
            msg = f"the mix of operations {dict(self.mix)} has a negative weight, or no positive one"
            raise DesignError(msg, code="design.sizes")


def mean_size(plan: SizePlan) -> float:
    """Give the expected size of a message, bytes.

    Examples
    --------
    >>> round(mean_size(SizePlan(SizeLaw.LOG_UNIFORM, 1, 10_000_000, 1, {"send": 1})))
    620421
    >>> mean_size(SizePlan(SizeLaw.UNIFORM, 0, 10, 1, {"send": 1}))
    5.0
    """
    low, high = plan.smallest, plan.largest
    if plan.law is SizeLaw.DOUBLING:
        return float(doubling_levels(low, high).mean())
    if plan.law is SizeLaw.UNIFORM or high <= max(low, 1):
        return (low + high) / 2
    return (high - max(low, 1)) / math.log(high / max(low, 1))


@dataclass(frozen=True, slots=True)
class OperationList:
    """A list of operations, as both endpoints read it.

    Parameters
    ----------
    names : tuple of str
        Kinds, in order of execution; shape (operations,).
    sizes : ndarray of int
        Bytes; shape (operations,).
    """

    names: tuple[str, ...]
    sizes: Sizes

    def csv(self) -> str:
        """Give it as text: a heading, then one operation per line."""
        rows = (f"{name},{size}\n" for name, size in zip(self.names, self.sizes.tolist(), strict=True))
        return f"{HEADING}\n{''.join(rows)}"


def draw_operations(plan: SizePlan, seed: int, replication: int, *, warm_up: int = 0) -> OperationList:
    """Draw the list of one replication.

    Kinds share the list as their weights say, up to whole operations; each kind gets sizes over the whole
    range, in random order, and kinds are shuffled together.

    Parameters
    ----------
    plan : SizePlan
        What to draw from.
    seed : int
        The study's seed; stream `Purpose.MESSAGE_SIZES` with the number of the replication.
    replication : int
        From 0. A replication does not depend on how many others there are.
    warm_up : int
        Operations drawn alike and put before the list, which stays the same whatever their number.

    Examples
    --------
    >>> few = SizePlan(SizeLaw.LOG_UNIFORM, 1, 1000, 4, {"pingpong": 3, "send": 1})
    >>> sorted(draw_operations(few, 1, 0).names)
    ['pingpong', 'pingpong', 'pingpong', 'send']
    """
    stream = generator(seed, Purpose.MESSAGE_SIZES, replication)
    found = _draw(plan, plan.operations, stream)
    if warm_up == 0:
        return found
    first = _draw(plan, warm_up, stream)
    return OperationList(first.names + found.names, np.concatenate([first.sizes, found.sizes]))


def _draw(plan: SizePlan, operations: int, stream: np.random.Generator) -> OperationList:
    names: list[str] = []
    sizes: list[Sizes] = []
    for name, count in _shares(plan.mix, operations).items():
        names += [name] * count
        sizes.append(draw_sizes(plan.law, count, (plan.smallest, plan.largest), stream))
    order = stream.permutation(len(names))
    return OperationList(tuple(names[at] for at in order), np.concatenate(sizes)[order])


def draw_sizes(law: SizeLaw, count: int, limits: tuple[int, int], stream: np.random.Generator) -> Sizes:
    """Draw sizes of messages.

    Parameters
    ----------
    law : SizeLaw
        Doubling gives 0 where the range begins there, then powers of two, each floor(count / levels) or one
        more times, in random order; the others draw each size by itself.
    count : int
        How many.
    limits : (int, int)
        Smallest and largest, bytes, both included.
    stream : numpy.random.Generator
        Source of chance.

    Returns
    -------
    ndarray of int
        Bytes; shape (count,).

    Raises
    ------
    DesignError
        If there is no power of two between the limits.

    References
    ----------
    .. [1] Legrand: sizes 10^U(lo, hi), rounded down to whole bytes. Deviation: the upper limit is that of the
       first size beyond the largest, so that the largest is drawn too; from 0 on it is 10^U(0, hi) - 1.
    """
    low, high = limits
    if law is SizeLaw.UNIFORM:
        return stream.integers(low, high, endpoint=True, size=count)
    if law is SizeLaw.LOG_UNIFORM:
        shift = 1 if low == 0 else 0
        exponents = stream.uniform(math.log10(low + shift), math.log10(high + shift + 1), size=count)
        return np.clip(np.floor(10.0**exponents).astype(np.int64) - shift, low, high)
    levels = doubling_levels(low, high)
    return stream.permutation(np.resize(levels, count))


def doubling_levels(low: int, high: int) -> Sizes:
    """Give the powers of two in a range, and 0 if it begins there.

    Raises
    ------
    DesignError
        If there is none.

    Examples
    --------
    >>> doubling_levels(0, 9).tolist(), doubling_levels(3, 8).tolist()
    ([0, 1, 2, 4, 8], [4, 8])
    """
    levels = [0] if low == 0 else []
    levels += [1 << power for power in range(high.bit_length()) if low <= 1 << power <= high]
    if not levels:
        msg = f"there is no power of two from {low} to {high} bytes"
        raise DesignError(msg, hint="widen the range, or draw `uniform` sizes", code="design.sizes")
    return np.array(levels, dtype=np.int64)


def _shares(mix: Mapping[str, int], count: int) -> dict[str, int]:
    """Divide a list by weights: largest remainders, so that the parts add up."""
    total = sum(mix.values())
    exact = {name: count * weight / total for name, weight in mix.items() if weight > 0}
    found = {name: math.floor(share) for name, share in exact.items()}
    rest = sorted(exact, key=lambda name: found[name] - exact[name])
    for name in rest[: count - sum(found.values())]:
        found[name] += 1
    return {name: number for name, number in found.items() if number}


@dataclass(frozen=True, slots=True)
class DecadeShare:
    """How many of the drawn sizes lie in one decade.

    Parameters
    ----------
    low, high : int
        Bytes, [low, high).
    share : float
        Part of all sizes, in [0, 1].
    """

    low: int
    high: int
    share: float


def decade_shares(sizes: Sequence[int] | Sizes) -> tuple[DecadeShare, ...]:
    """Give how a sample of sizes is spread over the decades: what it can say little about.

    Parameters
    ----------
    sizes : sequence of int
        Bytes, at least one; 0 counts for the first decade.

    Returns
    -------
    tuple of DecadeShare
        From the first decade with a size to the last, empty ones included.

    Examples
    --------
    >>> [each.share for each in decade_shares([1, 2, 50, 5000])]
    [0.5, 0.25, 0.0, 0.25]
    """
    powers = np.floor(np.log10(np.maximum(np.asarray(sizes, dtype=np.int64), 1))).astype(int)
    counts = np.bincount(powers)
    first = int(np.flatnonzero(counts)[0])
    return tuple(
        DecadeShare(0 if power == 0 else 10**power, 10 ** (power + 1), float(count / len(powers)))
        for power, count in enumerate(counts.tolist())
        if power >= first
    )


def sampling_bias(law: SizeLaw) -> str:
    """Say what a law of sizes hides, in one sentence.

    References
    ----------
    .. [1] Legrand, section on sizes: doubling sees only aligned sizes, uniform almost no small message.
    """
    return {
        SizeLaw.DOUBLING: "only powers of two were sent: sizes between them, and effects of "
        "alignment, were not measured",
        SizeLaw.UNIFORM: "nine of ten sizes are above a tenth of the largest: small messages are "
        "poorly covered",
        SizeLaw.LOG_UNIFORM: "every decade has as many sizes as the others: a fit weighs small messages as "
        "much as large ones",
    }[law]
