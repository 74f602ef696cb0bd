"""`steelyard compare` as a user calls it, with real commands."""

from __future__ import annotations

import csv
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.browser import find_browser, tab
from integration.study_process import COMMAND, environment
from steelyard.cli import execute
from steelyard.errors import DataError
from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.record.ledger_reader import LedgerReader
from steelyard.record.seal import hash_tables
from steelyard.record.tables import read_runs
from steelyard.run.session import state_root
from steelyard.studies.comparison.findings import claim_of_finding

if TYPE_CHECKING:
    from collections.abc import Iterator

TRUTH = str(files("steelyard") / "_bin" / "steelyard-truth")
pytestmark = pytest.mark.timing
FAST, SLOW = f"{TRUTH} --iterations 400000", f"{TRUTH} --iterations 1600000"
STALL_S = 0.5
ENDLESS = ("--margin", "0.001%", "--level", "99.9999%")
"""Identical commands are called different in 5 % of comparisons at the usual level, and end then."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sy-") as state:  # short: sockets lie below it
        monkeypatch.setenv("STEELYARD_STATE", state)
        monkeypatch.chdir(tmp_path)
        yield tmp_path
        assert list(Path(state).iterdir()) == [], "private folders were left behind"


class Compare:
    """The verb with `--json`."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def __call__(self, *words: str, code: int = 0) -> dict[str, Any]:
        self._capfd.readouterr()
        found = execute(["compare", "--json", "--budget", "20s", *words])
        output, error = self._capfd.readouterr()
        assert found == code, output[:2000] + error
        document: dict[str, Any] = json.loads(output)
        return document


@pytest.fixture
def compared(capfd: pytest.CaptureFixture[str]) -> Compare:
    return Compare(capfd)


def measured(found: dict[str, Any], contender: int | None = None) -> list[dict[str, Any]]:
    return [
        run for run in found["runs"] if run["phase"] == "measure" and contender in {None, run["contender"]}
    ]


def test_a_slow_command_is_found_slower_and_leaves_with_one(compared: Compare) -> None:
    found = compared("--no-record", "--name", "fast", "--name", "slow", FAST, SLOW, code=1)
    (claim,) = found["claims"]
    assert (found["schema"], found["verdict"]) == ("steelyard/comparison/1", "slower")
    assert (claim["baseline"], claim["contender"]) == ("fast", "slow")
    assert 2 < claim["ratio"] < 6
    assert claim["low"] <= claim["ratio"] <= claim["high"]
    assert "`slow` takes" in claim["sentence"]
    assert claim["sentence"].endswith(f"{claim['runs_baseline']} runs each, wall time)")
    assert found["end"] == "settled"


def test_the_same_the_other_way_round_is_faster_and_leaves_with_nought(compared: Compare) -> None:
    found = compared("--no-record", "--baseline", "2", FAST, SLOW)
    assert found["verdict"] == "faster"
    assert (found["claims"][0]["baseline"], found["claims"][0]["contender"]) == (SLOW, FAST)
    by_name = compared("--no-record", "--baseline", "slow", "--name", "fast", "--name", "slow", FAST, SLOW)
    assert by_name["claims"][0]["baseline"] == "slow"


def test_what_leaves_with_one_is_chosen(compared: Compare) -> None:
    faster = ("--runs-min", "6", "--runs-max", "12", SLOW, FAST)
    assert compared("--fail-on", "slower", *faster)["verdict"] == "faster"
    assert compared("--fail-on", "changed", *faster, code=1)["verdict"] == "faster"
    unsettled = (*ENDLESS, "--runs-min", "5", "--runs-max", "6", FAST, FAST)
    assert not compared("--fail-on", "changed", *unsettled)["claims"][0]["is_settled"]
    compared("--fail-on", "undecided", *unsettled, code=1)


