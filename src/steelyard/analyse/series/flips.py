"""Two results laid over each other: cells whose published class turned round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.published_rule import PublishedClass

if TYPE_CHECKING:
    from steelyard.model import Finding, FindingSet

COMPARISONS: Final = tuple(f"{statistic}_comparison" for statistic in ("mean", "sd", "median", "mad", "cv"))
_OPPOSITE: Final = {
    PublishedClass.HIGHER: PublishedClass.LESSER,
    PublishedClass.LESSER: PublishedClass.HIGHER,
}
_KEYS: Final = ("statistic", "metric", "workload", "input", "setup", "family", "first", "second")


@dataclass(frozen=True, slots=True)
class FlippedClass:
    """One comparison that two results answer in opposite ways.

    Parameters
    ----------
    claim : str
        Kind of comparison.
    subject : dict
        What is compared, as in the findings.
    published : str
        Interval the classes come from: ``percentile`` or ``basic``.
    before, after : str
        Class in the first and the second result, ``higher`` or ``lesser``.
    verdicts : tuple of str
        Steelyard's own verdict in the first and the second result.
    """

    claim: str
    subject: dict[str, str]
    published: str
    before: str
    after: str
    verdicts: tuple[str, str]


def flipped_classes(a: FindingSet, b: FindingSet) -> list[FlippedClass]:
    """List the comparisons that are `higher` in one result and `lesser` in the other.

    Parameters
    ----------
    a, b : FindingSet
        Findings of two results of one study.

    Returns
    -------
    list of FlippedClass
        In the order of `a`; one row per kind of published interval that flipped. Comparisons only one
        result has are left out.
    """
    others = {_key(finding): finding for finding in b.findings if finding.claim in COMPARISONS}
    flipped = []
    for finding in a.findings:
        other = others.get(_key(finding)) if finding.claim in COMPARISONS else None
        if other is None:
            continue
        for published in ("percentile", "basic"):
            before, after = (str(side.facts[f"class_{published}"]) for side in (finding, other))
            if before in _OPPOSITE and _OPPOSITE[PublishedClass(before)] == after:
                flipped.append(
                    FlippedClass(
                        finding.claim,
                        dict(finding.subject),
                        published,
                        before,
                        after,
                        (finding.verdict, other.verdict),
                    )
                )
    return flipped


def _key(finding: Finding) -> tuple[str, ...]:
    return (finding.claim, *(finding.subject.get(key, "") for key in _KEYS))
