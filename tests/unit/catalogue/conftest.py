"""Results of real runs, from the packages that are kept."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parents[2] / "fixtures" / "packages"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with results of real runs: `compare`, `run-compare` and `run-stability`."""
    folder = tmp_path_factory.mktemp("kept")
    for name in ("compare", "run-compare", "run-stability"):
        with zipfile.ZipFile(PACKAGES / f"steelyard-0.1.0-{name}.zip") as package:
            package.extractall(folder / "packages" / name)
        shutil.move(folder / "packages" / name / "result", folder / "results" / name)
    return folder / "results"


@pytest.fixture
def results(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "results"))
