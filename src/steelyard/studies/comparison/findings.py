"""The findings of a comparison, and the claims that its report reads from them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.equivalence import Verdict
from steelyard.model import Estimate, Evidence, Finding
from steelyard.studies.analysis_parts import RUNS, finite, with_unique_ids
from steelyard.studies.comparison.claim import Claim
from steelyard.studies.comparison.outcome import sample_remarks
from steelyard.studies.comparison.terms import MEASURE
from steelyard.studies.comparison.text import flags_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.studies.comparison.outcome import Comparison
    from steelyard.studies.comparison.sample import Summary
    from steelyard.studies.comparison.terms import Metric

_NS: Final = 1e-9


def findings_of(found: Comparison) -> tuple[Finding, ...]:
    """Give one finding per comparison and one per command."""
    return tuple(with_unique_ids([*_claims(found), *_samples(found)]))


def _claims(found: Comparison) -> Iterator[Finding]:
    metric = found.terms.metric
    for claim, looks in zip(found.claims, found.looks, strict=True):
        units, measurements = min(claim.runs), sum(claim.runs)
        low, high, level = _limits(claim.low, claim.high, claim.level)
        # Two one-sided tests at 5 % each are the interval at 90 %: Schuirmann (1987).
        narrow = _limits(*claim.narrow, 2 * claim.level - 1)
        yield Finding(
            id=f"comparison/{claim.baseline}/{claim.contender}",
            claim="comparison",
            subject={"first": claim.baseline, "second": claim.contender, "metric": claim.metric},
            verdict=str(claim.verdict),
            estimates={
                "ratio": Estimate(
                    finite(claim.ratio),
                    "ratio",
                    claim.method,
                    low,
                    high,
                    level,
                    units,
                    measurements,
                    guaranteed=claim.guaranteed,
                ),
                "equivalence": Estimate(
                    finite(claim.ratio),
                    "ratio",
                    f"{claim.method}, two one-sided tests",
                    *narrow,
                    units,
                    measurements,
                    guaranteed=claim.guaranteed,
                ),
                "mean_ratio": Estimate(
                    finite(claim.mean_ratio),
                    "ratio",
                    "ratio of geometric means",
                    units=units,
                    measurements=measurements,
                    guaranteed=False,
                ),
            },
            facts={
                "sentence": claim.sentence,
                "margin": claim.margin,
                "level": claim.level,
                "comparisons_together": claim.family,
                "runs_first": claim.runs[0],
                "runs_second": claim.runs[1],
                "further_runs": claim.further_runs,
                "is_settled": claim.is_settled,
                "is_regression": claim.is_regression,
                "looks": len(looks),
                "end": found.end,
                "elapsed_s": found.elapsed_s,
            },
            evidence=(
                *(
                    _evidence(name, metric.quantity, "logarithm of second over first in each block")
                    for name in (claim.baseline, claim.contender)
                ),
                Evidence(
                    "looks.json", {"comparison": claim.contender}, ("looks",), "part of the error spent"
                ),
            ),
            warnings=claim.remarks,
        )


def _limits(low: float, high: float, level: float) -> tuple[float | None, float | None, float | None]:
    """Give limits and level of an interval; nothing where it has no end."""
    return (low, high, level) if low > 0 and math.isfinite(high) else (None, None, None)


def _samples(found: Comparison) -> Iterator[Finding]:
    metric = found.terms.metric
    for contender, summary in zip(found.contenders, found.summaries, strict=True):
        yield Finding(
            id=f"sample/{contender.name}",
            claim="sample",
            subject={"command": contender.name, "metric": metric.words},
            verdict="descriptive",
            estimates=_described(summary, metric),
            facts={"runs": summary.count, "outliers": summary.outliers, "flags": flags_text(summary)},
            evidence=(_evidence(contender.name, metric.quantity, "median, mean, sd, spread, least, most"),),
            warnings=tuple(sample_remarks(found, contender.number)),
        )


def _described(summary: Summary, metric: Metric) -> dict[str, Estimate]:
    unit, scale = ("bytes", 1.0) if metric == "memory" else ("s", _NS)
    words = {
        "median": "median",
        "mean": "mean",
        "sd": "standard deviation",
        "least": "smallest value",
        "most": "largest value",
    }
    found = {
        role: Estimate(
            finite(getattr(summary, role) * scale),
            unit,
            method,
            units=summary.count,
            measurements=summary.count,
            guaranteed=False,
        )
        for role, method in words.items()
    }
    found["spread"] = Estimate(
        finite(100 * summary.spread),
        "percent",
        "scaled median absolute deviation over median",
        units=summary.count,
        measurements=summary.count,
        guaranteed=False,
    )
    return found


def _evidence(command: str, column: str, statistic: str) -> Evidence:
    return Evidence(RUNS, {"command": command, "phase": MEASURE}, ("block", column), statistic)


def claim_of_finding(finding: Finding) -> Claim:
    """Give the claim that a finding of the kind ``comparison`` states.

    Examples
    --------
    >>> from steelyard.model import Estimate, Finding
    >>> ratio = Estimate(1.031, "ratio", "sequential-signed-rank", 1.024, 1.038, 0.95)
    >>> facts = {"margin": 0.02, "level": 0.95, "runs_first": 24, "runs_second": 24}
    >>> subject = {"first": "old", "second": "new", "metric": "wall"}
    >>> finding = Finding("id", "comparison", subject, "slower", {"ratio": ratio}, facts)
    >>> print(claim_of_finding(finding).sentence)
    `new` is 3.1 % slower than `old` (95 % interval +2.4 % to +3.8 %, margin 2 %, 24 runs each, wall time)
    """
    ratio, facts = finding.estimates["ratio"], finding.facts
    narrow, mean = finding.estimates.get("equivalence"), finding.estimates.get("mean_ratio")

    def fact(name: str, otherwise: float) -> float:
        value = facts.get(name)
        return otherwise if value is None or isinstance(value, str) else value

    further = facts.get("further_runs")
    return Claim(
        finding.subject["first"],
        finding.subject["second"],
        finding.subject["metric"],
        Verdict(finding.verdict),
        ratio=_or(ratio.value, math.nan),
        low=_or(ratio.low, 0.0),
        high=_or(ratio.high, math.inf),
        level=fact("level", math.nan),
        margin=fact("margin", math.nan),
        runs=(int(fact("runs_first", 0)), int(fact("runs_second", 0))),
        mean_ratio=_or(mean.value if mean else None, math.nan),
        further_runs=further if isinstance(further, int) else None,
        is_settled=bool(facts.get("is_settled")),
        family=int(fact("comparisons_together", 1)),
        method=ratio.method,
        narrow=(_or(narrow.low if narrow else None, 0.0), _or(narrow.high if narrow else None, math.inf)),
    )


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value
