"""Whatever is given where a verb expects a file: an error with its next step, and nothing on disk."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.cli import execute
from steelyard.record.importers.interface import IMPORTERS

PROGRAM = Path(sys.executable).with_name("steelyard")
USAGE, DATA = 2, 5
OPTIONS = {"csv": ["--unit", "us", "--column", "value=1"], "plogp": ["--unit", "us"]}
BOTH_ENDS = "size,start0,end0,start1,end1\n8,10,20,15,25\n8,30,40,35,45\n8,50,60,55,65\n"
VERBS: dict[str, list[str]] = {
    **{f"import {name}": ["import", name, "{}", "--out", "new"] for name in IMPORTERS.names()},
    "import --probes": ["import", "messages", "good.csv", "--probes", "{}", "--out", "new"],
    "fit": ["fit", "{}", "--x", "1", "--y", "2"],
    "peaks": ["peaks", "{}"],
    "predict": ["predict", "{}", "--size", "1"],
    "export": ["export", "{}"],
    "export simgrid": ["export", "simgrid", "{}", "--out", "new"],
    "export model": ["export", "model", "{}", "--format", "json"],
    "compare-results": ["compare-results", "{}", "r"],
    "history": ["history", "{}"],
    "analyse": ["analyse", "{}"],
    "report": ["report", "{}"],
    "verify": ["verify", "{}"],
    "pack": ["pack", "{}", "--output", "new"],
    "rerun": ["rerun", "{}", "--out", "new"],
    "plan": ["plan", "stability", "--study-file", "{}"],
    "plan --devices": ["plan", "replication", "--devices", "{}"],
    "repository list": ["repository", "list", "{}"],
    "repository fetch": ["repository", "fetch", "{}", "x"],
}
ESCAPING = "a\x1b[31mb\nhint: x.csv"
SHAPES = ("folder", "pipe", "loop", "empty", "zeros", "not-text", ESCAPING, "absent", "x" * 300)
"""Names in the folder that `here` makes; devices have names of their own."""
DEVICES = ("/dev/zero", "/dev/urandom", "/dev/null")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").touch()
    (tmp_path / "zeros").write_bytes(b"\0" * 4096)
    (tmp_path / "not-text").write_bytes(b"\xff\xfe\x00\xd8")
    (tmp_path / ESCAPING).write_bytes(b"\x80")
    (tmp_path / "good.csv").write_text(BOTH_ENDS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("steelyard.model.plain_file.PATIENCE_S", 0.05)
    return tmp_path


def entries(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("verb", list(VERBS))
def test_every_verb_refuses_what_is_no_file_of_its_kind(
    here: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    before = entries(here)
    for shape in (*SHAPES, *DEVICES):
        if shape == "folder" and verb == "repository list":
            continue  # a folder of no package
        words = [word.format(shape) for word in VERBS[verb]] + OPTIONS.get(verb.removeprefix("import "), [])
        code = execute(words)
        said = capsys.readouterr().err
        assert code in {USAGE, DATA}, (shape, code, said)
        head, _, hint = said.partition("\n\nhint: ")
        assert head.startswith("error: "), (shape, said)
        assert hint.strip(), (shape, said)
        assert not {"\x1b", "\0"} & set(said), shape
        assert "\nhint: x.csv" not in said, shape
        assert entries(here) == before, shape


@pytest.mark.parametrize("verb", [name for name in VERBS if name.startswith("import ") or name == "fit"])
def test_a_pipe_and_a_device_are_called_so(here: Path, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    for shape, reason in {"pipe": "it is a pipe", "/dev/zero": "it is a device"}.items():
        words = [word.format(shape) for word in VERBS[verb]] + OPTIONS.get(verb.removeprefix("import "), [])
        assert execute(words) == DATA
        assert reason in capsys.readouterr().err


def test_names_of_files_and_columns_write_no_line_of_their_own(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{number},{2 * number + number % 3}\n" for number in range(1, 9))
    (here / ESCAPING).write_text(f'c\x1b[33m,"a\nb\x1b[32m"\n{rows}', encoding="utf-8")
    assert execute(["import", "csv", ESCAPING, "--column", "value=2", "--unit", "us", "--out", "new"]) == 0
    told = capsys.readouterr().out
    (here / ESCAPING).write_text(f"a\x1b[32m,c\x1b[33m\n{rows}", encoding="utf-8")
    assert execute(["fit", ESCAPING, "--x", "a\x1b[32m", "--y", "c\x1b[33m"]) == 0
    told += capsys.readouterr().out
    assert "\x1b" not in told
    assert r"a\nb<U+001B>[32m" in told
    assert r"a<U+001B>[31mb\nhint: x.csv: 8 points" in told


def test_data_that_memory_does_not_hold_are_no_bug(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("steelyard.record.columns.np.array", refuse)
    assert execute(["fit", "good.csv", "--x", "size", "--y", "start0"]) == DATA
    assert "need more memory than this machine has free" in capsys.readouterr().err


@pytest.mark.parametrize("source", ["<(cat good.csv)", "/dev/stdin", "/dev/stdin < good.csv"])
def test_what_a_pipe_gives_is_imported_and_fitted_like_its_file(here: Path, source: str) -> None:
    for verb in ("import messages {} --out r", "fit {} --x size --y start0"):
        command = f"cat good.csv | {PROGRAM} {verb.format(source)}"
        subprocess.run(["bash", "-c", command], check=True, stdout=subprocess.DEVNULL)
    digest = hashlib.sha256((here / "good.csv").read_bytes()).hexdigest()
    assert digest in (here / "r/provenance.json").read_text(encoding="utf-8")
