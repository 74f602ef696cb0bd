"""The page of sizes is what its recording says, and a recording goes on after what it has."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


@pytest.fixture
def sizes() -> Iterator[ModuleType]:
    """Give the bench, which stands beside the modules that it imports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benches"))
        import sizes  # noqa: PLC0415 - only found here

        yield sizes
    for name in ("sizes", "sizes_page"):
        del sys.modules[name]


def test_the_page_is_what_the_recording_says(sizes: ModuleType) -> None:
    recorded = sizes.sizes_page.read_recorded(ROOT / "benches" / "sizes.json")
    page = (ROOT / "docs" / "concepts" / "sizes.md").read_text(encoding="utf-8")
    assert page == sizes.sizes_page.page(recorded)
    for each in recorded["measured"]:
        each["wall_s"] += 1000
    assert page != sizes.sizes_page.page(recorded)


def test_a_recording_goes_on_after_what_it_has(
    sizes: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, ...]] = []

    def measure(arguments: list[str], folder: Path, limit_s: float) -> dict[str, Any] | None:
        if limit_s < 2:
            return None  # ended in the middle
        done.append((folder.name, *arguments))
        number = len(done)
        return {
            "wall_s": number,
            "cpu_s": number / 2,
            "peak_mib": 2000,
            "requests_s": [],
            "load": 0.5,
            "steal_percent": 0.1,
        }

    monkeypatch.setattr(sizes, "measure", measure)
    monkeypatch.setattr(sizes, "prepare", lambda *_: None)
    whole = {name: int(full) for name, full in sizes.FULL.items()}
    state = {**sizes.host(), "absent": []}
    chosen, path = ["cell", "cells"], tmp_path / "sizes.json"
    left = iter([9.0] * 9 + [1.0] * 9)
    assert not sizes.record(sizes.Recording(path, whole, state), chosen, tmp_path, lambda: next(left))
    assert 0 < len(done) < 5
    again = sizes.Recording(path, whole, state)
    assert sizes.record(again, chosen, tmp_path, lambda: 9.0)
    expected = [
        (size, *work.arguments)
        for size in chosen
        for _ in range(sizes.ROUNDS[size])
        for work in sizes.works(size)
    ]
    assert done == expected
    page = sizes.sizes_page.page(sizes.sizes_page.read_recorded(path))
    assert page == sizes.sizes_page.page(again.content)
    # Our medians of three rounds are those of the processes 1, 4 and 7.
    assert "\n| quantiles and histogram | steelyard | 4.0 | 2.0 | 2000 | 3 |\n" in page
    assert "import of 100 000 cells (steelyard, 2000 MiB)" in page
    other = sizes.Recording(path, {**whole, "rows": 7}, state)
    assert not other.content["measured"]


def test_a_process_that_takes_longer_than_what_is_left_is_ended(sizes: ModuleType, tmp_path: Path) -> None:
    assert sizes.measure(["-c", "import time; time.sleep(60)"], tmp_path, 0.3) is None
    found = sizes.measure(["-c", "print('requests_s 0.25 0.125')"], tmp_path, 30)
    assert found is not None
    assert found["requests_s"] == [0.25, 0.125]
