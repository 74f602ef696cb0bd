from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from steelyard.cli.colocation import Colocation
from steelyard.errors import UsageError
from steelyard.studies.colocation.options import ColocationOptions
from steelyard.studies.request import requested_options
from steelyard.study import study

if TYPE_CHECKING:
    from pathlib import Path


def test_a_study_file_says_what_the_command_line_says(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        'study = "colocation"\npolicies = ["none", "idle"]\nloads = [85]\nlong_share = 0.02\n',
        encoding="utf-8",
    )
    said = Colocation(loads="85,95%", cpus="0-1,3", long_share="5%").given()
    options = requested_options(study("colocation"), path, said)
    assert isinstance(options, ColocationOptions)
    assert (options.policies, options.loads) == (("none", "idle"), (85, 95))
    assert (options.cpus, options.long_share, options.in_vm) == ((0, 1, 3), 0.05, False)


@pytest.mark.parametrize(
    "given", [Colocation(loads="high"), Colocation(cpus="a-b"), Colocation(long_share="x%")]
)
def test_what_is_no_number_is_refused(given: Colocation) -> None:
    with pytest.raises(UsageError, match="allowed"):
        given.given()
