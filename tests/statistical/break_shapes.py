"""Data of many shapes with one planted break: whether intervals hold it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Draw = Callable[[np.random.Generator], Vector]
    Curve = Callable[[Vector, float], Vector]
    Noise = Callable[[Vector, float, np.random.Generator], Vector]

SIZES: Final[dict[str, tuple[float, Draw]]] = {
    "300 log-uniform": (65_000.0, lambda rng: np.round(10 ** rng.uniform(0, 7, 300))),
    "2000 log-uniform": (3000.0, lambda rng: np.round(10 ** rng.uniform(0, 7, 2000))),
    "1000 uniform": (65_000.0, lambda rng: np.round(rng.uniform(1, 2e5, 1000))),
    "500 equidistant": (40_000.0, lambda rng: np.round(np.linspace(64, 131_072, 500))),
    "24 powers of two, 20 times": (60_000.0, lambda rng: np.repeat(2.0 ** np.arange(24), 20)),
    "40 log-spaced, 10 times": (20_000.0, lambda rng: np.repeat(np.round(10 ** np.linspace(1, 6.5, 40)), 10)),
    "120 log-spaced": (60_000.0, lambda rng: 2.0 ** np.linspace(0, 23, 120)),
}
"""Where the break is, and the sizes."""

CURVES: Final[dict[str, Curve]] = {
    "up by 30 %": lambda x, at: (5e-6 + 1e-9 * x) * np.where(x < at, 1.0, 1.3),
    "down by 30 %": lambda x, at: (5e-6 + 1e-9 * x) * np.where(x < at, 1.0, 0.7),
    "constant, then a line above": lambda x, at: np.where(x < at, 5e-6, 30e-6 + 1e-9 * x),
    "constant, then a line from there": lambda x, at: 5e-6 * (1 + 3 * np.maximum(x / at - 1, 0)),
    "power law, then a line above": lambda x, at: np.where(
        x < at, 3e-6 * x**0.2, 4.5e-6 * at**0.2 + 2e-9 * (x - at)
    ),
}


def _spikes(x: Vector, at: float, rng: np.random.Generator) -> Vector:
    body = 1 + 0.05 * rng.standard_normal(x.size)
    return np.asarray(body * np.where(rng.random(x.size) < 0.05, 1 + 20 * rng.random(x.size), 1.0))


NOISES: Final[dict[str, Noise]] = {
    "normal, 2 %": lambda x, at, rng: 1 + 0.02 * rng.standard_normal(x.size),
    "normal, 10 %": lambda x, at, rng: np.maximum(1 + 0.1 * rng.standard_normal(x.size), 0.3),
    "lognormal": lambda x, at, rng: 1 + rng.lognormal(np.log(0.05), 1.0, x.size),
    "exponential, 20 %": lambda x, at, rng: 1 + rng.exponential(0.2, x.size),
    "noisier beyond": lambda x, at, rng: np.maximum(
        1 + np.where(x < at, 0.02, 0.15) * rng.standard_normal(x.size), 0.2
    ),
    "noisier before": lambda x, at, rng: np.maximum(
        1 + np.where(x < at, 0.15, 0.02) * rng.standard_normal(x.size), 0.2
    ),
    "spikes on 5 %": _spikes,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of data.

    Parameters
    ----------
    sizes, curve, noise : str
        Keys of the tables above.
    """

    sizes: str
    curve: str
    noise: str

    @property
    def at(self) -> float:
        """First size beyond the break."""
        return SIZES[self.sizes][0]

    def draw(self, seed: int) -> tuple[Vector, Vector]:
        """Draw sizes and times."""
        rng = np.random.default_rng([zlib.crc32(f"{self.sizes}/{self.curve}/{self.noise}".encode()), seed])
        x = SIZES[self.sizes][1](rng)
        return x, np.asarray(CURVES[self.curve](x, self.at) * NOISES[self.noise](x, self.at, rng))


EVERY: Final = tuple(Shape(sizes, curve, noise) for sizes in SIZES for curve in CURVES for noise in NOISES)
