"""Revisions of a repository compared by the command line, from the checkout to the package."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from fixtures.git_repository import MadeRepository
from steelyard.cli import execute

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timing

PROGRAM = "#!/bin/sh\nexec sleep $(cat time)\n"
QUICK = ("--budget", "20s", "--margin", "10%")


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeRepository:
    made = MadeRepository(tmp_path / "source")
    made.commit("quick", program=PROGRAM, seconds="0.02", _dot_gitignore="time\nresult\nsteelyard-results\n")
    made.git("checkout", "--quiet", "-b", "work")
    made.commit("slow", seconds="0.04")
    monkeypatch.setenv("STEELYARD_BUILDS", str(tmp_path / "builds"))
    monkeypatch.chdir(made.folder)
    return made


def test_a_slower_revision_is_found(made: MadeRepository, capsys: pytest.CaptureFixture[str]) -> None:
    made.git("checkout", "--quiet", "main")
    made.commit("documentation", README="text")
    made.git("checkout", "--quiet", "work")
    words = ["compare", "--rev", "main", "--rev", "HEAD", "--build", "cp seconds time", "--out", "result"]
    assert execute([*words, *QUICK, "--", "./program", "with", "two words"]) == 1
    text = capsys.readouterr().out
    assert "`HEAD " in text
    assert " slower than `" in text
    assert "is the merge base of `main`, `HEAD`" in text
    recorded = json.loads((made.folder / "result" / "provenance.json").read_bytes())["builds"]
    assert [build["subject"] for build in recorded] == ["quick", "slow"]
    assert all(len(build["programs"]["./program"]) == 64 for build in recorded)
    cells = json.loads((made.folder / "result" / "plan.json").read_bytes())["cells"]
    assert cells[0]["execution"]["command"] == ["./program", "with", "two words"]
    assert execute(["verify", "result"]) == 0
    assert execute(["rerun", "result", "--yes"]) == 2
    assert "--rev" in capsys.readouterr().err


def test_changes_that_are_not_committed_are_a_revision(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    (made.folder / "seconds").write_text("0.02")
    words = ["compare", "--rev", "HEAD", "--rev", ".", "--build", "cp seconds time", *QUICK, "--json"]
    assert execute([*words, "--fail-on", "slower", "./program"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "faster"


def test_a_build_that_fails_is_named_and_the_others_are_compared(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    made.commit("broken", seconds="none")
    build = "grep -q 0 seconds && cp seconds time"
    words = ["compare", "--exact", "--rev", "HEAD~1", "--rev", "main", "--rev", "HEAD", "--build", build]
    assert execute([*words, *QUICK, "--", "./program"]) == 4
    text = capsys.readouterr().out
    assert "`main " in text
    assert "not compared: cannot build HEAD" in text
    assert execute([*words[:-6], "--rev", "HEAD", "--build", build, "--", "./program"]) == 4
    assert "exit status 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--build", "make", "./a", "./b"], "no `--rev` is given"),
        (["--rev", "main", "./program"], "needs two revisions"),
        (["--rev", "main", "--rev", "HEAD", "--baseline", "2", "./program"], "is the first one"),
        (["--rev", "main", "--rev", "HEAD", "--parameter", "n=1,2", "./program"], "no command contains"),
        (["--rev", "main", "--rev", "absent", "./program"], "no revision `absent`"),
        (["--rev", "main", "--rev", "HEAD", "./missing"], "missing"),
    ],
)
def test_what_makes_no_sense_is_refused(
    made: MadeRepository, words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["compare", *words]) in {2, 4}
    shown = capsys.readouterr().err
    assert reason in shown
    assert "Traceback" not in shown
    assert not (made.folder / "steelyard-results").exists() or "missing" in reason


def test_each_command_is_compared_with_itself(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", "--rev", "main", "--rev", "HEAD", "--build", "cp seconds time", "--json"]
    words += ["--runs-max", "12", "--parameter", "n=1,2"]
    assert execute([*words, "./program {n}", "true"]) == 1
    found = json.loads(capsys.readouterr().out)
    pairs = [(claim["baseline"], claim["contender"]) for claim in found["claims"]]
    assert len(pairs) == 3
    assert all(first.partition(" @ ")[0] == second.partition(" @ ")[0] for first, second in pairs)


def test_what_was_found_is_noted_and_followed(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", "--rev", "main", "--build", "cp seconds time", "--note", "--out", "result"]
    assert execute([*words, "--rev", "HEAD", *QUICK, "./program"]) == 1
    capsys.readouterr()
    assert execute(["history", "--notes"]) == 1
    short = made.git("rev-parse", "--short=9", "HEAD")
    text = capsys.readouterr().out
    assert f"slower at `{short}` (after `{made.git('rev-parse', '--short=9', 'main')}`)" in text
    assert "slower now than before: ./program, wall time" in text
    # The folder says the same as the note.
    began = json.loads((made.folder / "result/provenance.json").read_text())["sessions"][0]["begun_utc"]
    assert f'"at":"{began}"' in made.git("notes", "--ref=steelyard", "show", "HEAD")
    assert execute(["history", "result"]) == 1
    assert capsys.readouterr().out == text
    # Files that are not committed have no commit to hold a note.
    (made.folder / "seconds").write_text("0.03")
    shutil.rmtree(made.folder / "result")
    assert execute([*words, "--rev", ".", *QUICK, "./program"]) == 1
    assert "not noted" in capsys.readouterr().err
    assert made.git("notes", "--ref=steelyard", "list").count("\n") == 0


@pytest.mark.parametrize("argument", ["two\nlines", "x" * 900], ids=["lines", "long"])
def test_any_command_is_a_link_of_a_history(made: MadeRepository, argument: str) -> None:
    build = ["--build", "cp seconds time", "--export", "links", "links.jsonl", "--note"]
    words = ["compare", "--rev", "main", "--rev", "HEAD", *build, "--no-record", *QUICK]
    assert execute([*words, "--", "./program", argument]) == 1
    (entry,) = json.loads((made.folder / "links.jsonl").read_text(encoding="utf-8"))["benchmarks"]
    assert entry["benchmark"].startswith("./program ")
    assert made.git("notes", "--ref=steelyard", "show", "HEAD")
    assert execute(["history", "--notes"]) in {0, 1}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--setup", "sleep 765", "./program"], "`--setup 'sleep 765'` failed: it had not ended after 0.2 s"),
        (["--", "sleep", "765"], "`sleep 765` failed with no end after 200.0 ms"),
    ],
)
def test_what_hangs_ends_with_the_limit_of_a_build(
    made: MadeRepository, words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    limited = ["compare", "--rev", "main", "--rev", "HEAD", "--build-timeout", "200ms", "--no-record"]
    assert execute([*limited, *words]) == 4
    assert reason in capsys.readouterr().err
