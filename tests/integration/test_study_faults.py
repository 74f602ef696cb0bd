"""A study through the command line: stopped, crowded out, doubled, changed; then continued."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.private_mount import can_mount_privately
from integration.study_process import (
    COMMAND,
    check_whole,
    completed,
    environment,
    execute,
    recorded,
    start,
    wait_for_batches,
    write_study_file,
)
from steelyard.model.plan import read_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    with environment() as found:
        yield found


SECRET = "correct-horse-battery"  # noqa: S105 - the point of a test
SEED = 7


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished study in `result` and what it was asked for in `study.toml`."""
    folder = tmp_path_factory.mktemp("finished")
    secretive = write_study_file(folder, 2, 2).rename(folder / f"{SECRET}.toml")
    words = ["run", "stability", "--study-file", secretive, "--out", folder / "result", "--seed", SEED]
    with environment() as env:
        done = execute(words, {**env, "REGISTRY_TOKEN": SECRET, "UNRELATED_SETTING": "left-in-the-shell"})
    assert done.returncode == 0, done.stderr
    secretive.rename(folder / "study.toml")
    return folder


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.long("a study that is stopped and resumed")),
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_a_stopped_study_says_how_to_resume_and_is_resumed_whole(
    number: signal.Signals, tmp_path: Path, env: dict[str, str]
) -> None:
    result = tmp_path / "night shift"
    words = ["run", "stability", "--study-file", write_study_file(tmp_path, 5, 8), "--out", result]
    process = start(words, env)
    wait_for_batches(process, result, 2)
    process.send_signal(number)
    output, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert output == ""
    assert f"error: interrupted; everything finished so far is in `{result}`" in error
    assert f"hint: steelyard run stability --out '{result}' --resume" in error
    assert "Traceback" not in error
    before, finished = recorded(result), completed(result)
    assert 2 <= len(finished) < 10
    assert (result / "runs.parquet").exists(), "what is complete is in the tables"
    done = execute(["run", "stability", "--out", result, "--resume"], env)
    assert done.returncode == 0, done.stderr
    assert before <= recorded(result), "a recorded run is lost"
    assert finished.items() <= completed(result).items(), "a complete batch was executed again"
    check_whole(result)
    sessions = json.loads((result / "provenance.json").read_text(encoding="utf-8"))["sessions"]
    assert [session["ended_utc"] is not None for session in sessions] == [True, True]


def test_a_study_stopped_while_it_is_planned_leaves_nothing_to_resume(
    tmp_path: Path, env: dict[str, str]
) -> None:
    script = (
        "import os, signal, sys\n"
        "from steelyard.study import Study\n"
        "Study.plan = lambda *_: os.kill(os.getpid(), signal.SIGTERM)\n"
        "from steelyard.cli import main\n"
        "main()\n"
    )
    words = ["run", "stability", "--study-file", write_study_file(tmp_path, 1, 2), "--out", tmp_path / "r"]
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=env,
    )
    assert done.returncode == 130, done.stderr
    assert "interrupted before the first run" in done.stderr
    assert "hint: repeat the command" in done.stderr
    assert execute([*words, "--no-analyse"], env).returncode == 0
    assert len(completed(tmp_path / "r")) == 2


@pytest.mark.slow
def test_two_studies_in_one_folder_are_refused_and_the_first_is_unharmed(
    tmp_path: Path, env: dict[str, str]
) -> None:
    result = tmp_path / "result"
    words = ["run", "stability", "--study-file", write_study_file(tmp_path, blocks=6), "--out", result]
    with ExitStack() as stack:
        first = stack.enter_context(start(words, env))
        wait_for_batches(first, result, 1)
        # Held, lest it be over before the others have tried.
        first.send_signal(signal.SIGSTOP)
        for second in (words, [*words, "--resume"], ["run", "stability", "--quick", "--out", result]):
            refused = execute(second, env)
            assert refused.returncode == 5, refused.stderr
            assert f"another process is running a study in `{result}`" in refused.stderr
            assert "hint: wait for it, or give another folder with --out" in refused.stderr
        first.send_signal(signal.SIGCONT)
        _, error = first.communicate(timeout=120)
    assert first.returncode == 0, error
    check_whole(result)


