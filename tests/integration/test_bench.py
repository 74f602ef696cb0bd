"""A suite of a repository, from its file to the verdicts that a pipeline reads."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from fixtures.git_repository import MadeRepository
from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.cli import execute
from steelyard.model.plan import read_plan
from steelyard.record.ledger import LEDGER_NAME, Ledger
from steelyard.run.environment import callers_environment
from steelyard.studies.comparison.contender import Commands
from steelyard.studies.comparison.run.execution import compare_commands
from steelyard.studies.comparison.terms import Terms

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.studies.comparison.run.measuring import Measuring

pytestmark = pytest.mark.timing

SUITE = """
revisions = ["main", "HEAD"]
build = "cp seconds time"
minutes = 1
margin_percent = 40

[benchmark.short]
command = "./program"
shell = false

[benchmark.sleep]
command = "sleep {s}"
parameters = { s = [0.01, 0.05] }

[benchmark.piped]
command = "./program | cat"
shell = true
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeRepository:
    made = MadeRepository(tmp_path / "source")
    made.commit(
        "quick",
        program="#!/bin/sh\nexec sleep $(cat time)\n",
        seconds="0.02",
        steelyard_dot_toml=SUITE,
        _dot_gitignore="time\nresult\n*.xml\n*.md\nsteelyard-results\n",
    )
    made.git("checkout", "--quiet", "-b", "work")
    made.commit("slow", seconds="0.08")
    monkeypatch.setenv("STEELYARD_BUILDS", str(tmp_path / "builds"))
    monkeypatch.chdir(made.folder)
    return made


