from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.outcomes import make_plan
from steelyard.errors import DataError
from steelyard.model import Batch
from steelyard.model.plan import PLAN_NAME
from steelyard.studies.placed.parts import (
    EXCERPT_NAME,
    PARTS_PER_HOST,
    deal,
    read_part,
    read_plan_of,
    result_of,
    write_excerpts,
    write_parts,
)

if TYPE_CHECKING:
    from pathlib import Path


@given(blocks=st.lists(st.integers(1, 5), max_size=60), width=st.integers(1, 9))
def test_every_batch_is_dealt_once_and_blocks_stay_together(blocks: list[int], width: int) -> None:
    batches = [
        Batch(number, block, 0)
        for number, block in enumerate(block for block, size in enumerate(blocks) for _ in range(size))
    ]
    parts = deal(batches, width)
    assert [number for part in parts for number in part] == [batch.number for batch in batches]
    block_of = {batch.number: batch.block for batch in batches}
    owners = [{block_of[number] for number in part} for part in parts]
    assert sum(map(len, owners)) == len(blocks)
    assert len(parts) == min(len(blocks), PARTS_PER_HOST * width)


def test_parts_are_numbered_on(tmp_path: Path) -> None:
    first = write_parts(tmp_path, "p", [(0, 1), (2,)])
    second = write_parts(tmp_path, "p", [(1,)])
    assert [part.name for part in [*first, *second]] == ["part-0001", "part-0002", "part-0003"]
    assert read_part(second[0]).batches == (1,)
    assert result_of(second[0]) == tmp_path


def test_a_folder_that_is_no_part_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        read_part(tmp_path)
    with pytest.raises(DataError, match="is no part of a study"):
        result_of(tmp_path)


def test_a_part_with_few_cells_has_a_plan_of_these_alone(tmp_path: Path) -> None:
    plan = make_plan(cells=30, blocks=2)
    plan.write(tmp_path / PLAN_NAME)
    few = tuple(each for each in plan.batches if each.cell in {7, 21, 22})
    dealt = [few, plan.batches[:30]]
    folders = write_parts(tmp_path, plan.id, [tuple(each.number for each in part) for part in dealt])
    write_excerpts(plan, dict(zip(folders, dealt, strict=True)))
    assert [(folder / EXCERPT_NAME).exists() for folder in folders] == [True, False]
    assert read_plan_of(folders[1], read_part(folders[1])) == plan
    (tmp_path / PLAN_NAME).unlink()
    found = read_plan_of(folders[0], read_part(folders[0]))
    assert (found.id, found.seed, found.options, found.study) == (
        plan.id,
        plan.seed,
        plan.options,
        plan.study,
    )
    assert [each.number for each in found.cells] == [0, 1, 2]
    assert [(each.number, each.block) for each in found.batches] == [
        (each.number, each.block) for each in few
    ]
    for own, whole in zip(found.batches, few, strict=True):
        cell = plan.cell_of(whole)
        assert (found.cell_of(own).levels, found.cell_of(own).execution) == (cell.levels, cell.execution)


def test_an_excerpt_that_was_changed_is_refused(tmp_path: Path) -> None:
    plan = make_plan(cells=30)
    (folder,) = write_parts(tmp_path, plan.id, [(0,)])
    write_excerpts(plan, {folder: plan.batches[:1]})
    path = folder / EXCERPT_NAME
    path.write_text(path.read_text().replace('"w29"', '"w28"'))
    with pytest.raises(DataError, match="was changed after it was frozen"):
        read_plan_of(folder, read_part(folder))


def test_a_part_of_another_plan_is_refused(tmp_path: Path) -> None:
    make_plan(cells=3).write(tmp_path / PLAN_NAME)
    (folder,) = write_parts(tmp_path, make_plan().id, [(0,)])
    with pytest.raises(DataError, match="belongs to another plan"):
        read_plan_of(folder, read_part(folder))
