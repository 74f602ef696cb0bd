"""isolate's meta file: its own account of a run.

References
----------
.. [1] isolate(1), section META-FILES.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from steelyard.run.isolation.interface import Document

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


def merge_meta(outcome: Document, meta: dict[str, str]) -> Document:
    """Put isolate's figures in the place of the launcher's, which are kept as counters.

    The launcher saw isolate, not the program: its exit code and times are isolate's. An outcome
    without a meta file stays as it is, marked as failed.
    """
    merged: dict[str, Any] = {**outcome}
    if not meta:
        if outcome["status"] in {"completed", "nonzero_exit"}:
            merged |= {"status": "launcher_failed", "message": "isolate wrote no meta file"}
        return merged
    quantities = dict(outcome["quantities"])
    counters = dict(outcome.get("counters", {}))
    for metric, key, scale in _FIGURES:
        if key in meta:
            if metric in quantities:
                counters[f"launcher-{metric}"] = quantities[metric]
            quantities[metric] = _figure(meta[key], scale)
    merged |= {"quantities": quantities, "counters": counters}
    merged |= _ending(meta)
    return merged


_FIGURES: Final = (
    ("wall_ns", "time-wall", NS_PER_S),
    ("cpu_ns", "time", NS_PER_S),
    ("peak_resident_bytes", "max-rss", BYTES_PER_KIB),
    ("peak_memory_bytes", "cg-mem", BYTES_PER_KIB),
    ("voluntary_switches", "csw-voluntary", 1),
    ("involuntary_switches", "csw-forced", 1),
)


def _figure(text: str, scale: int) -> dict[str, Any]:
    grain = GRAIN_NS if scale == NS_PER_S else scale
    return {"value": int(Decimal(text) * scale), "source": SOURCE, "granularity": grain}


def _ending(meta: dict[str, str]) -> dict[str, Any]:
    """Translate isolate's status into ours."""
    code = int(meta["exitcode"]) if "exitcode" in meta else None
    signal = int(meta["exitsig"]) if "exitsig" in meta else None
    message = meta.get("message")
    match meta.get("status"):
        case None:
            status = "completed"
        case "RE":
            status = "nonzero_exit"
        case "SG":
            status = "out_of_memory" if "cg-oom-killed" in meta else "signalled"
        case "TO":
            status = "wall_timeout" if "wall" in (message or "") else "cpu_timeout"
        case _:
            status = "launcher_failed"
    return {"status": status, "exit_code": code, "signal": signal, "message": message}
