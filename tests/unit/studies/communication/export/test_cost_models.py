from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings

from fixtures.cost_models import MODEL, cost_models, with_noise
from steelyard.model.cost_model import CostModel, read_cost_model

if TYPE_CHECKING:
    from pathlib import Path


@settings(max_examples=20, deadline=None)
@given(cost_models())
def test_drawn_models_say_durations_at_the_ends_of_their_pieces(model: CostModel) -> None:
    for name, pieces in model.curves.items():
        sizes = [size for piece in pieces for size in (piece.low + 1, piece.high or 1e9)]
        assert all(model.predict(size, curve=name) > 0 for size in sizes)


def test_the_json_document_is_read_back_as_the_same_model(tmp_path: Path) -> None:
    path = tmp_path / "tcp-fast.json"
    path.write_text(with_noise(MODEL).to_json(), encoding="utf-8")
    assert read_cost_model(path) == with_noise(MODEL)
