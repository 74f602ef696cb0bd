"""`steelyard measure` as a user calls it: every limit, every technology, every way not to start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from integration.test_technologies import NAMES
from steelyard.cli import execute
from steelyard.model.run_outcome import RunOutcome
from steelyard.record.ledger_reader import LedgerRow
from steelyard.record.outcome_rows import measurement_rows
from steelyard.run.isolation.registry import technology
from steelyard.run.isolation.root_view import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHON = os.path.realpath(sys.executable)
SPIN = "while :; do :; done"


@pytest.fixture(autouse=True)
def private_state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="sy-") as state:  # short: sockets lie below it
        monkeypatch.setenv("STEELYARD_STATE", state)
        yield


class Measure:
    """The verb with `--json`."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def __call__(self, *words: str, code: int = 0) -> dict[str, Any]:
        self._capfd.readouterr()
        found = execute(["measure", "--json", *words])
        output, error = self._capfd.readouterr()
        assert found == code, output + error
        document: dict[str, Any] = json.loads(output)
        return document


@pytest.fixture
def measured(capfd: pytest.CaptureFixture[str]) -> Measure:
    return Measure(capfd)


def test_the_json_has_the_figures_of_the_first_run_and_every_outcome(measured: Measure) -> None:
    found = measured("-n", "3", "--", "echo", "hello")
    assert found["schema"] == "steelyard/measure/1"
    assert (found["command"], found["isolation"]) == (["echo", "hello"], "bare")
    assert (found["status"], found["exit_code"], found["signal"], found["limit"]) == (
        "completed",
        0,
        None,
        None,
    )
    outcomes = found["outcomes"]
    assert [outcome["iteration"] for outcome in outcomes] == [1, 2, 3]
    for outcome in outcomes:
        assert outcome["standard_output"]["text"] == "hello\n"
        assert 0 < outcome["quantities"]["wall_ns"]["value"] < 60_000_000_000
        for quantity in outcome["quantities"].values():
            assert (quantity["value"] is None) == ("missing" in quantity and quantity["missing"] is not None)
            assert quantity["source"]
    first = outcomes[0]["quantities"]
    for name in ("wall_ns", "cpu_ns", "cpu_user_ns", "cpu_system_ns", "peak_memory_bytes", "run_delay_ns"):
        assert found[name] == first[name]["value"]


ALLOCATE = "x = bytearray(200 << 20); x[::4096] = b'1' * len(x[::4096])"
FORK = "import os\nfor _ in range(20):\n    if os.fork() == 0:\n        import time; time.sleep(30)\n"
LIMITS = {
    "cpu_time": (["--cpu-time", "200ms"], ["sh", "-c", SPIN], "cpu_timeout", "cpu_time"),
    "wall_time": (["--wall-time", "0.2"], ["sleep", "30"], "wall_timeout", "wall_time"),
    "memory": (["--memory", "64M"], [PYTHON, "-c", ALLOCATE], "out_of_memory", "memory"),
    "processes": (["--processes", "4"], [PYTHON, "-c", FORK], "limit_exceeded", "process_count"),
    "file_size": (
        ["--file-size", "4K"],
        ["dd", "if=/dev/zero", "of={file}", "bs=1024", "count=100"],
        "limit_exceeded",
        "file_size",
    ),
    "output_size": (["--output-size", "4K"], ["yes"], "limit_exceeded", "output"),
}


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs the rights of root for control groups")
@pytest.mark.parametrize("isolation", ["bare", "sandbox"])
@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_that_is_reached_is_named_and_leaves_with_four(
    name: str, isolation: str, measured: Measure, tmp_path: Path
) -> None:
    options, command, status, limit = LIMITS[name]
    place = {"bare": str(tmp_path / "f"), "sandbox": "/box/f"}[isolation]
    words = [word.format(file=place) if word == "of={file}" else word for word in command]
    shown = ["--show", str(Path(PYTHON).parents[1])] if isolation == "sandbox" else []
    found = measured("--isolation", isolation, *options, *shown, "--", *words, code=4)
    outcome = found["outcomes"][0]
    assert (found["status"], found["limit"]) == (status, limit), outcome["message"]
    if name in {"cpu_time", "wall_time"}:
        spent_ns = outcome["quantities"][f"{name.removesuffix('_time')}_ns"]["value"]
        assert 200_000_000 <= spent_ns < 2_000_000_000
    if name == "output_size":
        assert outcome["quantities"]["output_bytes"]["value"] > 4096


