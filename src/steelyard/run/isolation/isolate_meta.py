"""isolate's meta file: its own account of a run.

References
----------
.. [1] isolate(1), section META-FILES.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from steelyard.model.run_outcome import Quantity, RunStatus

if TYPE_CHECKING:
    from steelyard.model import RunOutcome

SOURCE: Final = "isolate"
GRAIN_NS: Final = 1_000_000  # SOURCE: isolate.c writes whole milliseconds, truncated
NS_PER_S: Final = 1_000_000_000
BYTES_PER_KIB: Final = 1024


def parse_meta(text: str) -> dict[str, str]:
    r"""Read the ``key:value`` lines.

    Examples
    --------
    >>> parse_meta("time:0.050\nexitcode:0\n")
    {'time': '0.050', 'exitcode': '0'}
    """
    pairs = (line.partition(":") for line in text.splitlines())
    return {key: value for key, colon, value in pairs if colon}


def merge_meta(outcome: RunOutcome, meta: dict[str, str]) -> RunOutcome:
    """Put isolate's figures in the place of the launcher's, which are kept as counters.

    The launcher saw isolate, not the program: its exit code and times are isolate's. An outcome
    without a meta file stays as it is, marked as failed.
    """
    if not meta:
        if outcome.status not in {RunStatus.COMPLETED, RunStatus.NONZERO_EXIT}:
            return outcome
        return replace(outcome, status=RunStatus.LAUNCHER_FAILED, message="isolate wrote no meta file")
    quantities, counters = dict(outcome.quantities), dict(outcome.counters)
    for metric, key, scale in _FIGURES:
        if key in meta:
            if metric in quantities:
                counters[f"launcher-{metric}"] = quantities[metric]
            quantities[metric] = _figure(meta[key], scale)
    return replace(
        outcome,
        status=_status(meta),
        exit_code=int(meta["exitcode"]) if "exitcode" in meta else None,
        signal=int(meta["exitsig"]) if "exitsig" in meta else None,
        message=meta.get("message"),
        quantities=quantities,
        counters=counters,
    )


_FIGURES: Final = (
    ("wall_ns", "time-wall", NS_PER_S),
    ("cpu_ns", "time", NS_PER_S),
    ("peak_resident_bytes", "max-rss", BYTES_PER_KIB),
    ("peak_memory_bytes", "cg-mem", BYTES_PER_KIB),
    ("voluntary_switches", "csw-voluntary", 1),
    ("involuntary_switches", "csw-forced", 1),
)


def _figure(text: str, scale: int) -> Quantity:
    grain = GRAIN_NS if scale == NS_PER_S else scale
    return Quantity(int(Decimal(text) * scale), SOURCE, grain)


def _status(meta: dict[str, str]) -> RunStatus:
    """Translate isolate's status into ours."""
    match meta.get("status"):
        case None:
            return RunStatus.COMPLETED
        case "RE":
            return RunStatus.NONZERO_EXIT
        case "SG":
            return RunStatus.OUT_OF_MEMORY if "cg-oom-killed" in meta else RunStatus.SIGNALLED
        case "TO":
            is_wall = "wall" in meta.get("message", "")
            return RunStatus.WALL_TIMEOUT if is_wall else RunStatus.CPU_TIMEOUT
        case _:
            return RunStatus.LAUNCHER_FAILED
