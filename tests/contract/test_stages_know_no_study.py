"""No stage names a study: what a study needs of a stage, it says itself."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from steelyard.study import studies

PACKAGE = Path(__file__).parents[2] / "src" / "steelyard"
STAGES = ("model", "design", "run", "record", "analyse", "report", "share")
NAMES = sorted(studies())
COMMAND = re.compile(rf"\b(run |plan |deps-)({'|'.join(NAMES)})\b")


def named(path: Path) -> list[str]:
    """Give the texts of a module that are or command a study; docstrings explain with examples and may."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documents
    ]
    return [text for text in texts if text in NAMES or COMMAND.search(text)]


def test_a_name_is_found(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(
        '"""stability"""\nSTUDY = "stability"\nhint = "steelyard run scaling"\n', encoding="utf-8"
    )
    assert named(planted) == ["stability", "steelyard run scaling"]


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_names_no_study(stage: str) -> None:
    paths = sorted((PACKAGE / stage).rglob("*.py"))
    assert paths
    found = {str(path.relative_to(PACKAGE)): texts for path in paths if (texts := named(path))}
    assert not found
    assert not [path.name for path in paths if path.stem in NAMES]
