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
        {**LOOKS, "looks": [[[10, 0.5]], [[9, 2.0]]]},
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
