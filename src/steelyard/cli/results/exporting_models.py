"""``steelyard export simgrid`` and ``steelyard export model``: cost models for other programs."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - cyclopts reads annotations at run time
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from steelyard.cli.amounts import Whole  # noqa: TC001 - cyclopts reads it
from steelyard.errors import UsageError, unwritable
from steelyard.model.cost_model import CostModel
from steelyard.studies.communication.export import simgrid_pairs
from steelyard.studies.communication.export.cost_function import python_source, rust_source
from steelyard.studies.communication.export.recorded_models import recorded_model
from steelyard.studies.communication.export.simgrid import fidelity, to_simgrid
from steelyard.studies.communication.export.simgrid_files import (
    EVERY_VERSION,
    README,
    note_text,
    write_files,
    write_simgrid,
)
from steelyard.studies.communication.export.simgrid_noise import SOURCE, noise_source, to_noise
from steelyard.studies.communication.export.simgrid_pairs import pair_models, platform_files

if TYPE_CHECKING:
    from collections.abc import Callable

_FORMS: Final[dict[str, Callable[[CostModel], str]]] = {
    "json": CostModel.to_json,
    "python": python_source,
    "rust": rust_source,
}


def export_simgrid(  # noqa: PLR0913 - options of a verb
    result: Path,
    *,
    out: Path | None = None,
    profile: Literal["rtt", "os"] = "rtt",
    noise: Annotated[bool, Parameter(negative="")] = False,
    model: str = "",
    pairs: Annotated[bool, Parameter(negative="")] = False,
    seed: Whole = 1,
    simgrid: str = "3.32",
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Write a cost model as a platform of SimGrid.

    The folder contains `platform.xml`, `hosts`, `options.txt` and a README with the command that simulates an
    MPI program. SimGrid then answers half a round trip of any message within 0.1 % of the model.

    Parameters
    ----------
    result
        Result folder of a communication study or of imported messages, or the file of a cost model.
    out
        Folder to write; `simgrid` in the result folder by default.
    profile
        `rtt`: half round trips are exact, a send costs nothing. `os`: the measured duration of a send is
        charged to the sender too.
    noise
        Write `platform_noise.cpp` as well: a platform that draws the time of each message from what was
        measured.
    model
        Name of the model, where the folder contains several; with `--pairs` transports, separated by commas.
    pairs
        Write one platform of all pairs of nodes that were measured, `platform_pairs.cpp`: each has its own
        model, that of the first transport named by `--model` that it has. Its head says how to build it.
    seed
        Seed of the drawn noise.
    simgrid
        Version whose names of options are used; those of 3.32 are valid in later versions too.
    as_json
        Print files, largest distance to the model and remarks as JSON.

    Examples
    --------
    steelyard export simgrid results/communication --model tcp-fast --profile os
    """
    version = _version(simgrid)
    if pairs:
        if noise or profile != "rtt":
            message = "`--pairs` writes a platform without noise, in which a send costs its sender nothing"
            raise UsageError(message, hint="leave out `--noise` and `--profile`")
        _export_pairs(result, model, out or result / "simgrid", version, as_json=as_json)
        return
    name, cost = recorded_model(result, model)
    exported = to_simgrid(cost, profile)
    folder = out or (result.parent if result.is_file() else result) / "simgrid"
    drawn = {SOURCE: noise_source(exported, to_noise(cost, seed=_seed(seed)), version)} if noise else {}
    files = [*write_simgrid(folder, exported, version), *write_files(folder, drawn)]
    gap = fidelity(cost, exported)
    if as_json:
        content = {
            "model": name,
            "profile": profile,
            "files": [str(path) for path in files],
            "largest_distance_ratio": gap,
            "notes": [asdict(note) for note in exported.notes],
        }
        sys.stdout.write(json.dumps(content) + "\n")
        return
    count = len(exported.latency_factors)
    sys.stdout.write(
        f"{folder}: {name}, profile {profile}, {count} sections, within {gap:.3%} of the model\n"
    )
    sys.stdout.writelines(f"note: {note_text(note)}\n" for note in exported.notes)
    if noise:
        sys.stdout.write(f"noise: the head of {folder / SOURCE} says how to build and use it\n")
    sys.stdout.write(f"next: {folder / README} says how to simulate\n")


def _export_pairs(
    result: Path, transports: str, folder: Path, version: tuple[int, int], *, as_json: bool
) -> None:
    models = pair_models(result, tuple(filter(None, transports.split(","))))
    files = write_files(folder, platform_files(models, version))
    if as_json:
        content = {"models": {each.link: each.name for each in models}, "files": list(map(str, files))}
        sys.stdout.write(json.dumps(content) + "\n")
        return
    sys.stdout.writelines(f"{each.link}: {each.name}\n" for each in models)
    sys.stdout.write(f"next: the head of {folder / simgrid_pairs.SOURCE} says how to build and use it\n")


def export_model(
    result: Path,
    *,
    form: Annotated[Literal["json", "python", "rust"], Parameter(name="--format")],
    model: str = "",
    out: Path | None = None,
) -> None:
    """Write a cost model as JSON, or as a function in Python or Rust.

    Parameters
    ----------
    result
        Result folder of a communication study or of imported messages, or the file of a cost model.
    form
        `json`: all of it, as `docs/reference/cost-model.md` says. `python`: a module with
        `seconds(size_bytes)`. `rust`: a source file with `seconds(bytes)`. Neither needs anything else.
    model
        Name of the model, where the folder contains several.
    out
        File to write; standard output by default.

    Examples
    --------
    steelyard export model results/communication --format rust --out src/cost.rs
    """
    _, cost = recorded_model(result, model)
    text = _FORMS[form](cost)
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise unwritable(out, error, "give a file in a folder you may write to with --out") from error


def _version(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        shown = ".".join(map(str, EVERY_VERSION))
        message = f"`--simgrid {text}`: allowed: MAJOR.MINOR, {shown} or later"
        raise UsageError(message, hint="e.g. --simgrid 3.36")
    return int(major), int(minor)


def _seed(seed: int) -> int:
    if not 0 <= seed < 1 << 64:
        message = f"`--seed {seed}`: allowed: 0 to 2^64 - 1"
        raise UsageError(message, hint="e.g. --seed 1")
    return seed
