from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import DataError
from steelyard.model import Batch
from steelyard.studies.placed.parts import PARTS_PER_HOST, deal, read_part, result_of, write_parts

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
