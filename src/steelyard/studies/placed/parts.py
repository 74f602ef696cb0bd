"""Parts of a plan: which batches one host runs, and where it hands back what it recorded.

``RESULT/placed/part-0001/part.json`` says what to run; ``part-plan.json`` beside it is an excerpt of the plan
where the part runs few of its cells. Each start of its process has a folder of its own,
``starts/HOST.TOKEN``, with journal, provenance and files: a part that is started again, or twice, never
writes where another process does.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError, unwritable
from steelyard.model.document import read_document, write_document
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.record.placed.journal import JOURNAL_NAME
from steelyard.record.provenance import PROVENANCE_NAME
from steelyard.study import installed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from steelyard.model import Batch, Plan

PLACED_NAME: Final = "placed"
PART_NAME: Final = "part.json"
EXCERPT_NAME: Final = "part-plan.json"
PART_SCHEMA: Final = "steelyard/part/1"
PARTS_PER_HOST: Final = 8
"""So many at least, where there are enough blocks: a host that is lost or slow holds little back."""

_FEW: Final = 10
"""A part with a tenth of the cells or less has a plan of its own: no plan is written many times over."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one host runs, alone and in this order.

    Parameters
    ----------
    plan_id : str
        Plan that the batches are of.
    batches : tuple of int
        Their numbers.
    technologies : tuple of str or None
        Of a part that measures nothing and says what its host is: the technologies that it tries.
    """

    plan_id: str
    batches: tuple[int, ...]
    technologies: tuple[str, ...] | None = None
    schema: str = PART_SCHEMA


def deal(batches: Iterable[Batch], width: int, parts_per_host: int = PARTS_PER_HOST) -> list[tuple[int, ...]]:
    """Split batches into parts; the batches of a block stay together, so that a host has all cells of it.

    Parameters
    ----------
    batches : iterable of Batch
        In the order of the plan.
    width : int
        Hosts that work at the same time.
    parts_per_host : int
        For each of them, as far as there are enough blocks.

    Examples
    --------
    >>> from steelyard.model import Batch
    >>> deal([Batch(0, 0, 0), Batch(1, 0, 1), Batch(2, 1, 0), Batch(3, 2, 1)], 1)
    [(0, 1), (2,), (3,)]
    """
    of_block: defaultdict[int, list[int]] = defaultdict(list)
    for batch in batches:
        of_block[batch.block].append(batch.number)
    blocks = list(of_block.values())
    count = min(len(blocks), parts_per_host * width)
    size, more = divmod(len(blocks), max(count, 1))
    parts, begin = [], 0
    for number in range(count):
        end = begin + size + (number < more)
        parts.append(tuple(each for block in blocks[begin:end] for each in block))
        begin = end
    return parts


def write_parts(result: Path, plan_id: str, parts: Sequence[tuple[int, ...]]) -> list[Path]:
    """Make the folder of each part, numbered on from those that are there; give the folders."""
    root = result / PLACED_NAME
    made = []
    for number, batches in enumerate(parts, len(list(root.glob("part-*"))) + 1):
        folder = root / f"part-{number:04d}"
        folder.mkdir(parents=True)
        hint = "give another folder with --out"
        write_document(folder / PART_NAME, Part(plan_id, batches), hint=hint)
        made.append(folder)
    return made


def write_excerpts(plan: Plan, parts: Mapping[Path, Sequence[Batch]]) -> None:
    """Write beside each part that runs few cells the plan of these alone.

    To read a plan of 100 000 cells takes its process some seconds and half a gigabyte.

    Parameters
    ----------
    plan : Plan
        Frozen plan.
    parts : mapping of Path to sequence of Batch
        Folder of each part, and what it runs.
    """
    for folder, batches in parts.items():
        if _FEW * len({batch.cell for batch in batches}) <= len(plan.cells):
            _write_excerpt(plan.excerpt(batches), folder / EXCERPT_NAME)


def _write_excerpt(plan: Plan, path: Path) -> None:
    try:
        plan.write(path)
    except OSError as error:
        raise unwritable(path, error, "free some space there, then continue with --resume") from error


def read_plan_of(folder: Path, part: Part) -> Plan:
    """Read the plan of a part: its own excerpt, or that of the whole study.

    A study that runs its parts itself may need all of it.

    Raises
    ------
    DataError
        If the plan is damaged, or is not that of the part.
    """
    if (folder / EXCERPT_NAME).exists():
        own = read_plan(folder / EXCERPT_NAME)
        if installed(own.study).part is None:
            return replace(own, id=part.plan_id)
    plan = read_plan(result_of(folder) / PLAN_NAME)
    require_same_plan(folder, part, plan)
    return plan


def require_same_plan(folder: Path, part: Part, plan: Plan) -> None:
    """Refuse a part that was dealt from another plan.

    Raises
    ------
    DataError
        If it was.
    """
    if plan.id != part.plan_id:
        message = f"`{folder}` belongs to another plan than the `{PLAN_NAME}` beside it"
        raise DataError(message, hint="do not mix files of two results", code="data.other-plan")


def write_description_parts(result: Path, count: int, technologies: Sequence[str]) -> list[Path]:
    """Make the folders of parts that say what their hosts are."""
    root = result.absolute() / PLACED_NAME
    before = len(list(root.glob("describe-*")))
    made = [root / f"describe-{number:04d}" for number in range(before + 1, before + count + 1)]
    for folder in made:
        folder.mkdir()
        part = Part("", (), tuple(technologies))
        write_document(folder / PART_NAME, part, hint="give another folder with --out")
    return made


def read_part(folder: Path) -> Part:
    """Read what a part runs.

    Raises
    ------
    DataError
        If the folder is none of a part, or is damaged.
    """
    hint = "give a folder of a part, `RESULT/placed/part-0001`"
    return read_document(folder / PART_NAME, Part, PART_SCHEMA, absent=hint, damaged=hint)


def starts_of(part: Path) -> Iterator[Path]:
    """Give the folder of each start of a part that recorded anything, in order of their names."""
    for journal in sorted(part.glob(f"starts/*/{JOURNAL_NAME}")):
        if (journal.parent / PROVENANCE_NAME).exists():
            yield journal.parent


def result_of(part: Path) -> Path:
    """Give the result folder of a part.

    Raises
    ------
    DataError
        If the folder does not lie in one.
    """
    folder = part.absolute()
    if folder.parent.name != PLACED_NAME:
        message = f"`{part}` is no part of a study"
        raise DataError(message, hint="give a folder of a part, `RESULT/placed/part-0001`", code="data.part")
    return folder.parent.parent