@pytest.mark.long("the finished study that the tests behind it share")
def test_a_study_is_resumed_only_by_the_request_it_was_begun_with(
    finished: Path, tmp_path: Path, env: dict[str, str]
) -> None:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    result = tmp_path / "result"
    words = ["run", "stability", "--study-file", tmp_path / "study.toml", "--out", result]
    plan = (result / "plan.json").read_bytes()
    begun_again = execute(words, env)
    assert begun_again.returncode == 2
    assert f"`{result}` already contains a study" in begun_again.stderr
    for change, reason in (
        (["--seed", 8], "`seed` was 7 and is 8"),
        ([], "`seed` was 7 and is 1"),
    ):
        refused = execute([*words, "--resume", *change], env)
        assert refused.returncode == 5, refused.stderr
        assert f"was started with a different request: {reason}" in refused.stderr
        assert "hint: `steelyard run stability --out" in refused.stderr
    write_study_file(tmp_path, blocks=3, iterations=2)
    refused = execute([*words, "--resume", "--seed", SEED], env)
    assert (refused.returncode, "`blocks` was 2 and is 3" in refused.stderr) == (5, True), refused.stderr
    assert (result / "plan.json").read_bytes() == plan
    write_study_file(tmp_path, blocks=2, iterations=2)
    assert execute([*words, "--resume", "--seed", SEED], env).returncode == 0
    check_whole(result)


FULL_DISK = """
import subprocess, sys
from pathlib import Path
from integration.study_process import check_whole, completed, recorded
small, study_file = Path(sys.argv[1]), sys.argv[2]
command = sys.argv[3:]
result = small / "result"
free_bytes = 700_000
with (small / "ballast").open("wb") as ballast:
    import os
    room = os.statvfs(small)
    ballast.write(bytes(room.f_bavail * room.f_frsize - free_bytes))
words = ["run", "stability", "--study-file", study_file, "--out", str(result)]
full = subprocess.run([*command, *words], capture_output=True, text=True)
print(full.returncode)
print(full.stderr.replace("\\n", " "))
(small / "ballast").unlink()
before, finished = recorded(result), completed(result)
assert 0 < len(finished) < 80, finished
assert not list(result.rglob("*.tmp"))
again = subprocess.run([*command, "run", "stability", "--out", str(result), "--resume"],
                       capture_output=True, text=True)
assert again.returncode == 0, again.stderr
assert before <= recorded(result), "a recorded run is lost"
assert finished.items() <= completed(result).items(), "a complete batch was executed again"
check_whole(result)
print("whole", len(completed(result)))
"""


@pytest.mark.slow
@pytest.mark.needs_root
@pytest.mark.skipif(not can_mount_privately(), reason="needs the right to mount in a private namespace")
def test_a_study_on_a_full_disk_says_so_and_is_resumed_whole(tmp_path: Path, env: dict[str, str]) -> None:
    small = tmp_path / "small"
    small.mkdir()
    script = tmp_path / "script.py"
    script.write_text(FULL_DISK, encoding="utf-8")
    study_file = write_study_file(tmp_path, blocks=40, iterations=5)
    done = subprocess.run(
        [
            *("unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64m none "$0" && exec "$@"', str(small)),
            *(sys.executable, str(script), str(small), str(study_file), *COMMAND),
        ],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
        env={**env, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    code, error, whole = done.stdout.splitlines()
    assert code == "5"
    assert f"`{small}/result/ledger.sqlite` cannot take more runs" in error
    assert "everything recorded before is intact" in error
    assert "hint: free space on the file system" in error
    assert f"`steelyard run stability --out {small}/result --resume` continues it" in error
    assert "Traceback" not in error
    assert "bug" not in error
    assert whole == "whole 80"
    assert not (small / "result").exists(), "the small disk was not there"


def test_a_damaged_plan_is_not_resumed(finished: Path, tmp_path: Path, env: dict[str, str]) -> None:
    result = shutil.copytree(finished / "result", tmp_path / "result")
    path = result / "plan.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"seed": 7', '"seed": 2'), encoding="utf-8")
    done = execute(["run", "stability", "--out", result, "--resume"], env)
    assert done.returncode == 5
    assert "does not match its id" in done.stderr
    with pytest.raises(Exception, match="does not match its id"):
        read_plan(path)


def test_no_file_of_a_result_holds_a_secret_of_the_environment(finished: Path) -> None:
    files = [path for path in (finished / "result").rglob("*") if path.is_file()]
    assert {"provenance.json", "ledger.sqlite", "plan.json"} <= {path.name for path in files}
    for path in files:
        content = path.read_bytes()
        assert SECRET.encode() not in content, path.name
        assert b"left-in-the-shell" not in content, path.name
