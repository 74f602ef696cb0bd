"""The file of hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.errors import StudyFileError, UsageError
from steelyard.run.hosts import fleet_file
from steelyard.run.hosts.fleet_file import Fleet, FleetHost, read_fleet
from steelyard.run.hosts.placement import continued_placement, read_placement

PAGE = Path(__file__).parents[4] / "docs" / "guides" / "cluster.md"


def _read(folder: Path, text: str) -> Fleet:
    path = folder / "hosts.toml"
    path.write_text(text, encoding="utf-8")
    return read_fleet(path)


def test_a_host_needs_only_a_target(tmp_path: Path) -> None:
    assert _read(tmp_path, "[hosts.node-1]\ntarget = 'me@node-1.example'\n") == Fleet(
        (FleetHost("node-1", "me@node-1.example"),)
    )


def test_everything_can_be_said(tmp_path: Path) -> None:
    text = """
look_s = 30
lost_after_s = 900
[hosts.a]
target = "a"
port = 2222
ssh_options = ["-J", "gate", "-o", "HostKeyAlias=a"]
python = "~/venv/bin/python"
folder = "/scratch/me"
labels = ["epyc"]
cpus = [3, 2]
"""
    host = FleetHost(
        *("a", "a", 2222, ("-J", "gate", "-o", "HostKeyAlias=a")),
        *(("~/venv/bin/python", "-m", "steelyard"), "/scratch/me", ("epyc",), (2, 3)),
    )
    assert _read(tmp_path, text) == Fleet((host,), 30, 900)


def test_the_example_of_the_guide_is_read_and_names_every_key(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    example = page.partition("```toml\n")[2].partition("```")[0]
    assert len(_read(tmp_path, example).hosts) >= 2
    for key in (*fleet_file._OF_FLEET, *fleet_file._OF_HOST):
        assert f"`{key}`" in page


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ["`hosts` must contain at least one table `[hosts.NAME]`"]),
        ("[host.a]\n", ["line 1: `host` is unknown; did you mean `hosts`?"]),
        ("[hosts.a]\n", ["line 1: `hosts.a` lacks `target`"]),
        ("[hosts.-a]\ntarget='a'\n", ["line 1: `hosts.-a` is not a name: a letter"]),
        ("[hosts]\na = 3\n", ["line 2: `hosts.a` must be a table"]),
        ("[hosts.a]\ntarget='-oProxyCommand=x'\n", ["line 2: `hosts.a.target`", "expected `[USER@]HOST`"]),
        ("[hosts.a]\ntarget='a'\nprot=22\n", ["line 3: `hosts.a.prot` is unknown; did you mean `port`?"]),
        ("[hosts.a]\ntarget='a'\nport=0\n", ["line 3:", "a whole number from 1 to 65535"]),
        ("[hosts.a]\ntarget='a'\nfolder='x'\n", ["line 3:", "a path that begins with / or ~/"]),
        ("[hosts.a]\ntarget='a'\nfolder=\"/a\\nb\"\n", ["line 3:", "a path that begins"]),
        ("[hosts.a]\ntarget='a'\nlabels='x'\n", ["line 3:", "a list of words"]),
        ("[hosts.a]\ntarget='a'\nsteelyard=[]\n", ["line 3:", "a program or a list of words"]),
        ("[hosts.a]\ntarget='a'\npython='/p'\nsteelyard='s'\n", ["line 3:", "give one"]),
        ("[hosts.a]\ntarget='a'\nssh_options=['-A']\n", ["line 3:", "has `-A`; expected"]),
        ("[hosts.a]\ntarget='a'\nssh_options=['-oForwardAgent=yes']\n", ["has `-oForwardAgent=yes`"]),
        ("[hosts.a]\ntarget='a'\nssh_options=['-i']\n", ["has `-i`; expected"]),
        (
            "[hosts.a]\ntarget='a'\nssh_options=['-o','StrictHostKeyChecking no']\n",
            ["line 3:", "`-o StrictHostKeyChecking no`, which Steelyard sets itself"],
        ),
        ("[hosts.a]\ntarget='a'\nssh_options=['-o','Port=3']\n", ["; write `port = N`"]),
        ("look_s = 0\n[hosts.a]\ntarget='a'\n", ["line 1: `look_s`", "from 1 to 3600"]),
        ("look_s = 60\nlost_after_s = 100\n[hosts.a]\ntarget='a'\n", ["line 2:", "at least twice as long"]),
        ("[hosts.a]\nport=0\n[hosts.b]\n", ["has 3 problems:", "line 1:", "line 2:", "line 3:"]),
        ("[hosts.a", ["cannot read the host file", "Expected ']'"]),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_what_is_allowed(
    tmp_path: Path, text: str, said: list[str]
) -> None:
    with pytest.raises(StudyFileError) as caught:
        _read(tmp_path, text)
    for words in said:
        assert words in caught.value.message
    assert caught.value.hint == "the format is in docs/guides/cluster.md"
    assert caught.value.code == "study-file.hosts"


def test_hosts_are_chosen_by_their_labels(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text("[hosts.a]\ntarget='a'\nlabels=['x','y']\n[hosts.b]\ntarget='b'\nlabels=['x']\n")
    assert callable(read_placement(f"ssh:{path} --label=x --label=y"))
    with pytest.raises(UsageError, match="no host of the file has these labels") as caught:
        read_placement(f"ssh:{path} --label=x --label=z")
    assert caught.value.hint == "labels: x, y"
    with pytest.raises(UsageError, match="it cannot be read"):
        read_placement(f"ssh:{path} --partition=x")
    with pytest.raises(UsageError, match="it cannot be read"):
        read_placement("ssh")


def test_a_study_goes_on_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my hosts.toml").write_text("[hosts.a]\ntarget='a'\nlabels=['x']\n")
    monkeypatch.chdir(tmp_path)
    begun = continued_placement("ssh:'my hosts.toml' --label=x", tmp_path, resume=False)
    assert begun is not None
    begun(tmp_path)
    monkeypatch.chdir("/")
    assert continued_placement(None, tmp_path, resume=True) is not None
