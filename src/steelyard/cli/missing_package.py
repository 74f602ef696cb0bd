"""Python packages that an installation lacks."""

from __future__ import annotations

from typing import Final

from steelyard.errors import CapabilityError
from steelyard.report.drawing.engine import INSTALL

BASE: Final = frozenset({"cyclopts", "jinja2", "numpy", "polars", "pyarrow", "pydantic", "rich", "scipy"})
"""Packages that every installation has, by the names of their modules."""

_DRAWING: Final = "vl_convert"


def missing_package(error: ImportError) -> CapabilityError | None:
    """Give the error of a package that cannot be imported, with the command that installs it.

    Parameters
    ----------
    error : ImportError
        What the import said.

    Returns
    -------
    CapabilityError or None
        ``None`` where a module of our own is missing, or nobody said what is: that is a bug.
    """
    module = (error.name or "").partition(".")[0]
    if module in {"", "steelyard"}:
        return None
    message = f"cannot use the Python package `{module}`: {error}"
    return CapabilityError(message, hint=_repair(module), code="capability.package")


def _repair(module: str) -> str:
    if module in BASE:
        return "pip install --upgrade steelyard"
    return (
        INSTALL if module == _DRAWING else f"install the package that provides the Python module `{module}`"
    )
