"""Texts that a plan keeps for the report: what interventions change, lessons and notes on licences."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from steelyard.errors import DataError

if TYPE_CHECKING:
    from steelyard.model import Plan


def sentences_of(plan: Plan) -> dict[str, str]:
    """Give what each intervention changes, by its name."""
    described = _document(plan, "interventions", [])
    return {str(each["name"]): str(each["sentence"]) for each in described}


def remarks_of(plan: Plan, kind: str) -> tuple[str, ...]:
    """Give the ``lessons`` or the ``licences`` that the study file states, as they stand there."""
    return tuple(str(each) for each in _document(plan, "request", {}).get(kind) or ())


def _document(plan: Plan, option: str, otherwise: Any) -> Any:
    text = plan.options.get(option)
    if not text:
        return otherwise
    try:
        return json.loads(str(text))
    except ValueError as error:
        message = f"option `{option}` of the plan is not JSON: {error}"
        raise DataError(message, hint="the plan is damaged; repeat the study", code="data.plan") from error
