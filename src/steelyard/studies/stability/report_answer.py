"""The front of the report: three to six sentences and the verdict cards."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from steelyard.report.page import Card, CardGroup, Notice
from steelyard.report.sentence import Part, Statement, enumerate_findings, fill, join, plain
from steelyard.report.slots import write
from steelyard.studies.stability.report_sentences import PHRASING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.model.finding import Finding, FindingSet
    from steelyard.studies.stability.report_subjects import Subjects

_PINNING: Final = {
    "helps": "{verdict}",
    "harms": "{verdict}",
    "no difference": "makes {verdict}",
    "inconclusive": "is {verdict}",
}
FEWEST_SENTENCES: Final = 3
LOW_PARALLEL_RATIO: Final = 0.75
"""SOURCE: the published study saw no ratio below 75 %."""

_SHIFT_PHRASES: Final = (
    (("slower", "faster"), "", "{subject.isolation} needs {estimates.ratio:change}"),
    (("equivalent",), "no relevant shift in ", "{subject.isolation}"),
    (("inconclusive",), "undecided in ", "{subject.isolation} ({estimates.ratio:change})"),
    (
        ("descriptive",),
        "too few blocks for a verdict, but observed: ",
        "{subject.isolation} {estimates.ratio:change}",
    ),
)


def answer(findings: FindingSet) -> tuple[Statement, ...]:
    """Give the answer: workers, clocks, shifts, pinning, parallelism, and whether to believe it."""
    made = (
        _workers(findings.of("recommended_workers")),
        _clocks(findings.of("clock_trust")),
        _shifts(findings.of("location_shift")),
        _pinning(findings.of("pinning_effect")),
        _parallel(findings),
        _control(findings.of("a_a")),
    )
    said = tuple(statement for statement in made if statement is not None)
    return (*said, *_remarkable(findings, FEWEST_SENTENCES - len(said)))


def _remarkable(findings: FindingSet, count: int) -> tuple[Statement, ...]:
    """Give what stands out most in data that answer too little: coarse clocks, the worst error, warm-up."""
    coarse = [finding for finding in findings.of("clock_granularity") if finding.verdict == "coarse"]
    courses = sorted(findings.of("warm_up"), key=lambda finding: finding.verdict == "flat")
    return PHRASING.say_all((*coarse, *findings.of("outside_error")[:1], *courses)[: max(count, 0)])


def _workers(findings: Sequence[Finding]) -> Statement | None:
    if not findings:
        return None
    lead = fill("For a dispersion of at most {facts.tolerance_percent:percent}, ", findings[0])
    groups: dict[float | None, list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[finding.estimates["workers"].value].append(finding)
    carrying = sorted((count for count in groups if count), reverse=True)
    pieces: list[tuple[Part, ...]] = []
    for count in carrying:
        verb = "carries" if len(groups[count]) == 1 else "carry"
        names = enumerate_findings(groups[count], "{subject.isolation}")
        pieces.append((*names, Part(f" {verb} at most "), *fill("{estimates.workers}", groups[count][0])))
    carrying_most = [finding for finding in findings if _is_most_measured(finding)]
    none = [finding for count, group in groups.items() if not count for finding in group]
    if none:
        verb = "carries" if len(none) == 1 else "carry"
        pieces.append(
            (
                *enumerate_findings(none, "{subject.isolation}"),
                Part(f" {verb} no number of workers measured here"),
            )
        )
    most = (
        (" (more were not measured for ", enumerate_findings(carrying_most, "{subject.isolation}"), ")")
        if carrying_most
        else ()
    )
    return join(lead, *_separated(pieces), *most, ".", findings=findings)


def _is_most_measured(finding: Finding) -> bool:
    """Tell whether the recommendation is only limited by what was measured."""
    workers = finding.estimates["workers"].value
    return bool(workers) and workers == finding.facts.get("largest_load_measured")


def _separated(pieces: Sequence[tuple[Part, ...]]) -> Iterable[tuple[Part, ...] | str]:
    for index, piece in enumerate(pieces):
        if index:
            yield "; "
        yield piece


def _clocks(findings: Sequence[Finding]) -> Statement | None:
    """Say per clock how far it can be trusted; isolations with the same limit are named together."""
    if not findings:
        return None
    pieces: list[tuple[Part, ...]] = []
    for clock in dict.fromkeys(finding.subject["clock"] for finding in findings):
        of_clock = [finding for finding in findings if finding.subject["clock"] == clock]
        groups: dict[object, list[Finding]] = defaultdict(list)
        for finding in of_clock:
            groups[finding.facts["trusted_up_to_workers"]].append(finding)
        limits = sorted(groups.items(), key=lambda item: -_number(item[0]))
        parts = [Part(f"the {clock} clock can be trusted ")]
        for index, (limit, group) in enumerate(limits):
            parts.append(Part(", " if index else ""))
            words = "up to {facts.trusted_up_to_workers:workers}" if _number(limit) else "at no load measured"
            parts.extend(fill(words, group[0]))
            parts.extend([Part(" in "), *enumerate_findings(group, "{subject.isolation}")])
        pieces.append(tuple(parts))
    lead = fill("With an outside error of at most {facts.tolerance_percent:percent}, ", findings[0])
    return join(lead, *_separated(pieces), ".", findings=findings)


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _shifts(findings: Sequence[Finding]) -> Statement | None:
    """Say which isolation shifts the mean, which does not, and what stays open."""
    measured = [finding for finding in findings if finding.estimates["ratio"].value is not None]
    if not measured:
        return None
    pieces: list[tuple[Part, ...]] = []
    for verdicts, lead, phrase in _SHIFT_PHRASES:
        group = [finding for finding in measured if finding.verdict in verdicts]
        if group:
            pieces.append((Part(lead), *enumerate_findings(group, phrase)))
    baseline = measured[0].subject["baseline"]
    return join(
        f"Against {baseline}, in mean CPU time of one worker: ", *_separated(pieces), ".", findings=measured
    )


def _pinning(findings: Sequence[Finding]) -> Statement | None:
    measured = [finding for finding in findings if finding.verdict != "not measured"]
    if not measured:
        return None
    groups: dict[str, list[Finding]] = defaultdict(list)
    for finding in measured:
        groups[finding.verdict].append(finding)
    pieces = [
        (
            *fill(_PINNING.get(verdict, "is {verdict}"), group[0]),
            Part(" in "),
            *enumerate_findings(group, "{subject.isolation}"),
        )
        for verdict, group in groups.items()
    ]
    return join("Pinning workers to CPUs ", *_separated(pieces), ".", findings=measured)


def _parallel(findings: FindingSet) -> Statement | None:
    """Say that the runs were parallel, with the weakest cell."""
    weakest = _weakest(findings)
    if weakest is None:
        return None
    return join(
        "The runs were parallel: every worker was running for at least ",
        fill(
            "{estimates.ratio:ratio_percent} of the batch; least in {subject.isolation} with "
            "{subject.setup} ({subject.workload}).",
            weakest,
        ),
        findings=[weakest],
    )


def _weakest(findings: FindingSet) -> Finding | None:
    """Give the parallel ratio that is lowest."""
    ratios = [
        finding for finding in findings.of("parallel_ratio") if finding.estimates["ratio"].value is not None
    ]
    return min(ratios, key=lambda finding: finding.estimates["ratio"].value or 0.0, default=None)


def _control(findings: Sequence[Finding]) -> Statement | None:
    if not findings:
        return None
    bad = [finding for finding in findings if finding.verdict != "no difference"]
    if bad or len(findings) == 1:
        return PHRASING.say((*bad, *findings)[0])
    names = enumerate_findings(findings, "{subject.workload} {estimates.ratio:change}")
    return join("Identical cells show no difference, as they must: ", names, ".", findings=findings)


def cards(findings: FindingSet, subjects: Subjects) -> tuple[CardGroup, ...]:
    """Give the verdict cards: workers per isolation, then what makes the rest believable."""
    groups = (
        CardGroup(
            _workers_title(findings),
            tuple(_worker_card(one, subjects) for one in findings.of("recommended_workers")),
        ),
        CardGroup(
            "Can this report be believed?", (*_parallel_cards(findings), *_control_cards(findings.of("a_a")))
        ),
    )
    return tuple(group for group in groups if group.cards)


def _workers_title(findings: FindingSet) -> str:
    chosen = findings.of("recommended_workers")
    if not chosen:
        return ""
    tolerance = write(chosen[0].facts["tolerance_percent"], "percent")
    return f"Recommended maximum number of parallel workers, for a dispersion of at most {tolerance}"


def _parallel_cards(findings: FindingSet) -> tuple[Card, ...]:
    weakest = _weakest(findings)
    if weakest is None:
        return ()
    ratio = weakest.estimates["ratio"]
    is_low = (ratio.value or 0.0) < LOW_PARALLEL_RATIO
    return (
        Card(
            title="workers ran side by side",
            value=write(ratio, "ratio_percent"),
            note="of each batch at least",
            tone="warn" if is_low else "good",
            finding=weakest.id,
        ),
    )


def _worker_card(finding: Finding, subjects: Subjects) -> Card:
    workers = finding.estimates["workers"]
    name = finding.subject["isolation"]
    tolerance = write(finding.facts["tolerance_percent"], "percent")
    limiting = finding.facts.get("limiting_workload")
    limit = f", limited by {limiting}" if limiting else ""
    alone = f"one worker of {limiting}" if limiting else "one worker"
    found = bool(workers.value)
    return Card(
        title=name,
        value=write(workers) if found else "none",
        note=(f"at most{limit}" if limit else "the most that was measured")
        if found
        else f"{alone} is beyond {tolerance} already",
        tone="plain" if found else "bad",
        finding=finding.id,
        colour=subjects.colours.get(name, ""),
    )


def _control_cards(findings: Sequence[Finding]) -> tuple[Card, ...]:
    bad = [finding for finding in findings if finding.verdict != "no difference"]
    if not findings:
        return ()
    chosen = bad[0] if bad else findings[0]
    return (
        Card(
            title="two identical cells",
            value=chosen.verdict,
            note="as it must be" if not bad else "do not believe differences of this size",
            tone="bad" if bad else "good",
            finding=chosen.id,
        ),
    )


def absences(findings: FindingSet, subjects: Subjects) -> tuple[Notice, ...]:
    """Say what the report cannot tell, and why."""
    items = [
        text
        for text in (_no_outside(subjects), _no_load(subjects), _no_rivals(subjects), *_no_claims(findings))
        if text
    ]
    return (Notice("What this report cannot say, and why", tuple(items)),) if items else ()


def _no_outside(subjects: Subjects) -> str | None:
    missing = [
        name
        for name in ("cpu", "wall")
        if f"outside-{name}" not in subjects.metrics or name not in subjects.metrics
    ]
    if not missing:
        return None
    recorded = ", ".join(sorted(subjects.metrics)) or "none"
    return (
        f"How far the outside {' and '.join(missing)} clock can be trusted: both the outside and the "
        f"program's own "
        f"value are needed; recorded metrics: {recorded}"
    )


def _no_load(subjects: Subjects) -> str | None:
    if len(subjects.workers) > 1:
        return None
    only = (
        "one worker"
        if subjects.workers == (1,)
        else f"{subjects.workers[0]} workers"
        if subjects.workers
        else "no worker"
    )
    return f"How many workers can be afforded, and at which load dispersion grows: only {only} measured"


def _no_rivals(subjects: Subjects) -> str | None:
    if len(subjects.isolations) > 1:
        return None
    return f"Which isolation shifts the mean: only {', '.join(subjects.isolations) or 'none'} measured"


def _no_claims(findings: FindingSet) -> Iterable[str]:
    if findings.of("outside_error") and not findings.of("clock_trust"):
        yield "Up to which load a clock can be trusted: the load of the measurements is not stated"
    if all(finding.verdict == "not measured" for finding in findings.of("pinning_effect")):
        yield "Whether pinning helps: no cell with workers bound to CPUs was measured"
    if not findings.of("a_a"):
        yield "Whether identical cells look identical (A/A control): the data hold no repeated cell"
    if not findings.of("calibration"):
        yield "Steelyard's own error on this host: not calibrated; `steelyard doctor --calibrate` measures it"


def no_answer() -> Statement:
    """Give the sentence for data that allow none of the answers."""
    return plain("These data do not allow an answer to the question; what they do show stands below.")
