"""Fixtures of the statistical tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from fixtures.simulated_result import Spec, Study, build

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


SHARE_OF_FEW: Final = 0.1


@pytest.fixture(
    params=[pytest.param(SHARE_OF_FEW, id="few"), pytest.param(1.0, id="all", marks=pytest.mark.slow)]
)
def simulated(request: pytest.FixtureRequest) -> Callable[[int], int]:
    """Give how many of so many studies are simulated: a tenth in `make test`, all in `make test-all`."""
    return lambda whole: round(request.param * whole)


@pytest.fixture
def make_result(tmp_path: Path) -> Callable[..., Path]:
    """Give the builder of result folders below the test's own folder."""

    def make(specs: Sequence[Spec], study: Study | None = None, name: str = "result") -> Path:
        return build(tmp_path / name, specs, study or Study())

    return make


@pytest.fixture
def shared_data() -> Path:
    """Give the folder of recorded data beside the repository."""
    return Path(__file__).resolve().parents[3] / "shared" / "data" / "stability"