@pytest.mark.long("four benchmarks are measured until they are settled, verified and reported")
def test_what_became_slower_fails_and_the_rest_does_not(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bench", "--out", "result", "--export", "pull-request", "c.md", "--export", "junit", "r.xml"]
    assert execute(words) == 1
    text = capsys.readouterr().out
    assert text.startswith("2 slower, 2 equivalent\n")
    assert (made.folder / "c.md").read_text().startswith("<!-- steelyard -->\n### Steelyard: 2 slower")
    assert 'failures="2"' in (made.folder / "r.xml").read_text()
    findings = json.loads((made.folder / "result" / "findings.json").read_bytes())["findings"]
    verdicts = {
        each["subject"]["second"]: each["verdict"] for each in findings if "second" in each["subject"]
    }
    assert {name.split(" @ ")[0] for name, verdict in verdicts.items() if verdict == "slower"} == {
        "short",
        "piped",
    }
    # Margins, looks and the division of the error follow from what was recorded.
    assert execute(["verify", "result"]) == 0
    assert execute(["report", "result"]) == 0
    assert execute(["compare-results", "result", "result"]) == 0


def test_a_part_of_a_suite_is_measured_within_its_minutes(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bench", "sleep", "--minutes", "0.05", "--no-record", "--json"]
    assert execute([*words, "--rev", "HEAD~1", "--rev", "HEAD"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["elapsed_s"] < 6
    assert [claim["contender"].split(" @ ")[0] for claim in found["claims"]] == [
        "sleep (s=0.01)",
        "sleep (s=0.05)",
    ]
    runs = [found["commands"][run["contender"]]["name"] for run in found["runs"]]
    counts = {name: runs.count(name) for name in runs}
    assert min(count for name, count in counts.items() if "0.01" in name) > 10
    first_verdict = max(at for at, name in enumerate(runs) if "0.01" in name)
    assert sum("0.05)" in name for name in runs[:first_verdict]) < 12, "the short one is not starved"


CLOSE = """
minutes = 1
margin_percent = 0.001
runs_max = 24

[benchmark.once]
command = "sleep 0.001"

[benchmark.twice]
command = "sleep 0.002"

[benchmark.wrong]
command = "false"
"""


def recorded(folder: Path) -> dict[int, str]:
    with Ledger(folder / LEDGER_NAME, read_plan(folder / "plan.json").id) as ledger:
        rows = list(ledger.outcomes())
    counts = Counter(row.batch for row in rows)
    assert set(counts.values()) == {1}, "a run is recorded twice"
    return {row.batch: repr(row.outcome) for row in rows}


@pytest.mark.long("a suite is killed, goes on, is interrupted and goes on until its runs are used up")
def test_a_suite_that_was_killed_goes_on(made: MadeRepository, capsys: pytest.CaptureFixture[str]) -> None:
    (made.folder / "close.toml").write_text(CLOSE, encoding="utf-8")
    result = made.folder / "result"
    begin = ["--file", "close.toml", "--rev", "main", "--rev", "HEAD", "--out", "result"]
    runs: dict[int, str] = {}
    for words, number in ((begin, signal.SIGKILL), (["--resume", "result"], signal.SIGINT)):
        process = subprocess.Popen(
            [sys.executable, "-m", "steelyard", "bench", *words],
            stdout=subprocess.DEVNULL,
            env=callers_environment(),
        )
        count = (result / "looks.json").read_text().count("[") if runs else 0
        while not (result / "looks.json").exists() or (
            (result / "looks.json").read_text().count("[") <= max(count, 5)
        ):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        process.wait()
        now = recorded(result)
        assert now
        assert runs.items() <= now.items(), "what was recorded stays"
        runs = now
    assert execute(["bench", "--resume", "result", "--json"]) == 4
    said = json.loads(capsys.readouterr().out)
    assert {claim["level"] for claim in said["claims"]} == {0.95}, "no error was spent twice"
    counts = Counter(run["contender"] for run in said["runs"] if run["phase"] == "measure")
    # A block in whose middle the process ended is left out.
    assert len(counts) == 4
    assert 22 <= min(counts.values()) <= max(counts.values()) == 24
    assert [each for each in said["warnings"] if each.startswith("failed: ")] == [
        "failed: `false` failed with exit code 1"
    ]
    assert runs.items() < recorded(result).items()
    for words, reason in (
        (["bench", "once", "--resume", "result"], "`--resume` takes benchmarks and options from its folder"),
        (["compare", "--resume", "result"], "hint: steelyard bench --resume result"),
        ([*("bench", "--out", "result"), *begin[:-2]], "`steelyard bench --resume result` goes on"),
    ):
        assert execute(words) in {2, 5}
        assert reason in capsys.readouterr().err
    assert execute(["verify", "result"]) == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--file", "no.toml"], "cannot read suite `no.toml`"),
        (["nothing"], "no benchmark `nothing`"),
        (["--minutes", "0"], "allowed: more than 0"),
        (["--minutes", "nan"], "allowed: more than 0"),
        (["--rev", "main"], "needs two revisions"),
    ],
)
def test_what_makes_no_sense_is_refused(
    made: MadeRepository, words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["bench", *words]) == 2
    assert reason in capsys.readouterr().err


def test_a_benchmark_that_fails_names_itself_and_leaves_the_others(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = (
        "[benchmark.bad]\ncommand = 'false'\n[benchmark.good]\ncommand = 'sleep 0.01'\nmargin_percent = 40\n"
    )
    (made.folder / "steelyard.toml").write_text(suite, encoding="utf-8")
    words = ["bench", "--rev", "main", "--rev", "HEAD", "--minutes", "0.5", "--out", "result"]
    assert execute([*words, "--export", "junit", "r.xml"]) == 4
    text = capsys.readouterr().out
    assert "warning: failed: `false` failed with exit code 1" in text
    assert execute(["verify", "result"]) == 0
    assert execute([*words[:-2], "bad"]) == 4
    assert "error: `false` failed with exit code 1" in capsys.readouterr().err


def test_three_revisions_of_which_one_cannot_be_built(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    made.commit("broken", seconds="none")
    words = [
        "bench",
        "short",
        "--exact",
        "--minutes",
        "0.5",
        "--build",
        "grep -q 0 seconds && cp seconds time",
    ]
    assert execute([*words, "--rev", "HEAD~1", "--rev", "HEAD", "--rev", "main", "--no-record"]) in {0, 4}
    text = capsys.readouterr().out
    assert "as long as `short @ HEAD~1" in text
    assert "not compared: cannot build HEAD" in text


def test_a_run_that_never_ends_ends_with_the_minutes(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = "[benchmark.hangs]\ncommand = 'sleep 1000'\n[benchmark.good]\ncommand = 'true'\n"
    (made.folder / "steelyard.toml").write_text(suite, encoding="utf-8")
    assert execute(["bench", "--rev", "main", "--rev", "HEAD", "--minutes", "0.02", "--no-record"]) == 4
    assert "warning: failed: `sleep 1000` failed with no end after 1.200 s" in capsys.readouterr().out


def test_a_build_that_never_ends_ends_with_its_limit(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = made.folder / "hangs.toml"
    text = 'build = "sleep 765"\nbuild_timeout_minutes = 0.01\n[benchmark.a]\ncommand = "true"\n'
    suite.write_text(text, encoding="utf-8")
    assert execute(["bench", "--file", str(suite), "--rev", "HEAD~1", "--rev", "HEAD", "--no-record"]) == 4
    said = capsys.readouterr().err
    assert "by `sleep 765`: it had not ended after 600.0 ms and was ended" in said
    assert "hint: `--build-timeout` gives it more time" in said


def test_setups_that_write_the_same_file_are_refused(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = (
        "[benchmark.read]\ncommand = 'wc -l in.txt'\nsetup = 'seq {size} > in.txt'\n"
        "parameters = { size = [10, 2000] }\n"
    )
    (made.folder / "steelyard.toml").write_text(suite, encoding="utf-8")
    words = ["bench", "--rev", "main", "--rev", "HEAD", "--minutes", "0.1", "--no-record"]
    assert execute(words) == 2
    assert "`read (size=2000)` changes `in.txt`" in capsys.readouterr().err
    (made.folder / "steelyard.toml").write_text(suite.replace("in.txt", "in-{size}.txt"), encoding="utf-8")
    assert execute(words) == 0


def test_minutes_that_do_not_suffice_are_no_success(
    made: MadeRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = "".join(f"[benchmark.b{at}]\ncommand = 'sleep 0.1'\n" for at in range(30))
    (made.folder / "steelyard.toml").write_text(listed, encoding="utf-8")
    assert execute(["bench", "--rev", "main", "--rev", "HEAD", "--minutes", "0.02", "--no-record"]) == 4
    assert "benchmarks were not measured: the time did not suffice" in capsys.readouterr().out


class SlowWatcher:
    """Takes longer after the first block that counts than there is time."""

    def block_done(self, measuring: Measuring) -> None:
        if measuring.runs[-1].phase == "measure":
            time.sleep(4.1)


def test_time_that_ends_between_two_blocks_settles_nothing() -> None:
    extent = Extent(budget_s=4.0, is_strict=True)
    commands = Commands(("sleep 0.01", "sleep 0.02"))
    found = compare_commands(commands, Terms(extent=extent), watcher=SlowWatcher())
    assert found.end == "spent"
    assert found.claims[0].runs == (1, 1)
