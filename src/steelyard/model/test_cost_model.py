from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import DataError, UsageError
from steelyard.model.cost_model import CostModel, CostPiece, read_cost_model

if TYPE_CHECKING:
    from pathlib import Path

MODEL = CostModel(
    transport="tcp",
    state="fast",
    curves={
        "delay": (
            CostPiece(-1, 100, "constant", 5e-6, 0.0),
            CostPiece(100, 65000, "power", 1e-6, 0.5, count=9),
            CostPiece(65000, None, "line", 3e-5, 1e-9),
        )
    },
    bandwidth_bytes_per_s=1e9,
    latency_s=5e-6,
)


def test_a_boundary_belongs_to_the_piece_below() -> None:
    assert MODEL.predict(100) == 5e-6
    assert MODEL.predict(101) == pytest.approx(1e-6 * 101**0.5)
    assert MODEL.predict(65000) == pytest.approx(1e-6 * 65000**0.5)
    assert MODEL.predict(65001) == pytest.approx(3e-5 + 65001e-9)


@pytest.mark.parametrize("size", [-1.0, float("nan"), float("inf")])
def test_what_is_no_size_is_refused(size: float) -> None:
    with pytest.raises(UsageError, match="no number of bytes"):
        MODEL.predict(size)


def test_an_unknown_curve_is_named_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"`recv`; it has: delay"):
        MODEL.predict(1, curve="recv")


def test_a_model_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(MODEL.to_json())
    assert read_cost_model(path) == MODEL


def test_pieces_with_a_gap_are_refused(tmp_path: Path) -> None:
    first, _, last = MODEL.curves["delay"]
    path = tmp_path / "model.json"
    path.write_text(replace(MODEL, curves={"delay": (first, last)}).to_json())
    with pytest.raises(DataError, match="curve `delay` do not follow"):
        read_cost_model(path)
