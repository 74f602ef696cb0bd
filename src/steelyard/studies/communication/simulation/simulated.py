"""The closed loop: models in the real SimGrid, against the replication that was held out.

What SimGrid answered is kept in the result folder like a measurement, so that the findings can be computed
again where there is no SimGrid.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter, ValidationError

from steelyard.errors import AnalysisError, CapabilityError, DataError, unwritable
from steelyard.model.cost_model import read_cost_model
from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.record.seal import seal_tables
from steelyard.record.trace_folder import SIMULATIONS_NAME
from steelyard.studies.communication.cells import cell_records
from steelyard.studies.communication.findings.prediction import held_out_of, nominal_link, seen_of
from steelyard.studies.communication.recorded import read_recorded
from steelyard.studies.communication.simulation.validation import Validation, validate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.model.cost_model import CostModel
    from steelyard.studies.communication.cells import CellRecord
    from steelyard.studies.communication.recorded import RecordedRun

SCHEMA: Final = "steelyard/simulation/3"
ABSENT: Final = "absent.json"
NOTHING_HELD_OUT: Final = (
    "no replication with enough round trips is left to predict: a state of the host that one replication met "
    "has it for its model"
)
_VALIDATION: Final = TypeAdapter(Validation)


def follow(result: Path) -> bool:
    """Simulate the held-out replications where the plan asks for it; say whether it did."""
    if read_plan(result / "plan.json").options.get("validation") is not True:
        return False
    simulate_result(result)
    return True


def simulate_result(result: Path) -> None:
    """Let SimGrid simulate every held-out replication with its model, and keep what it answers.

    Where SimGrid is missing, or no replication is held out, that and the reason are kept instead.

    Raises
    ------
    AnalysisError
        If no replication is held out, so that there is nothing to simulate.
    DataError
        If the result is damaged or cannot be written.
    RunError
        If a simulation fails.
    """
    plan = read_plan(result / "plan.json")
    folder = result / SIMULATIONS_NAME
    try:
        folder.mkdir(exist_ok=True)
        for old in folder.glob("*.json"):
            old.unlink()
        for name, content in _contents(result, plan):
            (folder / name).write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise unwritable(folder, error, "check the rights of the folder") from error
    seal_tables(result)
    if why_not_simulated(result) == NOTHING_HELD_OUT:
        message = f"cannot compare SimGrid with measurements: {NOTHING_HELD_OUT}"
        hint = "measure more: `steelyard run communication --validate --replications 5`"
        raise AnalysisError(message, hint=hint, code="analysis.nothing-held-out")


def simulation_of(result: Path, file: str, run: RecordedRun, model: CostModel) -> Validation | None:
    """Give what SimGrid answered for a model and a held-out run; ``None`` if not asked about this model."""
    content = _read(result / SIMULATIONS_NAME / _name(file, run))
    if content.get("schema") != SCHEMA or content.get("model_sha256") != _digest(model):
        return None
    try:
        return _VALIDATION.validate_python(content["validation"])
    except (KeyError, ValidationError):
        return None


def why_not_simulated(result: Path) -> str:
    """Give why SimGrid was not asked although it was wanted; empty where it was, or was not wanted."""
    reason = _read(result / SIMULATIONS_NAME / ABSENT).get("reason")
    return reason if isinstance(reason, str) else ""


def _contents(result: Path, plan: Plan) -> Iterator[tuple[str, dict[str, Any]]]:
    is_empty = True
    for record, run, file, model in _held_out(result, plan):
        try:
            found = validate(
                model,
                held_out_of(record, run),
                seen=seen_of(record, run.state),
                nominal=nominal_link(run, plan),
                seed=plan.seed,
            )
        except CapabilityError as error:
            yield ABSENT, {"schema": SCHEMA, "reason": f"{error.message} (repair: {error.hint})"}
            return
        except (AnalysisError, DataError):
            continue  # too few round trips in this state: there is nothing to compare with
        content = {"schema": SCHEMA, "model_sha256": _digest(model), "validation": asdict(found)}
        yield _name(file, run), content
        is_empty = False
    if is_empty:
        yield ABSENT, {"schema": SCHEMA, "reason": NOTHING_HELD_OUT}


def _held_out(result: Path, plan: Plan) -> Iterator[tuple[CellRecord, RecordedRun, str, CostModel]]:
    cards = read_findings(result / "findings.json").of("model")
    for record in cell_records(read_recorded(result, plan)):
        for card in cards:
            state = card.subject["state"]
            if record.runs[0].levels.items() <= card.subject.items() and state in record.states:
                file = str(card.facts["model_file"])
                for run in record.held_out(state):
                    yield record, run, file, read_cost_model(result / file)


def _name(file: str, run: RecordedRun) -> str:
    stem = file.rpartition("/")[2].removesuffix(".json")
    return f"{stem}.{run.block + 1}.json"


def _digest(model: CostModel) -> str:
    return hashlib.sha256(model.to_json().encode()).hexdigest()


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