def test_a_command_beside_itself_is_equivalent_within_a_wide_margin(compared: Compare) -> None:
    found = compared("--no-record", "--margin", "60%", FAST, FAST)
    assert found["verdict"] == "equivalent"
    assert [command["name"] for command in found["commands"]] == [f"{FAST} [1]", f"{FAST} [2]"]


def test_blocks_hold_each_command_once_and_the_order_follows_from_the_seed(compared: Compare) -> None:
    words = ("--no-record", "--runs-min", "8", "--runs-max", "8", "--warmup", "2", "--margin", "60%")
    first = compared(*words, "--seed", "5", FAST, FAST)
    again = compared(*words, "--seed", "5", FAST, FAST)
    other = compared(*words, "--seed", "6", FAST, FAST)

    def order(found: dict[str, Any]) -> list[tuple[int, int, str]]:
        return [(run["block"], run["contender"], run["phase"]) for run in found["runs"]]

    assert order(first) == order(again)
    assert order(first) != order(other)
    for block in range(10):
        of_block = [run for run in first["runs"] if run["block"] == block]
        assert sorted(run["contender"] for run in of_block) == [0, 1]
        assert {run["phase"] for run in of_block} == {"warmup" if block < 2 else "measure"}
    assert [command["count"] for command in first["commands"]] == [8, 8], "warm-up is not used"
    assert len(first["runs"]) == 20, "warm-up is recorded"


def test_every_run_is_in_the_result_folder(compared: Compare, here: Path) -> None:
    found = compared("--out", "r", FAST, SLOW, code=1)
    plan = read_plan(here / "r" / "plan.json")
    with LedgerReader(here / "r" / "ledger.sqlite") as reader:
        assert reader.plan_id == plan.id
        rows = list(reader.outcomes())
    assert len(rows) == len(found["runs"])
    assert {row.state for row in rows} == {"complete"}
    table = read_runs(here / "r")
    assert sorted(table["wall_ns"].to_pylist()) == sorted(run["wall_ns"] for run in found["runs"])
    assert set(table["phase"].to_pylist()) == {"warmup", "measure"}
    assert set(table["command"].to_pylist()) == {FAST, SLOW}


