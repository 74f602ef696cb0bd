"""Rust, C, Python and Java agree on input, result and report; the table comes from none of them."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.run import programs
from steelyard.studies.stability.workloads import WORKLOADS, Language, Scale, Workload

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "workload-checksums"
CASES = list(csv.DictReader((GOLDEN / "table.csv").read_text(encoding="utf-8").splitlines()))
LINE = re.compile(r"(cpu|wall) (\d+) ns (\d+) (warmup|measure)")


def languages() -> list[object]:
    marks = {
        Language.C: [pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler, `cc`")],
        Language.JAVA: [
            pytest.mark.needs_java,
            pytest.mark.skipif(shutil.which("javac") is None, reason="needs a Java compiler, `javac`"),
        ],
    }
    return [pytest.param(language, marks=marks.get(language, []), id=language.value) for language in Language]


def find(language: Language, kernel: str) -> Workload | None:
    return next(
        (each for each in WORKLOADS.values() if (each.language, each.kernel) == (language, kernel)), None
    )


def execute(words: tuple[str, ...], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, capture_output=True, text=True, timeout=100, check=False, env=environment, close_fds=False
    )


def test_the_table_is_what_its_script_computes() -> None:
    answer = subprocess.run(
        [sys.executable, str(GOLDEN / "make.py")], capture_output=True, text=True, timeout=100, check=True
    )
    assert answer.stdout == (GOLDEN / "table.csv").read_text(encoding="utf-8")


@pytest.mark.long("every kernel in every language")
@pytest.mark.parametrize("language", languages())
def test_checksums_are_those_of_the_table(language: Language) -> None:
    compared = 0
    for case in CASES:
        chosen = find(language, case["kernel"])
        # Interpreters sort the smaller inputs only; one of 131072 numbers is among them.
        if chosen is None or int(case["size"]) > 8 * chosen.published.size:
            continue
        operations = int(case["operations"]) if case["operations"] else None
        answer = execute(chosen.host_command(Scale(int(case["size"]), operations), int(case["seed"])))
        assert answer.stdout == case["checksum"] + "\n", (case, answer.stderr)
        compared += 1
    assert compared >= 3


@pytest.mark.parametrize("language", languages())
def test_the_report_goes_where_it_is_wanted(language: Language) -> None:
    chosen = find(language, "qsort")
    assert chosen is not None
    command = (*chosen.host_command(Scale(1000), 5), "--repeat", "2", "--warmup", "1")
    quiet = execute(command)
    assert re.fullmatch(r"[0-9a-f]{16}\n", quiet.stdout), quiet

    reader, writer = os.pipe()
    os.set_inheritable(writer, True)  # noqa: FBT003 - its only form
    on_descriptor = execute(command, STEELYARD_METRICS_FD=str(writer))
    os.close(writer)
    with os.fdopen(reader) as stream:
        lines = stream.read().splitlines()
    assert on_descriptor.stdout == quiet.stdout
    places = [(match[1], match[3], match[4]) for match in map(LINE.fullmatch, lines) if match]
    expected = [("1", "warmup"), ("2", "measure"), ("3", "measure")]
    assert places == [(name, *place) for place in expected for name in ("cpu", "wall")], lines

    for extra, environment in [(("--metrics-stdout",), {}), ((), {"STEELYARD_METRICS_FD": "1"})]:
        first, *rest = execute((*command, *extra), **environment).stdout.splitlines()
        assert first + "\n" == quiet.stdout
        assert len(rest) == 6
        assert all(line.startswith("#steelyard ") and LINE.fullmatch(line[11:]) for line in rest), rest


@pytest.mark.parametrize("language", languages())
def test_wrong_usage_and_closed_descriptors_have_exit_codes(language: Language) -> None:
    chosen = find(language, "qsort")
    assert chosen is not None
    command = chosen.host_command(Scale(10), 5)
    for words in [
        tuple("ten" if word == "10" else word for word in command),
        tuple("0" if word == "10" else word for word in command),
        command[: command.index("--seed")],
        (*command, "--unknown", "1"),
        (*command, "--repeat", "0"),
    ]:
        answer = execute(words)
        assert answer.returncode == 2, (words, answer)
        assert answer.stderr
        assert not answer.stdout
    assert execute(command, STEELYARD_METRICS_FD="three").returncode == 2
    closed = execute(command, STEELYARD_METRICS_FD="987")
    assert closed.returncode == 1
    assert "987" in closed.stderr


def test_the_truth_reports_on_its_descriptor() -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)  # noqa: FBT003 - its only form
    answer = execute((str(programs.truth_path()), "--ms", "5"), STEELYARD_METRICS_FD=str(writer))
    os.close(writer)
    with os.fdopen(reader) as stream:
        values = dict(line.split()[:2] for line in stream)
    assert answer.returncode == 0
    assert 5_000_000 <= int(values["cpu"]) < 6_000_000
    assert int(values["wall"]) >= int(values["cpu"])
