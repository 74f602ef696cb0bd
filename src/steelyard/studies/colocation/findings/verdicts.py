"""What is said of an estimate: verdicts of the study, each from numbers alone."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.model import Estimate


class Isolation(StrEnum):
    """Whether the jobs slow the service down by more than the tolerance."""

    ISOLATED = "isolated"
    NOT_ISOLATED = "not isolated"
    INCONCLUSIVE = "inconclusive"
    OVERLOAD = "growing queue"
    BEST = "the best"
    """What others are compared with where the service alone is no reference."""
    UNSETTLED = "not settled"
    """Slow beside the jobs, and slower still before them: what came before is not over."""


def isolation(low: float | None, high: float | None, tolerance: float, *, lost: int = 0) -> Isolation:
    """Judge the ratio of a latency beside the jobs over that before them.

    Parameters
    ----------
    low, high : float or None
        Limits of the ratio; ``None`` where there is none.
    tolerance : float
        Largest relative increase that counts as isolated; above 0.
    lost : int
        Requests without an answer in the compared stretches: with any, the ratio is a lower bound.

    Returns
    -------
    Isolation
        Isolated only where the whole interval lies within the tolerance and every request was answered; not
        isolated only where all of it lies beyond. A service that becomes faster is isolated.

    Examples
    --------
    >>> isolation(1.01, 1.05, 0.1).value, isolation(1.2, 1.3, 0.1).value, isolation(1.05, 1.3, 0.1).value
    ('isolated', 'not isolated', 'inconclusive')
    >>> isolation(0.9, 1.05, 0.1, lost=1).value
    'inconclusive'
    """
    bound = 1 + tolerance
    if low is not None and low > bound:
        return Isolation.NOT_ISOLATED
    if high is not None and high <= bound and not lost:
        return Isolation.ISOLATED
    return Isolation.INCONCLUSIVE


def overall(verdicts: Iterable[Isolation]) -> Isolation:
    """Judge a policy by several statistics: isolated if it is by all, not isolated if it is not by one.

    Examples
    --------
    >>> overall([Isolation.ISOLATED, Isolation.NOT_ISOLATED, Isolation.INCONCLUSIVE]).value
    'not isolated'
    >>> overall([Isolation.ISOLATED, Isolation.INCONCLUSIVE]).value
    'inconclusive'
    """
    found = set(verdicts)
    if Isolation.NOT_ISOLATED in found:
        return Isolation.NOT_ISOLATED
    return Isolation.ISOLATED if found == {Isolation.ISOLATED} else Isolation.INCONCLUSIVE


def tail_verdict(estimate: Estimate, tolerance: float, lost: int) -> str:
    """Judge the ratio of a high quantile: kept, grown or inconclusive.

    Examples
    --------
    >>> from steelyard.model import Estimate
    >>> tail_verdict(Estimate(4.3, "ratio", "t", 4.0, 4.6, 0.95), 0.1, 0)
    'grown'
    """
    words = {Isolation.ISOLATED: "kept", Isolation.NOT_ISOLATED: "grown"}
    return words.get(isolation(estimate.low, estimate.high, tolerance, lost=lost), "inconclusive")


def contest_verdict(estimate: Estimate, tolerance: float) -> str:
    """Judge the latency under one policy over that under another one.

    `tolerance` is the largest relative increase that does not count; above 0.

    Examples
    --------
    >>> from steelyard.model import Estimate
    >>> contest_verdict(Estimate(0.5, "ratio", "t", 0.4, 0.6, 0.95), 0.1)
    'faster'
    >>> contest_verdict(Estimate(0.95, "ratio", "t", 0.85, 1.05, 0.95), 0.1)
    'not slower'
    """
    low, high, bound = estimate.low, estimate.high, 1 + tolerance
    if low is None or high is None:
        return "inconclusive"
    if high < 1 / bound:
        return "faster"
    if high <= bound:
        return "alike" if low >= 1 / bound else "not slower"
    return "slower" if low > bound else "inconclusive"


def contest_overall(verdicts: Iterable[str]) -> str:
    """Judge one policy against another by several statistics: what holds of all, or that they disagree.

    Examples
    --------
    >>> contest_overall(["alike", "alike", "slower"]), contest_overall(["faster", "slower"])
    ('slower', 'faster and slower')
    >>> contest_overall(["alike", "not slower"]), contest_overall(["alike", "inconclusive"])
    ('not slower', 'inconclusive')
    """
    found = set(verdicts)
    sure = [word for word in ("faster", "slower") if word in found]
    if sure:
        return " and ".join(sure)
    if found <= {"alike", "not slower"} and found:
        return "alike" if found == {"alike"} else "not slower"
    return "inconclusive"


def steadiness(low: float | None, high: float | None, tolerance: float) -> str:
    """Judge the same ratio of a service without jobs: steady, drifted or inconclusive.

    Examples
    --------
    >>> steadiness(0.98, 1.03, 0.1), steadiness(0.2, 0.3, 0.1)
    ('steady', 'drifted')
    """
    if low is None or high is None:
        return "inconclusive"
    if high < 1 / (1 + tolerance) or low > 1 + tolerance:
        return "drifted"
    return "steady" if low >= 1 / (1 + tolerance) and high <= 1 + tolerance else "inconclusive"


def price_verdict(estimate: Estimate, margin: float) -> str:
    """Judge the work of the jobs over that under the reference: less, as much, more or inconclusive.

    `margin` is the largest relative difference that does not count; in (0, 1).

    Examples
    --------
    >>> from steelyard.model import Estimate
    >>> price_verdict(Estimate(0.7, "ratio", "t", 0.65, 0.75, 0.95), 0.05)
    'less work'
    """
    low, high = estimate.low, estimate.high
    if high is not None and high < 1 - margin:
        return "less work"
    if low is not None and low > 1 + margin:
        return "more work"
    if low is not None and high is not None and low >= 1 - margin and high <= 1 + margin:
        return "as much work"
    return "inconclusive"
