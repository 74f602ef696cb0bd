"""Why the published rule and Steelyard's verdict differ, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.equivalence import Verdict
from steelyard.analyse.comparison.published_rule import PublishedClass
from steelyard.analyse.intervals.bootstrap import Statistic

if TYPE_CHECKING:
    from steelyard.analyse.comparison.equivalence import Margin
    from steelyard.studies.stability.findings.comparisons import Comparison

_DECIDED: Final = (PublishedClass.HIGHER, PublishedClass.LESSER)
_OF_CLASS: Final = {PublishedClass.HIGHER: Verdict.FASTER, PublishedClass.LESSER: Verdict.SLOWER}
_CLUSTERED_SHARE: Final = 0.05


def explain(published: PublishedClass, verdict: Verdict, compared: Comparison, margin: Margin) -> str | None:
    """Say why the published class and the verdict differ; nothing if they agree or no verdict is offered."""
    if published is PublishedClass.NA or verdict in {Verdict.NA, Verdict.DESCRIPTIVE}:
        return None
    if published in _DECIDED:
        return _against_decided(published, verdict, compared, margin)
    if verdict in {Verdict.SLOWER, Verdict.FASTER}:
        return (
            "intervals that overlap are no test of the difference: the interval of the ratio itself, from "
            f"{_units(compared)}, excludes 1"
        )
    if published is PublishedClass.SAME and verdict is Verdict.INCONCLUSIVE:
        return (
            "one interval inside the other does not show equality: the ratio may lie outside "
            f"the margin of {_percent(margin.relative)}"
        )
    return None


def _against_decided(
    published: PublishedClass, verdict: Verdict, compared: Comparison, margin: Margin
) -> str | None:
    if verdict is _OF_CLASS[published]:
        return None
    if verdict is Verdict.EQUIVALENT:
        return f"the difference is inside the margin of {_percent(margin.relative)}, so it is not relevant"
    if verdict is Verdict.INCONCLUSIVE:
        return _clustering(compared)
    if compared.statistic in {Statistic.MEAN, Statistic.SD, Statistic.CV}:
        return "a few extreme iterations rule the pooled statistic; the typical unit moves the other way"
    return "the pooled values mix units of different level; the typical unit moves the other way"


def _clustering(compared: Comparison) -> str:
    pooled = sum(side.cell.values().size for side in compared.sides if side is not None)
    share = compared.between_share
    if share is not None and share >= _CLUSTERED_SHARE:
        return (
            f"the rule takes {pooled} iterations for independent, but they come from {_units(compared)}, "
            f"and {_percent(share)} of the variance lies between units"
        )
    return f"the rule takes {pooled} iterations for independent, but they come from {_units(compared)}"


def _units(compared: Comparison) -> str:
    names = {"host": "hosts", "block": "blocks", "worker": "workers of a batch"}
    first, second = compared.test.units
    return f"{first} and {second} {names[compared.level]}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
