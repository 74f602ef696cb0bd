"""Commands of the synthetic load beside measured programs."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from steelyard.run.programs import work_path

if TYPE_CHECKING:
    from steelyard.model.cell import NeighbourKind

_DEFAULT_NEIGHBOUR_S: Final = 3600


def neighbour_command(kind: NeighbourKind, longest_s: int = _DEFAULT_NEIGHBOUR_S) -> tuple[str, ...]:
    """Give the command of one synthetic neighbour on the host: stress-ng, else our own.

    The command ends by itself after `longest_s`, and on SIGTERM.

    Parameters
    ----------
    kind : NeighbourKind
        What it loads.
    longest_s : int
        Upper bound on its life [s], at least 1.

    Returns
    -------
    tuple of str
        Program, an absolute path, and arguments; one busy process.
    """
    stress_ng = shutil.which("stress-ng")
    if stress_ng is None:
        return (str(work_path()), *native_neighbour_command(kind, longest_s)[1:])
    return (stress_ng, f"--{kind.value}", "1", "--timeout", f"{longest_s}s", "--quiet")


def native_neighbour_command(kind: NeighbourKind, longest_s: int = _DEFAULT_NEIGHBOUR_S) -> tuple[str, ...]:
    """Give the command of one synthetic neighbour that runs inside any isolation.

    Returns
    -------
    tuple of str
        ``{work}`` and arguments.
    """
    return ("{work}", "stress", kind.value, "--seconds", str(longest_s))
