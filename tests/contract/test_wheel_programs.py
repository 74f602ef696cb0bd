"""What the build puts into the package is what the package looks for there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_program_that_is_looked_for_is_built() -> None:
    looked_for = re.findall(
        r'_installed\("_bin/([\w-]+)"\)', (ROOT / "src/steelyard/run/programs.py").read_text(encoding="utf-8")
    )
    tree = ast.parse((ROOT / "scripts/build_backend.py").read_text(encoding="utf-8"))
    (programs,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "PROGRAMS"
    )
    assert len(looked_for) > 5
    assert set(looked_for) == set(programs)
