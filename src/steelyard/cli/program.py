"""Options of the command line that name a program of the user's."""

from __future__ import annotations

from dataclasses import dataclass

from cyclopts import Parameter

from steelyard.cli.verb_app import options_of


@Parameter(name="*", group=options_of("scaling"))
@dataclass(frozen=True, slots=True)
class Program:
    """A program of the user's.

    Parameters
    ----------
    command
        A program of yours with `{workers}` where its number of workers belongs; without it,
        the packets program that comes with Steelyard.
    baseline
        With `--command`, the serial program that speed-up is relative to; by default the command
        with one worker.
    """

    command: str | None = None
    baseline: str | None = None


OWN_PROGRAM = Program()
