"""The communication study end to end on real transports: measure, model, report, verify, resume, fail."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from integration.study_process import COMMAND
from steelyard.cli import execute
from steelyard.cli.results.compare_results import lay_over
from steelyard.model.cost_model import read_cost_model
from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.record.tables import read_runs
from steelyard.share.verify import verify
from steelyard.studies.communication.recorded import read_recorded
from steelyard.studies.communication.trace import read_trace
from steelyard.studies.communication.transport.link_cleanup import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHORT = ("--operations", "600", "--replications", "3", "--largest", "100000", "--quick")
USAGE, CAPABILITY = 2, 3


@pytest.fixture(autouse=True)
def state_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="sy-") as state:  # short: sockets lie below it
        monkeypatch.setenv("STEELYARD_STATE", state)
        yield


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pipe and shared memory, three short replications each."""
    result = tmp_path_factory.mktemp("communication") / "result"
    with tempfile.TemporaryDirectory(prefix="sy-") as state, pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEELYARD_STATE", state)
        words = ["run", "communication", "--transport", "pipe", "--transport", "shm", *SHORT]
        assert execute([*words, "--out", str(result)]) == 0
    return result


@pytest.mark.slow
def test_a_validation_that_has_nothing_to_simulate_says_so_with_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = tmp_path / "r"
    few = ("--operations", "300", "--replications", "2", "--quick", "--validate", "--no-analyse")
    assert execute(["run", "communication", "--transport", "unix", *few, "--out", str(result)]) == 0
    (result / "traces/000001.01/operations.0.bin").write_bytes(b"")
    # One replication is left, which the model needs.
    assert execute(["run", "communication", "--resume", "--out", str(result)]) == 6
    assert "no replication with enough round trips is left to predict" in capsys.readouterr().err
    (said,) = read_findings(result / "findings.json").of("not_simulated")
    assert said.verdict == "nothing left"
    assert "SimGrid simulated nothing" in (result / "report.html").read_text(encoding="utf-8")


@pytest.mark.long("the one study of the module, which the tests behind it share")
def test_every_run_leaves_a_complete_trace_of_the_list_it_was_given(measured: Path) -> None:
    runs = read_recorded(measured, read_plan(measured / "plan.json"))
    assert len(runs) == 6
    for run in runs:
        assert run.status == "completed"
        assert run.trace is not None
        assert run.trace.is_complete
        assert len(run.trace.endpoints[0].operations) == 600
        asked = (run.folder / "plan.csv").read_text().splitlines()[1:]
        sizes = [int(line.partition(",")[2]) for line in asked]
        assert len(sizes) == 800
        assert run.trace.endpoints[0].operations["size"].tolist() == sizes[200:]


def test_models_and_findings_follow_from_the_traces(measured: Path) -> None:
    assert verify(measured) == []
    found = read_findings(measured / "findings.json")
    cards = found.of("model")
    assert {card.subject["transport"] for card in cards} == {"pipe", "shm"}
    for card in cards:
        model = read_cost_model(measured / str(card.facts["model_file"]))
        assert model.transport == card.subject["transport"]
        assert 0 < model.predict(1) < model.predict(100_000) < 1
    assert all(name.startswith("traces/") for name in found.inputs if name.endswith(".bin"))
    assert found.of("ended_early") == ()


