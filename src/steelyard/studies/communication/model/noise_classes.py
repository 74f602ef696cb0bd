"""The noise of messages, by classes of size: measured over the curve."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard.analyse.cost_curve.modes import two_modes
from steelyard.analyse.cost_curve.noise import noise_model, pareto_tail
from steelyard.analyse.cost_curve.quantile_table import hill_index, quantile_table
from steelyard.model.cost_model import NoiseClass, TailLaw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from steelyard.analyse.cost_curve.noise import NoiseModel, ParetoTail

    Vector = NDArray[np.float64]

EDGES: Final = tuple(4.0**power for power in range(3, 12))
"""Ends of the classes [bytes], 64 to 4 Mi; one that lies near a switch of the protocol moves there.

SOURCE: own measurements, shared memory and MPICH beside other load, octaves of a held-out launch by the
others. A delay adds to a time instead of multiplying it, so that its ratio to the curve falls with size: of
classes of a factor 16 the 95 % quantile is off by 12 to 23 % in half of the octaves, of 4 by 5 to 15 %. Of 2
the 99 % quantiles are not surely nearer: each is of 500 messages."""

FEWEST: Final = 100
"""A class with fewer messages joins its neighbour."""

FOR_A_LAW: Final = 500
"""Messages of a class that laws are fitted to, evenly spaced in time: enough to refute most wrong ones."""

FOR_A_TAIL: Final = 20_000
"""Messages of a class that the tail is fitted to."""

_NEAR: Final = 2.0


def class_edges(size: Vector, switches: Sequence[float]) -> tuple[float, ...]:
    """Give the ends of the classes but the last, ascending.

    Examples
    --------
    >>> class_edges(np.logspace(3, 6, 1000), [65_480.0])
    (4096.0, 16384.0, 65480.0, 262144.0)
    """
    edges = []
    for edge in EDGES:
        near = [each for each in switches if edge / _NEAR <= each <= edge * _NEAR]
        edges.append(min(near, key=lambda each: abs(math.log(each / edge)), default=edge))
    kept: list[float] = []
    ascending = np.sort(size)
    begin = 0
    for edge in sorted(set(edges)):
        end = int(np.searchsorted(ascending, edge, side="right"))
        if end - begin >= FEWEST and size.size - end >= FEWEST:
            kept.append(float(edge))
            begin = end
    return tuple(kept)


def noise_classes(
    size: Vector, ratio: Vector, switches: Sequence[float] = (), *, seed: int = 0
) -> tuple[NoiseClass, ...]:
    """Describe the noise of each class.

    Parameters
    ----------
    size, ratio : ndarray
        Shape (n,), n >= 1, in the order of measuring: bytes, and measured over the curve.
    switches : sequence of float
        Where the protocol switches [bytes].
    seed : int
        Of the tests of the laws.
    """
    edges = class_edges(size, switches)
    place = np.searchsorted(np.asarray(edges), size, side="left")
    found = []
    for number, (low, high) in enumerate(zip((-1.0, *edges), (*edges, None), strict=True)):
        here = ratio[place == number]
        law, tail = described(here, seed=seed)
        found.append(NoiseClass(low, high, quantile_table(here), hill_index(here), law, tail))
    return tuple(found)


def law_of(ratio: Vector, *, seed: int = 0) -> str:
    """Say which law ratios follow, if any, and which tail they have.

    Where no law fits them all, two modes are looked for, then a body before a heavy tail.

    Examples
    --------
    >>> generator = np.random.default_rng(1)
    >>> law_of(0.9 + generator.lognormal(-2.3, 0.5, 1500)).split(" (")[0]
    'lognormal'
    """
    return described(ratio, seed=seed)[0]


def described(ratio: Vector, *, seed: int = 0) -> tuple[str, TailLaw | None]:
    """Give the law of ratios in words, and the law of their tail where it is heavy."""
    model = noise_model(_some(ratio, FOR_A_LAW), lowest=0.0, seed=seed)
    if model.reason:
        return f"none named: {model.reason}", None
    tail = pareto_tail(_some(ratio, FOR_A_TAIL), seed=seed)
    is_heavy = tail is not None and tail.is_heavy
    name = _law_text(model) if model.chosen is not None else _mixture_text(ratio, tail, model, seed)
    return f"{name}; {_tail_text(tail)}", _tail_law(tail) if is_heavy else None


def _some(ratio: Vector, most: int) -> Vector:
    """Give at most so many values, evenly spaced in time."""
    return ratio[:: -(-ratio.size // most)]


def _tail_law(tail: ParetoTail | None) -> TailLaw | None:
    if tail is None:
        return None
    return TailLaw(tail.share, tail.threshold, tail.shape.estimate, tail.scale.estimate)


def _law_text(model: NoiseModel) -> str:
    chosen = model.chosen
    if chosen is None:
        return ""
    values = ", ".join(f"{each.name} {each.estimate:.3g}" for each in chosen.parameters)
    alike = [law.kind.value for law in model.alike]
    return f"{chosen.kind.value} ({values})" + (
        f", not distinguishable from {' or '.join(alike)}" if alike else ""
    )


def _mixture_text(ratio: Vector, tail: ParetoTail | None, model: NoiseModel, seed: int) -> str:
    """Say what the values are made of where no law fits them all."""
    modes = two_modes(ratio)
    if modes is not None:
        return "two modes: " + " and ".join(
            f"{100 * each.share:.0f} % around {each.middle:.3g} (lognormal, shape {each.spread:.2g})"
            for each in modes
        )
    if tail is not None and tail.is_heavy:
        body = noise_model(_some(ratio[ratio <= tail.threshold], FOR_A_LAW), lowest=0.0, seed=seed)
        if body.chosen is not None:
            return f"{100 * (1 - tail.share):.3g} % {_law_text(body)}"
    nearest = model.nearest
    if nearest is None:
        return "none fits"
    return f"none fits, nearest {nearest.kind.value} (off by {nearest.distance:.2f} of the distribution)"


def _tail_text(tail: ParetoTail | None) -> str:
    if tail is None:
        return "too few values for a tail"
    if not tail.holds:
        return "the largest follow no Pareto law"
    shape = tail.shape
    if not tail.is_heavy:
        return f"tail not certainly heavier than exponential (shape {shape.estimate:.2f})"
    return (
        f"heavy Pareto tail beyond {tail.threshold:.3g} ({tail.share:.1%} of the values), "
        f"index {1 / shape.estimate:.2f} [{1 / shape.high:.2f}, {1 / shape.low:.2f}]"
    )
