"""What several hosts say of themselves: their names, which of them are one machine, and where they differ."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from steelyard.record.provenance import Provenance

OF_FINGERPRINT: Final = {
    "kernel": "kernel_release",
    "processor": "cpu_model",
    "microcode": "microcode",
    "distribution": "distribution",
    "C library": "libc",
}
OF_SETTINGS: Final = {
    "governor": "governor",
    "turbo": "turbo",
    "SMT": "smt",
    "CPUs kept free": "isolated-cpus",
    "mitigations": "mitigations",
    "clock source": "clock-source",
    "huge pages": "transparent-huge-pages",
    "balancing of memory": "numa-balancing",
}
"""Properties of `steelyard doctor` that a host keeps until somebody changes it."""
OF_VERSIONS: Final = ("steelyard", "python")
UNKNOWN: Final = "unknown"
BYSTANDERS: Final = "bystanders"
"""What other processes did meanwhile: of a host one entry for each part that ended in order."""
CLOCK: Final = "clock"
"""How far its clock was from that of the host where the study was asked for."""
STARTS: Final = "starts"
"""How often a part was begun on a host."""


def machine_of(host_id: str) -> str:
    """Give the machine of a host: nodes that are one machine have ids ``MACHINE:NODE``.

    Examples
    --------
    >>> machine_of("4206eec294b7c672:n3"), machine_of("4206eec294b7c672")
    ('4206eec294b7c672', '4206eec294b7c672')
    """
    return host_id.partition(":")[0]


def machines_of(host_ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Give the hosts of each machine, sorted."""
    found: dict[str, list[str]] = {}
    for each in sorted(set(host_ids)):
        found.setdefault(machine_of(each), []).append(each)
    return {machine: tuple(hosts) for machine, hosts in found.items()}


def host_names(provenance: Provenance | None, host_ids: Iterable[str]) -> dict[str, str]:
    """Give a name of each host that no other of them has: what it calls itself, else its id."""
    hosts = {} if provenance is None else provenance.hosts
    said = {
        each: str(_part(hosts.get(each), "host").get("hostname") or each) for each in sorted(set(host_ids))
    }
    names = list(said.values())
    return {each: name if names.count(name) == 1 else f"{name} ({each})" for each, name in said.items()}


def host_facts(described: JsonValue) -> dict[str, str]:
    """Give what can make one host measure another thing than its neighbour, by its name in a table.

    Parameters
    ----------
    described : JsonValue
        Entry of `Provenance.hosts`.
    """
    fingerprint, versions = _part(described, "host"), _part(described, "versions")
    settings = fingerprint.get("settings")
    seen = settings if isinstance(settings, dict) else {}
    found = {name: fingerprint.get(key) for name, key in OF_FINGERPRINT.items()}
    memory = fingerprint.get("memory_bytes")
    found["memory"] = f"{memory / 2**30:.0f} GiB" if isinstance(memory, int) else None
    found |= {name: seen.get(key) for name, key in OF_SETTINGS.items()}
    found |= {name: versions.get(name) for name in OF_VERSIONS}
    for name, technology in _part(described, "technologies").items():
        if isinstance(technology, dict) and technology.get("available"):
            found[name] = technology.get("version")
    return {name: str(value or UNKNOWN) for name, value in found.items()}


@dataclass(frozen=True, slots=True)
class Bystanders:
    """What processes that were no part of the study did on a host, from begin to end of its parts.

    Parameters
    ----------
    seconds : float
        How long they were observed [s].
    parts, starts : int
        Parts in which they were, and all that were begun: one that was killed does not say it.
    cpu_ms, turns : dict
        CPU time [ms], and how often they were given a CPU, by their names.
    """

    seconds: float
    parts: int
    starts: int
    cpu_ms: dict[str, float]
    turns: dict[str, int]

    def percent(self, names: Iterable[str] | None = None) -> float:
        """Give the share of one CPU that some of them took, or all."""
        chosen = self.cpu_ms.values() if names is None else [self.cpu_ms.get(name, 0.0) for name in names]
        return sum(chosen) / (10 * self.seconds) if self.seconds else 0.0


def bystanders_of(described: JsonValue) -> Bystanders | None:
    """Give what other processes did on a host; ``None`` where no part says it.

    Parameters
    ----------
    described : JsonValue
        Entry of `Provenance.hosts`.
    """
    entry = described if isinstance(described, dict) else {}
    listed, starts = entry.get(BYSTANDERS), entry.get(STARTS)
    looks = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    cpu_ms: defaultdict[str, float] = defaultdict(float)
    turns: defaultdict[str, int] = defaultdict(int)
    for each in looks:
        for name, used in _part(each, "of").items():
            cpu_ms[name] += _number(used, "cpu_ms")
            turns[name] += int(_number(used, "turns"))
    seconds = sum(_number(each, "seconds") for each in looks)
    begun = starts if isinstance(starts, int) else len(looks)
    return Bystanders(seconds, len(looks), begun, dict(cpu_ms), dict(turns)) if looks else None


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How far a host's clock was ahead of the clock of the host where the study was asked for.

    Parameters
    ----------
    readings : int
        How often it was compared.
    low_s, high_s : float
        Limits of the offset [s].
    is_steady : bool
        Whether one offset agrees with all readings; otherwise the limits enclose all offsets.
    drift_low_ppm, drift_high_ppm : float or None
        Limits of how much faster it went; ``None`` where readings are too close to tell.
    """

    readings: int
    low_s: float
    high_s: float
    is_steady: bool
    drift_low_ppm: float | None
    drift_high_ppm: float | None


def clock_of(described: JsonValue) -> ClockOffset | None:
    """Give how far the clock of a host was from ours; ``None`` where it was not compared.

    Parameters
    ----------
    described : JsonValue
        Entry of `Provenance.hosts`.
    """
    clock = _part(described, CLOCK)
    if not clock:
        return None
    drift = [_number(clock, key) for key in ("drift_low_ppm", "drift_high_ppm") if clock.get(key) is not None]
    low_ppm, high_ppm = drift if len(drift) == 2 else (None, None)  # noqa: PLR2004 - both limits
    limits_s = (_number(clock, "low_s"), _number(clock, "high_s"))
    is_steady = bool(clock.get("is_steady"))
    return ClockOffset(int(_number(clock, "readings")), *limits_s, is_steady, low_ppm, high_ppm)


def _number(of: JsonValue, name: str) -> float:
    found = of.get(name) if isinstance(of, dict) else None
    return float(found) if isinstance(found, (int, float)) else 0.0


def differing(hosts: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Give the facts in which hosts differ: of each, which hosts say what, the most common first.

    Examples
    --------
    >>> differing({"a": {"kernel": "6.1"}, "b": {"kernel": "6.2"}, "c": {"kernel": "6.1"}})
    {'kernel': {'6.1': ('a', 'c'), '6.2': ('b',)}}
    """
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for fact in dict.fromkeys(name for facts in hosts.values() for name in facts):
        said: dict[str, list[str]] = {}
        for host, facts in hosts.items():
            said.setdefault(facts.get(fact, UNKNOWN), []).append(host)
        if len(said) > 1:
            ordered = sorted(said.items(), key=lambda item: -len(item[1]))
            found[fact] = {value: tuple(names) for value, names in ordered}
    return found


def _part(described: JsonValue, name: str) -> dict[str, JsonValue]:
    part = described.get(name) if isinstance(described, dict) else None
    return part if isinstance(part, dict) else {}
