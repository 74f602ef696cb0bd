"""What the report cannot tell, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.page import Notice

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.model.finding import FindingSet
    from steelyard.record.provenance import Provenance
    from steelyard.studies.stability.report.subjects import Subjects


def absences(findings: FindingSet, subjects: Subjects, provenance: Provenance | None) -> tuple[Notice, ...]:
    """Say what the report cannot tell, and why."""
    absent = (
        _no_outside(subjects),
        _no_load(subjects),
        _no_rivals(subjects),
        _no_neighbours(provenance),
        *_no_claims(findings, is_calibrated=_is_calibrated(provenance)),
    )
    items = [text for text in absent if text]
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
        f"How far the outside {' and '.join(missing)} clock can be trusted: this needs both the outside "
        f"and the program's own value; recorded metrics: {recorded}"
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


def _no_neighbours(provenance: Provenance | None) -> str | None:
    virtualisation = None if provenance is None else provenance.host.get("virtualisation")
    hypervisor = virtualisation.get("hypervisor") if isinstance(virtualisation, dict) else None
    if hypervisor is None:
        return None
    return (
        f"Whether other guests of the hypervisor ({hypervisor}) shared a core or its caches: they slow a "
        f"program without taking time that this machine could see; values then often form two groups"
    )


def _is_calibrated(provenance: Provenance | None) -> bool:
    """Tell whether each host that runs were placed on knows Steelyard's own error."""
    hosts = [] if provenance is None else list(provenance.hosts.values())
    return bool(hosts) and all(isinstance(each, dict) and each.get("calibration") for each in hosts)


def _no_claims(findings: FindingSet, *, is_calibrated: bool) -> Iterable[str]:
    if findings.of("outside_error") and not findings.of("clock_trust"):
        yield "Up to which load a clock can be trusted: the load of the measurements is not stated"
    if all(finding.verdict == "not measured" for finding in findings.of("pinning_effect")):
        yield "Whether pinning helps: no cell with workers bound to CPUs was measured"
    if not findings.of("a_a"):
        yield "Whether identical cells look identical (A/A control): the data hold no repeated cell"
    if not findings.of("calibration") and not is_calibrated:
        yield "Steelyard's own error on this host: not calibrated; `steelyard doctor --calibrate` measures it"
