"""Amounts that are no amount, or none that can hold: the option, what is allowed, and exit code 2."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, get_args

import pytest

from steelyard.cli import execute
from steelyard.cli.amounts import WHOLE
from steelyard.cli.verb_app import verb_app
from steelyard.cli.verbs import VERBS
from steelyard.errors import RunError
from steelyard.run.executor.worker import Worker

if TYPE_CHECKING:
    from pathlib import Path

WHOLE_NUMBER = "expected a whole number"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("measure -n 1.5 -- true", f"`--iterations` is `1.5`; {WHOLE_NUMBER}"),
        ("measure --iterations=1e3 -- true", f"`--iterations` is `1e3`; {WHOLE_NUMBER}"),
        ("measure -n 0x2 -- true", f"`--iterations` is `0x2`; {WHOLE_NUMBER}"),
        ("measure --processes 1.5 -- true", f"`--processes` is `1.5`; {WHOLE_NUMBER}"),
        ("compare --runs-min 10.5 true true", f"`--runs-min` is `10.5`; {WHOLE_NUMBER}"),
        ("run stability --seed 1.5", f"`--seed` is `1.5`; {WHOLE_NUMBER}"),
        ("measure --memory 99999999999999999999G -- true", "too large; allowed: less than 8388608T"),
        ("measure --memory 0 -- true", "`--memory 0`: too small; allowed: `1M` or more"),
        ("measure --memory 1 -- true", "`--memory 1`: too small; allowed: `1M` or more"),
        ("measure --isolation sandbox --disk 0 -- true", "`--disk 0`: too small; allowed: `64K` or more"),
        ("measure --isolation sandbox --disk 1 -- true", "`--disk 1`: too small; allowed: `64K` or more"),
        ("measure --disk 1M -- true", "`--disk` limits the file system of a sandbox"),
        ("measure --memory '' -- true", "`--memory `: not a size"),
        ("measure --processes -1 -- true", "`--processes -1`: allowed: a whole number from 1 to"),
        ("measure --processes 0 -- true", "`--processes 0`: allowed: a whole number from 1 to"),
        ("measure --processes 99999999999999999999 -- true", "allowed: a whole number from 1 to"),
        ("measure --open-files 99999999999 -- true", "`--open-files 99999999999`: allowed: a whole number"),
        ("measure --wall-time 99999999999999999h -- true", "too long; allowed: at most 292 years"),
        ("measure --wall-time -1s -- true", "`--wall-time -1s`: not a duration; allowed: a positive number"),
        ("compare --margin -1% true true", "`--margin -1%`: not a percentage; allowed: a number from 0"),
        ("compare --level 100% true true", "`--level 100%`: allowed: more than 50 % and less than 100 %"),
        ("compare --level NaN true true", "`--level NaN`: not a percentage; allowed: more than 50 %"),
        ("compare --level 150% true true", "`--level 150%`: not a percentage; allowed: more than 50 %"),
        ("compare --budget -1s true true", "`--budget -1s`: not a duration"),
        ("measure --input /usr -- true", "`--input /usr`: it is a folder"),
        ("compare --input /usr true true", "`--input /usr`: it is a folder"),
        ("measure --input /nope -- true", "`--input /nope`: no such file"),
        ("measure --show /usr -- true", "`--show /usr`: a `bare` program sees every file"),
        ("compare --show /usr true true", "`--show /usr`: a `bare` program sees every file"),
        ("measure --isolation sandbox --show /nope -- true", "`--show /nope`: no such file"),
    ],
)
def test_an_amount_that_cannot_hold_is_refused(
    line: str, says: str, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert execute(shlex.split(line)) == 2
    said = capfd.readouterr()
    assert says in said.err
    assert "hint: " in said.err
    assert said.out == ""


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_one_rule_for_whole_numbers(verb: str) -> None:
    for argument in verb_app(verb).assemble_argument_collection():
        if int in (argument.hint, *get_args(argument.hint)):
            assert argument.parameter.converter is WHOLE.converter, argument.name


def test_variables_that_cannot_be_passed_on_are_named_and_none_is_added() -> None:
    begin = "import os, sys; os.execve(sys.argv[1], sys.argv[1:], {b'PATH': b'/usr/bin:/bin', %s})"
    program = "from steelyard.entry import main; main()"
    foreign = begin % r"b'BB': b'\xff\xfe'"
    words = (sys.executable, "-c", foreign, sys.executable, "-c", program, "measure", "--", "env")
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert (
        done.stderr
        == "note: these variables are not passed on, because they are not UTF-8 text with a name: `BB`\n"
    )
    assert "LC_CTYPE" not in done.stdout
    assert "PATH=/usr/bin:/bin" in done.stdout


def test_a_variable_without_a_name_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("steelyard.run.environment.os.environ", {**os.environ, "": "x"})
    assert execute(["measure", "--", "true"]) == 0
    assert "completed" in capfd.readouterr().out


def test_a_worker_that_dies_names_no_file_that_is_gone(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def failing(worker: Worker, *_: object, **__: object) -> None:
        worker.site.log.write_text("the last words\n", encoding="utf-8")
        worker.fail("could not go on")

    monkeypatch.setattr(Worker, "execute", failing)
    assert execute(["measure", "--", "true"]) == RunError.exit_code
    said = capfd.readouterr().err
    assert "could not go on; the end of its log: the last words" in said
    assert ".log" not in said
