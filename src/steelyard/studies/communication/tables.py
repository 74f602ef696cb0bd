"""The findings of the communication study as CSV files, one per kind of claim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.studies.finding_tables import FOLDER, write_claim_tables

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import FindingSet

ALWAYS: Final = {
    "model": "models",
    "coefficient": "coefficients",
    "boundary": "boundaries",
    "noise": "noise",
    "clock": "clocks",
    "prediction": "prediction_errors",
    "prediction_by_size": "prediction_errors_by_size",
}
IF_FOUND: Final = {
    "call": "calls",
    "carry_over": "carry_over",
    "carry_over_class": "carry_over_by_previous_size",
    "crossed_prediction": "crossed_predictions",
    "host_state": "host_states",
    "outliers": "outliers",
    "threshold": "thresholds",
    "ended_early": "ended_early",
    "absent": "absent_transports",
    "replications": "replications",
    "noise_distance": "noise_distances",
    "fidelity": "fidelity",
    "link": "links",
    "mixed_run": "mixed_runs",
    "disturbed": "disturbed",
}


def write_tables(result: Path, findings: FindingSet) -> None:
    """Write the tables, and remove those of an earlier analysis; the same findings give the same bytes."""
    found = {claim: name for claim, name in IF_FOUND.items() if findings.of(claim)}
    for name in set(IF_FOUND.values()) - set(found.values()):
        (result / FOLDER / f"{name}.csv").unlink(missing_ok=True)
    write_claim_tables(result, findings, {**ALWAYS, **found})
