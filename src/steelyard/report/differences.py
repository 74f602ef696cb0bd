"""Two sets of findings about the same questions: what changed between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from steelyard.model.finding import Finding, FindingSet

UNDECIDED: Final = frozenset({"inconclusive", "descriptive", "undecided", "NA"})
REVERSED: Final = frozenset({("slower", "faster"), ("faster", "slower")})


@dataclass(frozen=True, slots=True)
class ChangedVerdict:
    """A claim that two results answer differently.

    Parameters
    ----------
    claim : str
        Kind of claim.
    subject : dict
        What it is about.
    before, after : str
        Verdict in the first and in the second result.
    """

    claim: str
    subject: dict[str, str]
    before: str
    after: str

    @property
    def is_reversed(self) -> bool:
        """Whether the two verdicts contradict each other."""
        return (self.before, self.after) in REVERSED


@dataclass(frozen=True, slots=True)
class Differences:
    """What changed from one result to another.

    Parameters
    ----------
    compared : int
        Claims that both results answer.
    changed : tuple of ChangedVerdict
        In the order of the first result.
    only_first, only_second : int
        Claims that only one of them answers.
    undecided : int
        Claims of both that at least one of them leaves undecided.
    """

    compared: int
    changed: tuple[ChangedVerdict, ...]
    only_first: int
    only_second: int
    undecided: int


def differences(first: FindingSet, second: FindingSet) -> Differences:
    """Compare the verdicts of two results claim by claim.

    Parameters
    ----------
    first, second : FindingSet
        Claims are matched by kind and subject.
    """
    others = {_key(finding): finding for finding in second.findings}
    pairs = [(finding, others[_key(finding)]) for finding in first.findings if _key(finding) in others]
    changed = tuple(
        ChangedVerdict(finding.claim, dict(finding.subject), finding.verdict, other.verdict)
        for finding, other in pairs
        if finding.verdict != other.verdict
    )
    undecided = sum(not UNDECIDED.isdisjoint(side.verdict for side in pair) for pair in pairs)
    only_first, only_second = (count - len(pairs) for count in (len(first.findings), len(others)))
    return Differences(len(pairs), changed, only_first, only_second, undecided)


def _key(finding: Finding) -> tuple[str, tuple[tuple[str, str], ...]]:
    return finding.claim, tuple(sorted(finding.subject.items()))
