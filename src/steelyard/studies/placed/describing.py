"""What hosts are before a study is planned for them: each runs a part that measures nothing and says it.

The plan is one for all hosts. It is made for what all of them have: the fewest CPUs, the technologies that
work everywhere. Sizes of workloads are the same on every host, since cells are compared across hosts.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

from steelyard.design.worker_counts import HostFacts
from steelyard.errors import DataError, DesignError, RunError
from steelyard.record.placed.hosts import host_names
from steelyard.record.placed.journal import JOURNAL_NAME, Journal
from steelyard.record.provenance import Provenance, read_provenance, write_provenance
from steelyard.run.isolation.interface import Availability
from steelyard.studies.host_facts import host_facts
from steelyard.studies.placed.parts import PLACED_NAME, starts_of, write_description_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pydantic import JsonValue

    from steelyard.run.hosts.engine import Engine
    from steelyard.run.progress import Progress

FACTS: Final = "facts"
"""Key of a host's own facts in what it says of itself."""
LOOK_S: Final = 0.5
LATER_S: Final = 60.0
"""So long hosts are waited for after the first one has said what it is."""
_COUNTED: Final = {
    "CPUs": "cpu_count",
    "cores": "core_count",
    "last-level caches": "llc_count",
    "memory nodes": "memory_node_count",
}


@dataclass(frozen=True, slots=True)
class Described:
    """A host as it says it is.

    Parameters
    ----------
    facts : HostFacts
        What designs need to know of it.
    technologies : dict
        Those that were tried there.
    """

    facts: HostFacts
    technologies: dict[str, Availability]


_READ: Final = TypeAdapter(Described)


def describe_here(start: Path, said: Provenance, technologies: Mapping[str, Availability]) -> None:
    """Write what this host is, where a part's own process hands back what it recorded."""
    tried: dict[str, JsonValue] = {name: asdict(found) for name, found in technologies.items()}
    host = {**said.host, FACTS: asdict(host_facts())}
    write_provenance(start, replace(said, host=host, technologies=tried))
    with Journal(start / JOURNAL_NAME):
        pass  # it says that the provenance is whole


def describe_hosts(
    placing: Callable[[Path], Engine], result: Path, technologies: Sequence[str], progress: Progress
) -> dict[str, Described]:
    """Ask hosts what they are; give it by their names, nothing where the engine runs parts on this host.

    Parameters
    ----------
    placing : callable
        Gives the engine for the folder of the parts.
    result : Path
        Result folder, which need not hold a plan.
    technologies : sequence of str
        Isolation technologies that a plan may use; each host tries them.
    progress : Progress
        Told what is waited for.

    Raises
    ------
    RunError
        If no host says what it is.
    CapabilityError
        If the engine does not take parts.
    """
    root = result.absolute() / PLACED_NAME
    root.mkdir(parents=True, exist_ok=True)
    engine = placing(root)
    if engine.is_here:
        return {}
    width = engine.width
    progress.note(f"asking {width} host{'s' * (width > 1)} what they are")
    parts = write_description_parts(result, width, technologies)
    try:
        engine.place(parts)
        _wait(engine, parts, progress)
    finally:
        engine.cancel()
    found = dict(_read(parts))
    if not found:
        message = "no host said what it is, so nothing can be planned for them"
        raise RunError(message, hint=f"what they wrote is in `{root}`", code="run.placed")
    if len(found) < width:
        progress.note(f"{len(found)} of {width} hosts said what they are; the plan is made for these")
    return found


def _wait(engine: Engine, parts: Sequence[Path], progress: Progress) -> None:
    """Wait for the first host as long as it takes, for the others a stated time."""
    deadline_s: float | None = None
    said: set[str] = set()
    while deadline_s is None or time.monotonic() < deadline_s:
        pending = engine.pending()
        reasons = ("the engine does not answer; waiting",) if pending is None else pending.reasons
        for reason in reasons:
            if reason not in said:
                said.add(reason)
                progress.note(reason)
        here = sum(1 for part in parts for _ in starts_of(part))
        if pending is not None and not pending.parts:
            return
        if deadline_s is None and here:
            deadline_s = time.monotonic() + LATER_S
        time.sleep(LOOK_S)


def _read(parts: Iterable[Path]) -> Iterator[tuple[str, Described]]:
    starts: dict[str, Provenance] = {}
    for part in parts:
        for start in starts_of(part):
            with suppress(DataError):
                found = read_provenance(start)
                starts[found.host_id] = found
    named = Provenance("", "", 0, hosts={host: {"host": each.host} for host, each in starts.items()})
    for host, name in host_names(named, starts).items():
        told = {"facts": starts[host].host.get(FACTS), "technologies": starts[host].technologies}
        # What a host says is not trusted to be a host.
        with suppress(ValidationError, DesignError):
            yield name, _READ.validate_python(told)


def common_facts(hosts: Mapping[str, Described]) -> HostFacts:
    """Give what all hosts have."""
    facts = [each.facts for each in hosts.values()]
    cores = min(each.core_count for each in facts)
    return HostFacts(
        cpu_count=min(each.cpu_count for each in facts),
        core_count=cores,
        llc_count=min(each.llc_count for each in facts),
        memory_node_count=min(each.memory_node_count for each in facts),
        hardware_virtualisation=all(each.hardware_virtualisation for each in facts),
    )


def common_technology(hosts: Mapping[str, Described], name: str) -> Availability:
    """Say whether a technology works on all hosts, and if not, on which it does not and why."""
    lacking = {
        host: found.reason or "no reason given"
        for host, each in hosts.items()
        for found in [each.technologies.get(name, Availability.no("it was not tried there"))]
        if not found.available
    }
    if lacking:
        repairs = (each.technologies[name].repair for each in hosts.values() if name in each.technologies)
        said = "; ".join(f"`{host}`: {reason}" for host, reason in lacking.items())
        return Availability.no(f"not on every host: {said}", next(filter(None, repairs), None))
    versions = dict.fromkeys(str(each.technologies[name].version) for each in hosts.values())
    return Availability.yes(", ".join(versions))


def differences(hosts: Mapping[str, Described]) -> list[str]:
    """Say in what hosts differ that a plan depends on, by name, and what it is made for."""
    common, found = common_facts(hosts), []
    for title, field in _COUNTED.items():
        of_value: dict[int, list[str]] = {}
        for host, each in hosts.items():
            of_value.setdefault(getattr(each.facts, field), []).append(host)
        if len(of_value) > 1:
            said = "; ".join(f"{value} ({', '.join(names)})" for value, names in sorted(of_value.items()))
            found.append(f"hosts differ in {title}: {said}; the plan is made for {getattr(common, field)}")
    return found
