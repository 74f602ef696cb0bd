from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from steelyard.errors import UsageError
from steelyard.studies.communication.options import CommunicationOptions, settle
from steelyard.studies.request import requested_options
from steelyard.study import study

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def section(pytestconfig: pytest.Config) -> str:
    page = (pytestconfig.rootpath / "docs/reference/study-file.md").read_text(encoding="utf-8")
    return page.partition("## Keys of the communication study")[2]


def test_every_key_stands_in_the_reference(section: str) -> None:
    shared = ("seed", "quick", "gate", "gate_retries", "tuning", "out", "limits")
    for name in CommunicationOptions.model_fields:
        assert f"| `{name}` |" in section or (name in shared and f"`{name}`" in section.partition("|")[0])


def test_the_documented_defaults_are_the_real_ones(section: str) -> None:
    quick, full = settle(CommunicationOptions(quick=True)), settle(CommunicationOptions())
    for name in ("operations", "smallest", "largest", "replications", "budget"):
        line = next(line for line in section.splitlines() if line.startswith(f"| `{name}` |"))
        assert f"| {getattr(full, name)} | {getattr(quick, name)} |" in line


def test_a_study_file_says_what_the_command_line_says(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        'study = "communication"\ntransport = ["tcp"]\nlink = ["rate=1gbit"]\noperations = 500\n'
        "mix = { pingpong = 2, stream = 1 }\n",
        encoding="utf-8",
    )
    options = requested_options(study("communication"), path, {"operations": 600})
    assert isinstance(options, CommunicationOptions)
    assert (options.transport, options.link, options.operations) == (("tcp",), ("rate=1gbit",), 600)
    assert settle(options).mix == {"pingpong": 2, "stream": 1}


@pytest.mark.parametrize("given", [{"replications": 1}, {"budget": 0.0}, {"largest": 1 << 40}])
def test_what_is_out_of_range_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=f"--{next(iter(given))}"):
        requested_options(study("communication"), None, given)
