"""Which of the caller's variables a program does not get."""

from __future__ import annotations

import sys

from steelyard.run.environment import unpassable


def note_unpassable() -> None:
    """Say on standard error which variables cannot be passed on, in one line."""
    names = unpassable()
    if names:
        listed = ", ".join(f"`{name}`" for name in names)
        reason = "because they are not UTF-8 text with a name"
        sys.stderr.write(f"note: these variables are not passed on, {reason}: {listed}\n")
