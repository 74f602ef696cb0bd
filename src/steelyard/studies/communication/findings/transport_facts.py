"""What a transport says of itself: versions, declared limits, and up to which size its sends return early."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from steelyard.analyse.cost_curve.known_places import KnownPlace
from steelyard.model import Estimate, Evidence
from steelyard.studies.analysis_parts import finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from steelyard.model import Finding
    from steelyard.studies.communication.recorded import RecordedRun

FACTS_FILE: Final = "transport.json"
THRESHOLDS_FILE: Final = "thresholds.json"
THRESHOLDS_FORMAT: Final = "steelyard/mpi-thresholds/1"
KINDS: Final = {
    "detached": "a send returns although the receiver does nothing",
    "asynchronous": "a send returns although the receiver only looks for other messages",
}

HEADER: Final = 0.05
"""Part of a declared limit that may belong to headers."""


@dataclass(frozen=True, slots=True)
class TransportFacts:
    """What the traces of one cell say of their transport.

    Parameters
    ----------
    declared : mapping
        Limits that the library declares, bytes by name.
    versions : mapping
        Everything else it says.
    thresholds : mapping
        As the program of thresholds printed them; empty where none was run.
    place : str
        Trace that holds the thresholds.
    """

    declared: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    thresholds: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""

    def bytes_of(self, kind: str) -> int | None:
        """Give a threshold of `KINDS`, if it was found."""
        value = self.thresholds.get(f"{kind}_bytes")
        return value if isinstance(value, int) else None

    def places(self) -> tuple[KnownPlace, ...]:
        """Give where the cost of messages may change, the surest first.

        A measured threshold is exact where every size it was looked for was decided; a library may count a
        header of its own in what it declares.
        """
        found = []
        is_exact = self.thresholds.get("undecided") == 0
        for kind in KINDS:
            size = self.bytes_of(kind)
            if size is not None and self.thresholds.get(f"{kind}_is_lower_bound") is not True:
                low = float(size) if is_exact else (1 - HEADER) * size
                found.append(KnownPlace(f"{kind} limit", low, float(size), is_measured=True))
        found += [
            KnownPlace(name, (1 - HEADER) * size, float(size), is_measured=False)
            for name, size in sorted(self.declared.items())
            if size > 0
        ]
        return tuple(found)


def write_facts(folder: Path, facts: Mapping[str, str]) -> None:
    """Keep what a transport says of itself beside a trace."""
    text = json.dumps(dict(facts), indent=1, sort_keys=True)
    (folder / FACTS_FILE).write_text(text + "\n", encoding="utf-8")


def transport_facts(runs: Sequence[RecordedRun]) -> TransportFacts:
    """Read what the traces of one cell say of their transport; damaged files say nothing."""
    facts: dict[str, str] = {}
    for run in runs:
        facts = facts or {name: str(value) for name, value in _read(run.folder / FACTS_FILE).items()}
    declared = {name: int(value) for name, value in facts.items() if value.isdecimal()}
    versions = {name: value for name, value in facts.items() if name not in declared}
    for run in runs:
        found = _read(run.folder / THRESHOLDS_FILE)
        if found.get("format") == THRESHOLDS_FORMAT:
            return TransportFacts(declared, versions, found, run.place)
    return TransportFacts(declared, versions)


def threshold_findings(runs: Sequence[RecordedRun]) -> Iterator[Finding]:
    """Give up to which size the sends of one cell return early."""
    facts = transport_facts(runs)
    for kind, text in KINDS.items():
        size = facts.bytes_of(kind)
        if size is None:
            continue
        is_bound = facts.thresholds.get(f"{kind}_is_lower_bound") is True
        yield finding(
            "threshold",
            {**runs[0].levels, "kind": kind},
            "at least" if is_bound else "exact",
            estimates={"size": Estimate(float(size), "bytes", "bisection in one launch")},
            facts={
                "bytes": size,
                "text": text,
                "declared": ", ".join(
                    f"{name} = {value}" for name, value in facts.declared.items() if "eager_limit" in name
                ),
                "looks": _whole(facts.thresholds.get("looks")),
                "doubted": _whole(facts.thresholds.get("doubted")),
            },
            evidence=Evidence(f"{facts.place}/{THRESHOLDS_FILE}", {}, (f"{kind}_bytes",), "bisection"),
        )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
