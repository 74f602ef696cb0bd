"""Whether a macro benchmark has passed: criteria, each with what was required and what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.studies.replication.experiments.conduct import Conducted


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing that is required.

    Parameters
    ----------
    name : str
        What.
    unit : str
        Its unit.
    measured : float or None
        What was reached; ``None``: the results do not say, which fails.
    least, most : float or None
        Limits; both may be reached.

    Examples
    --------
    >>> Criterion("throughput", "1/s", 94.9, least=95.0).reason()
    'throughput is 94.9 1/s; required: at least 95 1/s'
    >>> Criterion("throughput", "1/s", 95.0, least=95.0).reason() is None
    True
    """

    name: str
    unit: str
    measured: float | None
    least: float | None = None
    most: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the measured value is known and within its limits."""
        if self.measured is None:
            return False
        return (self.least is None or self.measured >= self.least) and (
            self.most is None or self.measured <= self.most
        )

    def reason(self) -> str | None:
        """Say why it is not met; ``None`` where it is."""
        if self.is_met:
            return None
        least, most = self.least, self.most
        limit = f"at least {least:g}" if least is not None else f"at most {most:g}"
        found = "not in the results" if self.measured is None else f"{self.measured:.6g} {self.unit}"
        return f"{self.name} is {found}; required: {limit} {self.unit}"

    def document(self) -> dict[str, Any]:
        """Give it as it stands in the header."""
        limits = {"least": self.least, "most": self.most}
        given = {name: value for name, value in limits.items() if value is not None}
        return {
            "criterion": self.name,
            "unit": self.unit,
            "measured": self.measured,
            **given,
            "is_met": self.is_met,
        }


def judge(run: Conducted, criteria: Sequence[Criterion]) -> list[str]:
    """Keep the criteria in the header, and give why each that is not met is not."""
    run.says("criteria", [criterion.document() for criterion in criteria])
    return [reason for criterion in criteria if (reason := criterion.reason()) is not None]
