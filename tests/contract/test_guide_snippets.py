"""What guides show of the examples stands in them, line for line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDES = sorted((ROOT / "docs" / "guides").glob("add-a*.md"))
SNIPPET = re.compile(r"^`(examples/[^`]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```\w+$", re.MULTILINE)
NAMED = re.compile(r"`((?:examples|src|tests)/[\w./-]+)`")
LONGEST = 100


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_a_guide_shows_the_files_as_they_are(guide: Path) -> None:
    text = guide.read_text(encoding="utf-8")
    shown = SNIPPET.findall(text)
    assert len(shown) == len(FENCE.findall(text)) >= 2
    for place, snippet in shown:
        assert snippet in (ROOT / place).read_text(encoding="utf-8"), place
    assert all((ROOT / named).exists() for named in NAMED.findall(text))
    assert text.count("\n") <= LONGEST


def test_each_kind_of_plug_in_has_an_example_and_a_guide() -> None:
    shown = {place.split("/")[1] for guide in GUIDES for place, _ in SNIPPET.findall(guide.read_text())}
    assert shown == {path.name for path in (ROOT / "examples").iterdir() if path.is_dir()}
