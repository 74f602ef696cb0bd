"""What a linear model says of each observation, computed when it is first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from steelyard import _native
from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]


class LinearRows:
    """Residuals, leverages and influences of a model that was fitted to these columns.

    A summary needs none of them, and for many observations they cost several times as much as the fit.

    Parameters
    ----------
    columns : sequence of ndarray
        Shape (n,) each.
    response : ndarray
        Shape (n,).
    intercept : bool
        Whether a constant was fitted.
    residual_sum : float
        Sum of squared residuals of the fit, to notice data that were changed since.
    """

    def __init__(
        self, columns: Sequence[Vector], response: Vector, *, intercept: bool, residual_sum: float
    ) -> None:
        self._columns = tuple(columns)
        self._response = response
        self._intercept = intercept
        self._residual_sum = residual_sum

    @property
    def count(self) -> int:
        """Number of observations."""
        return int(self._response.size)

    @cached_property
    def values(self) -> tuple[Vector, Vector, Vector]:
        """Residuals, leverages and Cook's distances, shape (n,) each.

        Raises
        ------
        AnalysisError
            If the data are not those of the fit any more.
        """
        *found, residual_sum = _native.linear_rows(self._columns, self._response, intercept=self._intercept)
        if residual_sum != self._residual_sum:
            message = "the arrays were changed after the model was fitted to them"
            raise AnalysisError(message, hint="fit again, or fit copies of the arrays")
        residuals, leverage, cook = found
        return residuals, leverage, cook

    @cached_property
    def fitted(self) -> Vector:
        """Values of the model at the observations, shape (n,)."""
        return np.asarray(self._response - self.values[0])
