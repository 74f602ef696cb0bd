"""A study whose parts are processes of this host: killed, interrupted, gone on with."""

from __future__ import annotations

import json
import signal
import time
from typing import TYPE_CHECKING

import pytest

from integration.study_process import (
    check_whole,
    completed,
    environment,
    execute,
    recorded,
    start,
    write_study_file,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timing

BLOCKS = 3


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    with environment() as found:
        yield {**found, "STEELYARD_LONGEST_WAIT_S": "0.1"}


def words_of(folder: Path, *more: str) -> list[str]:
    file = write_study_file(folder, blocks=BLOCKS, iterations=4)
    return ["run", "stability", "--study-file", str(file), "--out", str(folder / "r"), *more]


def resume_words(folder: Path) -> list[str]:
    return ["run", "stability", "--out", str(folder / "r"), "--resume"]


@pytest.mark.long("runs a study of three parts, each with a Python of its own")
def test_parts_make_one_result(tmp_path: Path, env: dict[str, str]) -> None:
    done = execute(words_of(tmp_path, "--on", "local:2"), env)
    assert done.returncode == 0, done.stderr
    check_whole(tmp_path / "r")
    provenance = json.loads((tmp_path / "r/provenance.json").read_text())
    assert list(provenance["hosts"]) == [provenance["host_id"]]
    part = tmp_path / "r/placed/part-0001"
    again = execute(["run-part", str(part)], env)
    assert (again.returncode, again.stdout) == (0, "nothing is left of this part\n")


@pytest.mark.long("kills a study and goes on with it")
def test_parts_outlive_the_process_that_placed_them(tmp_path: Path, env: dict[str, str]) -> None:
    result = tmp_path / "r"
    process = start(words_of(tmp_path, "--on", "local"), env)
    while not list(result.glob("placed/part-*/starts/*/journal.jsonl")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.kill()
    process.communicate()
    done = execute(resume_words(tmp_path), env)
    assert done.returncode == 0, done.stderr
    check_whole(result)
    # One part at a time: the one that ran was waited for.
    assert len(list(result.glob("placed/part-0001/starts/*"))) == 1


@pytest.mark.long("interrupts a study and goes on with it")
def test_an_interrupted_study_keeps_what_is_complete(tmp_path: Path, env: dict[str, str]) -> None:
    result = tmp_path / "r"
    process = start(words_of(tmp_path, "--on", "local:2"), env)
    while len(completed(result)) < 1:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert "everything finished so far is in" in said
    before = recorded(result)
    done = execute(resume_words(tmp_path), env)
    assert done.returncode == 0, done.stderr
    check_whole(result)
    assert before <= recorded(result)


@pytest.mark.parametrize("text", ["cloud", "", "local:0", "local:x", "local --x", "slurm:", "'"])
def test_an_engine_that_does_not_exist_is_named(tmp_path: Path, env: dict[str, str], text: str) -> None:
    done = execute(words_of(tmp_path, f"--on={text}"), env)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot ")
    assert "allowed: `local`" in done.stderr
    assert not (tmp_path / "r").exists()


def test_a_damaged_part_is_refused(tmp_path: Path, env: dict[str, str]) -> None:
    part = tmp_path / "placed/part-0001"
    part.mkdir(parents=True)
    for content in (None, "{}", '{"schema": "steelyard/part/1", "plan_id": 1, "batches": "x"}'):
        if content is not None:
            (part / "part.json").write_text(content)
        done = execute(["run-part", str(part)], env)
        assert done.returncode == 5
        assert "part.json" in done.stderr
        assert "hint: give a folder of a part" in done.stderr
