from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from steelyard.cli import execute

if TYPE_CHECKING:
    import pytest


def test_the_program_prints_the_sum_of_the_source(capfd: pytest.CaptureFixture[str]) -> None:
    serial = "workload packets serial 20 1 25 t 1 correct"
    parallel = "workload packets parallel 20 1 25 t 1 8 m A correct --workers 2"
    for line in (serial, parallel):
        assert execute(line.split()) == 0
        assert capfd.readouterr().out == "652301628025\n"


def test_the_programs_exit_code_and_message_are_passed_on(capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["workload", "packets", "parallel", "20", "1", "25", "t", "1", "8", "n", "A"]) == 2
    assert "L is `n`; allowed for S = `A`" in capfd.readouterr().err


def test_an_unknown_workload_names_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["workload", "pakets"]) == 2
    assert "`pakets` is not a workload; known: `packets`" in capsys.readouterr().err


def test_the_programs_own_help_is_reached(capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["workload", "packets", "help"]) == 0
    assert "steelyard-packets parallel M n W U s D L S" in capfd.readouterr().out


def test_measurements_reach_the_descriptor_of_the_caller() -> None:
    reader, writer = os.pipe()
    line = "workload packets serial 5 1 25 t 1"
    command = [sys.executable, "-c", "from steelyard.cli import main; main()", *line.split()]
    environment = {**os.environ, "STEELYARD_METRICS_FD": str(writer)}
    subprocess.run(command, check=True, env=environment, pass_fds=(writer,), capture_output=True, timeout=20)
    os.close(writer)
    with os.fdopen(reader, encoding="ascii") as report:
        lines = report.read().splitlines()
    assert lines[0].startswith("packets ")
    assert lines[0].endswith(" count 0 measure")
