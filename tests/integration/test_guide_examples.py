"""The examples of docs/guides/fit.md are run as they stand."""

from __future__ import annotations

import doctest
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steelyard.cli import execute

if TYPE_CHECKING:
    import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "fit.md"


def test_python_examples_give_what_they_show() -> None:
    found = doctest.testfile(str(GUIDE), module_relative=False)
    assert found.attempted > 5
    assert found.failed == 0


def test_the_command_of_the_guide_prints_what_the_guide_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    commands = [line.strip() for line in text.splitlines() if line.startswith("    steelyard fit ")]
    assert commands
    rng = np.random.default_rng(3)
    size = np.round(10 ** rng.uniform(1, 7, 400))
    time = np.where(size < 65000, 5 + 1e-3 * size, 400 + 8e-3 * size) * rng.lognormal(0, 0.05, 400)
    rows = "".join(f"{x:g},{y:.6g}\n" for x, y in zip(size, time, strict=True))
    (tmp_path / "pingpong.csv").write_text("size,time\n" + rows)
    monkeypatch.chdir(tmp_path)
    for command in commands:
        assert execute(shlex.split(command)[1:]) == 0
        printed = capsys.readouterr().out
        for words in ("no other partition costs less", "Out-of-sample error by number of breaks", "Noise ("):
            assert words in printed
            assert words.removesuffix(" (") in text
