"""Parts on hosts that a program called ``ssh`` plays on this machine."""

from __future__ import annotations

import json
import os
import re
import time
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

from fixtures.outcomes import make_plan
from steelyard.errors import CapabilityError
from steelyard.run.hosts.fleet_file import Fleet, FleetHost
from steelyard.run.hosts.ssh_engine import SshEngine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SSH = """#!/bin/sh
for word; do target=$line; line=$word; done
if [ -e "$FOLDER/off.$target" ]; then said="ssh: connect to host $target port 22: No route to host"; fi
if [ -e "$FOLDER/denied.$target" ]; then said="$target: Permission denied (publickey)."; fi
if [ -e "$FOLDER/slow.$target" ]; then sleep 0.6; fi
[ -z "$said" ] && exec sh -c "$line"
echo "$said" >&2
exit 255
"""
STEELYARD = """#!/bin/sh
[ "$1" = --version ] && echo steelyard $VERSION && exit
[ -e "$FOLDER/silent" ] && exit 5
[ -e "$FOLDER/broken" ] && { echo "error: no disk"; exit 5; }
start=$2/starts/n.00
if [ -e "$FOLDER/unfit" ]; then
  mkdir -p "$start"; echo {} > "$start/provenance.json"; : > "$start/journal.jsonl"
  echo "error: no disk"; exit 5
fi
mkdir -p "$start"
echo {} > "$start/provenance.json"
echo begun > "$start/journal.jsonl"
trap 'echo told >> "$start/journal.jsonl"' TERM
left=1000
while [ ! -e "$FOLDER/stop" ] && [ $left -gt 0 ]; do left=$((left - 1)); sleep 0.05; done
echo ended >> "$start/journal.jsonl"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the folder of the parts of a result."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in (("ssh", SSH), ("steelyard", STEELYARD)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("FOLDER", str(tmp_path))
    monkeypatch.setenv("VERSION", version("steelyard"))
    monkeypatch.setattr("steelyard.run.hosts.ssh_engine.CANCEL_LOOK_S", 0.1)
    monkeypatch.setattr("steelyard.run.hosts.ssh_engine.END_S", 1.0)
    result = tmp_path / "result" / "placed"
    result.mkdir(parents=True)
    make_plan().write(result.parent / "plan.json")
    return result


def engine(folder: Path, *names: str, by: str = "") -> SshEngine:
    there = folder.parents[1] / "there"
    hosts = tuple(FleetHost(name, f"{by}{name}", folder=str(there / name)) for name in names)
    return SshEngine(Fleet(hosts, look_s=0.2, lost_after_s=1.0), folder)


def parts(folder: Path, *numbers: int) -> list[Path]:
    made = [folder / f"part-{number:04d}" for number in numbers]
    for part in made:
        part.mkdir()
        (part / "part.json").write_text("{}")
    return made


def cut(made: SshEngine, name: str) -> None:
    """End the connection to a host."""
    session = made._hosts[name].session
    assert session is not None
    assert session._process is not None
    session._process.kill()


def wait_for(is_so: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def given(folder: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((folder / "ssh.json").read_text())["parts"]
    return found


def test_a_host_gets_one_part_at_a_time_and_is_left_empty(folder: Path) -> None:
    made = engine(folder, "a", "b")
    assert made.width == 2
    made.place(parts(folder, 1, 2, 3))
    wait_for(lambda: len(list(folder.glob("*/starts/*/journal.jsonl"))) == 2)
    assert made.pending().parts == {"part-0001", "part-0002", "part-0003"}
    assert set(given(folder)) == {"part-0001", "part-0002"}
    (folder.parents[1] / "stop").touch()
    wait_for(lambda: not made.pending().parts)
    assert [path.read_text() for path in folder.glob("*/starts/*/journal.jsonl")] == ["begun\nended\n"] * 3
    wait_for(lambda: not list((folder.parents[1] / "there").glob("*/*")))
    time.sleep(1.2)
    assert made.width == 2, "hosts that have nothing to do are not away"


@pytest.mark.parametrize(("is_away", "of_each"), [(False, [1, 1]), (True, [2, 0])])
def test_a_quick_host_leaves_a_slow_one_its_part(folder: Path, *, is_away: bool, of_each: list[int]) -> None:
    made = engine(folder, "a", "b")
    assert made.width == 2
    wait_for(lambda: all(each.thread is None for each in made._hosts.values()))
    (folder.parents[1] / "stop").touch()
    (folder.parents[1] / ("off.b" if is_away else "slow.b")).touch()
    made.place(parts(folder, 1, 2))
    wait_for(lambda: not made.pending().parts)
    assert [each.taken for each in made._hosts.values()] == of_each


def test_a_later_process_finds_what_runs_and_ends_it_once(folder: Path) -> None:
    first = engine(folder, "a")
    assert first.width == 1
    first.place(parts(folder, 1))
    wait_for(lambda: list(folder.glob("*/starts/*/journal.jsonl")))
    (folder.parents[1] / "off.a").touch()  # the first one cannot get in any more, as if it were gone
    cut(first, "a")
    wait_for(lambda: first.pending().reasons)
    later = engine(folder, "a", by="another-way-to-")
    assert later.pending().parts == {"part-0001"}
    later.cancel()
    wait_for(lambda: "told" in next(folder.glob("*/starts/*/journal.jsonl")).read_text())
    time.sleep(0.5)
    (folder.parents[1] / "stop").touch()
    wait_for(lambda: not later.pending().parts)
    said = next(folder.glob("*/starts/*/journal.jsonl")).read_text()
    assert said.count("told") == 1
    assert given(folder) == {}


@pytest.mark.parametrize("reason", ["off", "denied"])
def test_a_host_that_is_given_up_is_read_when_it_is_back(folder: Path, reason: str) -> None:
    made = engine(folder, "a", "b")
    assert made.width == 2
    made.place(parts(folder, 1))
    wait_for(lambda: list(folder.glob("*/starts/*/journal.jsonl")))
    (name,) = given(folder).values()
    (folder.parents[1] / f"{reason}.{name}").touch()
    cut(made, name)
    wait_for(lambda: made.pending().lost == {"part-0001"})
    assert made.pending().parts == set()
    wait_for(lambda: re.search(f"host `{name}` is given up", " ".join(made.pending().reasons)))
    assert made.width == 1
    made.place(parts(folder, 2))
    wait_for(lambda: list(folder.glob("part-0002/starts/*/journal.jsonl")))
    assert given(folder)["part-0002"] != name
    (folder.parents[1] / f"{reason}.{name}").unlink()
    journal = next(folder.glob("part-0001/starts/*/journal.jsonl"))
    wait_for(lambda: journal.read_text() == "begun\ntold\n")
    assert made.pending().parts == {"part-0002"}
    (folder.parents[1] / "stop").touch()
    wait_for(lambda: not given(folder))
    assert journal.read_text() == "begun\ntold\nended\n"
    assert made.pending().lost == set()


@pytest.mark.parametrize(
    ("ends", "said"), [("broken", ": no disk"), ("unfit", ": no disk"), ("silent", " nothing")]
)
def test_a_host_whose_parts_record_nothing_does_not_take_them_all(folder: Path, ends: str, said: str) -> None:
    """Whether or not a part had begun its journal; one without space says nothing."""
    made = engine(folder, "a")
    assert made.width == 1
    (folder.parents[1] / ends).touch()
    made.place(parts(folder, 1, 2, 3, 4))
    with pytest.raises(CapabilityError, match=f"`a` cannot run parts: it recorded nothing and said{said}$"):
        wait_for(lambda: not made.pending().parts)
    assert len(list(folder.glob("*/output.txt"))) == (0 if ends == "silent" else 2)


def test_a_host_that_the_file_does_not_name_any_more_is_said(folder: Path) -> None:
    state = {"key": "k", "parts": {"part-0001": "gone"}, "schema": "steelyard/ssh/1"}
    (folder / "ssh.json").write_text(json.dumps(state))
    found = engine(folder, "a").pending()
    assert not found.parts
    assert found.lost == {"part-0001"}
    assert found.reasons == ("host `gone` is not in the file of hosts any more; its parts are lost",)
