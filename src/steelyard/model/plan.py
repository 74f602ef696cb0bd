"""A plan: the frozen, seeded, ordered list of batches a study runs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import DataError
from steelyard.model.cell import Cell, Execution
from steelyard.model.document import FOLDER_HINT, read_document, read_once
from steelyard.model.indented_json import by_name, indented, indented_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

PLAN_NAME: Final = "plan.json"
PLAN_SCHEMA: Final = "steelyard/plan/1"
LAYOUT_OPTION: Final = "layout"
RANDOM_LAYOUT: Final = "random"
"""Option of a plan that draws the layout of each run in memory."""
LATER_FIELDS: Final = ("working_directory", "kept_error_bytes")
"""Fields of an execution that came after the schema; they count for the id where they are set."""
_LISTS: Final = ("batches", "cells")
"""Fields that are long."""
_ENTRIES: Final = 64
"""Entries of a long field that are one text at a time."""

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


@dataclass(frozen=True, slots=True, weakref_slot=True)
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
                entries, between = getattr(self, name), "["
                for begin in range(0, len(entries), _ENTRIES):
                    found.update((between + _canonical(entries[begin : begin + _ENTRIES])[1:-1]).encode())
                    between = ","
                found.update(b"]" if entries else b"[]")
            else:
                found.update(_canonical(content[name]).encode())
            before = ","
        found.update(b"}")
        return found.hexdigest()

    def excerpt(self, batches: Iterable[Batch]) -> Plan:
        """Give a plan of some batches alone, for whoever runs them.

        Parameters
        ----------
        batches : iterable of Batch
            Of this plan, in its order. They keep their numbers and blocks; the cells that they run are
            numbered anew.
        """
        chosen = tuple(batches)
        numbers = {cell: number for number, cell in enumerate(sorted({batch.cell for batch in chosen}))}
        cells = tuple(replace(self.cells[cell], number=number) for cell, number in numbers.items())
        return replace(
            self,
            factors={
                name: tuple(dict.fromkeys(cell.levels[name] for cell in cells if name in cell.levels))
                for name in self.factors
            },
            cells=cells,
            batches=tuple(replace(batch, cell=numbers[batch.cell]) for batch in chosen),
            twin=None,
        ).freeze()

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
            if name in _LISTS:
                yield from indented_list(getattr(self, name), 1)
            else:
                yield indented(value, 1)
        yield "\n}\n"

    def _small(self) -> dict[str, Any]:
        """Give all fields but the long lists."""
        content = asdict(replace(self, cells=(), batches=()))
        return {name: value for name, value in content.items() if name not in _LISTS}


def _canonical(value: object) -> str:
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_without_later_fields
    )


def _without_later_fields(value: object) -> dict[str, object]:
    """Give the fields of a part but those that plans of earlier versions lack: their ids stay as they are."""
    content = by_name(value)
    if isinstance(value, Execution):
        content = {
            name: each for name, each in content.items() if each is not None or name not in LATER_FIELDS
        }
    return content


@read_once
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
