"""E2: what monitoring costs per call, and what our own recording of every call costs.

A loop whose calls are timed and kept one by one (``none-baseline``) is compared with one of which only the
whole is timed (``none-unrecorded``). What a framework adds is compared with the former, in which the cost of
recording is already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.model import Estimate
from steelyard.studies.analysis_parts import finding
from steelyard.studies.replication.findings.cells import evidence_of
from steelyard.studies.replication.findings.estimates import difference, over_runs
from steelyard.studies.replication.run_parts import LOOP, MEAN, WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.model import Finding
    from steelyard.studies.replication.values.summaries import CellRuns, Key

EXPERIMENT: Final = "e2"
BASELINE: Final = "baseline"
UNRECORDED: Final = "unrecorded"
PROBES: Final = ("inactive", "collecting", "writing")
WORKING: Final = ("collecting", "writing")
"""States of a probe in which a framework records something; one that is switched off measures nothing."""

ALL_KEPT_PERCENT: Final = 99.9
"""Share of its records from which a framework counts as one that keeps them; below, its cost is not that of
keeping every record, and it is compared with nothing."""
LOSES: Final = "loses records"

NO_FRAMEWORK: Final = {"java": "none", "python": "python-none"}


@dataclass(frozen=True, slots=True)
class Probe:
    """A configuration of E2.

    Parameters
    ----------
    framework : str
        Its name; ``none`` or ``python-none`` for no framework.
    state : str
        ``unrecorded``, ``baseline``, ``inactive``, ``collecting`` or ``writing``.
    """

    framework: str
    state: str

    @property
    def language(self) -> str:
        """The program it is in."""
        return "python" if "python" in self.framework.split("-") else "java"


def probe_of(configuration: str) -> Probe:
    """Read the name of a configuration.

    Examples
    --------
    >>> found = probe_of("opentelemetry-python-writing")
    >>> found.framework, found.state, found.language
    ('opentelemetry-python', 'writing', 'python')
    """
    framework, _, state = configuration.rpartition("-")
    return Probe(framework, state)


def overhead_findings(cells: Mapping[Key, CellRuns]) -> Iterator[Finding]:
    """Give the cost per call of every framework in every state, by setting."""
    for key, cell in cells.items():
        probe = probe_of(key[1])
        baseline = cells.get((EXPERIMENT, f"{NO_FRAMEWORK[probe.language]}-{BASELINE}", key[2]))
        if key[0] != EXPERIMENT or probe.state not in PROBES or baseline is None:
            continue
        estimates = {"overhead": _difference(baseline, cell, MEAN)}
        place = PROBES.index(probe.state)
        before = cells.get((EXPERIMENT, f"{probe.framework}-{PROBES[place - 1]}", key[2])) if place else None
        if before is not None:
            estimates["step"] = _difference(before, cell, MEAN)
        estimates["kept"] = _kept(cell)
        yield finding(
            "overhead",
            {"framework": probe.framework, "probe": probe.state, "setting": key[2]},
            LOSES if loses_records(estimates["kept"]) else cost_verdict(estimates["overhead"]),
            estimates=estimates,
            facts={"language": probe.language},
            evidence=evidence_of(
                (baseline, cell), "mean of each run, then the difference over runs, per call"
            ),
        )


def _kept(cell: CellRuns) -> Estimate:
    """Give the share of the records of all calls that a framework which writes left on the storage."""
    written = [each.recorded.header.get("written") for each in cell.runs]
    counts = [each for each in written if each and each["expected_records"]]
    if not counts:
        return Estimate(None, "percent", "writes nothing")
    shares = [100 * each["records"] / each["expected_records"] for each in counts]
    return over_runs(shares, "percent", sum(each["expected_records"] for each in counts))


def loses_records(kept: Estimate) -> bool:
    """Whether a framework that writes left fewer records than there were calls.

    Examples
    --------
    >>> [loses_records(Estimate(share, "percent", "t")) for share in (None, 100.0, 35.0)]
    [False, False, True]
    """
    return kept.value is not None and kept.value < ALL_KEPT_PERCENT


def keeping_first(overheads: Sequence[Finding]) -> list[Finding]:
    """Give the costs of what keeps its records, then those of what loses some."""
    return sorted(overheads, key=lambda each: each.verdict == LOSES)


def cost_verdict(estimate: Estimate) -> str:
    """Judge a cost: shown by its interval, or hidden by the scatter of runs.

    Examples
    --------
    >>> from steelyard.model import Estimate
    >>> cost_verdict(Estimate(5.0, "ns", "t", 4.0, 6.0)), cost_verdict(Estimate(1.0, "ns", "t", -1.0, 3.0))
    ('costs', 'no sure cost')
    """
    if estimate.low is None or estimate.high is None:
        return "no interval"
    if estimate.low > 0:
        return "costs"
    return "less than nothing" if estimate.high < 0 else "no sure cost"


def recording_findings(cells: Mapping[Key, CellRuns], overheads: Sequence[Finding]) -> Iterator[Finding]:
    """Say what it costs to time and keep every call, and whether every framework costs more.

    Below every framework: the upper limit of our cost lies below the lower limit of each framework's, in each
    state in which it records. One that loses records is left out: it does not do what it is compared by.
    """
    for language, name in NO_FRAMEWORK.items():
        settings = [key[2] for key in cells if key[:2] == (EXPERIMENT, f"{name}-{UNRECORDED}")]
        for setting in settings:
            unrecorded = cells[EXPERIMENT, f"{name}-{UNRECORDED}", setting]
            baseline = cells.get((EXPERIMENT, f"{name}-{BASELINE}", setting))
            if baseline is None or not baseline.values(WHOLE, LOOP):
                continue
            cost = _difference(unrecorded, baseline, LOOP)
            others = [
                each
                for each in overheads
                if each.facts["language"] == language and each.subject["setting"] == setting
            ]
            yield _recording(language, setting, cost, others, (unrecorded, baseline))


def _recording(
    language: str, setting: str, cost: Estimate, others: Sequence[Finding], cells: tuple[CellRuns, ...]
) -> Finding:
    losing = [each for each in others if each.verdict == LOSES]
    keeping = [each for each in others if each.verdict != LOSES]
    working = [each for each in keeping if each.subject["probe"] in WORKING]
    above = [each for each in keeping if not _is_below(cost, each.estimates["overhead"])]
    failing = [each for each in above if each in working]
    costs = [each.estimates["overhead"] for each in working]
    known = [each for each in costs if each.value is not None]
    cheapest = min(known, key=lambda each: each.value or 0.0, default=Estimate(None, "ns", "no framework"))
    if not working or cost.high is None:
        verdict = "not decided"
    else:
        verdict = "not below every framework" if failing else "below every framework"
    return finding(
        "recording_cost",
        {"language": language, "setting": setting},
        verdict,
        estimates={"cost": cost, "cheapest": cheapest},
        facts={
            "compared": len(working),
            "not_below": ", ".join(map(_named, above)),
            "losing": ", ".join(map(_named, losing)),
        },
        evidence=evidence_of(cells, "time of the loop over its calls, then the difference over runs"),
    )


def _named(each: Finding) -> str:
    return f"{each.subject['framework']} {each.subject['probe']}"


def _is_below(cost: Estimate, other: Estimate) -> bool:
    return cost.high is not None and other.low is not None and cost.high < other.low


def _difference(first: CellRuns, second: CellRuns, metric: str) -> Estimate:
    calls = sum(int(each.facts["calls"]) for cell in (first, second) for each in cell.parts(WHOLE))
    return difference(first.values(WHOLE, metric), second.values(WHOLE, metric), "ns", calls)
