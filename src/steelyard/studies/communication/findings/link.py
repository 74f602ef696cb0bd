"""Findings about a shaped link: what was fitted against what the shaper lets through."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from steelyard.analyse.cost_curve.known_places import KnownPlace
from steelyard.model import Estimate, Evidence
from steelyard.studies.analysis_parts import finding
from steelyard.studies.communication.findings.model import LEVEL, NORMAL_95
from steelyard.studies.communication.fixtures import LINK_FACTS
from steelyard.studies.communication.size_text import size_range
from steelyard.studies.communication.transport.link_truth import (
    IPV4_HEADER_BYTES,
    TCP_HEADER_BYTES,
    TIMESTAMPS_BYTES,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.model import Finding
    from steelyard.model.cost_model import CostPiece
    from steelyard.studies.communication.model.fitted import Fitted
    from steelyard.studies.communication.recorded import RecordedRun

CLOSE_PERCENT: Final = 1.0
"""A fitted bandwidth is that of the link if it lies within so many percent of the truth."""

FRAME_HEADERS: Final = IPV4_HEADER_BYTES + TCP_HEADER_BYTES

LIBRARY_HEADER: Final = 96
"""Bytes that a library may put before a message, at most."""


def link_findings(fitted: Fitted) -> Iterator[Finding]:
    """Give the fitted bandwidth beside the true one, and what the kernel could not do of what was asked."""
    facts = link_facts(fitted.runs[0])
    truth = facts.get("truth") or {}
    payload = truth.get("payload_bytes_per_s")
    piece = longest_line(fitted.model.curves["delay"], fitted.largest)
    if isinstance(payload, int | float) and payload > 0 and piece is not None:
        bandwidth = 1 / piece.slope
        apart = 100 * (bandwidth / payload - 1)
        yield finding(
            "link",
            fitted.subject,
            f"within {CLOSE_PERCENT:g} %"
            if abs(apart) <= CLOSE_PERCENT
            else f"{abs(apart):.1f} % {'above' if apart > 0 else 'below'} it",
            estimates={
                "fitted": Estimate(
                    bandwidth,
                    "bytes/s",
                    "one over the slope of the line over most bytes",
                    *_limits(piece),
                    fitted.replications,
                    piece.count,
                ),
                "truth": Estimate(float(payload), "bytes/s", "rate of the shaper less headers"),
                "apart": Estimate(apart, "percent", "fitted over true bandwidth"),
            },
            facts={
                "accounting": _accounting(truth),
                "sizes": size_range(piece.low, piece.high),
                "delay_ns": truth.get("delay_ns") or 0,
                "rate_bits_per_s": truth.get("rate_bits_per_s"),
            },
            evidence=Evidence(f"{fitted.runs[0].place}/{LINK_FACTS}", {}, ("truth",), "state of the kernel"),
        )
    for absence in (facts.get("shaped") or {}).get("missing") or []:
        yield finding(
            "link_missing",
            {**fitted.subject, "wanted": str(absence.get("name", ""))},
            "missing",
            facts={"reason": str(absence.get("reason", ""))},
            evidence=Evidence(
                f"{fitted.runs[0].place}/{LINK_FACTS}", {}, ("missing",), "state of the kernel"
            ),
        )


def longest_line(pieces: Sequence[CostPiece], largest: float) -> CostPiece | None:
    """Give the rising line over most bytes: what one more byte costs on the wire.

    Examples
    --------
    >>> from steelyard.model.cost_model import CostPiece
    >>> short, long = CostPiece(-1, 100, "line", 1, 3), CostPiece(100, 900, "line", 1, 2)
    >>> longest_line([short, long, CostPiece(900, None, "constant", 5, 0)], 1000).slope
    2
    """
    lines = [piece for piece in pieces if piece.kind == "line" and piece.slope > 0]

    def span(piece: CostPiece) -> float:
        return (largest if piece.high is None else min(piece.high, largest)) - max(piece.low, 0.0)

    return max(lines, key=span, default=None)


def _limits(piece: CostPiece) -> tuple[float | None, float | None, float | None]:
    """Give the 95 % interval of one over a slope, with its level."""
    error = piece.slope_error
    if error is None or not piece.slope > NORMAL_95 * error:
        return None, None, None
    return 1 / (piece.slope + NORMAL_95 * error), 1 / (piece.slope - NORMAL_95 * error), LEVEL


def link_facts(run: RecordedRun) -> dict[str, Any]:
    """Give what is known of the link of a run; nothing where there is none."""
    try:
        found = json.loads((run.folder / LINK_FACTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def frame_places(run: RecordedRun) -> tuple[KnownPlace, ...]:
    """Give where messages no longer fit into one frame of the link: up to a header of the library below."""
    truth = link_facts(run).get("truth") or {}
    mtu = truth.get("mtu_bytes")
    if not isinstance(mtu, int) or mtu <= FRAME_HEADERS + LIBRARY_HEADER:
        return ()
    payload = float(mtu - FRAME_HEADERS - (TIMESTAMPS_BYTES if truth.get("has_timestamps") else 0))
    return (KnownPlace("payload of a full frame", payload - LIBRARY_HEADER, payload, is_measured=False),)


def _accounting(truth: dict[str, Any]) -> str:
    headers = "Ethernet, IP and TCP headers"
    options = " with timestamps" if truth.get("has_timestamps") else ""
    return f"{truth.get('rate_bits_per_s', 0) / 1e6:g} Mbit/s less {headers}{options}"
