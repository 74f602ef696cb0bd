"""Which of the caller's variables a program does not get."""

from __future__ import annotations

import sys

from steelyard.run.environment import unpassable


def note_unpassable() -> None:
    """Say on standard error which variables cannot be passed on, in one line."""
    names = unpassable()
    if names:
        listed = ", ".join(f"`{name}`" for name in names)
        sys.stderr.write(f"note: not passed on, being no UTF-8 text with a name: {listed}\n")
