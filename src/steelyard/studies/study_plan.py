"""The plan of a result folder, for an analysis that understands one study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.errors import DataError
from steelyard.model.plan import read_plan
from steelyard.record.ledger import LEDGER_NAME
from steelyard.record.tables import RUNS_NAME, write_tables
from steelyard.studies.analysis_options import write_options

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.studies.analysis_options import AnalysisOptions


def plan_of_study(result: Path, study: str, otherwise: str | None = None) -> Plan:
    """Give the plan of a result folder, which must be one of this study; `otherwise` says what it then lacks.

    Raises
    ------
    DataError
        If the plan is absent, damaged or of another study.
    """
    plan = read_plan(result / "plan.json")
    if plan.study != study:
        lacking = otherwise if otherwise is not None else f"not of `{study}`"
        message = f"`{result}` contains a result of the study `{plan.study}`, {lacking}"
        raise DataError(message, code="data.study")
    return plan


def plan_to_analyse(result: Path, study: str, options: AnalysisOptions | None) -> Plan:
    """Give the plan of a result folder with everything in place for its analysis.

    The tables are written where there is a ledger alone, and settings are kept beside the result.

    Raises
    ------
    DataError
        If the plan or the ledger is absent, damaged or of another study.
    """
    plan = plan_of_study(result, study)
    if (result / LEDGER_NAME).exists() and not (result / RUNS_NAME).exists():
        write_tables(result)
    if options is not None:
        write_options(result, plan, options)
    return plan
