"""One line per long table: what it says, for readers who do not unfold it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from steelyard.report.sentence import fill
from steelyard.report.slots import NOT_AVAILABLE, percent, write
from steelyard.report.table_spec import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model.finding import Finding

FLAGS: Final = {
    "preempted": "waited for a CPU for more than 1 % of its time",
    "migrated": "moved to another CPU",
    "stolen": "lost more than 1 % of its time to the hypervisor",
    "throttled": "held back by a CPU limit",
    "swapped": "waited for pages while the host swapped",
    "cpu_sources_disagree": "two ways of counting CPU time differ",
}
"""What a flag of a run means."""

_CLASSES: Final = ("higher", "lesser", "same", "overlap", NOT_AVAILABLE)
_CELL: Final = "{subject.workload} in {subject.isolation} with {subject.setup}"
_MANY: Final = 3


def filled(template: str, finding: Finding) -> str:
    """Fill a template with the values of a finding, as plain text."""
    return "".join(part.text for part in fill(template, finding))


def errors_message(chosen: Sequence[Finding]) -> str:
    """Say the largest error of a clock, and how the rest lies to 5 %."""
    measured = [finding for finding in chosen if finding.estimates["cv"].value is not None]
    if not measured:
        return "no cell was measured"
    worst = max(measured, key=lambda finding: finding.estimates["cv"].value or 0.0)
    small = sum((finding.estimates["cv"].value or 0.0) <= 5 for finding in measured)  # noqa: PLR2004 - published limit
    return f"{small} of {len(measured)} cells at most {percent(5)}; largest: " + filled(
        "{estimates.cv} ({estimates.cv:interval}), " + _CELL,
        worst,
    )


def groups_message(chosen: Sequence[Finding]) -> str:
    """Say how many cells lie above each limit."""
    cells = sum(_whole(finding, "cells") for finding in chosen)
    above = [
        f"{sum(_whole(finding, f'over_{limit}') for finding in chosen)} over {limit} %"
        for limit in (5, 10, 20)
    ]
    return f"of {cells} values of a clock in a cell, " + ", ".join(above)


def granularity_message(chosen: Sequence[Finding]) -> str:
    """Say whether a clock is coarse, and which moves in the largest steps."""
    coarse = sum(finding.verdict == "coarse" for finding in chosen)
    judged = "none is coarse" if not coarse else f"{coarse} of {len(chosen)} are coarse"
    widest = max(chosen, key=lambda finding: _number(finding, "share_of_iteration_percent"))
    return f"{judged}; relative to an iteration the largest: " + filled(
        "{estimates.step}, {facts.share_of_iteration_percent:percent} of a median iteration "
        "({subject.clock} of {subject.isolation})",
        widest,
    )


def warm_up_message(chosen: Sequence[Finding]) -> str:
    """Say how many series are flat."""
    return f"{len(chosen)} series: " + counted(finding.verdict for finding in chosen)


def workers_message(chosen: Sequence[Finding]) -> str:
    """Say in how many cells workers differ, and where most."""
    differing = sum(_whole(finding, "different") > 0 for finding in chosen)
    widest = max(chosen, key=lambda finding: _number(finding, "largest_difference_percent"))
    return f"workers differ in {differing} of {len(chosen)} cells; largest difference of medians: " + filled(
        "{facts.largest_difference_percent:percent}, " + _CELL,
        widest,
    )


def contamination_message(chosen: Sequence[Finding]) -> str:
    """Say which flags are most frequent, and what they mean."""
    totals: Counter[str] = Counter()
    for finding in chosen:
        totals[finding.subject["flag"]] += _whole(finding, "flagged")
    named = [
        f"{flag} {write(count, 'count')}" + (f" ({FLAGS[flag]})" if flag in FLAGS else "")
        for flag, count in totals.most_common(_MANY)
    ]
    rest = f" and {len(totals) - _MANY} other flags" if len(totals) > _MANY else ""
    return "runs by flag: " + ", ".join(named) + rest


def comparison_message(chosen: Sequence[Finding]) -> str:
    """Say how often each class and each verdict was given."""
    classes = counted((str(finding.facts["class_percentile"]) for finding in chosen), _CLASSES)
    verdicts = counted(finding.verdict for finding in chosen)
    return f"published class, first against second: {classes}; Steelyard, second against first: {verdicts}"


def disagreement_message(chosen: Sequence[Finding], compared: int) -> str:
    """Say how often both judgements differ, and where the published rule is surer."""
    classes = counted((str(finding.facts["class_percentile"]) for finding in chosen), _CLASSES)
    verdicts = counted(finding.verdict for finding in chosen)
    return f"in {len(chosen)} of {compared} comparisons: published {classes}; Steelyard {verdicts}"


def class_counts_message(chosen: Sequence[Finding]) -> str:
    """Say how the published classes of all pairs, statistics and setups are distributed."""
    totals = {name: sum(_whole(finding, name) for finding in chosen) for name in _CLASSES}
    return "all rows together: " + ", ".join(f"{count} {name}" for name, count in totals.items() if count)


def parallel_message(chosen: Sequence[Finding]) -> str:
    """Say the least and the middle parallel ratio."""
    measured = sorted(
        (finding for finding in chosen if finding.estimates["ratio"].value is not None),
        key=lambda finding: finding.estimates["ratio"].value or 0.0,
    )
    if not measured:
        return "no cell was measured"
    least = filled(
        "least {estimates.ratio:ratio_percent} (" + _CELL + ")",
        measured[0],
    )
    middle = filled("{estimates.ratio:ratio_percent}", measured[len(measured) // 2])
    return f"{least}, half of the {len(measured)} cells at least {middle}"


def _whole(finding: Finding, key: str) -> int:
    value = finding.facts.get(key)
    return int(value) if isinstance(value, int | float) else 0


def _number(finding: Finding, key: str) -> float:
    value = finding.facts.get(key)
    return float(value) if isinstance(value, int | float) else 0.0
