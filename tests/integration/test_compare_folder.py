"""The folder of a comparison is analysed, reported, verified and compared like that of a study."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import zlib
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from integration.study_process import COMMAND
from integration.test_study_faults import can_mount_privately
from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.analyse.series.result_series import read_series
from steelyard.cli import execute
from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.record.interim_log import LookTimes, read_looks
from steelyard.record.seal import seal_tables
from steelyard.share.verify import verify
from steelyard.studies.comparison.contender import Commands
from steelyard.studies.comparison.replay import replay
from steelyard.studies.comparison.run.execution import compare_commands
from steelyard.studies.comparison.terms import Terms
from steelyard.studies.replication.devices.container_cleanup import sweep_places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from steelyard.studies.comparison.outcome import Comparison

TRUTH = str(files("steelyard") / "_bin" / "steelyard-truth")
pytestmark = pytest.mark.timing
FAST, SLOW = f"{TRUTH} --iterations 400000", f"{TRUTH} --iterations 1600000"
ENDLESS = ("--margin", "0.001%", "--level", "99.9999%")
"""Identical commands are called different in 5 % of comparisons at the usual level, and end then."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sy-") as state:  # short: sockets lie below it
        monkeypatch.setenv("STEELYARD_STATE", state)
        monkeypatch.chdir(tmp_path)
        yield tmp_path


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Comparison]:
    """Three commands, really executed: two pairs, several looks at the closer one."""
    folder = tmp_path_factory.mktemp("measured") / "r"
    terms = Terms(margin=Margin(0.003), extent=Extent(8, 30, 15.0), warmup=2)
    commands = Commands((FAST, SLOW, FAST), names=("fast", "slow", "twin"))
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="sy-") as state:
        patch.setenv("STEELYARD_STATE", state)
        found = compare_commands(commands, terms, folder)
    return folder, found


@pytest.fixture
def result(measured: tuple[Path, Comparison], tmp_path: Path) -> Path:
    return Path(shutil.copytree(measured[0], tmp_path / "r"))


