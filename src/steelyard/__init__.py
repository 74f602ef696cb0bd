"""Steelyard: a laboratory for performance experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

__version__ = "0.1.0"

if TYPE_CHECKING:
    from steelyard.analyse.linear import linear_model as linear_model
    from steelyard.analyse.segments import fit_segments as fit_segments

_FUNCTIONS: Final[dict[str, str]] = {
    "fit_segments": "steelyard.analyse.segments",
    "linear_model": "steelyard.analyse.linear",
}


def __getattr__(name: str) -> object:
    """Import what `steelyard.NAME` offers when it is first used: the command line must start fast."""
    if name not in _FUNCTIONS:
        message = f"module `steelyard` has no attribute `{name}`"
        raise AttributeError(message)
    from importlib import import_module  # noqa: PLC0415 - start-up time

    return getattr(import_module(_FUNCTIONS[name]), name)