@pytest.mark.parametrize(
    ("broken", "code", "last"),
    [("steelyard-launc", 4, "launcher_failed"), ("steelyard-zygot", 0, "completed")],
    ids=["launcher", "zygote"],
)
def test_what_breaks_takes_no_finished_run_with_it(broken: str, code: int, last: str, tmp_path: Path) -> None:
    """Another zygote takes the place of one that is gone; a launcher that is gone is an error."""
    script = f"echo x >> {tmp_path}/runs; sleep 0.1"
    command = [
        Path(sys.executable).parent / "steelyard",
        "measure",
        "--json",
        "-n",
        "40",
        "--",
        "sh",
        "-c",
        script,
    ]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "runs").exists() or len((tmp_path / "runs").read_text(encoding="utf-8")) < 8:
            time.sleep(0.02)
        found = [each for each in _descendants(process.pid) if _name(each) == broken]
        assert found
        for each in found:
            os.kill(each, signal.SIGKILL)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == code
    statuses = [outcome["status"] for outcome in json.loads(said)["outcomes"]]
    assert len(statuses) == 40
    assert statuses[:3] == ["completed"] * 3
    assert statuses[-1] == last


@pytest.mark.parametrize("isolation", ["bare", "sandbox"])
def test_a_measurement_that_is_killed_leaves_no_file(isolation: str, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    program = str(Path(sys.executable).parent / "steelyard")
    command = [program, "measure", "--isolation", isolation, "--", "sleep", "7.25"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        while "sleep" not in map(_name, _descendants(process.pid)):
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
    assert not list(tmp_path.iterdir())
    # The folder of a session that was killed goes with the next one.
    subprocess.run([program, "measure", "--", "true"], env=environment, check=True, capture_output=True)
    assert not list(Path(os.environ["STEELYARD_STATE"]).iterdir())


def _descendants(process: int) -> list[int]:
    found = subprocess.run(["pgrep", "--parent", str(process)], capture_output=True, text=True, check=False)
    children = [int(word) for word in found.stdout.split()]
    return [*children, *(each for child in children for each in _descendants(child))]


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


@pytest.mark.parametrize("isolation", ["bare", "sandbox"])
@pytest.mark.parametrize(
    ("options", "command", "status"),
    [
        (["--wall-time", "100ms"], ["sleep", "5"], "wall_timeout"),
        (["--output-size", "10K"], ["yes"], "limit_exceeded"),
        ([], ["sh", "-c", "setsid sleep 100 & exit 0"], "completed"),
    ],
)
def test_a_run_that_was_ended_takes_none_with_it(
    isolation: str, options: list[str], command: list[str], status: str, measured: Measure
) -> None:
    code = 0 if status == "completed" else 4
    found = measured("--isolation", isolation, "-n", "6", *options, "--", *command, code=code)
    assert [outcome["status"] for outcome in found["outcomes"]] == [status] * 6


def test_a_limit_that_is_not_reached_changes_nothing(measured: Measure) -> None:
    generous = ["--cpu-time", "1min", "--wall-time", "1min", "--memory", "1G", "--processes", "99"]
    found = measured(*generous, "--file-size", "1G", "--output-size", "1M", "--", "echo", "fine")
    assert (found["status"], found["limit"]) == ("completed", None)


@pytest.mark.parametrize("name", NAMES)
def test_every_technology_measures_a_program_in_the_callers_folder(
    name: str, measured: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # below the temporary folder, of which isolations have their own
    probed = technology(name).probe()
    if not probed.available:
        pytest.skip(f"{name} does not work here: {probed.reason}")
    is_machine = name.startswith("vm")  # a guest holds Steelyard's own programs alone
    command = [str(PROGRAMS / "steelyard-work"), "spin", "--ms", "1"] if is_machine else ["pwd"]
    found = measured("--isolation", name, "--", *command)
    assert (found["isolation"], found["status"]) == (name, "completed")
    assert found["wall_ns"] > 0
    if not is_machine:
        assert found["outcomes"][0]["standard_output"]["text"] == {"isolate": "/box\n"}.get(
            name, f"{tmp_path}\n"
        )


CONTAINERS = [each for each in NAMES if each.values[0] in {"docker", "podman", "nspawn"}]
DAEMON = (
    f"( ( {PROGRAMS}/steelyard-work spin --ms 80; : > /tmp/done ) & ); "
    "while [ ! -e /tmp/done ]; do sleep 0.01; done"
)


@pytest.mark.long("starts an engine, and three containers of each kind")
@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_is_measured_and_limited_by_control_groups_of_the_host(
    name: str, measured: Measure
) -> None:
    probed = technology(name).probe()
    if not probed.available:
        pytest.skip(f"{name} does not work here: {probed.reason}")
    # Nobody waits for the daemon, so that only a group knows what it used.
    found = measured("--isolation", name, "--", "sh", "-c", DAEMON)
    assert found["cpu_ns"] >= 80_000_000
    assert found["peak_memory_bytes"] > 0
    words, command, status, limit = LIMITS["memory"]
    found = measured("--isolation", name, *words, "--", "python3", "-c", command[-1], code=4)
    assert (found["status"], found["limit"]) == (status, limit)
    assert found["peak_memory_bytes"] <= 66 << 20
    # Burners whose parent waits for none of them.
    burners = "for i in 1 2 3 4; do sh -c 'while :; do :; done' & done; while :; do sleep 0.01; done"
    found = measured("--isolation", name, "--cpu-time", "200ms", "--", "sh", "-c", burners, code=4)
    assert (found["status"], found["limit"]) == ("cpu_timeout", "cpu_time")
    assert 200_000_000 <= found["cpu_ns"] <= 200_000_000 * 1.01 + 30_000_000


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["./no/such"], "ENOENT"),
        (["no-such-program"], "not found in `PATH`"),
        (["./text"], "EACCES"),
        (["./script"], "ENOENT"),
        (["."], "EACCES"),
    ],
)
def test_a_program_that_cannot_start_is_an_outcome_in_json_and_leaves_with_four(
    words: list[str], reason: str, measured: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text").write_text("no program", encoding="utf-8")
    (tmp_path / "script").write_text("#!/no/such/interpreter\n", encoding="utf-8")
    (tmp_path / "script").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    found = measured("--", *words, code=4)
    assert found["status"] == "launcher_failed"
    assert reason in found["outcomes"][0]["message"]
    assert found["exit_code"] is None
    assert "wall_ns" not in found, "a program that never ran has no time"


def test_a_program_that_fails_or_is_killed_says_how(measured: Measure) -> None:
    failed = measured("--", "sh", "-c", "exit 7", code=4)
    assert (failed["status"], failed["exit_code"]) == ("nonzero_exit", 7)
    killed = measured("--", "sh", "-c", "kill -SEGV $$", code=4)
    assert (killed["status"], killed["signal"], killed["exit_code"]) == ("signalled", 11, None)


def test_standard_input_is_empty_or_a_file_and_never_the_callers(measured: Measure, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"typed by somebody")
    os.close(writer)
    own = os.dup(0)
    os.dup2(reader, 0)
    try:
        assert measured("--", "cat")["outcomes"][0]["standard_output"]["text"] == ""
    finally:
        os.dup2(own, 0)
        os.close(own)
        os.close(reader)
    words = tmp_path / "words.txt"
    words.write_text("b\na\n", encoding="utf-8")
    found = measured("-n", "2", "--input", str(words), "--", "sort")
    assert [each["standard_output"]["text"] for each in found["outcomes"]] == ["a\nb\n", "a\nb\n"]


def test_words_behind_the_separator_belong_to_the_program(measured: Measure) -> None:
    found = measured("--", "printf", "%s ", "--json", "-n", "--", "--help")
    assert found["outcomes"][0]["standard_output"]["text"] == "--json -n -- --help "


@pytest.mark.parametrize(
    "words", [["ls", "-l"], ["head", "-n", "5", "x"], ["--json", "ls"], ["sleep", "0", "--json"]]
)
def test_without_the_separator_an_option_is_nobodys(
    words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert execute(["measure", *words]) == 2
    error = capfd.readouterr().err
    assert "put `--` before it" in error
    assert "hint: steelyard measure [options] -- program [arguments]" in error


def test_without_options_the_separator_may_be_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["measure", "echo", "hello"]) == 0
    output = capfd.readouterr().out
    assert output.startswith("hello\n")
    assert "completed (exit code 0)" in output


def test_a_huge_argument_list_arrives_whole(measured: Measure) -> None:
    words = ["x" * 100] * 15_000
    found = measured("--", "sh", "-c", "echo $#", "sh", *words)
    assert found["outcomes"][0]["standard_output"]["text"] == "15000\n"


def test_an_argument_list_that_the_kernel_refuses_is_an_outcome(measured: Measure) -> None:
    # SOURCE: execve(2): one argument has at most 32 pages (MAX_ARG_STRLEN).
    found = measured("--", "true", "x" * (32 * os.sysconf("SC_PAGE_SIZE") + 1), code=4)
    assert found["status"] == "launcher_failed"
    assert "E2BIG" in found["outcomes"][0]["message"]


@pytest.mark.long("tries every technology")
@pytest.mark.needs_vm
def test_what_a_machine_cannot_see_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    probed = technology("vm").probe()
    if not probed.available:
        pytest.skip(f"vm does not work here: {probed.reason}")
    assert execute(["measure", "--isolation", "vm", "--show", str(tmp_path), "--", "true"]) == 2
    assert "which `vm` does not show" in capfd.readouterr().err
    assert execute(["measure", "--isolation", "vm", "--", "true"]) == 4
    assert "hint: `vm` contains only Steelyard's own programs" in capfd.readouterr().err


def test_a_program_cannot_replace_what_is_measured_from_outside(measured: Measure) -> None:
    forged = "outside-cpu 1 ns\\noutside-wall 1 ns\\nstart-wall 1 s\\nwall_ns 1 ns\\n"
    found = measured("--", "sh", "-c", f"printf '{forged}' >&3; sleep 0.02")
    assert [each["metric"] for each in found["outcomes"][0]["own"]] == [
        "outside-cpu",
        "outside-wall",
        "start-wall",
        "wall_ns",
    ]
    assert found["wall_ns"] > 20_000_000
    row = LedgerRow(0, 1, 0, 1, "complete", RunOutcome.of(found["outcomes"][0]))
    values: dict[Any, Any] = {each["metric"]: each["value"] for each in measurement_rows(row, "r")}
    assert values["outside-wall"] == found["wall_ns"]
    assert values["outside-cpu"] == found["cpu_ns"]
    assert values["start-wall"] > 1e9
    assert [values[f"own:{name}"] for name in ("outside-cpu", "outside-wall", "start-wall", "wall_ns")] == [
        1
    ] * 4


def test_a_folder_that_is_gone_is_no_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert execute(["measure", "--", "true"]) == 2
    assert "the current folder was deleted" in capfd.readouterr().err


def test_an_argument_that_is_no_text_is_refused_by_its_bytes(capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["measure", "--", "echo", os.fsdecode(b"caf\xff\xfe")]) == 2
    assert r"`caf\xff\xfe` is not UTF-8 text" in capfd.readouterr().err


@pytest.mark.needs_root
@pytest.mark.parametrize("folder", ["/", "/tmp", "/dev/shm", "/proc"])  # noqa: S108 - where a user may be
def test_a_folder_that_the_sandbox_makes_itself_is_a_place_to_measure_from(
    folder: str, monkeypatch: pytest.MonkeyPatch, measured: Measure
) -> None:
    monkeypatch.chdir(folder)
    assert measured("--isolation", "sandbox", "--", "true")["status"] == "completed"


@pytest.mark.needs_root
def test_a_program_beside_the_sandboxs_own_folders_is_shown(
    monkeypatch: pytest.MonkeyPatch, measured: Measure
) -> None:
    monkeypatch.chdir("/tmp")  # noqa: S108 - its contents are the point
    with tempfile.NamedTemporaryFile("w", dir="/tmp", prefix="program-", delete=False) as file:
        file.write("#!/bin/sh\nexit 7\n")
    program = Path(file.name)
    program.chmod(0o755)
    try:
        found = measured("--isolation", "sandbox", "--", f"./{program.name}", code=4)
    finally:
        program.unlink()
    assert (found["status"], found["exit_code"]) == ("nonzero_exit", 7)


@pytest.mark.needs_root
@pytest.mark.parametrize(("mode", "doing"), [((0o700, 0o755), "enter"), ((0o755, 0o700), "execute")])
def test_a_program_that_the_sandboxs_user_may_not_reach_says_who_and_where(
    mode: tuple[int, int], doing: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as parent:
        Path(parent).chmod(0o755)
        folder = Path(parent) / "private"
        folder.mkdir()
        program = folder / "program"
        program.write_text("#!/bin/sh\n", encoding="utf-8")
        program.chmod(mode[1])
        folder.chmod(mode[0])
        code = execute(["measure", "--isolation", "sandbox", "--show", str(folder), "--", str(program)])
    assert code == 4
    where = folder if doing == "enter" else program
    assert f"may not {doing} `{where}` (mode 0700)" in capfd.readouterr().err


def test_the_memory_that_users_expect_is_shown_first(capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["measure", "--", PYTHON, "-c", "pass"]) == 0
    lines = [line for line in capfd.readouterr().out.splitlines() if line.startswith("peak memory")]
    process, tree = lines
    assert process.startswith("peak memory, process")
    assert process.endswith("rusage")
    assert "MiB" in process
    assert tree.startswith("peak memory, tree")
