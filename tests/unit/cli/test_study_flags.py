from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from steelyard.cli import execute
from steelyard.cli.study_flags import given
from steelyard.cli.verb_app import study_app
from steelyard.errors import UsageError
from steelyard.studies.request import requested_options
from steelyard.study import studies, study

if TYPE_CHECKING:
    from pathlib import Path


def said(name: str, line: str) -> dict[str, object]:
    """Give what a command line says of a study, by key of the study file."""
    chosen = study(name)
    words = [name, *line.split()]
    _, bound, _ = study_app("plan", chosen).parse_args(words, exit_on_error=False, print_error=False)
    return {
        key: value for key, value in given(chosen, bound.arguments.get("own")).items() if value is not None
    }


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("colocation", "--loads 85,95%", {"loads": (85, 95)}),
        ("colocation", "--loads 85 --loads 95", {"loads": (85, 95)}),
        ("colocation", "--cpus 0-1,3", {"cpus": (0, 1, 3)}),
        ("colocation", "--long-share 5%", {"long_share": 0.05}),
        ("colocation", "--seeds 3 --in-vm", {"repetitions": 3, "in_vm": True}),
        ("communication", "--transport tcp,unix --transport pipe", {"transport": ("tcp", "unix", "pipe")}),
        (
            "communication",
            "--link rate=1gbit,delay=50us --link 10Gbps,50us",
            {"link": ("rate=1gbit,delay=50us", "10Gbps,50us")},
        ),
        ("communication", "--validate --budget 2.5", {"validation": True, "budget": 2.5}),
        ("replication", "--experiments e1,causes", {"experiments": ("e1", "causes")}),
        ("replication", "--devices lab.toml", {"devices": "lab.toml"}),
        ("scaling", "--command ./a", {"command": "./a"}),
        ("stability", "", {}),
    ],
)
def test_words_become_values_of_the_study_file(name: str, line: str, expected: dict[str, Any]) -> None:
    assert said(name, line) == expected


def test_the_command_line_goes_before_the_study_file(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        'study = "colocation"\npolicies = ["none", "idle"]\nloads = [85]\nlong_share = 0.02\n',
        encoding="utf-8",
    )
    line = said("colocation", "--loads 85,95% --long-share 5%")
    options: Any = requested_options(study("colocation"), path, line)
    assert (options.policies, options.loads, options.long_share) == (("none", "idle"), (85, 95), 0.05)


@pytest.mark.parametrize("line", ["--loads high", "--cpus a-b", "--long-share x%", "--loads 85,,x"])
def test_what_is_no_number_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match="allowed"):
        said("colocation", line)


def test_every_option_explains_itself_and_has_one_name() -> None:
    for name, chosen in studies().items():
        app = study_app("run", chosen)
        arguments = app.assemble_argument_collection(parse_docstring=True)
        names = [each for argument in arguments for each in argument.names]
        assert len(set(names)) == len(names), name
        assert all(argument.parameter.help for argument in arguments if argument.parse), name


def test_an_option_of_another_study_names_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["run", "stability", "--seeds=3"]) == 2
    said = capsys.readouterr().err
    assert "`--seeds` is not an option of the study `stability`; it belongs to `colocation`" in said
