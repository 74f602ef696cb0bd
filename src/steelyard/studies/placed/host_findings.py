"""Hosts of a placed study: which they are, how far their clocks were off, what others did there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.analyse.intervals.guarantee import FEWEST_UNITS
from steelyard.model import Evidence
from steelyard.record.placed.hosts import bystanders_of, clock_of, host_names, machines_of
from steelyard.record.provenance import PROVENANCE_NAME, read_provenance
from steelyard.run.machine.bystanders import ITSELF, PLACING
from steelyard.studies.analysis_parts import RUNS, finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pydantic import JsonValue

    from steelyard.model import Finding
    from steelyard.record.provenance import Provenance

_MOST_NAMED: Final = 12
_MOST_CULPRITS: Final = 3
QUIET_PERCENT: Final = 1.0
"""Of one CPU: what other processes may take before a host is called busy; own choice."""


def names_of(result: Path, host_ids: Iterable[str]) -> dict[str, str]:
    """Give the name of each host of a result."""
    return host_names(_provenance_of(result), host_ids)


def _provenance_of(result: Path) -> Provenance | None:
    return read_provenance(result) if (result / PROVENANCE_NAME).exists() else None


def placed_findings(result: Path, host_ids: Iterable[str]) -> Iterator[Finding]:
    """Say which hosts there are, which of them are one machine, and what clocks and others did there."""
    provenance = _provenance_of(result)
    names = host_names(provenance, host_ids)
    machines = machines_of(names)
    shared = [hosts for hosts in machines.values() if len(hosts) > 1]
    kind = "independent" if not shared else "one machine" if len(machines) == 1 else "some share a machine"
    yield finding(
        "hosts",
        {},
        f"two {kind}" if len(machines) == 2 and not shared else kind,  # noqa: PLR2004 - a pair has no scatter
        facts={
            "hosts": len(names),
            "machines": len(machines),
            "names": listed_names(list(names.values())),
            "sharing": "; ".join(listed_names([names[each] for each in hosts]) for hosts in shared),
            "hosts_for_a_verdict": FEWEST_UNITS,
        },
        evidence=Evidence(RUNS, {}, ("host_id",), "distinct"),
    )
    described = {} if provenance is None else provenance.hosts
    yield from clock_findings(described, names)
    yield from bystander_findings(described, names)


def clock_findings(hosts: Mapping[str, JsonValue], names: Mapping[str, str]) -> Iterator[Finding]:
    """Say of each host how far its clock was off, and for all how far start times can be compared."""
    clocks = {host: found for host in names if (found := clock_of(hosts.get(host))) is not None}
    if len(clocks) > 1:
        apart_s = max(one.high_s for one in clocks.values()) - min(one.low_s for one in clocks.values())
        yield finding(
            "clocks",
            {},
            "compared" if len(clocks) == len(names) else "some compared",
            facts={"hosts": len(names), "compared": len(clocks), "apart_s": apart_s},
        )
    for host, found in clocks.items():
        yield finding(
            "clock",
            {"host": names[host]},
            "steady" if found.is_steady else "moved",
            facts={
                "readings": found.readings,
                "low_s": found.low_s,
                "high_s": found.high_s,
                "drift_low_ppm": found.drift_low_ppm,
                "drift_high_ppm": found.drift_high_ppm,
            },
        )


def bystander_findings(hosts: Mapping[str, JsonValue], names: Mapping[str, str]) -> Iterator[Finding]:
    """Say of each host what processes that were no part of the study did while it measured."""
    for host, name in names.items():
        found = bystanders_of(hosts.get(host))
        if found is None or not found.seconds:
            continue
        others = {each: ms for each, ms in found.cpu_ms.items() if each != ITSELF}
        busiest = sorted(others, key=lambda each: -others[each])[:_MOST_CULPRITS]
        share = found.percent(others)
        yield finding(
            "bystanders",
            {"host": name},
            "quiet" if share < QUIET_PERCENT else "busy",
            facts={
                "seconds": found.seconds,
                "parts": found.parts,
                "parts_begun": found.starts,
                "others_percent": share,
                "placing_percent": found.percent(each for each in others if each in PLACING),
                "placing": ", ".join(each for each in others if each in PLACING) or "none seen",
                "itself_percent": found.percent([ITSELF]),
                "turns_per_s": float(f"{sum(found.turns[each] for each in others) / found.seconds:.3g}"),
                "busiest": ", ".join(f"{each} {found.percent([each]):.2g} %" for each in busiest),
                "quiet_percent": QUIET_PERCENT,
            },
        )


def listed_names(names: Sequence[str]) -> str:
    """Give the first of some names, and how many more there are."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
