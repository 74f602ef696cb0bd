"""``steelyard predict``: what a message of n bytes takes."""

from __future__ import annotations

import json
import sys
from bisect import bisect_left
from pathlib import Path  # noqa: TC003 - cyclopts reads annotations at run time
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
from cyclopts import Parameter

from steelyard.cli.amounts import parse_bytes
from steelyard.cli.streams import write_lines
from steelyard.model.cost_model import ROUND_TRIP
from steelyard.studies.communication.export.recorded_models import recorded_model
from steelyard.units import format_seconds

if TYPE_CHECKING:
    from steelyard.model.cost_model import CostModel

_LOW, _HIGH = 0.05, 0.95
BAND: Final = (
    "`9 of 10 messages` is how single messages scattered around the model (5th to 95th percentile); it is "
    "not a confidence interval of the median"
)


def predict(
    result: Path,
    *,
    size: str,
    curve: str = "delay",
    model: str = "",
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Predict how long messages of given sizes take.

    A model is valid in one state of the host, which is printed with it, and for sizes between the smallest
    and the largest that was measured; the output marks every other size.

    Parameters
    ----------
    result
        Result folder of a communication study or of imported messages, or the file of a cost model.
    size
        Bytes, several separated by commas; K, M, G are powers of 1024, as in `64KiB`.
    curve
        `delay` (half a round trip, or what a recording has instead), or another curve of the model: `send`,
        `isend`, `recv`, `one_way`.
    model
        Name of the model, where the folder contains several.
    as_json
        Print JSON.

    Examples
    --------
    steelyard predict results/communication --size 1,64KiB,1M --model tcp-fast
    """
    name, cost = recorded_model(result, model)
    sizes = [parse_bytes(word, "--size") for word in size.split(",")]
    rows = [_row(cost, each, curve) for each in sizes]
    if as_json:
        content = {
            "model": name,
            "state": cost.state,
            "curve": curve,
            "timed": cost.timed if curve == "delay" else None,
            "measured_bytes": cost.measured_bytes.get(curve),
            "band": BAND if any(row["p5_seconds"] is not None for row in rows) else None,
            "predictions": rows,
        }
        sys.stdout.write(json.dumps(content) + "\n")
        return
    about = f"{curve} ({cost.timed})" if curve == "delay" and cost.timed != ROUND_TRIP else curve
    write_lines([f"{name}: {about}, while the host is in the state `{cost.state}`", *map(_text, rows)])
    if any(row["p5_seconds"] is not None for row in rows):
        sys.stdout.write(f"{BAND[:1].upper()}{BAND[1:]}.\n")


def _row(model: CostModel, size: int, curve: str) -> dict[str, Any]:
    seconds = model.predict(size, curve=curve)
    row: dict[str, Any] = {
        "size_bytes": size,
        "seconds": seconds,
        "p5_seconds": None,
        "p95_seconds": None,
        "is_measured_size": model.is_measured(size, curve),
        "note": model.outside(size, curve) or None,
    }
    # How messages scatter is known of the sizes that were measured; a model that does not say which shows it.
    if curve == "delay" and model.noise and row["is_measured_size"] is not False:
        ends = [each.high for each in model.noise[:-1] if each.high is not None]
        ratios = model.noise[bisect_left(ends, size)].quantiles
        place = np.linspace(0, 1, len(ratios))
        low, high = np.interp([_LOW, _HIGH], place, ratios)
        row |= {"p5_seconds": seconds * float(low), "p95_seconds": seconds * float(high)}
    return row


def _text(row: dict[str, Any]) -> str:
    # In bytes: a switch lies between two sizes that no shorter unit tells apart.
    size = f"{row['size_bytes']:,} B".replace(",", " ")
    shown = f"{size:>12}  {format_seconds(row['seconds']):>10}"
    note = f"; {row['note']}" if row["note"] else ""
    if row["is_measured_size"] is False:
        return f"{shown}  (extrapolated{note})"
    if row["p5_seconds"] is None:
        return f"{shown}  (median; its spread is not part of the model{note})"
    low, high = format_seconds(row["p5_seconds"]), format_seconds(row["p95_seconds"])
    return f"{shown}  (median; 9 of 10 messages: {low} to {high}{note})"
