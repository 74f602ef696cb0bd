"""What verifying finds."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Verification:
    """What verifying a package or a result folder found.

    Parameters
    ----------
    problems : list of str
        One sentence per disagreement; empty if everything is confirmed.
    not_compared : list of str
        One sentence for each thing that this installation cannot compare.
    said : list of str
        One sentence for each thing that only its author can say, so that nothing can check it.
    """

    problems: list[str] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
