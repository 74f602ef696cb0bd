"""The command by which a launcher serves where it may not look everything up."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from steelyard.run.isolation.attempt import attempt
from steelyard.run.isolation.root_view import LAUNCHER

if TYPE_CHECKING:
    from pathlib import Path


def serve_command(launcher: Path) -> list[str]:
    """Give the command of a launcher in a container.

    A container shows no tracefs, so that what the kernel calls the beginning and the end of a program
    is looked up outside and handed in.

    Parameters
    ----------
    launcher : Path
        Host path of the launcher.
    """
    return [str(LAUNCHER), "serve", *_tracepoint_words(launcher)]


@cache
def _tracepoint_words(launcher: Path) -> list[str]:
    found = attempt([launcher, "tracepoints"])
    return ["--tracepoints", found.output.strip()] if found.succeeded else []
