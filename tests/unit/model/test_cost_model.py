from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import AnalysisError, DataError, UsageError
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
    measured_bytes={"delay": (1, 65536)},
)


def test_sizes_outside_the_measured_ones_are_told() -> None:
    assert [MODEL.is_measured(size) for size in (0, 1, 65536, 65537)] == [False, True, True, False]
    assert MODEL.outside(1) == ""
    assert MODEL.outside(0) == "outside the measured sizes (1 B to 65 536 B)"
    one = replace(MODEL, measured_bytes={"delay": (8, 8)})
    assert one.outside(9) == "outside the only measured size (8 B)"


def test_a_time_that_is_none_is_refused_with_the_reason() -> None:
    model = replace(MODEL, curves={"delay": (CostPiece(-1, None, "line", -1e-6, 1e-9),)})
    assert model.predict(2000) == pytest.approx(1e-6)
    with pytest.raises(AnalysisError, match=r"`delay` of 0 bytes: .*-1e-06 s there, outside the meas"):
        model.predict(0)
    steep = replace(MODEL, curves={"delay": (CostPiece(-1, None, "power", 1e-6, 99.0),)})
    with pytest.raises(AnalysisError, match="inf s there"):
        steep.predict(1e18)


def test_a_model_of_the_first_version_does_not_know_what_was_measured(tmp_path: Path) -> None:
    content = json.loads(MODEL.to_json())
    del content["measured_bytes"]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(content | {"schema": "steelyard/cost-model/1"}))
    old = read_cost_model(path)
    assert old == replace(MODEL, measured_bytes={})
    assert old.is_measured(1) is None
    assert old.outside(1) == "the model does not say which sizes were measured"


@pytest.mark.parametrize("known", [{"delay": (2, 1)}, {"delay": (-1, 1)}, {"send": (1, 2)}])
def test_measured_sizes_that_are_no_range_are_refused(
    tmp_path: Path, known: dict[str, tuple[int, int]]
) -> None:
    path = tmp_path / "model.json"
    path.write_text(replace(MODEL, measured_bytes=known).to_json())
    with pytest.raises(DataError, match="`measured_bytes` of"):
        read_cost_model(path)


def test_a_boundary_belongs_to_the_piece_below() -> None:
    assert MODEL.predict(100) == 5e-6
    assert MODEL.predict(101) == pytest.approx(1e-6 * 101**0.5)
    assert MODEL.predict(65000) == pytest.approx(1e-6 * 65000**0.5)
    assert MODEL.predict(65001) == pytest.approx(3e-5 + 65001e-9)


@pytest.mark.parametrize("size", [-1.0, float("nan"), float("inf")])
def test_what_is_no_size_is_refused(size: float) -> None:
    with pytest.raises(UsageError, match="not a number of bytes"):
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
