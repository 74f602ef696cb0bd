"""Options of ``steelyard import`` for recordings of messages: what the files do not say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path  # noqa: TC003 - cyclopts reads annotations at run time
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from steelyard.errors import UsageError
from steelyard.studies.communication.importers.recording import allowed_operations, operation_of
from steelyard.studies.communication.transport.link_options import parse_nominal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.record.importers.reading import ReadOptions

MESSAGES: Final = "messages"
RECORDINGS: Final = (MESSAGES, "skampi", "mpi", "zoo", "plogp")
"""Formats whose files hold messages."""

_OF: Final[dict[str, tuple[str, ...]]] = {
    "operation": (MESSAGES, "skampi", "mpi", "zoo"),
    "probes": (MESSAGES,),
    "one-clock": (MESSAGES, "zoo"),
}
_Text = Annotated[str, Parameter(show_default=False)]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class MessagesFacts:
    """Facts about recorded messages that their files do not state.

    Parameters
    ----------
    transport
        For recordings of messages, the transport that carried them, which names the model; by default
        the format, or for SkaMPI what was measured.
    operation
        For recordings of messages, what each time measures, where no column says so: `pingpong` (a round
        trip, half of which is fitted), `stream` (one message), `send`, `isend` or `recv`.
    link
        For recordings of messages, the nominal network, as in `1Gbps,50us`: predictions are
        compared with it.
    probes
        For messages, file of clock probes (`send0,time1,recv0`), once for each recording. By default, the one
        beside it is used: `FILE.sync.csv` for `FILE.csv`.
    one_clock
        For messages and zoo, both ends read the same clock, so no probes are needed.
    """

    transport: _Text = ""
    operation: _Text = ""
    link: _Text = ""
    probes: Annotated[
        tuple[Path, ...], Parameter(negative="", consume_multiple=False, show_default=False)
    ] = ()
    one_clock: Annotated[bool, Parameter(negative="", show_default=False)] = False

    def added_to(self, form: str, files: Sequence[Path], options: ReadOptions) -> ReadOptions:
        """Give the options of a reader with these facts.

        Raises
        ------
        UsageError
            If they are not for this format, or out of range.
        """
        given = {
            "transport": self.transport,
            "operation": self.operation,
            "link": self.link,
            "probes": self.probes,
            "one-clock": self.one_clock,
        }
        for name in (name for name, value in given.items() if value):
            forms = _OF.get(name, RECORDINGS)
            if form not in forms:
                listed = ", ".join(f"`{each}`" for each in forms)
                message = f"`--{name}` is for {listed}, not for `{form}`"
                raise UsageError(message, hint=f"steelyard import {form} FILE... --out DIR")
        if self.operation and operation_of(self.operation) is None:
            message = f"`--operation {self.operation}`: allowed: {allowed_operations()}"
            raise UsageError(message, hint="e.g. --operation pingpong")
        if self.link:
            parse_nominal(self.link)
        if self.probes and len(self.probes) != len(files):
            message = f"{len(self.probes)} `--probes` for {len(files)} recordings; expected one for each"
            raise UsageError(message, hint="give --probes FILE once for each recording, in their order")
        return replace(
            options,
            operation=self.operation,
            transport=self.transport.strip(),
            is_one_clock=self.one_clock,
            probes=dict(zip(files, self.probes, strict=False)),
            stated={**options.stated, **({"nominal_link": self.link} if self.link else {})},
        )


NO_MESSAGES_FACTS: Final = MessagesFacts()
