"""One sample as it was given, with what is independent in it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from steelyard import _native
from steelyard.analyse.comparison.column import column_of, labels_of
from steelyard.analyse.intervals.clustering import group_units, intraclass_share
from steelyard.analyse.intervals.dependence import depends_on_order
from steelyard.analyse.intervals.quantity import Kind
from steelyard.errors import AnalysisError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.analyse.intervals.quantity import Quantity

LONG_ENOUGH: Final = 30
"""Shorter series do not show whether they are autocorrelated."""

LARGEST: Final = 1e70
"""Fourth powers of larger values, which degrees of freedom are made of, overflow."""

SMALLEST: Final = 1e-70
"""Fourth powers of smaller values vanish."""

BATCH_TIMES: Final = 10
"""Correlation times in a batch: neighbouring batches are then as good as independent."""


@dataclass(frozen=True, slots=True)
class InputSample:
    """A sample in recorded order.

    Parameters
    ----------
    values : ndarray
        Shape (n,), finite.
    clusters, strata : ndarray or None
        Shape (n,), numbers from 0.
    block : int or None
        Length of a block of the series.
    effective : float
        Effective number of independent values, 1 to n.
    alike : float
        Share of the variance that lies between clusters, in [0, 1]; 0 where each holds one value.
    """

    values: NDArray[np.float64]
    clusters: NDArray[np.int64] | None
    strata: NDArray[np.int64] | None
    block: int | None
    effective: float
    alike: float = 0.0

    @property
    def size(self) -> int:
        """Number of values."""
        return int(self.values.size)

    @property
    def is_dependent(self) -> bool:
        """Whether neighbours of a series without labels resemble each other."""
        is_series = self.clusters is None and self.strata is None and self.size >= LONG_ENOUGH
        return is_series and depends_on_order(self.values)

    @property
    def clusters_count(self) -> int:
        """Number of clusters; 0 without labels."""
        return 0 if self.clusters is None else int(self.clusters.max()) + 1

    @property
    def units_count(self) -> int:
        """Number of independent units: clusters, or values without labels."""
        return self.size if self.clusters is None else self.clusters_count

    def native(
        self,
    ) -> tuple[NDArray[np.float64], NDArray[np.int64] | None, NDArray[np.int64] | None, int | None]:
        """Give it as the kernels take it."""
        return self.values, self.clusters, self.strata, self.block

    @property
    def units(self) -> tuple[NDArray[np.float64], ...]:
        """The values of each cluster; each value by itself without labels."""
        labels = np.arange(self.size) if self.clusters is None else self.clusters
        return group_units("cluster", labels, self.values).values

    @property
    def counting(self) -> float:
        """How many values count in a mean of the clusters: those of a short cluster weigh more than others.

        References
        ----------
        .. [1] Kish (1965), "Survey Sampling", section 11.7: (sum w)^2 / sum w^2, here with w = 1 / size.
        """
        sizes = np.ones(1) if self.clusters is None else np.bincount(self.clusters)
        is_even = sizes.min() == sizes.max()
        return float(self.size if is_even else sizes.size**2 / np.sum(1 / sizes))

    @property
    def shown(self) -> float:
        """How many independent values show how the values are spread; those of a cluster may be alike.

        References
        ----------
        .. [1] Kish (1965), "Survey Sampling", section 5.4 (design effect), for the mean of the clusters.
        """
        if self.clusters is None:
            return float(self.size)
        return 1 / (self.alike / self.clusters_count + (1 - self.alike) / self.counting)

    def unit_values(self, quantity: Quantity) -> NDArray[np.float64]:
        """Give the statistic of each cluster; of each value by itself without labels."""
        if self.clusters is None:
            return self.values
        if quantity.kind is Kind.MEAN and self.size == np.unique(self.clusters).size:
            return self.values[np.argsort(self.clusters)]  # the mean of one value
        return np.array([quantity.of(unit) for unit in self.units])

    def first_of_units(self, count: int) -> InputSample:
        """Give it with so many values of each cluster, the first ones."""
        if self.clusters is None:
            return self
        order = np.argsort(self.clusters, kind="stable")
        sizes = np.bincount(self.clusters)
        place = np.arange(self.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        kept = np.sort(order[place < count])
        return replace(self, values=self.values[kept], clusters=self.clusters[kept])

    def in_blocks(self) -> InputSample:
        """Give it with blocks of automatic length."""
        return replace(self, block=_automatic_length(self.values))

    def in_batches(self) -> InputSample:
        """Give it with neighbours joined to clusters of ten correlation times; the rest joins the last."""
        length = math.ceil(BATCH_TIMES * self.size / self.effective)
        last = max(self.size // length - 1, 0)
        return replace(self, clusters=np.minimum(np.arange(self.size) // length, last))


def input_sample_of(
    values: object, name: str, *, clusters: object, strata: object, block: int | str | None
) -> InputSample:
    """Read one sample with its labels.

    Parameters
    ----------
    values : array-like
        Shape (n,), n >= 1.
    name : str
        What the caller calls it.
    clusters, strata : array-like or None
        Shape (n,).
    block : int, "auto" or None
        Length of a block.

    Raises
    ------
    UsageError
        If arguments do not go together.
    AnalysisError
        If there are no values.
    """
    column = column_of(values, name)
    if not column.size:
        message = f"`{name}` is empty"
        raise AnalysisError(message, hint="give at least one value", code="analysis.too-few")
    _check_range(column, name)
    if block is not None and (clusters is not None or strata is not None):
        message = "`block` is given together with `clusters` or `strata`; allowed: one of the two"
        raise UsageError(message, hint="`block` is for one series without labels")
    groups = None if clusters is None else labels_of(clusters, f"clusters of {name}", column.size)
    layers = None if strata is None else labels_of(strata, f"strata of {name}", column.size)
    alike = 0.0 if groups is None else intraclass_share(group_units("cluster", groups, column)) or 0.0
    effective = _effective_size(column, groups, alike) if layers is None else float(column.size)
    return InputSample(column, groups, layers, _block_length(block, column), effective, alike)


def _check_range(values: NDArray[np.float64], name: str) -> None:
    """Refuse values whose powers cannot be computed."""
    low, high = float(values.min()), float(values.max())
    largest = max(abs(low), abs(high))
    if largest > LARGEST or (low < high and largest < SMALLEST):
        what = "are not finite numbers" if largest > LARGEST else "vanish"
        message = f"`{name}` goes from {low:g} to {high:g}: fourth powers of such values {what}"
        hint = f"give them in another unit, in which they lie between {SMALLEST:g} and {LARGEST:g}"
        raise AnalysisError(message, hint=hint, code="analysis.range")


def _effective_size(values: NDArray[np.float64], clusters: NDArray[np.int64] | None, alike: float) -> float:
    """Effective size of a series, or of a clustered sample by its design effect (Kish 1965, section 5.4)."""
    if values.size == 1:
        return 1.0
    if clusters is None:
        return _native.effective_size(values)
    sizes = np.bincount(clusters).astype(np.float64)
    return float(values.size / (1 + (float(np.sum(sizes**2)) / values.size - 1) * alike))


def _block_length(block: int | str | None, values: NDArray[np.float64]) -> int | None:
    if block is None:
        return None
    if block == "auto":
        return _automatic_length(values)
    if isinstance(block, int) and not isinstance(block, bool) and 1 <= block <= values.size // 2:
        return block
    message = f'`block` is {block!r}; allowed: "auto" or 1 to {values.size // 2} for {values.size} values'
    raise UsageError(message, hint='`block="auto"` finds a length from the series itself')


def _automatic_length(values: NDArray[np.float64]) -> int:
    shortest = 4
    if values.size < shortest:
        message = f"{values.size} values given, at least {shortest} needed to find the length of a block"
        raise AnalysisError(message, hint="measure more", code="analysis.too-few")
    return _native.block_length(values)
