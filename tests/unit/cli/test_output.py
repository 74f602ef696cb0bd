"""What is said where it cannot be said, and next steps that are steps."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.cli import execute
from steelyard.cli.measuring.run import RESULTS
from steelyard.errors import DataError
from steelyard.share.package.check import opened

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = (sys.executable, "-m", "steelyard")
FULL = Path("/dev/full")


def called(words: Sequence[str], redirection: str) -> subprocess.CompletedProcess[str]:
    line = f"exec {shlex.join((*PROGRAM, *words))} {redirection}"
    return subprocess.run(["sh", "-c", line], check=False, capture_output=True, text=True, timeout=60)


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [("--help",), ("measure", "--json", "--", "true"), ("help", "compare")])
def test_a_full_standard_output_is_no_bug(words: Sequence[str]) -> None:
    done = called(words, f"> {FULL}")
    assert done.returncode == 5
    assert "error: cannot write to standard output: No space left on device" in done.stderr
    assert done.stderr.count("error") == 1, "and nothing of it at exit"


def test_a_closed_standard_output_is_no_bug() -> None:
    done = called(("--version",), ">&-")
    assert done.returncode == 5
    assert "standard output: it is closed" in done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("redirection", [f"2> {FULL}", "2>&-"])
def test_an_error_that_cannot_be_said_keeps_its_exit_code(redirection: str) -> None:
    assert called(("measure",), redirection).returncode == 2


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("redirection", [f"2> {FULL}", "2>&-"])
def test_a_standard_error_that_takes_nothing_costs_no_result(redirection: str) -> None:
    done = called(("measure", "--", "sh", "-c", "echo hi >&2"), redirection)
    assert done.returncode == 5
    assert "completed" in done.stdout
    assert called(("measure", "--", "true"), redirection).returncode == 0, "nothing was lost"


@pytest.mark.parametrize(
    "words",
    [("measure", "--", "true"), ("help",), ("help", "compare"), ("measure", "--help"), ("--version",)],
)
def test_a_reader_that_is_gone_is_a_closed_output(words: Sequence[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as output:
        done = subprocess.run(
            [*PROGRAM, *words], check=False, stdout=output, stderr=subprocess.PIPE, timeout=60
        )
    assert (done.returncode, done.stderr) == (5, b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["loading", "running"])
def test_an_interruption_leaves_with_130(number: signal.Signals, moment: str) -> None:
    begun = "import steelyard.entry as entry; print(flush=True); "
    loading = (
        begun + "entry._signal = __import__('_signal'); import sys; "
        "sys.meta_path.insert(0, type('Slow', (), {'find_spec': lambda *_: __import__('time').sleep(30)})); "
        "entry.main()"
    )
    program = [sys.executable, "-c", loading if moment == "loading" else begun + "entry.main()"]
    with subprocess.Popen(
        [*program, "measure", "--", "sleep", "30"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.2 if moment == "loading" else 2)
        process.send_signal(number)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert said in (b"", b"interrupted\n")


def test_a_reader_that_leaves_is_no_error() -> None:
    done = called(("--help",), "| head -1")
    assert done.stdout.startswith("Steelyard")
    assert done.stderr == ""


def test_a_study_is_resumed_where_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert execute(["run", "stability", "--resume"]) == 2
    said = capsys.readouterr().err
    assert "`--out` does not name one" in said
    assert str(RESULTS) not in said, "no folder is invented"
    for number, age_s in ((1, 50), (2, 10)):
        folder = RESULTS / f"stability-2026-11-25-{number}"
        folder.mkdir(parents=True)
        (folder / "plan.json").write_text("{}")
        os.utime(folder / "plan.json", (1e9 - age_s, 1e9 - age_s))
    assert execute(["run", "stability", "--resume"]) == 2
    newest = "steelyard run stability --out steelyard-results/stability-2026-11-25-2 --resume"
    assert f"hint: {newest}" in capsys.readouterr().err


@pytest.mark.parametrize("hint", ["CALL", "mend the disk; `CALL` goes on"])
def test_no_hint_repeats_the_call_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], hint: str
) -> None:
    words = ["analyse", str(tmp_path)]
    call = shlex.join(("steelyard", *words))
    error = DataError("the disk is full", hint=hint.replace("CALL", call))
    monkeypatch.setattr("steelyard.cli._answer", lambda _: raised(error))
    assert execute(words) == 5
    said = capsys.readouterr().err.partition("hint: ")[2]
    assert call not in said
    assert "command" in said


def raised(error: DataError) -> int:
    raise error


def use_damaged(place: Path) -> None:
    with opened(place) as folder:
        plan = folder / "result" / "plan.json"
        message = f"`{plan}` is damaged"
        raise DataError(message, hint=f"steelyard analyse {plan.parent}", code="data.corrupt")


def test_an_error_inside_a_package_names_no_private_copy(tmp_path: Path) -> None:
    place = tmp_path / "p.zip"
    with zipfile.ZipFile(place, "w") as archive:
        archive.writestr("result/plan.json", "{}")
    with pytest.raises(DataError) as caught:
        use_damaged(place)
    error = caught.value
    assert error.message == f"inside `{place}`: `result/plan.json` is damaged"
    assert "steelyard-package-" not in f"{error.message}{error.hint}"
    assert error.code == "data.corrupt"
