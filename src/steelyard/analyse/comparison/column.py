"""Columns of numbers and labels, from whatever a caller holds them in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.errors import AnalysisError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NUMBERS = "biuf"


def column_of(values: object, name: str) -> NDArray[np.float64]:
    """Give values as one column of numbers.

    Parameters
    ----------
    values : array-like
        Shape (n,), finite numbers in any unit: a NumPy array, a sequence, anything with the Arrow C
        interface (pyarrow, Polars) or ``__array__`` (pandas). Copied only where the type has to change.
    name : str
        What the caller calls it; stands in the message of an error.

    Returns
    -------
    ndarray
        Shape (n,), float64. Whole numbers beyond 2^53 are rounded.

    Raises
    ------
    UsageError
        If it is not one column of numbers.
    AnalysisError
        If a value is missing, infinite or not a number.

    Examples
    --------
    >>> column_of([3, 4], "sample")
    array([3., 4.])
    """
    array = _array(values, name)
    if array.ndim != 1:
        message = f"`{name}` has {array.ndim} dimensions; allowed: one column"
        raise UsageError(message, hint=f"give one column, e.g. `{name}.ravel()` for an array")
    if array.dtype.kind not in _NUMBERS:
        message = f"`{name}` contains values of type {array.dtype}; allowed: whole or floating-point numbers"
        raise UsageError(message, hint="give durations as numbers of one unit, e.g. nanoseconds")
    column = np.ascontiguousarray(array, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(column))
    if bad.size:
        message = (
            f"`{name}` has {bad.size} values that are not finite, the first at position {bad[0]} (from 0)"
        )
        raise AnalysisError(
            message, hint="remove them and say how many were removed", code="analysis.not-finite"
        )
    return column


def labels_of(labels: object, name: str, count: int) -> NDArray[np.int64]:
    """Give labels of any type as numbers from 0, in sorted order of the labels.

    Examples
    --------
    >>> labels_of(["b", "a", "b"], "clusters", 3).tolist()
    [1, 0, 1]
    """
    array = _array(labels, name)
    if array.shape != (count,):
        message = f"`{name}` has the shape {array.shape}; allowed: ({count},), one label for each value"
        raise UsageError(message, hint="repeat the label of a run for each of its values")
    if np.issubdtype(array.dtype, np.signedinteger):
        numbers: NDArray[np.int64] = array.astype(np.int64, copy=False)
        if (numbers[1:] >= numbers[:-1]).all():
            return np.concatenate(([0], np.cumsum(numbers[1:] != numbers[:-1])))[:count]
    codes: NDArray[np.int64] = np.unique(array, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return codes


def _array(values: object, name: str) -> NDArray[np.generic]:
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
        return _from_arrow(values, name)
    try:
        return np.asarray(values)
    except ValueError as error:
        message = f"`{name}` is not one column: {error}"
        raise UsageError(message, hint="give values of one type in one column") from error


def _from_arrow(values: object, name: str) -> NDArray[np.generic]:
    import pyarrow as pa  # noqa: PLC0415 - only who holds Arrow data pays for it

    is_stream = hasattr(values, "__arrow_c_stream__")
    column = pa.chunked_array(values) if is_stream else pa.chunked_array([pa.array(values)])
    if pa.types.is_nested(column.type):
        message = f"`{name}` has more than one column; allowed: one column"
        raise UsageError(message, hint=f'choose one, e.g. `{name}["time"]`')
    if column.null_count:
        message = f"`{name}` has {column.null_count} missing values of {len(column)}"
        raise AnalysisError(
            message, hint="remove them and say how many were removed", code="analysis.missing"
        )
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    array: NDArray[np.generic] = column.to_numpy()
    return array
