"""Hypotheses: what is expected, stated in the plan before anything is run, and answered by findings."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.studies.analysis_parts import finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from steelyard.model import Estimate, Finding, Plan

OPTION: Final = "hypotheses"
CONFIRMED: Final = "confirmed"
CONTRADICTED: Final = "contradicted"
INCONCLUSIVE: Final = "inconclusive"
UNANSWERED: Final = "not measured"


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """An expectation of one quantity, with its size.

    Parameters
    ----------
    text : str
        What is expected, and why.
    claim : str
        Kind of finding that answers it.
    subject : dict
        What that finding must be about; further keys of its subject may have any value, and the
        first finding that fits answers.
    role : str
        Estimate of the finding.
    low, high : float or None
        Range in which it is expected; ``None`` is no bound.
    """

    text: str
    claim: str
    subject: dict[str, str]
    role: str
    low: float | None = None
    high: float | None = None

    def fits(self, other: Finding) -> bool:
        """Whether a finding is the one that answers."""
        return (
            other.claim == self.claim
            and self.role in other.estimates
            and all(other.subject.get(key) == value for key, value in self.subject.items())
        )

    def verdict(self, estimate: Estimate) -> str:
        """Say whether an estimate lies in the expected range; by its interval where there is one."""
        if estimate.value is None:
            return UNANSWERED
        least = estimate.value if estimate.low is None else estimate.low
        most = estimate.value if estimate.high is None else estimate.high
        if self._is_inside(least) and self._is_inside(most):
            return CONFIRMED
        is_apart = (self.low is not None and most < self.low) or (self.high is not None and least > self.high)
        return CONTRADICTED if is_apart else INCONCLUSIVE

    def _is_inside(self, value: float) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    @property
    def expected(self) -> str:
        """The range in words."""
        if self.low is not None and self.high is not None:
            return f"{self.low:g} to {self.high:g}"
        return f"at least {self.low:g}" if self.low is not None else f"at most {self.high:g}"


def written(hypotheses: Iterable[Hypothesis]) -> str:
    """Give the text a plan keeps."""
    return json.dumps([asdict(each) for each in hypotheses], ensure_ascii=False)


def of_plan(plan: Plan) -> list[Hypothesis]:
    """Give the hypotheses of a plan.

    Raises
    ------
    DataError
        If they cannot be read.
    """
    text = plan.options.get(OPTION)
    try:
        return [Hypothesis(**each) for each in json.loads(str(text))] if text else []
    except (ValueError, TypeError) as error:
        message = f"cannot read the hypotheses in `plan.json`: {error}"
        raise DataError(message, hint="run the study with this version", code="data.schema") from error


def _sign(estimate: Estimate | None) -> str:
    return " %" if estimate is not None and estimate.unit == "percent" else ""


def answered(plan: Plan, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Answer every hypothesis by the finding that fits."""
    for place, each in enumerate(of_plan(plan), start=1):
        fitting = next((found for found in findings if each.fits(found)), None)
        estimate = None if fitting is None else fitting.estimates[each.role]
        yield finding(
            "hypothesis",
            {"hypothesis": str(place), "text": each.text},
            UNANSWERED if estimate is None else each.verdict(estimate),
            estimates={} if estimate is None else {"measured": estimate},
            facts={
                "expected": each.expected + _sign(estimate),
                "answered_by": None if fitting is None else fitting.id,
            },
            evidence=None if fitting is None or not fitting.evidence else fitting.evidence[0],
        )
