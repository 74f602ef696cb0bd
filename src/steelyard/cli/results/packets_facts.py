"""Options of ``steelyard import packets``: what the tables do not say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cyclopts import Parameter

from steelyard.cli.amounts import WholeOrNone  # noqa: TC001 - cyclopts reads it
from steelyard.errors import UsageError
from steelyard.studies.scaling.packet_files import STRATEGIES

if TYPE_CHECKING:
    from steelyard.record.importers.reading import ReadOptions

PACKETS: Final = "packets"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class PacketsFacts:
    """Facts that tables of the parallel packets experiments do not state.

    Parameters
    ----------
    cores
        For packets, cores of the measured machine; without them, findings that need them are left out.
    depth
        For packets, depth of the queues, where the files have no column `D`.
    strategy
        For packets, letter of the strategy, where a file of speed-ups has no column `S`.
    """

    cores: WholeOrNone = None
    depth: WholeOrNone = None
    strategy: str | None = None

    def added_to(self, form: str, options: ReadOptions) -> ReadOptions:
        """Give the options of a reader with these facts.

        Raises
        ------
        UsageError
            If they are not for this format, or out of range.
        """
        given = {"cores": self.cores, "depth": self.depth, "strategy": self.strategy}
        named = [name for name, value in given.items() if value is not None]
        if not named:
            return options
        if form != PACKETS:
            message = f"`--{named[0]}` is for the format `{PACKETS}`, not for `{form}`"
            raise UsageError(message, hint=f"steelyard import {form} FILE... --out DIR")
        for name in ("cores", "depth"):
            number = given[name]
            if isinstance(number, int) and number < 1:
                message = f"`--{name} {number}`: not a number of {name}; allowed: a whole number from 1"
                raise UsageError(message)
        if self.strategy is not None and self.strategy not in STRATEGIES:
            allowed = ", ".join(f"`{letter}` {name}" for letter, name in STRATEGIES.items())
            message = f"`--strategy {self.strategy}`: not the letter of a strategy; allowed: {allowed}"
            raise UsageError(message)
        columns = {"D": None if self.depth is None else str(self.depth), "S": self.strategy}
        levels = {name: value for name, value in columns.items() if value is not None}
        stated = {} if self.cores is None else {"core_count": self.cores}
        return replace(options, stated={**options.stated, **stated}, levels=levels)


NO_PACKETS_FACTS: Final = PacketsFacts()
