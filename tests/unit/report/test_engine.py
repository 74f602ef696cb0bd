"""What draws figures in a page is made once, and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from steelyard.report.drawing import engine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    engine.engine_script.cache_clear()
    yield
    engine.engine_script.cache_clear()


def test_the_script_is_read_where_it_was_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(engine, "made_engine_script", lambda: "script")
    assert engine.engine_script() == "script"
    (kept,) = (tmp_path / "steelyard").iterdir()
    assert kept.read_text() == "script"
    monkeypatch.setattr(engine, "made_engine_script", lambda: pytest.fail("made again"))
    engine.engine_script.cache_clear()
    assert engine.engine_script() == "script"


def test_the_script_is_made_where_nothing_can_be_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "steelyard").write_text("a file in the way")
    monkeypatch.setattr(engine, "made_engine_script", lambda: "script")
    assert engine.engine_script() == "script"
