"""The commit that slowed a program, found in real repositories by the command line."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.git_repository import MadeRepository
from steelyard.cli import execute

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timing

PROGRAM = "#!/bin/sh\nexec sleep $(cat time)\n"
BUILD = "cp seconds time"
SLOW = 9


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeRepository:
    """Twelve commits, of which the ninth doubles the time, and the fourth and fifth do not build."""
    made = MadeRepository(tmp_path / "source")
    made.commit("begin", program=PROGRAM, seconds="0.02", _dot_gitignore="time\nsteelyard-results\nresult\n")
    for number in range(1, 13):
        files = {"seconds": "0.02" if number < SLOW else "0.04", "text": str(number)}
        if number == 4:
            (made.folder / "seconds").unlink()
            del files["seconds"]
        if number == 5:
            del files["seconds"]
        made.commit(f"change {number} <b>", **files)
    monkeypatch.setenv("STEELYARD_BUILDS", str(tmp_path / "builds"))
    monkeypatch.chdir(made.folder)
    return made


def bisect(*words: str) -> int:
    return execute(["bisect", "HEAD~12", "HEAD", "--build", BUILD, "--out", "result", *words])


@pytest.mark.long("a page with its figure is drawn, and drawn again to verify it")
def test_the_commit_is_found_and_the_result_verified(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bisect("--json", "--report", "--", "./program") == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    culprit = made.git("rev-parse", f"HEAD~{12 - SLOW}")
    assert said["culprits"] == [culprit]
    assert said["probability"] >= 0.95
    assert said["effect"]["low"] < 2 < said["effect"]["high"] * 1.2
    assert execute(["verify", "result"]) == 0
    builds = json.loads((made.folder / "result" / "provenance.json").read_bytes())["builds"]
    assert culprit in {build["commit"] for build in builds}
    page = (made.folder / "result" / "report.html").read_text()
    assert "change 9 &lt;b&gt;" in page or "change 9 \\u003cb" in page
    capsys.readouterr()
    assert execute(["report", "result"]) == 0
    assert culprit[:9] in capsys.readouterr().out
    assert execute(["rerun", "result", "--yes"]) == 2
    assert "cannot repeat a bisection" in capsys.readouterr().err
    # Another candidate in the record, and the findings do not follow any more.
    path = made.folder / "result" / "candidates.json"
    written = json.loads(path.read_bytes())
    alone = [at for at, (_, block) in enumerate(written["steps"]) if str(block) not in written["beside"]]
    written["steps"][alone[-1]][0] = 0 if written["steps"][alone[-1]][0] else 1
    path.write_text(json.dumps(written))
    assert execute(["verify", "result"]) == 1


@pytest.mark.long("searches twice")
def test_an_interrupted_search_goes_on(made: MadeRepository, capsys: pytest.CaptureFixture[str]) -> None:
    assert bisect("--minutes", "0.02", "--", "./program") == 1
    said = capsys.readouterr()
    assert "not decided" in said.out
    assert "goes on" in said.err
    before = len(json.loads((made.folder / "result" / "candidates.json").read_bytes())["steps"])
    assert bisect("--metric", "cpu", "--", "./program") == 2
    assert "already contains another result" in capsys.readouterr().err
    assert bisect("--", "./program") == 0
    assert "made `./program`" in capsys.readouterr().out
    log = json.loads((made.folder / "result" / "candidates.json").read_bytes())
    assert len(log["steps"]) > before
    assert len(json.loads((made.folder / "result" / "provenance.json").read_bytes())["sessions"]) == 2
    assert execute(["verify", "result"]) == 0


def test_commits_that_cannot_be_measured_are_named_with_the_culprit(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    # All but both ends fail: some do not build, the others fail when they are run.
    build = f'case "$(cat text)" in ""|1|2|3|12) {BUILD};; *) exit 5;; esac'
    failing = 'case "$(cat text)" in 1|2|3) exit 3;; *) ./program;; esac'
    words = ["bisect", "HEAD~12", "HEAD", "--build", build, "--out", "result", "--shell", "--", failing]
    assert execute(words) == 0
    text = capsys.readouterr().out
    assert "one of 12 commits" in text
    assert "11 of them cannot be measured" in text
    log = json.loads((made.folder / "result" / "candidates.json").read_bytes())
    assert "exit code 3" in log["failed"]["0"]
    assert "cannot build" in log["failed"]["10"]


def test_ends_that_do_not_differ_are_said(made: MadeRepository, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bisect", "HEAD~12", "HEAD~10", "--build", BUILD, "--margin", "20%", "--", "./program"]
    assert execute(words) == 1
    assert "no commit to find" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["HEAD", "HEAD~3", "--", "./program"], 2, "contains no commit that `HEAD` lacks"),
        (["HEAD~3", "HEAD"], 2, "needs a command"),
        (["HEAD~3", "HEAD", "--budget", "5s"], 2, "unknown option `--budget`"),
        (["HEAD~3", "HEAD", "--confidence", "30%", "--", "./program"], 2, "--confidence"),
        (["HEAD~3", "HEAD", "--metric", "reported", "--", "./program"], 2, "allowed: `wall`"),
        (["HEAD~3", "HEAD", "--minutes", "0", "--", "./program"], 2, "--minutes"),
        (["HEAD~3", "HEAD", "--build", "false", "--", "./program"], 4, "cannot build HEAD~3"),
        (["HEAD~3", "HEAD", "--", "./nothing"], 4, "cannot run"),
        (["HEAD~3", "HEAD", "--", "a 'b"], 2, "cannot split"),
    ],
)
def test_a_wrong_request_is_refused(
    made: MadeRepository, capsys: pytest.CaptureFixture[str], words: list[str], code: int, reason: str
) -> None:
    assert execute(["bisect", *words]) == code
    assert reason in capsys.readouterr().err
    assert not list(made.folder.glob("steelyard-results/*/findings.json"))


SOURCE = """#include "load.h"
int main(void) {
    volatile unsigned long x = 1;
    for (unsigned long i = 0; i < LOAD; i++) x = x * 2862933555777941757UL + 3037000493UL;
    return x == 0;
}
"""


@pytest.mark.long("builds and runs a program of C at commits of a history of 128")
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_commit_of_128_is_found_by_real_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = MadeRepository(tmp_path / "source")
    made.commit("begin", **{"prog.c": SOURCE, "load.h": "#define LOAD 8000000UL\n"})
    culprit, fails = 77, {40, 41, 42, 75}
    for number in range(1, 129):
        load = 8_000_000 if number < culprit else 8_800_000
        broken = "#error broken\n" if number in fails else ""
        made.commit(f"change {number}", **{"load.h": f"#define LOAD {load}UL /* {number} */\n{broken}"})
    monkeypatch.setenv("STEELYARD_BUILDS", str(tmp_path / "builds"))
    monkeypatch.chdir(made.folder)
    words = ["bisect", "HEAD~128", "HEAD", "--build", "cc -O1 -o prog prog.c", "--metric", "cpu"]
    assert execute([*words, "--out", str(tmp_path / "result"), "--json", "--", "./prog"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["culprits"] == [made.git("rev-parse", f"HEAD~{128 - culprit}")]
    measured = [each for each in said["commits"] if each["blocks"] or each["failure"]]
    assert len(measured) < 25
