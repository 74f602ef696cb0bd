"""The answer on the front of the report: the verdict in one line, and what to do about it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from steelyard.report.sentence import (
    Part,
    Statement,
    enumerate_findings,
    enumerate_or_count,
    fill,
    join,
    plain,
    verdict_of,
)
from steelyard.studies.stability.report.sentences import PHRASING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model.finding import Finding, FindingSet

_SHIFT_PHRASES: Final = (
    (("slower", "faster"), "{subject.isolation} needs {estimates.ratio:change}"),
    (("equivalent",), "no relevant shift in {subject.isolation}"),
    (("inconclusive",), "undecided in {subject.isolation}"),
    (
        ("descriptive",),
        (
            "too few units for a verdict in {subject.isolation}[, which on these hosts alone needs "
            "{estimates.these_hosts:change} ({estimates.these_hosts:change_interval})]"
        ),
    ),
)
_NOT_QUIET: Final = (
    "The machine was not quiet, so dispersions are upper bounds: measure again before acting on a `none`."
)


def answer(findings: FindingSet) -> tuple[Statement, ...]:
    """Give the verdict in one line, then what to do, and whether the machine was too noisy for it."""
    recommended = findings.of("recommended_workers")
    made = (
        _workers(recommended) or _shifts(findings.of("location_shift")),
        _next_steps(recommended),
        *(
            join(fill(_NOT_QUIET, each), findings=[each])
            for each in findings.of("quiet_machine")
            if each.verdict == "not quiet"
        ),
    )
    said = tuple(statement for statement in made if statement is not None)
    return said if made[0] is not None else (*_remarkable(findings), *said)


def _remarkable(findings: FindingSet) -> tuple[Statement, ...]:
    """Give what stands out most in data that answer too little: coarse clocks, the worst error, warm-up."""
    coarse = [finding for finding in findings.of("clock_granularity") if finding.verdict == "coarse"]
    courses = sorted(findings.of("warm_up"), key=lambda finding: finding.verdict == "flat")
    return PHRASING.say_all((*coarse, *findings.of("outside_error")[:1], *courses)[:1])


def _workers(findings: Sequence[Finding]) -> Statement | None:
    """Say how many workers each isolation supports, most first."""
    if not findings:
        return None
    groups: dict[tuple[float, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[-(finding.estimates["workers"].value or 0.0), finding.verdict].append(finding)
    pieces = [_supporting(group) for _, group in sorted(groups.items(), key=lambda item: item[0][0])]
    lead = fill("Within {facts.tolerance_percent:percent} of dispersion: ", findings[0])
    pieces[0] = (*lead, *pieces[0])
    return verdict_of(*pieces, findings=findings)


def _supporting(group: Sequence[Finding]) -> tuple[Part, ...]:
    """Say what isolations of one verdict support."""
    if group[0].verdict != "recommended":
        return (*fill("{verdict} in ", group[0]), *_names(group))
    beyond = ", the most measured" if all(map(is_most_measured, group)) else ""
    return (*fill("{estimates.workers} in ", group[0]), *_names(group), Part(beyond))


def _names(group: Sequence[Finding]) -> tuple[Part, ...]:
    return enumerate_or_count(group, "{subject.isolation}", "isolations")


def _next_steps(findings: Sequence[Finding]) -> Statement | None:
    """Say what to do about isolations that support no number of workers; the same advice once."""
    groups: dict[object, list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[finding.facts.get("next_step")].append(finding)
    pieces: list[str | tuple[Part, ...]] = []
    for step, group in groups.items():
        if step:
            lead = f"{' ' if pieces else ''}What to do for "
            pieces += [lead, _names(group), fill(": {facts.next_step}.", group[0])]
    return join(*pieces) if pieces else None


def is_most_measured(finding: Finding) -> bool:
    """Tell whether the recommendation is only limited by what was measured."""
    workers = finding.estimates["workers"].value
    return bool(workers) and workers == finding.facts.get("largest_load_measured")


def _shifts(findings: Sequence[Finding]) -> Statement | None:
    """Say which isolation shifts the mean, which does not, and what stays open."""
    measured = [finding for finding in findings if finding.estimates["ratio"].value is not None]
    if not measured:
        return None
    pieces = [
        enumerate_findings(group, phrase)
        for verdicts, phrase in _SHIFT_PHRASES
        if (group := [finding for finding in measured if finding.verdict in verdicts])
    ]
    baseline = measured[0].subject["baseline"]
    pieces[0] = (Part(f"Mean CPU time against {baseline}: "), *pieces[0])
    return verdict_of(*pieces, findings=measured)


def weakest_ratio(findings: FindingSet) -> Finding | None:
    """Give the parallel ratio that is lowest."""
    ratios = [
        finding for finding in findings.of("parallel_ratio") if finding.estimates["ratio"].value is not None
    ]
    return min(ratios, key=lambda finding: finding.estimates["ratio"].value or 0.0, default=None)


def no_answer() -> Statement:
    """Give the sentence for data that allow none of the answers."""
    return plain("These data do not allow an answer to the question; what they do show follows below.")
