"""Steelyard: a laboratory for performance experiments."""

from __future__ import annotations

from importlib import import_module

_PLACES = {
    "IntervalEstimate": "steelyard.analyse.intervals.estimate",
    "compare": "steelyard.studies.comparison.function",
    "fit_segments": "steelyard.analyse.cost_curve.segments",
    "interval": "steelyard.analyse.intervals.estimate",
    "linear_model": "steelyard.analyse.linear.model",
    "open": "steelyard.studies.opened_result:open_result",
}
"""Where public names live; imported when first used, so that the command line starts fast."""


def __getattr__(name: str) -> object:
    if name == "__version__":
        # Read when asked for: that takes as long as all of `steelyard --help`.
        return import_module("importlib.metadata").version("steelyard")
    if name not in _PLACES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    module, _, attribute = _PLACES[name].partition(":")
    return getattr(import_module(module), attribute or name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PLACES, "__version__"])
