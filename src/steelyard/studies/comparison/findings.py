"""The findings of a comparison, and the claims that its report reads from them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.equivalence import Verdict
from steelyard.analyse.comparison.sequential import Location
from steelyard.model import Estimate, Evidence, Finding
from steelyard.model.plan import PLAN_NAME
from steelyard.model.run_outcome import PADDING, RANDOMISED
from steelyard.studies.analysis_parts import MEASUREMENTS, RUNS, finite, with_unique_ids
from steelyard.studies.comparison.claim import Claim, subject_of
from steelyard.studies.comparison.modes.choice import LEVEL as TRIAL_LEVEL
from steelyard.studies.comparison.modes.layout import LEVEL
from steelyard.studies.comparison.outcome import sample_remarks
from steelyard.studies.comparison.sample import REPORTED
from steelyard.studies.comparison.terms import MEASURE
from steelyard.studies.comparison.text import flags_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.studies.comparison.hosts.merged import Merged
    from steelyard.studies.comparison.outcome import Comparison
    from steelyard.studies.comparison.sample import Summary
    from steelyard.studies.comparison.terms import Metric

_NS: Final = 1e-9


def findings_of(found: Comparison) -> tuple[Finding, ...]:
    """Give one finding per comparison and one per command, and what is known of mode and layout."""
    parts = (_claims(found), _samples(found), _modes(found), _layouts(found), _hosts(found))
    return tuple(with_unique_ids([each for part in parts for each in part]))


def _claims(found: Comparison) -> Iterator[Finding]:
    metric = found.terms.metric
    over_hosts = found.hosts or (None,) * len(found.claims)
    for claim, looks, hosts in zip(found.claims, found.looks, over_hosts, strict=True):
        units, measurements = min(claim.runs), sum(claim.runs)
        low, high, level = _limits(claim.low, claim.high, claim.level)
        # Two one-sided tests at 5 % each are the interval at 90 %: Schuirmann (1987).
        narrow = _limits(*claim.narrow, 2 * claim.level - 1)
        yield Finding(
            id="/".join(
                ["comparison", claim.baseline, claim.contender, *subject_of(claim.statistic).values()]
            ),
            claim="comparison",
            subject={
                "first": claim.baseline,
                "second": claim.contender,
                "metric": claim.metric,
                **subject_of(claim.statistic),
            },
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
                **_new_host(hosts),
            },
            facts={
                "sentence": claim.sentence,
                **({"origin": claim.origin, "hosts": len(hosts.parts)} if hosts is not None else {}),
                "margin": claim.margin,
                "level": claim.level,
                "comparisons_together": claim.family,
                "runs_first": claim.runs[0],
                "runs_second": claim.runs[1],
                "further_runs": claim.further_runs,
                "is_settled": claim.is_settled,
                "is_regression": claim.is_regression,
                **({"within": claim.within} if claim.within else {}),
                "looks": len(looks),
                "end": found.end,
                "elapsed_s": found.elapsed_s,
            },
            evidence=(
                *(
                    _evidence(
                        name,
                        metric,
                        f"{claim.statistic} of each side"
                        if claim.suffix
                        else "logarithm of second over first in each block",
                    )
                    for name in (claim.baseline, claim.contender)
                ),
                Evidence(
                    "looks.json", {"comparison": claim.contender}, ("looks",), "part of the error spent"
                ),
            ),
            warnings=claim.remarks,
        )


def _new_host(hosts: Merged | None) -> dict[str, Estimate]:
    """Give where the ratio of one more host is expected."""
    if hosts is None or hosts.new_host is None:
        return {}
    low, high = hosts.new_host
    method = "prediction of one more host, Student's t on logarithms"
    count = len(hosts.parts)
    return {
        "new_host": Estimate(
            math.sqrt(low * high), "ratio", method, low, high, 0.95, count, sum(hosts.claim.runs)
        )
    }


def _hosts(found: Comparison) -> Iterator[Finding]:
    """Say of each comparison what each host alone says."""
    for hosts in found.hosts:
        claim = hosts.claim
        for part in hosts.parts:
            subject = {
                "host": part.result,
                "first": claim.baseline,
                "second": claim.contender,
                **subject_of(claim.statistic),
            }
            yield Finding(
                id="/".join(["on_host", *subject.values()]),
                claim="on_host",
                subject=subject,
                verdict=part.verdict,
                estimates={
                    "ratio": Estimate(
                        part.ratio,
                        "ratio",
                        "all blocks of this host, as if nobody had looked before",
                        part.low,
                        part.high,
                        0.95,
                        part.runs,
                        2 * part.runs,
                    )
                },
                facts={
                    "host_id": part.host,
                    "runs": part.runs,
                    "weight_percent": round(100 * part.weight, 1),
                },
                evidence=tuple(
                    _evidence(
                        name, found.terms.metric, "logarithm of second over first in each block, by host"
                    )
                    for name in (claim.baseline, claim.contender)
                ),
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
            evidence=(_evidence(contender.name, metric, "median, mean, sd, spread, least, most"),),
            warnings=tuple(sample_remarks(found, contender.number)),
        )


def _modes(found: Comparison) -> Iterator[Finding]:
    choice, duet = found.choice, found.duet
    if choice is not None:
        pairs = sum(choice.pairs)
        method = "exchanges of squares, times the ratio of the times of a pair"
        yield Finding(
            id="mode",
            claim="mode",
            subject={"baseline": choice.baseline},
            verdict=choice.verdict,
            estimates={
                "turns_sd": _plain(
                    100 * choice.turns_sd, "percent", "of pairs of one minute", choice.pairs[0]
                ),
                "duet_sd": _plain(100 * choice.duet_sd, "percent", "of pairs of one minute", choice.pairs[1]),
                "minutes": Estimate(
                    finite(choice.minutes),
                    "ratio",
                    method,
                    *_limits(choice.low, choice.high, TRIAL_LEVEL),
                    pairs,
                    pairs,
                ),
            },
            facts={"sentence": choice.sentence, "mode": str(found.terms.mode)},
            evidence=(Evidence(PLAN_NAME, {"option": "trial"}, ("trial",), "log ratio of each pair"),),
        )
    if duet is not None:
        yield Finding(
            id="overlap",
            claim="overlap",
            subject={"mode": str(found.terms.mode)},
            verdict="descriptive",
            estimates={
                "median": _plain(100 * duet.median, "percent", "median of the blocks", duet.blocks),
                "least": _plain(100 * duet.least, "percent", "smallest of the blocks", duet.blocks),
            },
            facts={"sentence": duet.sentence, "small": len(duet.small)},
            evidence=(
                Evidence(
                    RUNS,
                    {"phase": MEASURE},
                    ("block", "start_ns", "end_ns"),
                    "time together over the longer run",
                ),
            ),
        )


def _layouts(found: Comparison) -> Iterator[Finding]:
    columns = ("block", found.terms.metric.quantity, PADDING, RANDOMISED)
    for each in found.layouts:
        is_known = not math.isnan(each.share)
        yield Finding(
            id=f"layout/{each.baseline}/{each.contender}",
            claim="layout",
            subject={"first": each.baseline, "second": each.contender},
            verdict=str(each.verdict),
            estimates={
                "share": Estimate(
                    finite(100 * each.share),
                    "percent",
                    "variance of blocks in layouts that came back, exchanges of squares",
                    100 * each.low if is_known else None,
                    100 * each.high if is_known else None,
                    LEVEL if is_known else None,
                    sum(each.blocks),
                    2 * sum(each.blocks),
                )
            },
            facts={
                "sentence": each.sentence,
                "blocks_own_layout": each.blocks[0],
                "blocks_repeated_layout": each.blocks[1],
            },
            evidence=tuple(
                Evidence(RUNS, {"command": name}, columns, "logarithm of second over first in each block")
                for name in (each.baseline, each.contender)
            ),
        )


def _plain(value: float, unit: str, method: str, count: int) -> Estimate:
    return Estimate(finite(value), unit, method, units=count, measurements=count, guaranteed=False)


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


def _evidence(command: str, metric: Metric, statistic: str) -> Evidence:
    where = {"command": command, "phase": MEASURE}
    if metric == REPORTED:
        return Evidence(MEASUREMENTS, {**where, "metric": REPORTED}, ("value",), statistic)
    return Evidence(RUNS, where, ("block", metric.quantity), statistic)


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
        statistic=finding.subject.get("statistic", Location.TYPICAL),
        within=str(facts.get("within") or ""),
        origin=str(facts.get("origin") or ""),
    )


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value
