"""Findings about a shaped link: what was fitted against what the shaper lets through."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from steelyard.model import Estimate, Evidence
from steelyard.studies.analysis_parts import finding
from steelyard.studies.communication.surroundings import LINK_FACTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.model import Finding
    from steelyard.studies.communication.fitted import Fitted

CLOSE_PERCENT: Final = 1.0
"""A fitted bandwidth is that of the link if it lies within so many percent of the truth."""


def link_findings(fitted: Fitted) -> Iterator[Finding]:
    """Give the fitted bandwidth beside the true one, and what the kernel could not do of what was asked."""
    facts = _facts_of(fitted)
    truth = facts.get("truth") or {}
    payload = truth.get("payload_bytes_per_s")
    if isinstance(payload, int | float) and payload > 0:
        bandwidth = fitted.model.bandwidth_bytes_per_s
        apart = 100 * (bandwidth / payload - 1)
        piece = fitted.model.curves["delay"][-1]
        yield finding(
            "link",
            fitted.subject,
            f"within {CLOSE_PERCENT:g} %"
            if abs(apart) <= CLOSE_PERCENT
            else f"{abs(apart):.1f} % {'above' if apart > 0 else 'below'} it",
            estimates={
                "fitted": Estimate(
                    bandwidth, "bytes/s", f"one over the slope of the last piece ({piece.kind})"
                ),
                "truth": Estimate(float(payload), "bytes/s", "rate of the shaper less headers"),
                "apart": Estimate(apart, "percent", "fitted over true bandwidth"),
            },
            facts={
                "accounting": _accounting(truth),
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


def _facts_of(fitted: Fitted) -> dict[str, Any]:
    try:
        found = json.loads((fitted.runs[0].folder / LINK_FACTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _accounting(truth: dict[str, Any]) -> str:
    headers = "Ethernet, IP and TCP headers"
    options = " with timestamps" if truth.get("has_timestamps") else ""
    return f"{truth.get('rate_bits_per_s', 0) / 1e6:g} Mbit/s less {headers}{options}"