def test_a_changed_trace_is_noticed(measured: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(measured, copy)
    path = next(copy.glob("traces/*/operations.0.bin"))
    content = bytearray(path.read_bytes())
    content[24] ^= 1  # a nanosecond of the first stamp
    path.write_bytes(content)
    assert any(path.parent.name in problem for problem in verify(copy))


def test_a_replication_that_was_not_fitted_is_predicted_where_the_host_stayed_the_same(
    measured: Path,
) -> None:
    found = read_findings(measured / "findings.json")
    predictions = [each for each in found.of("prediction") if each.subject["predictor"] == "model"]
    fitted = {tuple(sorted(card.subject.items())): card.facts["replications"] for card in found.of("model")}
    for each in predictions:
        subject = {name: each.subject[name] for name in ("transport", "link", "state")}
        assert fitted[tuple(sorted(subject.items()))] in {1, 2}
        assert each.estimates["median"].value is not None
    assert len(found.of("clock")) == 6


def test_the_report_is_whole_and_predict_answers(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (measured / "report.html").read_text(encoding="utf-8")
    for word in ("pipe", "shm", "What a message costs", "canary"):
        assert word in page
    model = next(measured.glob("models/shm*.json")).stem
    assert execute(["predict", str(measured), "--size", "1000", "--model", model, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert 0 < answer["predictions"][0]["seconds"] < 1


def test_a_result_does_not_differ_from_itself(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lay_over((measured, measured), ("first", "second"), as_json=True) == 0
    answer = json.loads(capsys.readouterr().out)
    assert not answer["differs"]
    assert {each["what"] for each in answer["compared"]} <= {"pipe", "shm"}


@pytest.mark.long("a study that is killed and resumed")
def test_a_killed_study_resumes_and_repeats_the_run_in_flight_alone(tmp_path: Path) -> None:
    result = tmp_path / "result"
    words = ["run", "communication", "--transport", "pipe", *SHORT, "--out", str(result)]
    process = _steelyard(words)
    try:
        _await(lambda: len(list(result.glob("traces/0*"))) >= 1)
        os.killpg(process.pid, signal.SIGKILL)
    finally:
        process.wait()
    kept = {path.name for path in result.glob("traces/0*")}
    assert execute(["run", "communication", "--resume", "--out", str(result)]) == 0
    runs = read_runs(result).to_pylist()
    assert [run["status"] for run in runs] == ["completed"] * 3
    assert kept <= {path.name for path in result.glob("traces/0*")}
    assert verify(result) == []


@pytest.mark.slow
def test_a_killed_endpoint_keeps_what_was_stamped_and_the_study_goes_on(tmp_path: Path) -> None:
    result = tmp_path / "result"
    long = (
        "--operations",
        "200000",
        "--warm-up",
        "0",
        "--replications",
        "2",
        "--largest",
        "1000",
        "--budget",
        "4",
        "--quick",
    )
    process = _steelyard(["run", "communication", "--transport", "pipe", *long, "--out", str(result)])
    try:
        victim = _await(lambda: _endpoint_at_work(process))
        os.kill(victim, signal.SIGKILL)
        assert process.wait(timeout=60) == 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    first, second = sorted(read_recorded(result, read_plan(result / "plan.json")), key=lambda run: run.folder)
    assert first.status != "completed"
    assert first.trace is not None
    assert 0 < len(first.trace.endpoints[0].operations) < 200_000
    assert second.status == "completed"
    ended = [each for each in read_findings(result / "findings.json").findings if each.claim == "ended_early"]
    assert ended[0].facts["operations"] == len(first.trace.endpoints[0].operations)
    assert read_trace(first.folder).endpoints[0].header["rank"] == 0


@pytest.mark.long("a study over a link")
@pytest.mark.needs_root
@pytest.mark.needs_tc
@pytest.mark.skipif(os.geteuid() != 0, reason="needs the rights of root, to make network namespaces")
@pytest.mark.skipif(shutil.which("tc") is None, reason="needs `tc`: make deps-communication")
def test_a_study_over_a_link_knows_its_truth_and_leaves_no_namespace(tmp_path: Path) -> None:
    result = tmp_path / "result"
    short = ("--operations", "600", "--replications", "2", "--largest", "200000", "--quick")
    words = ["run", "communication", "--transport", "tcp", "--link", "rate=1gbit", *short]
    before = set(NAMESPACES.glob("*"))
    assert execute([*words, "--out", str(result)]) == 0
    assert set(NAMESPACES.glob("*")) <= before
    runs = read_recorded(result, read_plan(result / "plan.json"))
    assert [run.status for run in runs] == ["completed", "completed"]
    truth = json.loads((runs[0].folder / "link.json").read_text())["truth"]
    assert truth["rate_bits_per_s"] == 1_000_000_000
    links = read_findings(result / "findings.json").of("link")
    assert links
    assert all(each.estimates["truth"].value == truth["payload_bytes_per_s"] for each in links)
    assert verify(result) == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--transport", "carrier-pigeon"], USAGE, "allowed: `pipe`"),
        (["--sizes", "random"], USAGE, "`doubling`, `uniform`, `log-uniform`"),
        (["--smallest", "10", "--largest", "9"], USAGE, "is above"),
        (["--link", "rate=fast"], USAGE, "rate"),
        (["--transport", "pipe", "--link", "rate=1gbit"], USAGE, "works within one host only"),
        (["--operations", "1"], USAGE, "--operations"),
        (["--hostfile", "absent-hosts", "--transport", "tcp"], USAGE, "absent-hosts"),
    ],
)
def test_wrong_requests_say_what_is_allowed(
    words: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["run", "communication", *words, "--out", str(tmp_path / "result")]) == code
    shown = capsys.readouterr().err
    assert said in shown
    assert "hint:" in shown
    assert "Traceback" not in shown


def test_an_mpi_that_is_not_installed_is_named_and_the_others_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "env"):
        (programs / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    monkeypatch.setenv("PATH", str(programs))
    from steelyard.studies.communication.transport.mpi import Mpich  # noqa: PLC0415 - a fresh one: availability is kept

    assert "MPICH is not installed" in (Mpich().probe().reason or "")
    assert "make deps-communication" in (Mpich().probe().repair or "")


def _steelyard(words: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def _await(condition: Callable[[], Any], limit_s: float = 60.0) -> Any:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    pytest.fail(f"nothing happened within {limit_s:g} s")


def _endpoint_at_work(process: subprocess.Popen[bytes]) -> int | None:
    """Give an endpoint that this study started, once it stamped some operations."""
    for number in _descendants(process.pid):
        words = _read(f"/proc/{number}/cmdline").split(b"\0")
        if words[0].endswith(b"steelyard-comm") and b"--out" in words:
            folder = words[words.index(b"--out") + 1].decode()
            if any(_read(f"{folder}/operations.0.bin")[40 * 50 : 40 * 100]):
                return number
    return None


def _descendants(root: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{root}/task").glob("*/children"):
        for child in map(int, _read(str(task)).split()):
            found += [child, *_descendants(child)]
    return found


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def test_an_unknown_transport_is_named_as_it_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["run", "communication", "--transport", "openmpi-shm"]) == 2
    said = capsys.readouterr().err
    assert '`--transport openmpi-shm`: is `"openmpi-shm"` (did you mean `openmpi`?)' in said
