"""What a comparison says to a program that asks for its exit code: which answers are failures."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

if TYPE_CHECKING:
    from collections.abc import Collection

PASSED: Final = 0
FAILED: Final = 1


class FailOn(StrEnum):
    """An answer that leaves with exit code 1; `slower` always does."""

    SLOWER = "slower"
    """Something is slower (or larger), surely, by more than the margin."""
    UNDECIDED = "undecided"
    """Something is not settled, or could not be compared."""
    CHANGED = "changed"
    """Something is different, surely, by more than the margin: faster too."""


SLOWER: Final = (FailOn.SLOWER,)
CHANGED: Final = (FailOn.CHANGED,)
FailOnOption = Annotated[
    tuple[FailOn, ...], Parameter(negative="", consume_multiple=False, show_default=False)
]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a comparison found, as far as an exit code can say it.

    Parameters
    ----------
    is_slower, is_changed, is_undecided : bool
        Whether anything is, as `FailOn` says.
    """

    is_slower: bool = False
    is_changed: bool = False
    is_undecided: bool = False

    def exit_code(self, fail_on: Collection[FailOn]) -> int:
        """Give 1 where something is slower, or what else was asked for is the case; else 0.

        Examples
        --------
        >>> faster = Answer(is_changed=True)
        >>> faster.exit_code([FailOn.SLOWER]), faster.exit_code([FailOn.CHANGED])
        (0, 1)
        >>> Answer(is_slower=True).exit_code([FailOn.UNDECIDED])
        1
        """
        is_failure = (
            self.is_slower
            or (FailOn.CHANGED in fail_on and self.is_changed)
            or (FailOn.UNDECIDED in fail_on and self.is_undecided)
        )
        return FAILED if is_failure else PASSED
