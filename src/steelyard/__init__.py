"""Steelyard: a laboratory for performance experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from steelyard.studies.comparison.function import compare as compare

__version__ = "0.1.0"

_FUNCTIONS: Final[dict[str, str]] = {
    "compare": "steelyard.studies.comparison.function",
}
"""Functions of the package by name, and the module each is imported from when it is asked for."""


def __getattr__(name: str) -> Any:
    """Give a function of the package, imported when it is first asked for."""
    if name not in _FUNCTIONS:
        message = f"module `{__name__}` has no attribute `{name}`"
        raise AttributeError(message)
    from importlib import import_module  # noqa: PLC0415 - start-up time

    return getattr(import_module(_FUNCTIONS[name]), name)
