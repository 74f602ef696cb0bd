"""A plan: the frozen, seeded, ordered list of batches a study runs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import DataError
from steelyard.model.cell import Cell  # noqa: TC001 - pydantic reads the annotation at run time
from steelyard.model.document import FOLDER_HINT, read_document

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLAN_NAME: Final = "plan.json"
PLAN_SCHEMA: Final = "steelyard/plan/1"
LATER_FIELDS: Final = ("working_directory", "kept_error_bytes")
"""Fields of an execution that came after the schema; they count for the id where they are set."""
_LISTS: Final = ("batches", "cells")
"""Fields that are long."""

_TWIN_OPTION: Final = "a_a"
"""Where earlier plans name their twin cells, as in ``3,17``."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Runs of one cell that are run together: its workers in parallel, their iterations in order.

    Parameters
    ----------
    number : int
        Position in the random order, from 0.
    block : int
        Runs of one block share their disturbances; each block holds every cell once.
    cell : int
        Number of the cell.
    """

    number: int
    block: int
    cell: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What a study runs, in which order. Same content, same id.

    Parameters
    ----------
    study : str
        Name of the study.
    seed : int
        The one seed; every generator of the study derives from it.
    factors : dict
        Levels of each factor, in order.
    cells : tuple of Cell
        All cells, missing ones included.
    batches : tuple of Batch
        Execution order.
    blocks : int
        Number of blocks.
    options : dict
        Choices of the study that its analysis needs (tolerances, scales, mode); JSON values.
    twin : tuple of int or None
        Numbers of two cells with the same levels, the second one last: the A/A control.
    schema : str
        Schema name and version.
    id : str
        SHA-256 of the content, set by `freeze`.
    """

    study: str
    seed: int
    factors: dict[str, tuple[str, ...]]
    cells: tuple[Cell, ...]
    batches: tuple[Batch, ...]
    blocks: int
    options: dict[str, str | int | float | bool | None]
    twin: tuple[int, int] | None = None
    schema: str = PLAN_SCHEMA
    id: str = ""

    def freeze(self) -> Plan:
        """Give the plan with its id set from its content."""
        return replace(self, id=self.digest())

    def digest(self) -> str:
        """Give the hash of everything but the id, as hexadecimal text of 64 digits."""
        content: dict[str, Any] = {**self._small(), "id": ""}
        if self.twin is None or _TWIN_OPTION in self.options:
            del content["twin"]
        found, before = hashlib.sha256(), "{"
        for name in sorted([*content, *_LISTS]):
            found.update(f'{before}"{name}":'.encode())
            if name in _LISTS:
                found.update(b"[")
                for number, each in enumerate(self._entries(name)):
                    _drop_later_fields(each.get("execution") or {})
                    found.update(("," * bool(number) + _canonical(each)).encode())
                found.update(b"]")
            else:
                found.update(_canonical(content[name]).encode())
            before = ","
        found.update(b"}")
        return found.hexdigest()

    def cell_of(self, batch: Batch) -> Cell:
        """Give the cell that a batch runs."""
        return self.cells[batch.cell]

    def is_twin(self, cell: int) -> bool:
        """Whether a cell repeats another one for the A/A control alone."""
        return self.twin is not None and cell == self.twin[1]

    def write(self, path: Path) -> None:
        """Write the plan as JSON; the file is whole or absent."""
        temporary = path.with_suffix(".tmp")
        try:
            with temporary.open("w", encoding="utf-8") as file:
                file.writelines(self._written())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def _written(self) -> Iterator[str]:
        """Give the document piece by piece: a plan of 100 000 cells is 300 MB of small texts at once."""
        before = "{\n"
        for name, value in asdict(replace(self, cells=(), batches=())).items():
            yield f'{before} "{name}": '
            before = ",\n"
            if name not in _LISTS:
                yield _indented(value, 1)
                continue
            is_empty = True
            for each in self._entries(name):
                yield ("[\n  " if is_empty else ",\n  ") + _indented(each, 2)
                is_empty = False
            yield "[]" if is_empty else "\n ]"
        yield "\n}\n"

    def _small(self) -> dict[str, Any]:
        """Give all fields but the long lists."""
        content = asdict(replace(self, cells=(), batches=()))
        return {name: value for name, value in content.items() if name not in _LISTS}

    def _entries(self, name: str) -> Iterator[dict[str, Any]]:
        """Give the entries of a long list; batches without `asdict`, which takes 2 us for each number."""
        if name == "cells":
            return (asdict(cell) for cell in self.cells)
        return ({"number": batch.number, "block": batch.block, "cell": batch.cell} for batch in self.batches)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _indented(value: object, depth: int) -> str:
    """Write a value as it stands at a depth of an indented document; texts hold no line break."""
    return json.dumps(value, indent=1, ensure_ascii=False).replace("\n", "\n" + " " * depth)


def _drop_later_fields(execution: dict[str, object]) -> None:
    """Leave out what plans of earlier versions do not have: their ids stay as they are."""
    for name in LATER_FIELDS:
        if execution.get(name) is None:
            execution.pop(name, None)


def read_plan(path: Path) -> Plan:
    """Read a plan and check that it is whole.

    Raises
    ------
    DataError
        If the file is absent, of another schema, damaged, or does not match its own id.
    """
    damaged = "restore the file from a copy, or start a new study in another folder"
    plan = read_document(path, Plan, PLAN_SCHEMA, absent=FOLDER_HINT, damaged=damaged)
    if plan.id != plan.digest():
        message = f"`{path}` was changed after it was frozen: its content does not match its id"
        raise DataError(message, hint=damaged, code="data.hash")
    option = plan.options.get(_TWIN_OPTION)
    if not isinstance(option, str):
        return plan
    first, separator, second = option.partition(",")
    if not (separator and first.isdecimal() and second.isdecimal()):
        message = f"`{path}` is damaged: option `{_TWIN_OPTION}` is `{option}`, not two numbers of cells"
        raise DataError(message, hint=damaged, code="data.schema")
    return replace(plan, twin=(int(first), int(second)))
