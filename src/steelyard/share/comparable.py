"""Cells of two machines that are the same: sizes that were chosen for a machine do not tell them apart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from steelyard.share.anonymous.placeholders import filled_text
from steelyard.study import installed

if TYPE_CHECKING:
    from collections.abc import Mapping

_CHOSEN: Final = re.compile(r"(\d+)_(\d+)")


def comparable_levels(study: str, levels: Mapping[str, str]) -> tuple[dict[str, str], int]:
    """Give the levels by which a cell is found in another result, and how often its operation is run.

    Parameters
    ----------
    study : str
        Name of the study.
    levels : mapping
        Level of each factor.

    Returns
    -------
    tuple of dict and int
        The levels, with the size alone as input where the number of operations was chosen for the machine;
        the number of operations then, else 1: times are compared by the operation.

    Examples
    --------
    >>> comparable_levels("stability", {"isolation": "bare", "input": "8192_6190"})
    ({'isolation': 'bare', 'input': '8192'}, 6190)
    """
    here = {name: filled_text(level) for name, level in levels.items()}  # of an anonymous package
    match = _CHOSEN.fullmatch(here.get("input", "")) if installed(study).is_input_calibrated else None
    if match is None or int(match[2]) == 0:
        return here, 1
    return {**here, "input": match[1]}, int(match[2])
