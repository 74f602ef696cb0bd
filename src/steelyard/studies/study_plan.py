"""The plan of a result folder, for an analysis that understands one study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.errors import DataError
from steelyard.model.plan import read_plan

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Plan


def plan_of_study(result: Path, study: str, otherwise: str | None = None) -> Plan:
    """Give the plan of a result folder, which must be one of this study.

    Parameters
    ----------
    result : Path
        Result folder.
    study : str
        Name of the study.
    otherwise : str or None
        What the folder then does not hold, in words; ``None`` names the study.

    Raises
    ------
    DataError
        If the plan is absent, damaged or of another study.
    """
    plan = read_plan(result / "plan.json")
    if plan.study != study:
        lacking = otherwise if otherwise is not None else f"not of `{study}`"
        message = f"`{result}` holds a result of the study `{plan.study}`, {lacking}"
        raise DataError(message, code="data.study")
    return plan
