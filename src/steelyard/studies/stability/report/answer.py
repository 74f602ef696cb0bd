"""The answer on the front of the report: three to six sentences."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from steelyard.report.sentence import Part, Statement, enumerate_findings, fill, join, plain
from steelyard.studies.stability.report.sentences import PHRASING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.model.finding import Finding, FindingSet

_PINNING: Final = {
    "helps": "{verdict}",
    "harms": "{verdict}",
    "no difference": "makes {verdict}",
    "undecided": "is {verdict}",
}
FEWEST_SENTENCES: Final = 3
_SHIFT_PHRASES: Final = (
    (
        ("slower", "faster"),
        "",
        "{subject.isolation} needs {estimates.ratio:change} ({estimates.ratio:change_interval})",
    ),
    (("equivalent",), "no relevant shift in ", "{subject.isolation} ({estimates.ratio:change_interval})"),
    (("inconclusive",), "undecided in ", "{subject.isolation} ({estimates.ratio:change_interval})"),
    (
        ("descriptive",),
        "too few blocks for a verdict, but observed: ",
        "{subject.isolation} {estimates.ratio:change}",
    ),
)


_WATCHED: Final = (
    "Whether the machine was quiet was {verdict}"
    "[; the hypervisor took {facts.stolen_percent:percent} of the run time]."
)
_BESIDE: Final = (
    "{facts.noisy_batches:count} of {facts.batches:count} batches ran beside other load[ (most often "
    "{facts.culprits})][, the hypervisor took {facts.stolen_percent:percent} of the run time]"
)
_QUIET: Final = {
    "quiet": "The machine was quiet in {facts.looks:count} looks: none of {facts.batches:count} batches "
    "began beside other load[, the hypervisor took {facts.stolen_percent:percent} of the run time].",
    "mostly quiet": f"The machine was mostly quiet in {{facts.looks:count}} looks: {_BESIDE}.",
    "not quiet": f"The machine was not quiet: {_BESIDE}. Dispersions are therefore upper bounds; measure "
    "again before acting on a `none`.",
}


def answer(findings: FindingSet) -> tuple[Statement, ...]:
    """Give the answer: workers, quiet machine, shifts, clocks, pinning, and whether to believe it."""
    made = (
        _workers(findings.of("recommended_workers")),
        _quiet(findings.of("quiet_machine")),
        _shifts(findings.of("location_shift")),
        _clocks(findings.of("clock_trust")),
        _pinning(findings.of("pinning_effect")),
        _checks(findings),
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
    supported = sorted((count for count in groups if count), reverse=True)
    pieces = [_supporting(groups[count]) for count in supported]
    none = [finding for finding in findings if finding.verdict == "none"]
    if none:
        pieces.append(_supporting_none(none, " supports none", " support none"))
    undecided = [finding for finding in findings if finding.verdict == "undecided"]
    if undecided:
        pieces.append(_supporting_none(undecided, " is undecided", " are undecided"))
    return join(lead, *_separated(pieces), ".", *_next_steps(none), findings=findings)


def _supporting(group: Sequence[Finding]) -> tuple[Part, ...]:
    """Say how many workers isolations support, with the least steady cell at that load."""
    most = [finding for finding in group if is_most_measured(finding)]
    note: tuple[Part, ...] = ()
    if most:
        beyond = Part(", the most that was measured")
        note = (beyond,) if len(most) == len(group) else (beyond, Part(" for "), *_names(most))
    worst = max(group, key=lambda finding: finding.estimates["worst"].value or 0.0)
    steady = fill(
        "[ (least steady: {facts.worst_workload} in {subject.isolation}, {estimates.worst}, "
        "{estimates.worst:interval})]",
        worst,
    )
    verb = Part(" supports " if len(group) == 1 else " support ")
    return (*_names(group), verb, *fill("{estimates.workers}", group[0]), *note, *steady)


def _supporting_none(group: Sequence[Finding], one: str, several: str) -> tuple[Part, ...]:
    """Say which isolations support no number of workers for certain, and what stands against it most."""
    worst = max(group, key=lambda finding: finding.estimates["limiting"].value or 0.0)
    verb = Part(one if len(group) == 1 else several)
    why = fill(
        "[: with {facts.limiting_workers:workers} {facts.limiting_workload} in {subject.isolation} scatters "
        "by {estimates.limiting}, {estimates.limiting:interval}]",
        worst,
    )
    return (*_names(group), verb, *why)


def _names(group: Sequence[Finding]) -> tuple[Part, ...]:
    return enumerate_findings(group, "{subject.isolation}")


def _next_steps(none: Sequence[Finding]) -> Iterable[tuple[Part, ...] | str]:
    """Say what to do about isolations that support no number of workers; the same advice once."""
    groups: dict[object, list[Finding]] = defaultdict(list)
    for finding in none:
        groups[finding.facts.get("next_step")].append(finding)
    for step, group in groups.items():
        if step:
            yield " What to do for "
            yield _names(group)
            yield fill(": {facts.next_step}.", group[0])


def _quiet(findings: Sequence[Finding]) -> Statement | None:
    """Say in short whether the machine was quiet; the section on trust says it in full."""
    if not findings:
        return None
    finding = findings[0]
    return join(fill(_QUIET.get(finding.verdict, _WATCHED), finding), findings=findings)


def is_most_measured(finding: Finding) -> bool:
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
            parts.extend([*fill(words, group[0]), Part(" in "), *_names(group)])
        pieces.append(tuple(parts))
    lead = fill("With an outside error of at most {facts.tolerance_percent:percent}, ", findings[0])
    worst = max(findings, key=lambda finding: finding.estimates["worst"].value or 0.0)
    error = fill(
        "[ (largest error: {estimates.worst}, {estimates.worst:interval}, {subject.clock} of "
        "{facts.shown_workload} in {subject.isolation})]",
        worst,
    )
    return join(lead, *_separated(pieces), error, ".", findings=findings)


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
            *enumerate_findings(group, "{subject.isolation} ({subject.affinity})"),
        )
        for verdict, group in groups.items()
    ]
    return join("Pinning workers to CPUs ", *_separated(pieces), ".", findings=measured)


def _checks(findings: FindingSet) -> Statement | None:
    """Say that the runs were parallel, with the weakest cell, and that identical cells look identical."""
    weakest, control = weakest_ratio(findings), findings.of("a_a")
    parallel = (
        ()
        if weakest is None
        else fill(
            "All workers ran side by side for at least {estimates.ratio:ratio_percent} of a batch (least: "
            "{subject.workload} in {subject.isolation} with {subject.setup}).",
            weakest,
        )
    )
    identical = _control(control)
    if identical is None:
        return join(parallel, findings=[weakest]) if weakest is not None else None
    between = " " if parallel else ""
    return join(parallel, between, identical.parts, findings=control)


def weakest_ratio(findings: FindingSet) -> Finding | None:
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


def no_answer() -> Statement:
    """Give the sentence for data that allow none of the answers."""
    return plain("These data do not allow an answer to the question; what they do show follows below.")
