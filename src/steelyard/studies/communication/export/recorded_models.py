"""The cost models that a result folder holds, by name."""

from __future__ import annotations

import shlex
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError, UsageError
from steelyard.model.cost_model import read_cost_model

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model.cost_model import CostModel

FOLDER: Final = "models"
"""Folder of a result: ``models/NAME.json``, NAME made of transport and state of the host."""


def recorded_model(place: Path, name: str = "") -> tuple[str, CostModel]:
    """Read a cost model.

    Parameters
    ----------
    place : Path
        Result folder, or the file of a model.
    name : str
        Which one, where the folder holds several; a file has that of its own name.

    Returns
    -------
    tuple of str and CostModel
        Its name, and the model.

    Raises
    ------
    UsageError
        If several are there and none is named, or none has the name.
    DataError
        If there is none, or it cannot be used.
    """
    if place.is_file():
        cost = read_cost_model(place)
        if name and name != place.stem:
            message = f"`--model {name}`: `{place}` is the file of one model; it contains: `{place.stem}`"
            raise UsageError(message, hint="leave out `--model`, or give the result folder")
        return place.stem, cost
    found = {path.stem: path for path in sorted((place / FOLDER).glob("*.json"))}
    if not found:
        missing = "does not exist" if not place.exists() else f"contains no cost model (`{FOLDER}/NAME.json`)"
        message = f"`{place}` {missing}"
        hint = "measure one: `steelyard run communication --out DIR`"
        if (place / "plan.json").exists():
            hint = f"steelyard analyse {shlex.quote(str(place))}"
        raise DataError(message, hint=hint, code="data.absent")
    listed = ", ".join(f"`{each}`" for each in found)
    if name and name not in found:
        near = get_close_matches(name, found, n=1)
        message = f"`--model {name}`: `{place}` contains no such model; it contains: {listed}"
        raise UsageError(message, hint=f"did you mean `--model {near[0]}`?" if near else None)
    if not name and len(found) > 1:
        message = f"`{place}` contains several cost models: {listed}"
        raise UsageError(message, hint=f"choose one: `--model {next(iter(found))}`")
    chosen = name or next(iter(found))
    return chosen, read_cost_model(found[chosen])