def test_results_get_folders_of_their_own_and_none_is_written_over(
    compared: Compare, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folders = {compared(FAST, SLOW, code=1)["result"] for _ in range(2)}
    assert len(folders) == 2
    assert all((here / folder / "findings.json").is_file() for folder in folders)
    assert execute(["compare", "--out", folders.pop(), FAST, SLOW]) == 2
    assert "already contains a result" in capfd.readouterr().err
    compared("--no-record", FAST, SLOW, code=1)
    assert len(list((here / "steelyard-results").iterdir())) == 2


@pytest.mark.parametrize(("metric", "unit"), [("cpu", "ns"), ("memory", "bytes")])
def test_other_metrics(metric: str, unit: str, compared: Compare) -> None:
    allocate = f"{sys.executable} -c 'x = bytearray(200 << 20); x[::4096] = b\"1\" * len(x[::4096])'"
    found = compared("--no-record", "--metric", metric, f"{sys.executable} -c pass", allocate, code=1)
    assert (found["verdict"], found["terms"]["unit"]) == ("slower", unit)
    assert ("more" if metric == "cpu" else "memory") in found["claims"][0]["sentence"] or "times" in found[
        "claims"
    ][0]["sentence"]


def test_each_value_of_a_parameter_is_compared_with_its_counterpart(compared: Compare) -> None:
    words = ("--no-record", "--parameter", "n=400000,800000", "--margin", "1%")
    found = compared(*words, f"{TRUTH} --iterations {{n}}", f"{TRUTH} --iterations 4{{n}}", code=1)
    assert [(claim["baseline"], claim["contender"]) for claim in found["claims"]] == [
        (f"{TRUTH} --iterations {n}", f"{TRUTH} --iterations 4{n}") for n in ("400000", "800000")
    ]
    assert {claim["comparisons"] for claim in found["claims"]} == {2}
    assert all(claim["verdict"] == "slower" for claim in found["claims"])


def test_one_command_compares_each_value_with_the_first(compared: Compare) -> None:
    found = compared("--no-record", "--parameter", "n=1:3", f"{TRUTH} --iterations {{n}}00000", code=1)
    assert [claim["baseline"] for claim in found["claims"]] == [f"{TRUTH} --iterations 100000"] * 2
    assert [command["parameters"] for command in found["commands"]] == [{"n": "1"}, {"n": "2"}, {"n": "3"}]


def test_a_baseline_without_the_parameter_is_one_command(compared: Compare) -> None:
    found = compared("--no-record", "--parameter", "n=8,16", FAST, f"{TRUTH} --iterations {{n}}00000", code=1)
    assert len(found["commands"]) == 3
    assert [claim["baseline"] for claim in found["claims"]] == [FAST, FAST]


def test_lines_around_runs_are_executed_as_often_as_they_say(compared: Compare, here: Path) -> None:
    lines = [
        word
        for option in ("setup", "prepare", "conclude", "cleanup")
        for word in (f"--{option}", f"echo {option} {{n}} >> log")
    ]
    found = compared(
        "--no-record", *lines, "--parameter", "n=1,9", f"{TRUTH} --iterations {{n}}00000", code=1
    )
    log = (here / "log").read_text(encoding="utf-8").splitlines()
    for contender, n in enumerate(("1", "9")):
        count = sum(run["contender"] == contender for run in found["runs"])
        assert [log.count(f"{option} {n}") for option in ("setup", "prepare", "conclude", "cleanup")] == [
            1,
            count,
            count,
            1,
        ]
    assert log[:2] == ["setup 1", "setup 9"]
    assert log[-2:] == ["cleanup 1", "cleanup 9"]


def test_a_line_that_fails_is_named(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["compare", "--prepare", "echo broken >&2; false", "--no-record", FAST, SLOW]) == 4
    error = capfd.readouterr().err
    assert "`--prepare 'echo broken >&2; false'` failed with exit code 1: broken" in error


def test_a_command_that_fails_is_named_and_what_was_recorded_is_kept(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    failing = "sh -c 'echo gone >&2; exit 7'"
    assert execute(["compare", "--out", "r", "--seed", "1", FAST, failing]) == 4
    error = capfd.readouterr().err
    assert f"`{failing}` failed with exit code 7: gone" in error
    assert "hint: --ignore-failure counts such runs" in error
    assert "nonzero_exit" in read_runs(here / "r")["status"].to_pylist()


def test_failures_may_be_ignored(compared: Compare) -> None:
    found = compared(
        "--no-record",
        "--ignore-failure",
        "--runs-max",
        "10",
        "--margin",
        "95%",
        "sh -c 'exit 3'",
        "sh -c 'kill $$'",
    )
    assert {run["status"] for run in found["runs"]} == {"nonzero_exit", "signalled"}
    assert any(warning.startswith("failures: ") for warning in found["warnings"])


def test_a_program_that_is_not_there_is_an_error_even_where_failures_are_ignored(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert execute(["compare", "--no-record", "--ignore-failure", "true", "no-such-program"]) == 4
    assert "cannot run `no-such-program`" in capfd.readouterr().err


def test_without_a_shell_words_are_words_and_with_one_it_says_so(
    compared: Compare, capfd: pytest.CaptureFixture[str]
) -> None:
    assert execute(["compare", "--no-record", "true; false", "true"]) == 4
    assert "cannot run `true;`" in capfd.readouterr().err
    found = compared("--no-record", "--shell", "--margin", "90%", "false; true", "true && true")
    assert found["commands"][0]["words"] == ["sh", "-c", "false; true"]
    assert any("nothing is subtracted" in warning for warning in found["warnings"])


def test_input_and_output_are_files(compared: Compare, here: Path) -> None:
    (here / "words").write_text("b\na\n", encoding="utf-8")
    words = ("--no-record", "--margin", "95%", "--input", "words", "--output", "sorted")
    found = compared(*words, "sort", "sort -r", code=0)
    lines = (here / "sorted").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2 * len(found["runs"])
    assert set(lines) == {"a", "b"}


def test_a_command_gets_the_variables_it_was_given(
    compared: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSED", "yes")
    check = "sh -c 'test \"$PASSED$GIVEN\" = yesno'"
    words = ("--environment", "PASSED", "--environment", "GIVEN=no")
    compared("--no-record", "--margin", "95%", *words, check, check)


@pytest.mark.parametrize("isolation", ["sandbox"])
def test_runs_may_be_isolated(isolation: str, compared: Compare) -> None:
    found = compared(
        "--no-record", "--isolation", isolation, "--show", str(Path(TRUTH).parent), FAST, SLOW, code=1
    )
    assert found["terms"]["isolation"] == isolation


def test_the_budget_is_counted_from_the_start_of_the_process(here: Path) -> None:
    """What a user waits for: importing, the launcher and the first look at the machine are part of it."""
    budget_s = 6.0
    words = ["--no-record", "--json", *ENDLESS, "--budget", f"{budget_s}s", FAST, FAST]
    with environment() as env:
        began_s = time.monotonic()
        process = start(words, env, stdout=subprocess.PIPE)
        output, _ = process.communicate(timeout=60)
    waited_s = time.monotonic() - began_s
    found = json.loads(output)
    assert process.returncode in {0, 1}
    assert 0 < found["startup_s"] < found["elapsed_s"]
    # No block begins that the slowest of late would not fit in; but a host may stall in the very last one.
    assert found["elapsed_s"] <= max(budget_s, 1.5 * found["startup_s"]) + STALL_S
    assert waited_s - found["elapsed_s"] < 0.5 * waited_s, "what is not counted is what follows"


def test_exports_hold_every_run(compared: Compare, here: Path) -> None:
    exports = [word for form in ("json", "csv", "md") for word in ("--export", form, f"x.{form}")]
    found = compared("--no-record", *exports, FAST, SLOW, code=1)
    assert json.loads((here / "x.json").read_text(encoding="utf-8")) == found
    with (here / "x.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["wall_ns"]) for row in rows] == [run["wall_ns"] for run in found["runs"]]
    assert {row["command"] for row in rows} == {FAST, SLOW}
    assert (here / "x.md").read_text(encoding="utf-8").startswith(found["claims"][0]["sentence"])


def test_the_text_has_sentence_table_and_end(capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["compare", "--no-record", "--name", "A", "--name", "B", FAST, SLOW]) == 1
    output, error = capfd.readouterr()
    first, _, head, row, *_ = output.splitlines()
    assert first.startswith("`B` takes ")
    assert " times as long as `A` (95 % interval " in first
    assert head.split() == ["command", "median", "spread", "least", "most", "runs", "flags"]
    assert row.startswith("A  ")
    assert "settled after" in output
    assert error == "", "silent where no terminal is"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "needs commands"),
        (["true"], "compare needs at least two commands; given: `true`"),
        (["true", ""], "a command is empty"),
        (["true", "echo 'x"], "cannot split `echo 'x` into words: no closing quotation"),
        (["--margin", "lots", "true", "true"], "`--margin lots`: not a percentage"),
        (["--margin", "0", "true", "true"], "`--margin 0%`: allowed: more than 0 %"),
        (["--level", "20%", "true", "true"], "`--level 20%`: allowed: more than 50 %"),
        (["--warmup", "-1", "true", "true"], "`--warmup -1`: allowed: 0 or more"),
        (["--runs-min", "0", "true", "true"], "`--runs-min 0`: allowed: 1 or more"),
        (["--runs-max", "3", "true", "true"], "`--runs-max 3`: allowed: at least 5"),
        (["--runs-max", "999999", "true", "true"], "allowed: at most 100000 runs in total"),
        (["--budget", "soon", "true", "true"], "`--budget soon`: not a duration"),
        (["--baseline", "3", "true", "false"], "`--baseline 3`: allowed: 1 to 2, or one of `true`, `false`"),
        (["--name", "x", "true", "false"], "1 names for 2 commands"),
        (["--name", "x", "--name", "x", "true", "false"], "two commands have the same name: x"),
        (["--parameter", "n", "true {n}"], "`--parameter n`: allowed: `NAME=A,B,C`"),
        (["--parameter", "n=5:1", "true {n}"], "allowed: FROM at most TO"),
        (["--parameter", "n=1,2", "--parameter", "n=3", "true {n}"], "`--parameter n=...` is given 2 times"),
        (
            ["--parameter", "m=1,2", "true {n}", "true"],
            "no command contains `{m}`; the commands contain `{n}`",
        ),
        (["--parameter", "n=7", "true {n}"], "compare needs at least two commands"),
        (["--prepare", "a", "--prepare", "b", "true", "true", "true"], "`--prepare` is given 2 times for 3"),
        (["--isolation", "bear", "true", "false"], "`bear` is not an isolation technology"),
        (["--input", "absent", "true", "false"], "`--input absent`: no such file"),
        (["--cpus", "4096", "true", "false"], "this process may use the CPUs"),
        (["--no-record", "--report", "true", "false"], "`--no-record` keeps nothing on disk"),
        (["--export", "md", "no/such/x.md", "true", "false"], "cannot write this file"),
        (["--metric", "power", "true", "false"], "power"),
        (["--export", "xml", "x.xml", "true", "false"], "xml"),
    ],
)
def test_wrong_requests_leave_with_two_and_nothing_on_disk(
    words: list[str], said: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert execute(["compare", *words]) == 2
    error = capfd.readouterr().err
    assert said in error
    assert "hint: " in error
    assert "Traceback" not in error
    leftover = [path for path in here.rglob("*") if path.is_file()]
    assert leftover == []


def start(words: list[str], env: dict[str, str], **streams: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([*COMMAND, "compare", *words], text=True, env=env, **streams)


def recorded(folder: Path) -> int:
    """Count the runs in a ledger that is perhaps being made."""
    try:
        with LedgerReader(folder / "ledger.sqlite") as reader:
            return len(list(reader.outcomes()))
    except DataError:
        return 0


def wait_for_runs(process: subprocess.Popen[str], folder: Path, count: int, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while recorded(folder) < count:
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() < deadline, "it does not advance"
        time.sleep(0.05)


@pytest.mark.parametrize("kept", [("--out", "kept"), ("--no-record",)], ids=["recorded", "not recorded"])
def test_an_interruption_before_any_run_is_done_says_that_nothing_is_known(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kept: tuple[str, ...]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("steelyard.studies.comparison.run.launch.Launches.execute", interrupted)
    assert execute(["compare", *kept, "true", "false"]) == 130
    assert capfd.readouterr().out.startswith("nothing is known about `false` against `true`")
    assert (here / "kept" / "plan.json").exists() == ("--out" in kept)


@pytest.mark.long("a comparison that is interrupted")
def test_an_interruption_gives_the_verdict_of_what_there_is(here: Path, patience_s: float) -> None:
    words = ["--out", "r", *ENDLESS, "--runs-max", "40000", "--budget", "100s", FAST, FAST]
    with environment() as env:
        process = start(words, env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for_runs(process, here / "r", 60, patience_s)
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert " runs each, wall time)" in output
    assert "interrupted after" in output
    assert "recorded in r" in output
    assert "Traceback" not in error
    assert read_runs(here / "r").num_rows >= 60


@pytest.mark.long("a comparison that is killed")
def test_a_killed_comparison_has_lost_no_run(here: Path, patience_s: float) -> None:
    words = ["--out", "r", *ENDLESS, "--runs-max", "40000", "--budget", "100s", FAST, FAST]
    process = start(words, dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_runs(process, here / "r", 60, patience_s)
    process.kill()
    process.wait()
    with LedgerReader(here / "r" / "ledger.sqlite") as reader:
        batches = [row.batch for row in reader.outcomes()]
    assert batches == list(range(len(batches))), "every run before the kill is there, in order"
    assert len(batches) >= 60
    plan = read_plan(here / "r" / "plan.json")
    assert plan.study == "compare"
    left = [path.name for path in state_root().iterdir()]
    assert left, "a killed comparison can remove nothing"
    # The next comparison of this user sweeps what the killed one left.
    assert execute(["compare", "--no-record", FAST, SLOW]) == 1
    remains = [root / name for root in (state_root(), Path("/dev/shm")) for name in left]  # noqa: S108 - its place
    assert not [path for path in remains if path.exists()]


def test_a_terminal_sees_what_is_known_by_now(here: Path) -> None:
    master, slave = pty.openpty()
    with environment() as env:
        words = ["--no-record", "--margin", "0.001%", "--runs-max", "60", FAST, SLOW]
        process = start(words, env, stdout=subprocess.PIPE, stderr=slave)
        os.close(slave)
        shown = b""
        while True:
            try:
                chunk = os.read(master, 65536)
            except OSError:  # the terminal's other end is closed
                break
            if not chunk:
                break
            shown += chunk
        process.communicate(timeout=60)
    os.close(master)
    assert process.returncode == 1
    assert b"runs each" in shown
    assert shown.endswith(b"\r\x1b[2K"), "the line is removed at the end"


@pytest.fixture
def reported(compared: Compare, here: Path) -> Path:
    names = ["--name", "</script><b>&", "--name", "slow", "--name", "twin"]
    found = compared("--out", "r", "--report", "--runs-max", "30", *names, FAST, SLOW, FAST, code=1)
    page = (here / "r" / "report.html").read_text(encoding="utf-8")
    assert all(claim["contender"] in page for claim in found["claims"])
    assert "</script><b>&" not in page, "a name is no markup"
    return here / "r"


def test_the_report_rests_on_findings(reported: Path) -> None:
    findings = read_findings(reported / "findings.json")
    assert findings.plan_id == read_plan(reported / "plan.json").id
    assert set(findings.inputs) == set(hash_tables(reported))
    page = (reported / "report.html").read_text(encoding="utf-8")
    for finding in findings.of("comparison"):
        sentence = str(finding.facts["sentence"])
        assert sentence == claim_of_finding(finding).sentence
        assert f"{finding.facts['runs_first']} runs each" in sentence
        assert f"{finding.facts['runs_first']} runs each, wall time)" in page
    assert {path.name for path in (reported / "figures").iterdir()} == {"figures.json"} | {
        f"{figure}.{form}"
        for figure in ("ratios-forest", "run-sequence", "distribution")
        for form in ("svg", "png")
    }


@pytest.mark.needs_browser
@pytest.mark.skipif(find_browser() is None, reason="needs_browser: chromium is not installed")
def test_the_report_draws_in_a_browser(reported: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    with tab((reported / "report.html").as_uri(), tmp_path_factory.mktemp("profile")) as page:
        page.wait_for("document.querySelector('[data-charts=drawn]') !== null")
        assert page.evaluate("document.querySelectorAll('[data-chart] svg.marks').length") == 3
        assert page.evaluate("document.querySelectorAll('.failed').length") == 0
        assert page.console == []


def test_what_was_set_up_is_cleaned_up_whatever_fails(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["--no-record", "--setup", "touch made", "--cleanup", "rm made; false"]
    assert execute(["compare", *words, FAST, "false"]) == 4
    assert "`false` failed with exit code 1" in capfd.readouterr().err, "the first failure is the one to know"
    assert not (here / "made").exists()
    assert execute(["compare", *words, FAST, SLOW]) == 4
    assert "--cleanup" in capfd.readouterr().err
