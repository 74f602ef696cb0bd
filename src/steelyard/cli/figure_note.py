"""What a report will lack, said before anything is measured for it."""

from __future__ import annotations

import sys


def note_missing_figures() -> None:
    """Say on standard error that this installation cannot draw figures, and what installs it."""
    from steelyard.report.output import missing_figures  # noqa: PLC0415 - start-up time

    lack = missing_figures()
    if lack is not None:
        sys.stderr.write(f"note: {lack}\n")
