"""The scaling study of a user's program, from the command line to a verified report."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

import steelyard
from integration import study_process
from integration.study_process import completed, environment, recorded, start, wait_for_batches
from steelyard.cli import execute
from steelyard.design.worker_counts import HostFacts
from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.share.verify import verify
from steelyard.studies.scaling import design
from steelyard.studies.scaling.findings.recommendations import FITTING
from steelyard.studies.scaling.generator import balance_bound, source_means
from steelyard.studies.scaling.packet_files import SPEEDUP_HEADING

pytestmark = pytest.mark.timeout(300)

# Reports a rate that is known, so that the whole way from the program to the page can be checked.
PROGRAM = """
import os, sys
workers = int(sys.argv[1])
line = f"operations {900 * workers} count\\nwall 1000000 ns\\n"
os.write(int(os.environ["STEELYARD_METRICS_FD"]), line.encode())
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "prog.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return f"{sys.executable} prog.py {{workers}}"


def study_file(folder: Path, text: str) -> str:
    path = folder / "study.toml"
    path.write_text('study = "scaling"\n' + text, encoding="utf-8")
    return str(path)


@pytest.mark.slow
def test_a_program_that_reports_its_rate(tmp_path: Path, program: str) -> None:
    file = study_file(tmp_path, "trials = 3\nworkers = [1, 2, 4]\n")
    out = str(tmp_path / "r")
    words = ["run", "scaling", "--study-file", file, "--command", program, "--out", out]
    assert execute(words) == 0
    findings = read_findings(tmp_path / "r/findings.json")
    speedups = {each.subject["workers"]: each for each in findings.of("speedup")}
    assert {count: each.estimates["speedup"].value for count, each in speedups.items()} == {
        "1": 1.0,
        "2": 2.0,
        "4": 4.0,
    }
    assert speedups["2"].verdict == "ideal"
    assert speedups["1"].verdict == "baseline"
    (settings,) = findings.of("settings")
    assert settings.facts["response"] == "operations over the program's own time"
    assert [each.verdict for each in findings.of("identical_cells")] == ["descriptive"]
    assert verify(tmp_path / "r") == []
    with (tmp_path / "r/tables/speedup_by_workers.csv").open() as table:
        assert [row["speedup"] for row in csv.DictReader(table)] == ["1.0", "2.0", "4.0"]


@pytest.mark.slow
def test_a_baseline_and_the_wall_time(tmp_path: Path) -> None:
    file = study_file(tmp_path, "trials = 2\nworkers = [2]\n")
    out = tmp_path / "r"
    words = ["run", "scaling", "--study-file", file, "--command", "sleep 0.0{workers}"]
    assert execute([*words, "--baseline", "sleep 0.1", "--out", str(out)]) == 0
    (point,) = read_findings(out / "findings.json").of("speedup")
    assert point.facts["against"] == "the serial program"
    speedup = point.estimates["speedup"].value
    assert speedup is not None
    # A sleep may take longer than asked for, never shorter: 0.1 s over 0.02 s, less what starting adds.
    assert 2 < speedup < 8


# Works on one core whatever it is told, and is killed with four workers.
CALCULATES = """
import os, signal, sys, time
if sys.argv[1] == "4":
    os.kill(os.getpid(), signal.SIGSEGV)
while time.process_time() < 0.1:
    pass
"""


@pytest.mark.slow
def test_a_program_that_ignores_its_workers_and_one_that_crashes_are_named(tmp_path: Path) -> None:
    (tmp_path / "calculates.py").write_text(CALCULATES, encoding="utf-8")
    file = study_file(tmp_path, "trials = 3\nworkers = [1, 2, 4]\n")
    out = tmp_path / "r"
    command = f"{sys.executable} {tmp_path}/calculates.py {{workers}}"
    assert execute(["run", "scaling", "--study-file", file, "--command", command, "--out", str(out)]) == 0
    findings = read_findings(out / "findings.json")
    rows = {each.subject["workers"]: each for each in findings.of("speedup")}
    assert rows["4"].verdict == "ended by SIGSEGV"
    assert rows["4"].estimates["speedup"].value is None
    (threads,) = findings.of("thread_count")
    assert threads.verdict == "more workers use no more cores"
    assert not findings.of("amdahl")
    assert verify(out) == []
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "ended by SIGSEGV" in page
    assert "either it ignores the number of workers" in page
    with (out / "tables/speedup_by_workers.csv").open() as table:
        assert [row["verdict"] for row in csv.DictReader(table)][-1] == "ended by SIGSEGV"