def change(path: Path, edit: Callable[[Any], object]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    edit(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def test_what_was_recorded_gives_the_same_bits_as_the_measuring(
    measured: tuple[Path, Comparison],
) -> None:
    folder, live = measured
    again = replay(folder, read_plan(folder / "plan.json"))
    assert len(live.looks[1]) > 1, "the twin was looked at more than once"
    assert again.claims == live.claims
    assert again.looks == live.looks
    assert again.summaries == live.summaries
    assert again.runs == live.runs
    assert again.warnings == live.warnings
    assert (again.end, again.elapsed_s) == (live.end, live.elapsed_s)


def test_the_folder_is_confirmed_with_and_without_its_report(result: Path) -> None:
    assert verify(result) == []
    before = (result / "findings.json").read_bytes()
    assert execute(["analyse", str(result)]) == 0
    assert (result / "findings.json").read_bytes() == before
    assert execute(["report", str(result)]) == 0
    assert verify(result) == []
    for form in ("text", "markdown", "latex"):
        assert execute(["report", str(result), "--format", form]) == 0


def test_the_page_is_written_of_findings_alone(result: Path) -> None:
    (compared, _) = read_findings(result / "findings.json").of("comparison")
    value = compared.estimates["ratio"].value
    assert value is not None
    assert value > 2
    change(
        result / "findings.json",
        lambda content: content["findings"][0]["estimates"]["ratio"].update(value=7.0),
    )
    assert execute(["report", str(result)]) == 0
    assert "takes 7 times as long as" in (result / "report.html").read_text(encoding="utf-8")
    problems = verify(result)
    assert any("estimates.ratio.value is 7.0" in problem for problem in problems)


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (lambda f: f["findings"][0]["estimates"]["ratio"].update(low=1.0), "comparison/fast/slow"),
        (lambda f: f["findings"][1]["facts"].update(runs_first=99), "comparison/fast/twin"),
        (lambda f: f["findings"][2]["estimates"]["median"].update(value=1e-3), "sample/fast"),
        (lambda f: f["findings"][0].update(verdict="faster"), "comparison/fast/slow"),
    ],
)
def test_one_altered_number_in_a_finding_is_named(
    result: Path, edit: Callable[[Any], object], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change(result / "findings.json", edit)
    assert execute(["verify", str(result)]) == 1
    assert f"finding `{named}`" in capsys.readouterr().out


def test_one_altered_run_changes_hash_and_finding(result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = result / "runs.parquet"
    table = pq.read_table(path)
    at = table.column_names.index("wall_ns")
    values = table.column("wall_ns").to_pylist()
    values[-1] += values[-1] // 2
    pq.write_table(table.set_column(at, table.schema.field(at), [values]), path)
    assert execute(["verify", str(result)]) == 1
    said = capsys.readouterr().out
    assert "`runs.parquet` was changed after it was written" in said
    seal_tables(result)  # somebody who hides it
    assert execute(["verify", str(result)]) == 1
    assert "finding `" in capsys.readouterr().out


def test_an_altered_outcome_in_the_ledger_is_found(result: Path) -> None:
    with sqlite3.connect(result / "ledger.sqlite") as ledger:
        ((batch, text),) = ledger.execute("SELECT batch, outcome FROM run ORDER BY batch LIMIT 1").fetchall()
        outcome = json.loads(text)
        outcome["quantities"]["wall_ns"]["value"] += 1000
        text = json.dumps(outcome, separators=(",", ":"), ensure_ascii=False)
        row = (text, zlib.crc32(text.encode()), batch)
        ledger.execute("UPDATE run SET outcome = ?, checksum = ? WHERE batch = ?", row)
    ledger.close()
    problems = verify(result)
    assert "`runs.parquet` is not what `ledger.sqlite` gives: `wall_ns` differs" in problems
    assert any(problem.startswith("`measurements/values.parquet` is not what") for problem in problems)


def test_a_damaged_and_an_absent_ledger_are_named(result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlite3.connect(result / "ledger.sqlite") as ledger:
        ledger.execute("UPDATE run SET checksum = checksum + 1 WHERE batch = 3")
    ledger.close()
    assert execute(["verify", str(result)]) == 5
    assert "does not match its checksum" in capsys.readouterr().err
    (result / "ledger.sqlite").unlink()
    (problem,) = verify(result)
    assert problem.startswith("`ledger.sqlite` is absent")


def test_altered_absent_and_added_figures_are_found(result: Path) -> None:
    assert execute(["report", str(result)]) == 0
    figures = result / "figures"
    text = (figures / "ratios-forest.svg").read_text(encoding="utf-8")
    (figures / "ratios-forest.svg").write_text(text.replace("slow", "swift"), encoding="utf-8")
    (figures / "run-sequence.png").unlink()
    (figures / "extra.svg").write_text("<svg/>", encoding="utf-8")
    problems = [problem.partition(";")[0] for problem in verify(result)]
    assert problems == [
        "`figures/extra.svg` was not drawn by the report",
        "`figures/ratios-forest.svg` was changed after it was drawn",
        "`figures/run-sequence.png` is absent",
    ]
    assert execute(["report", str(result)]) == 0
    (figures / "extra.svg").unlink()
    assert verify(result) == []
    change(figures / "figures.json", lambda content: content["shows"].update(distribution="0" * 64))
    (problem,) = verify(result)
    assert problem.startswith("`figures/distribution` does not show what the findings give")
    (figures / "figures.json").unlink()
    assert execute(["verify", str(result)]) == 5


def test_another_time_of_a_look_changes_the_verdict_it_may_give(result: Path) -> None:
    plan = read_plan(result / "plan.json")
    times = read_looks(result, plan.id, 2)
    first, second = times.looks
    # However fast this machine is, less of the budget was spent.
    moved = tuple((blocks, max(0.9, fraction)) for blocks, fraction in second)
    LookTimes(plan.id, (first, moved), times.end, times.elapsed_s).write(result)
    problems = verify(result)
    assert "`looks.json` was changed after it was written" in problems
    assert any("finding `comparison/fast/twin`: estimates.ratio." in problem for problem in problems)


@pytest.mark.parametrize("name", ["looks.json", "runs.parquet", "plan.json", "findings.json"])
def test_a_missing_file_is_named(result: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (result / name).unlink()
    assert execute(["verify", str(result)]) == 5
    said = capsys.readouterr().err
    assert f"{name}` does not exist" in said
    assert "hint: " in said
    assert "Traceback" not in said


LOOKS = {"schema": "steelyard/looks/1", "looks": [[], []], "end": "spent", "elapsed_s": 1}


@pytest.mark.parametrize(
    "content",
    [
        [],
        {**LOOKS, "schema": "steelyard/looks/2"},
        {**LOOKS, "plan_id": "other"},
        {**LOOKS, "looks": [[[10, 0.5]]]},
        {**LOOKS, "looks": [[[10, 0.5]], [[9, 2000.0]]]},
        {**LOOKS, "looks": [[[9, 0.5], [9, 0.6]], []]},
        {**LOOKS, "end": "never"},
        {**LOOKS, "elapsed_s": -1},
    ],
)
def test_damaged_looks_are_refused(result: Path, content: object, capsys: pytest.CaptureFixture[str]) -> None:
    if isinstance(content, dict):
        content = {"plan_id": read_plan(result / "plan.json").id, **content}
    (result / "looks.json").write_text(json.dumps(content), encoding="utf-8")
    assert execute(["analyse", str(result)]) == 5
    said = capsys.readouterr().err
    assert "looks.json" in said
    assert "hint: " in said


def test_tables_that_were_deleted_are_made_again(result: Path) -> None:
    before = read_findings(result / "findings.json")
    (result / "runs.parquet").unlink()
    shutil.rmtree(result / "measurements")
    assert execute(["analyse", str(result)]) == 0
    assert read_findings(result / "findings.json").findings == before.findings
    assert verify(result) == []


def test_another_margin_gives_other_verdicts_from_the_same_intervals(result: Path) -> None:
    before = read_findings(result / "findings.json").of("comparison")
    assert execute(["analyse", str(result), "--margin", "60"]) == 0
    after = read_findings(result / "findings.json").of("comparison")
    assert [each.estimates["ratio"] for each in after] == [each.estimates["ratio"] for each in before]
    assert after[1].verdict == "equivalent"
    assert verify(result) == []
    assert execute(["analyse", str(result), "--margin", "0.3"]) == 0
    assert read_findings(result / "findings.json").of("comparison") == before
    assert not (result / "analysis.json").exists()


def test_a_tolerance_is_refused(result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["analyse", str(result), "--tolerance", "5"]) == 2
    assert "--tolerance" in capsys.readouterr().err


def test_two_comparisons_are_laid_over_each_other(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Path(shutil.copytree(result, tmp_path / "other"))
    assert execute(["analyse", str(other), "--margin", "1"]) == 0
    assert execute(["compare-results", str(result), str(other)]) == 0
    change(other / "findings.json", lambda content: content["findings"][0].update(verdict="faster"))
    capsys.readouterr()
    assert execute(["compare-results", str(result), str(other)]) == 1
    assert "slower -> faster" in capsys.readouterr().out


def test_a_history_of_comparisons_follows_measured_runs_alone(result: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(result, tmp_path / "other"))
    series = read_series([result, other], ["outside-wall"])
    assert [each.subject["command"] for each in series] == ["fast", "slow", "twin"]
    for each, finding in zip(series, read_findings(result / "findings.json").of("sample"), strict=True):
        mean = finding.estimates["mean"].value
        assert mean is not None
        assert each.values.tolist() == pytest.approx([1e9 * mean] * 2, rel=1e-9)
    values = other / "measurements" / "values.parquet"
    table = pq.read_table(values)
    place = table.schema.get_field_index("value")
    pq.write_table(table.set_column(place, "value", pc.multiply(table["value"], 1.0001)), values)
    assert execute(["history", str(result), str(other), "--metric", "outside-wall"]) == 0


def test_a_failed_comparison_leaves_what_was_recorded_before(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = here / "sometimes"
    script.write_text("#!/bin/sh\necho x >> count\n[ $(wc -l < count) -lt 30 ]\n", encoding="utf-8")
    script.chmod(0o755)
    words = ["--out", "r", *ENDLESS, "--budget", "20s"]
    assert execute(["compare", *words, str(script), str(script)]) == 4
    capsys.readouterr()
    assert execute(["analyse", "r"]) == 0
    findings = read_findings(here / "r" / "findings.json")
    (compared,) = findings.of("comparison")
    assert compared.facts["end"] == "failed"
    counted = [finding.facts["runs"] for finding in findings.of("sample")]
    assert sorted(counted) == [13, 14], "30 less two of the warm-up and the one that failed"
    assert verify(here / "r") == []


def test_a_comparison_that_was_killed_is_analysed_as_far_as_it_came(here: Path) -> None:
    words = [*COMMAND, "compare", *ENDLESS, "--budget", "60s", "--out", "r", FAST, FAST]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        looks = here / "r" / "looks.json"
        if looks.exists() and json.loads(looks.read_text(encoding="utf-8"))["looks"][0]:
            break
        time.sleep(0.05)
    time.sleep(1.5)  # runs become durable once in a second
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert execute(["analyse", str(here / "r")]) == 0
    (compared,) = read_findings(here / "r" / "findings.json").of("comparison")
    assert compared.facts["end"] == "open"
    assert int(compared.facts["runs_first"] or 0) >= 10
    assert verify(here / "r") == []
    assert execute(["report", str(here / "r")]) == 0
    assert verify(here / "r") == []
    assert len(sweep_places()) == 1


FULL_DISK = """
import os, subprocess, sys
from pathlib import Path
small, command = Path(sys.argv[1]), sys.argv[2:]
result = small / "r"
with (small / "ballast").open("wb") as ballast:
    room = os.statvfs(small)
    ballast.write(bytes(room.f_bavail * room.f_frsize - 2_500_000))
words = ["compare", "--margin", "0.001%", "--level", "99.9999%", "--budget", "60s", "--out", str(result),
         "sleep 0.02", "sleep 0.02"]
full = subprocess.run([*command, *words], capture_output=True, text=True)
print(full.returncode)
print(full.stderr.replace("\\n", " "))
(small / "ballast").unlink()
print(subprocess.run([*command, *words], capture_output=True, text=True).returncode)
words = ["analyse", str(result)]
print(subprocess.run([*command, *words], capture_output=True, text=True).returncode)
"""


@pytest.mark.long("a disk that fills while it is written")
@pytest.mark.needs_root
@pytest.mark.skipif(not can_mount_privately(), reason="needs the right to mount in a private namespace")
def test_a_comparison_on_a_full_disk_says_the_right_next_step(here: Path) -> None:
    small, script = here / "small", here / "script.py"
    small.mkdir()
    script.write_text(FULL_DISK, encoding="utf-8")
    done = subprocess.run(
        [
            *("unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=16m none "$0" && exec "$@"', str(small)),
            *(sys.executable, str(script), str(small), *COMMAND),
        ],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    code, error, again, analysed = done.stdout.splitlines()
    assert code == "5"
    assert "everything recorded before is intact" in error
    assert "compare again with another --out" in error
    assert f"`steelyard analyse {small}/r`" in error
    assert "resume" not in error
    assert again == "2", "the folder is taken"
    assert analysed == "0", "what was recorded can be analysed"


def test_verdicts_about_quantiles_are_recorded_analysed_and_verified(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", "--statistic", "typical,median", "--runs-max", "16", "--budget", "20s", "--out", "q"]
    assert execute([*words, "--json", "--name", "fast", "--name", "slow", FAST, SLOW]) == 1
    said = capsys.readouterr()
    assert "runs of each command before the first verdict: typical 10, median " in said.err
    claims = json.loads(said.out)["claims"]
    assert [claim["statistic"] for claim in claims] == ["typical", "median"]
    assert {claim["comparisons"] for claim in claims} == {2}
    assert verify(here / "q") == []
    found = read_findings(here / "q" / "findings.json").of("comparison")
    assert [finding.id for finding in found] == ["comparison/fast/slow", "comparison/fast/slow/median"]
    assert execute(["report", "q"]) == 0
    assert "at the median" in (here / "q" / "report.html").read_text(encoding="utf-8")


def test_a_quantile_that_so_few_runs_cannot_have_is_refused_before_the_first(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["compare", "--statistic", "p99", "--runs-max", "100", "--out", "q", FAST, FAST]) == 2
    assert "allowed: at least 368 for `p99`" in capsys.readouterr().err
    assert not (here / "q").exists()


CLOSE = ("--margin", "0.001%", "--level", "99%", "--name", "a", "--name", "b", FAST, FAST)
"""Not settled within any budget of a test."""


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], int]:
    """Execute a command line that is recorded as the process's own."""

    def executed(words: list[str]) -> int:
        monkeypatch.setattr(sys, "argv", ["steelyard", *words])
        return execute(words)

    return executed


def test_a_comparison_goes_on_after_its_budget_at_a_lower_level(
    here: Path, capsys: pytest.CaptureFixture[str], say: Callable[[list[str]], int]
) -> None:
    assert say(["compare", "--runs-min", "8", "--budget", "0.1s", "--out", "r", *CLOSE]) == 0
    assert "go on: steelyard compare --resume r" in capsys.readouterr().out
    before = read_looks(here / "r", read_plan(here / "r" / "plan.json").id, 1)
    assert execute(["compare", "--resume", "r", "--budget", "3s", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    (claim,) = said["claims"]
    assert claim["level"] == pytest.approx(0.98)
    assert any("resumed: " in remark and "98 %, not 99 %" in remark for remark in claim["remarks"])
    after = read_looks(here / "r", read_plan(here / "r" / "plan.json").id, 1)
    assert after.looks[0][: len(before.looks[0])] == before.looks[0], "looks that were made stay"
    assert after.looks[0][-1][0] > before.looks[0][-1][0]
    assert 1 < after.looks[0][-1][1] <= 2
    assert verify(here / "r") == []
    assert len(json.loads((here / "r" / "provenance.json").read_text(encoding="utf-8"))["sessions"]) == 2
    assert replay(here / "r", read_plan(here / "r" / "plan.json")).claims[0].level == pytest.approx(0.98)


def test_a_comparison_that_was_interrupted_goes_on_at_its_level(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*COMMAND, "compare", "--budget", "60s", "--runs-max", "3000", "--out", "r", *CLOSE]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (here / "r" / "looks.json").exists() or '"looks": [[[' not in (
        here / "r" / "looks.json"
    ).read_text(encoding="utf-8"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert execute(["compare", "--resume", "r", "--budget", "1s", "--json"]) == 0
    (claim,) = json.loads(capsys.readouterr().out)["claims"]
    assert claim["level"] == pytest.approx(0.99)
    assert not any("resumed" in remark for remark in claim["remarks"])
    assert read_looks(here / "r", read_plan(here / "r" / "plan.json").id, 1).looks[0][-1][1] <= 1
    assert verify(here / "r") == []


def test_what_cannot_go_on_says_why(
    here: Path, capsys: pytest.CaptureFixture[str], say: Callable[[list[str]], int]
) -> None:
    program = here / "program"
    shutil.copy(TRUTH, program)
    slow = ["--name", "a", "--name", "b", "./program --iterations 400000", "./program --iterations 1600000"]
    assert say(["compare", "--runs-max", "12", "--out", "settled", *slow]) == 1
    twin = ["--margin", "0.001%", "--level", "99%", "./program --iterations 400000"]
    assert say(["compare", "--runs-max", "8", "--runs-min", "8", "--out", "full", *twin, twin[-1]]) == 0
    assert say(["compare", "--budget", "0.1s", "--runs-min", "8", "--out", "open", *twin, twin[-1]]) == 0
    change(
        Path(shutil.copytree(here / "open", here / "foreign")) / "provenance.json",
        lambda content: content.update(host_id="another"),
    )
    with program.open("ab") as file:
        file.write(b"\0")
    capsys.readouterr()
    for words, said in (
        (["settled"], "is settled: more runs would not change what it says"),
        (["full"], "all runs of its plan are made"),
        (["open"], "the program of `./program --iterations 400000 [1]` has changed since"),
        (["open", "--margin", "5%"], "`--resume` takes commands and options from its folder"),
        (["open", "--", "./other"], "`--resume` takes commands and options from its folder"),
        (["foreign"], "it was measured on another host"),
        (["absent"], "does not exist"),
    ):
        assert execute(["compare", "--resume", *words]) in {2, 5}, words
        assert said in capsys.readouterr().err, words
    assert not (here / "absent").exists()


def test_results_of_the_same_commands_are_merged_and_others_refused(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["--name", "fast", "--name", "slow"]
    for number in (1, 2, 3):
        words = ["compare", "--seed", str(number), "--runs-max", "12", "--out", f"r{number}"]
        execute([*words, *names, FAST, FAST if number == 3 else SLOW])
    capsys.readouterr()
    assert execute(["compare-results", "--merge", "r1", "r2", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    (claim,) = said["claims"]
    assert said["schema"] == "steelyard/merged-comparison/1"
    assert (claim["verdict"], claim["method"], len(claim["parts"])) == ("slower", "inverse-variance", 2)
    assert claim["runs_baseline"] == sum(part["runs"] for part in claim["parts"])
    assert sum(part["weight"] for part in claim["parts"]) == pytest.approx(1.0)
    assert execute(["compare-results", "--merge", "r1", "r2"]) == 1
    assert "2 results of 1 host, wall time)" in capsys.readouterr().out
    for words, error in (
        (["--merge", "r1", "r3"], "cannot merge `r1` and `r3`: they differ in commands"),
        (["--merge", "r1", "r1"], "cannot use a result twice"),
        (["r1", "r2", "r3"], "compares two results; given: 3"),
    ):
        assert execute(["compare-results", *words]) == 2
        assert error in capsys.readouterr().err


def test_hosts_that_disagree_are_not_merged_into_a_verdict(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = here / "program"
    program.write_text(f'#!/bin/sh\nexec {TRUTH} --iterations "$(cat "$1")"\n', encoding="utf-8")
    program.chmod(0o755)
    for number, amounts in enumerate(((400_000, 6_000_000), (6_000_000, 400_000))):
        for name, amount in zip("ab", amounts, strict=True):
            (here / name).write_text(str(amount), encoding="utf-8")
        words = ["compare", "--metric", "cpu", "--runs-max", "12", "--out", f"r{number}"]
        execute([*words, "./program a", "./program b"])
    change(here / "r1" / "provenance.json", lambda content: content.update(host_id="another"))
    capsys.readouterr()
    assert execute(["compare-results", "--merge", "r0", "r1", "--json"]) == 0
    (claim,) = json.loads(capsys.readouterr().out)["claims"]
    assert claim["verdict"] == "inconclusive"
    assert any("nothing is claimed of two that disagree" in remark for remark in claim["remarks"])
    assert {part["verdict"] for part in claim["parts"]} == {"slower", "faster"}


def test_the_fastest_of_many_is_found_and_who_is_slower_stops(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", "--best", "--margin", "30%", "--budget", "20s", "--out", "best", "--json"]
    names = {"a": "sleep 0.01", "b": "sleep 0.05", "c": "sleep 0.0101", "d": "sleep 0.03"}
    named = [word for name in names for word in ("--name", name)]
    assert execute([*words, *named, *names.values()]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["best"] in {"a", "c"}
    assert said["has_regression"] is False
    verdicts = {claim["contender"]: claim["verdict"] for claim in said["claims"]}
    assert set(verdicts) == {"a", "b", "c", "d"} - {said["best"]}
    assert verdicts["b"] == verdicts["d"] == "slower"
    assert execute(["verify", "best"]) == 0
    capsys.readouterr()
    assert execute(["report", "best"]) == 0
    assert f"lower than `{said['best']}`: " in capsys.readouterr().out
    refused = ["compare", "--best", "--no-record", *names.values()]
    assert execute([*refused, "--baseline", "1"]) == 2
    assert execute([*refused, "--statistic", "p50,mean"]) == 2


def test_who_may_be_the_fastest_is_not_called_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "compare",
        "--best",
        "--no-record",
        "--margin",
        "0.01%",
        "--budget",
        "3s",
        "--fail-on",
        "undecided",
    ]
    assert execute([*words, "--name", "a", "--name", "b", "sleep 0.01", "sleep 0.01"]) == 1
    first = capsys.readouterr().out.partition("\n")[0]
    assert first in {
        "undecided which is the fastest of 2: `a` or `b`",
        "undecided which is the fastest of 2: `b` or `a`",
    }
