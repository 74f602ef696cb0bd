"""Settings of an analysis, and where they come from."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.intervals.bootstrap import Resampling, Statistic
from steelyard.errors import DataError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Plan

SETTINGS_NAME: Final = "analysis.json"
"""Settings that differ from the plan's, beside the result; an input of the analysis like the tables."""

SETTINGS_SCHEMA: Final = "steelyard/analysis/1"
SPREAD_MARGIN: Final = 0.25
"""Margin of equivalence of spreads: a quarter; a smaller change of a spread cannot be told at usual sizes."""

LEVEL: Final = 0.95
_LARGEST_PERCENT: Final = 100.0


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """What a reader of the results states before they are computed.

    Parameters
    ----------
    tolerance_percent : float
        Largest coefficient of variation, and largest error of a clock, that is acceptable; in (0, 100].
    margin_percent : float
        Largest difference of locations that is called equivalent; in (0, 100].
    resamples : int
        Resamples of each bootstrap; 1000 is the published rule's.
    """

    tolerance_percent: float = 2.0
    margin_percent: float = 2.0
    resamples: int = 1000

    def __post_init__(self) -> None:
        for name in ("tolerance_percent", "margin_percent"):
            value = getattr(self, name)
            if not 0 < value <= _LARGEST_PERCENT:
                message = f"`{name}` is {value}; allowed: above 0 up to 100"
                raise UsageError(message, hint="give it in percent, e.g. 2", code="usage.range")

    def margin(self, statistic: Statistic) -> Margin:
        """Give the margin of equivalence for a statistic."""
        relative = self.margin_percent / 100 if statistic.is_location else SPREAD_MARGIN
        return Margin(relative, LEVEL)

    def resampling(self, seed: int, cell: int) -> Resampling:
        """Give the stream of a cell."""
        return Resampling(seed=seed, cell=cell, resamples=self.resamples, level=LEVEL)


def read_options(result: Path, plan: Plan) -> AnalysisOptions:
    """Give the settings of a result: those beside it, else its plan's.

    Raises
    ------
    DataError
        If the file of settings is damaged.
    """
    path = result / SETTINGS_NAME
    if not path.exists():
        return chosen_options(plan)
    try:
        content = json.loads(path.read_bytes())
        schema = content.pop("schema")
        if schema != SETTINGS_SCHEMA:
            message = f"`{path}` has schema `{schema}`; this version reads `{SETTINGS_SCHEMA}`"
            raise DataError(message, code="data.schema")
        return AnalysisOptions(**content)
    except (ValueError, TypeError, KeyError, AttributeError, UsageError) as error:
        message = f"`{path}` is not of schema `{SETTINGS_SCHEMA}`: {error}"
        raise DataError(
            message, hint="remove it to use the settings of the plan", code="data.schema"
        ) from error


def chosen_options(
    plan: Plan, *, tolerance_percent: float | None = None, margin_percent: float | None = None
) -> AnalysisOptions:
    """Give the plan's settings with what the reader states instead.

    Raises
    ------
    UsageError
        If a number is out of range.
    """
    return AnalysisOptions(
        tolerance_percent=_number(plan, "tolerance_percent")
        if tolerance_percent is None
        else tolerance_percent,
        margin_percent=_number(plan, "margin_percent") if margin_percent is None else margin_percent,
    )


def write_options(result: Path, plan: Plan, options: AnalysisOptions) -> None:
    """Keep settings beside a result; those of the plan need no file."""
    path = result / SETTINGS_NAME
    path.unlink(missing_ok=True)
    if options != chosen_options(plan):
        text = json.dumps({"schema": SETTINGS_SCHEMA, **asdict(options)}, indent=1)
        path.write_text(text + "\n", encoding="utf-8")


def _number(plan: Plan, name: str) -> float:
    value = plan.options.get(name)
    return float(value) if isinstance(value, int | float) else getattr(AnalysisOptions(), name)
