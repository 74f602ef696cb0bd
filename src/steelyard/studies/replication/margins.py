"""What counts as no relevant difference, by experiment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, get_args

from steelyard.analyse.comparison.equivalence import Margin
from steelyard.studies.analysis_options import LEVEL, chosen_options, read_options
from steelyard.studies.replication.options import ExperimentName

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from steelyard.model import Plan


def planned_margins(plan: Plan) -> Mapping[str, Margin]:
    """Give the margin of each experiment as the plan fixed it before the data."""
    percent = json.loads(str(plan.options.get("margins") or "{}"))
    usual = chosen_options(plan).margin_percent
    return {name: Margin(percent.get(name, usual) / 100, LEVEL) for name in get_args(ExperimentName)}


def margins_of(result: Path, plan: Plan) -> Mapping[str, Margin]:
    """Give the plan's margins, or the one for all experiments that the reader of a result states instead."""
    stated = read_options(result, plan).margin_percent
    if stated == chosen_options(plan).margin_percent:
        return planned_margins(plan)
    return dict.fromkeys(get_args(ExperimentName), Margin(stated / 100, LEVEL))
