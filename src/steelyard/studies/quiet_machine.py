"""Whether the machine was quiet while it measured: what the gate saw and what the hypervisor took."""

from __future__ import annotations

import re
from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Final

import polars as pl

from steelyard.model import Evidence
from steelyard.record.provenance import PROVENANCE_NAME, read_provenance
from steelyard.studies.analysis_parts import RUNS, finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pydantic import JsonValue

    from steelyard.model import Finding

    Look = dict[str, JsonValue]

FEW_BATCHES: Final = 0.1
"""Share of batches beside other load up to which blocks in random order still give a usable picture."""

STEAL_PERCENT: Final = 1.0
"""SOURCE: the bound above which a single run is flagged as stolen from."""

_CULPRIT: Final = re.compile(r"([^\s,:()]+) \(\d+\)")
_NAMED: Final = 3


def quiet_machine(result: Path, runs: pl.DataFrame) -> Iterator[Finding]:
    """Judge the machine by what the gate saw around each batch and by the time the hypervisor took.

    Says nothing for data that carry neither, such as imported ones.
    """
    looks = list(_looks(result))
    stolen = _stolen_percent(runs)
    if not looks and stolen is None:
        return
    batches = {look["batch"] for look in looks}
    noisy = {look["batch"] for look in looks if look.get("quiet") is False}
    foreign = [value for look in looks if (value := _foreign_percent(look)) is not None]
    yield finding(
        "quiet_machine",
        {},
        _verdict(len(noisy), len(batches), stolen),
        facts={
            "looks": len(foreign),
            "batches": len(batches),
            "noisy_batches": len(noisy),
            "noisy_percent": 100 * len(noisy) / len(batches) if batches else None,
            "largest_foreign_percent": max(foreign, default=None),
            "median_foreign_percent": median(foreign) if foreign else None,
            "culprits": _culprits(looks) or None,
            "stolen_percent": stolen,
            "swapped_batches": len({look["batch"] for look in looks if look.get("swap_pages")}),
        },
        evidence=Evidence(RUNS, {}, ("steal_ns", "wall_ns"), "sum over sum; gate: provenance.json"),
    )


def _verdict(noisy: int, batches: int, stolen: float | None) -> str:
    if stolen is not None and stolen > STEAL_PERCENT:
        return "not quiet"
    if not batches:
        return "not watched"
    if not noisy:
        return "quiet"
    return "mostly quiet" if noisy <= FEW_BATCHES * batches else "not quiet"


def _looks(result: Path) -> Iterator[Look]:
    """Give what the gate saw around each batch, over all sessions; a repeated batch counts as one."""
    if not (result / PROVENANCE_NAME).exists():
        return
    for session in read_provenance(result).sessions:
        yield from (look for look in session.gate if isinstance(look.get("batch"), int))


def _foreign_percent(look: Look) -> float | None:
    """Give the CPU time of other processes in a window that was looked at for this batch."""
    value = look.get("foreign_cpu_ratio")
    was_looked_at = look.get("attempts") != 0
    return 100 * float(value) if was_looked_at and isinstance(value, int | float) else None


def _culprits(looks: Iterable[Look]) -> str:
    """Name the other processes that were named in most windows."""
    counts: Counter[str] = Counter()
    for look in looks:
        reasons = look.get("reasons")
        if isinstance(reasons, list):
            counts.update({name for reason in reasons for name in _CULPRIT.findall(str(reason))})
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(name for name, _ in ordered[:_NAMED])


def _stolen_percent(runs: pl.DataFrame) -> float | None:
    """Give the time the hypervisor took from runs over their wall-clock time."""
    timed = runs.filter(pl.col("steal_ns").is_not_null() & (pl.col("wall_ns") > 0))
    return 100 * int(timed["steal_ns"].sum()) / int(timed["wall_ns"].sum()) if timed.height else None