@pytest.mark.slow
def test_runs_that_starting_a_process_dominates_are_too_short(tmp_path: Path) -> None:
    file = study_file(tmp_path, "trials = 3\nworkers = [1, 2]\n")
    out = tmp_path / "r"
    words = ["run", "scaling", "--study-file", file, "--command", "true {workers}", "--out", str(out)]
    assert execute(words) == 0
    findings = read_findings(out / "findings.json")
    assert {each.verdict for each in findings.of("speedup")} == {"too short to judge"}
    assert not findings.of("amdahl")
    assert not findings.of("no_law")
    assert "give the program more to do" in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_two_results_are_compared_curve_by_curve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    file = study_file(tmp_path, "trials = 5\nworkers = [1, 2]\n")
    for name, rate in (
        ("base", "900 * workers"),
        ("same", "905 * workers"),
        ("worse", "700 * workers + 200"),
    ):
        (tmp_path / "prog.py").write_text(PROGRAM.replace("900 * workers", rate), encoding="utf-8")
        command = f"{sys.executable} prog.py {{workers}}"
        assert execute(["run", "scaling", "--study-file", file, "--command", command, "--out", name]) == 0
    capsys.readouterr()
    assert execute(["compare-results", "base", "same", "--margin", "5%"]) == 0
    assert "0 lower, 0 higher, 3 equal within the margin, 0 undecided" in capsys.readouterr().out
    assert execute(["compare-results", "base", "worse", "--margin", "5%", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    answers = {(each["quantity"], each["workers"]): each["answer"] for each in found["points"]}
    # 900 and 1800 against 900 and 1600 operations.
    assert answers == {
        ("speed-up", 2): "lower",
        ("rate", 1): "equal within the margin",
        ("rate", 2): "lower",
    }
    assert found["differs"]


def test_a_plan_of_a_program_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["plan", "scaling", "--command", "sleep 0.{workers}"]) == 0
    assert "program, machine" in capsys.readouterr().out
    assert execute(["plan", "stability", "--command", "sleep 0.{workers}"]) == 2


@pytest.mark.long("a study that is killed and resumed")
def test_a_killed_study_is_resumed_by_the_same_request_only(
    tmp_path: Path, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = study_file(tmp_path, "trials = 10\nworkers = [1, 2]\n")
    out = tmp_path / "r"
    words = ["run", "scaling", "--study-file", file, "--command", program, "--out", str(out)]
    with environment() as env:
        process = start(words, env)
        wait_for_batches(process, out, 2)
        process.kill()
        process.communicate()
        before, plan = recorded(out), read_plan(out / "plan.json")
        assert study_process.execute(["run", "scaling", "--out", out, "--resume"], env).returncode == 0
    assert before < recorded(out), "nothing is lost, and the rest was run"
    assert sorted(completed(out)) == [batch.number for batch in plan.batches]
    assert read_plan(out / "plan.json") == plan
    assert execute([*words, "--resume"]) == 0
    capsys.readouterr()
    assert execute([*words, "--baseline", "true", "--resume"]) == 5
    assert "`baseline` was null and is" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "scaling", "--command", "prog"], "no place for the number of workers"),
        (["run", "scaling", "--baseline", "prog"], "`--baseline prog` needs `--command`, which is missing"),
        (["run", "stability", "--command", "prog {workers}"], "it belongs to `scaling`"),
    ],
)
def test_wrong_requests_are_answered(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(words) == 2
    assert said in capsys.readouterr().err


# The packets program as the study calls it, with rates that follow from what is asked: serial 1000 / W
# packets per ms, LockFree 0.98 per worker but under exponential load no more than the heaviest source
# allows, Awesome 0.95 per worker whatever the load, HomeQueue as LockFree less a tenth.
PACKETS = """#!{python}
import os, sys
sys.path.insert(0, {package!r})
from steelyard.studies.scaling.generator import balance_bound, source_means
if sys.argv[1] == "independent":
    threads = int(sys.argv[3])
    lines = [f"sections {{1000 * threads}} count 0 measure", "wall 1000000 ns 0 measure"]
    os.write(int(os.environ["STEELYARD_METRICS_FD"]), ("\\n".join(lines) + "\\n").encode())
    sys.exit()
kind, duration, n, work, load, seed, *rest = sys.argv[1:]
n, work = int(n), int(work)
ideal = {{"L": 0.98, "H": 0.88, "A": 0.95}}.get(rest[-1] if rest else "", 0) * n if kind == "parallel" else 1
if kind == "parallel" and load == "f" and rest[-1] != "A":
    ideal *= balance_bound(source_means(work, n, int(seed))) / n
packets = round(ideal * 1e9 / work)
lines = [f"packets {{packets}} count 0 measure", "wall 1000000000 ns 0 measure"]
if kind == "parallel":
    lines += [f"dispatched {{packets}} count 0", f"full_waits {{packets // 2}} count 0"]
    lines += ["dispatcher_idle 900000000 ns 0"]
    lines += [f"worker_idle 20000000 ns {{each}}" for each in range(n)]
    lines += [f"worker_packets {{packets // n}} count {{each}}" for each in range(n)]
os.write(int(os.environ["STEELYARD_METRICS_FD"]), ("\\n".join(lines) + "\\n").encode())
print(packets)
"""


@pytest.mark.slow
def test_the_packets_study_finds_what_was_put_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "packets"
    package = str(Path(steelyard.__file__).parents[1])
    fake.write_text(PACKETS.format(python=sys.executable, package=package), encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setattr(design, "packets_program", lambda: fake)
    monkeypatch.setattr(design, "host_facts", lambda: HostFacts(4, 4))
    file = study_file(
        tmp_path,
        "trials = 2\nworkers = [1, 2, 3]\nwork = [1000]\nlock_work = []\nlock_tests = []\ndepths = [32]\n"
        'locks = ["pthread mutex"]\n'
        'strategies = ["LockFree", "HomeQueue", "Awesome"]\ngate_retries = 0\n',
    )
    out = tmp_path / "r"
    assert execute(["run", "scaling", "--study-file", file, "--out", str(out)]) == 0
    findings = read_findings(out / "findings.json")

    def value(claim: str, role: str, **subject: str) -> float:
        (found,) = [
            each
            for each in findings.of(claim)
            if all(each.subject[key] == expected for key, expected in subject.items())
        ]
        estimate = found.estimates[role].value
        assert estimate is not None
        return estimate

    free = {"load": "uniform", "strategy": "LockFree"}
    assert value("speedup", "speedup", workers="3", **free) == pytest.approx(3 * 0.98, rel=1e-4)
    assert value("speedup", "shy", workers="3", **free) == pytest.approx(2, abs=0.01)
    assert value("amdahl", "contention", **free) == pytest.approx(0, abs=1e-4)
    assert value("overhead", "overhead", load="uniform") == pytest.approx(0.98 / 0.88, rel=1e-4)
    heavy = {"load": "exponential", "workers": "3"}
    assert value("imbalance", "relative", strategy="LockFree", **heavy) == pytest.approx(0.98, rel=1e-3)
    gain = value("gain", "gain", contender="Awesome (pthread mutex)", **heavy)
    bounds = [balance_bound(source_means(1000, 3, seed)) for seed in (1, 2)]
    assert gain == pytest.approx(3 * 0.95 / (0.98 * sum(bounds) / 2), rel=1e-3)
    recommended = {
        (each.subject["load"], each.subject["crowd"]): each.verdict for each in findings.of("recommendation")
    }
    assert recommended["uniform", FITTING] == "LockFree"
    assert recommended["exponential", FITTING] == "Awesome (pthread mutex)"
    assert {each.verdict for each in findings.of("held_back_by")} == {"the workers"}
    assert {each.facts["worker_packets_cv"] for each in findings.of("held_back_by")} == {0.0}
    with (out / "tables/speedup.csv").open() as table:
        assert next(csv.reader(table)) == list(SPEEDUP_HEADING)
    assert verify(out) == []


def test_what_the_tables_do_not_say_is_stated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "M,n,W,U,L,Speedup\n2000,1,1000,t,p,0.98\n2000,8,1000,t,p,3.1\n2000,32,1000,t,p,2.9\n"
    path = str(tmp_path / "t.csv")
    Path(path).write_text(text, encoding="utf-8")
    out = ["--out", str(tmp_path / "r")]
    assert execute(["import", "packets", path, *out, "--depth", "8"]) == 5
    assert "no column `S`; state it with `--strategy`" in capsys.readouterr().err
    facts = ["--depth", "8", "--strategy", "A", "--cores", "14"]
    assert execute(["import", "packets", path, *out, *facts]) == 0
    plan = read_plan(tmp_path / "r/plan.json")
    assert plan.factors["strategy"] == ("Awesome",)
    assert plan.factors["depth"] == ("8",)
    assert plan.options["core_count"] == 14
    assert execute(["analyse", str(tmp_path / "r")]) == 0
    findings = read_findings(tmp_path / "r/findings.json")
    crowded = {each.subject["workers"]: each.facts["oversubscribed"] for each in findings.of("speedup")}
    assert crowded == {"1": False, "8": False, "32": True}


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["csv", "--cores", "2"], "`--cores` is for the format `packets`"),
        (["recodex", "--depth", "2"], "`--depth` is for the format `packets`"),
        (["packets", "--cores", "0"], "allowed: a whole number from 1"),
        (["packets", "--strategy", "X"], "allowed: `L` LockFree"),
        (["packets", "--depth", "8"], "`--depth` is given, but the column `D` states it"),
    ],
)
def test_facts_that_do_not_fit_are_refused(
    tmp_path: Path, words: list[str], fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "t.csv")
    Path(path).write_text(",".join(SPEEDUP_HEADING) + "\n2000,1,1000,t,32,nan,L,0.9\n", encoding="utf-8")
    assert execute(["import", words[0], path, *words[1:], "--out", str(tmp_path / "r")]) in {2, 5}
    assert fault in capsys.readouterr().err
