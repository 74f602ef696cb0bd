"""The environment that a program gets, what is recorded of it, and what a failure says about it."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

import pytest

from steelyard.cli import execute
from steelyard.record.provenance import read_provenance
from steelyard.run.environment import environment_hint, environment_record, inherited_environment
from steelyard.run.executor.resident import program_environment
from steelyard.run.shell_syntax import shell_syntax

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "correct-horse"  # noqa: S105 - the point of the test


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return f"./{path.name}"


def test_a_bare_program_gets_the_environment_of_its_caller(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOOL_HOME", "/opt/tool of ours")
    program = script(here / "needs", '[ "$TOOL_HOME" = "/opt/tool of ours" ]')
    assert execute(["measure", "--", program]) == 0
    assert execute(["measure", "--clean-environment", "--", program]) == 4
    assert execute(["measure", "--clean-environment", "--environment", "TOOL_HOME", "--", program]) == 0
    capsys.readouterr()
    assert execute(["measure", "--json", "--", program]) == 0
    record = json.loads(capsys.readouterr().out)["environment"]
    assert record["inherited"] is True
    assert "TOOL_HOME" in record["names"]
    assert "/opt/tool of ours" not in json.dumps(record)


def test_an_isolated_program_gets_a_few_variables(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOOL_HOME", "/opt/tool")
    words = ["measure", "--json", "--isolation", "sandbox", "--", "env"]
    if execute(words) == 3:
        pytest.skip("needs_root: no sandbox on this machine")
    found = json.loads(capsys.readouterr().out)
    names = {line.partition("=")[0] for line in found["outcomes"][0]["standard_output"]["text"].splitlines()}
    assert "TOOL_HOME" not in names
    assert found["environment"]["inherited"] is False


def test_a_comparison_passes_the_environment_on_and_records_names_alone(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIBRARIES", "/opt/lib")
    monkeypatch.setenv("DEPLOY_TOKEN", SECRET)
    program = script(here / "needs", 'echo "$DEPLOY_TOKEN" >&2; [ -n "$LIBRARIES" ]')
    words = ["compare", "--runs-min", "5", "--runs-max", "5", "--budget", "9s", program, program]
    assert execute([*words, "--out", "r"]) in {0, 1}
    record = read_provenance(here / "r").environment
    assert record is not None
    assert record["inherited"] is True
    assert "LIBRARIES" in str(record["names"])
    for path in (here / "r").rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), f"a secret is in {path.name}"
    assert execute([*words, "--clean-environment", "--out", "clean"]) == 4


def test_the_hash_tells_environments_apart_but_for_secrets() -> None:
    one = environment_record({"A": "1", "MY_TOKEN": "x"}, is_inherited=True)
    assert one == environment_record({"MY_TOKEN": "y", "A": "1"}, is_inherited=True)
    assert one["sha256"] != environment_record({"A": "2", "MY_TOKEN": "x"}, is_inherited=True)["sha256"]
    # Neither names nor values run into each other.
    hashes = {
        str(environment_record(each, is_inherited=True)["sha256"])
        for each in ({"A": "1", "B": "2"}, {"A": "1B=2"}, {"A": "1", "B": "", "C": "2"})
    }
    assert len(hashes) == 3


def test_what_the_protocol_cannot_say_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD", os.fsdecode(b"\xff\xfe"))
    monkeypatch.setenv("STEELYARD_METRICS_FD", "7")
    monkeypatch.setenv("_RJEM_MALLOC_CONF", "set by polars")
    found = inherited_environment()
    assert not {"ODD", "STEELYARD_METRICS_FD", "_RJEM_MALLOC_CONF"} & found.keys()
    assert execute(["measure", "--", "true"]) == 0
    assert set(program_environment(())) <= {"PATH", "HOME", "LANG", "TERM"}


@pytest.mark.parametrize(
    ("said", "variable"),
    [
        ("./x: error while loading shared libraries: libfoo.so.1: cannot open shared", "LD_LIBRARY_PATH"),
        ("ModuleNotFoundError: No module named 'tools'", "PYTHONPATH"),
        ("ERROR: JAVA_HOME is not set and no 'java' command could be found", "JAVA_HOME"),
        ("Error: Cannot find module 'express'", "NODE_PATH"),
        ("please set TOOL_HOME first", "TOOL_HOME"),
    ],
)
def test_the_likely_variable_and_its_option_are_named(
    monkeypatch: pytest.MonkeyPatch, said: str, variable: str
) -> None:
    monkeypatch.setenv(variable, "/opt/x")
    hint = environment_hint(said, {"PATH": "/bin"}, can_inherit=True) or ""
    assert f"`--environment {variable}` passes it on" in hint
    assert "leave out `--clean-environment`" in hint
    assert "clean" not in (environment_hint(said, {}, can_inherit=False) or "")
    assert environment_hint(said, {variable: "/opt/x"}, can_inherit=True) is None


def test_a_failure_of_another_kind_gives_no_hint_at_a_variable() -> None:
    assert environment_hint("ERROR: file not found", {"PATH": "/bin"}, can_inherit=True) is None


def test_a_program_that_lacks_a_variable_says_so(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/opt/jdk")
    program = script(here / "app", '[ -n "$JAVA_HOME" ] || { echo "JAVA_HOME is not set" >&2; exit 3; }')
    assert execute(["measure", "--clean-environment", "--", program]) == 4
    assert "`--environment JAVA_HOME` passes it on" in capsys.readouterr().err
    assert execute(["compare", "--no-record", "--clean-environment", program, "true"]) == 4
    said = capsys.readouterr().err
    assert "`--environment JAVA_HOME` passes it on" in said.partition("hint: ")[2]


@pytest.mark.parametrize(
    ("command", "sign"),
    [
        ("FOO=1 true", "FOO="),
        ("~/no-such-program", "~"),
        ("false | cat", "|"),
        ("cat *.nothing-of-this-kind", "*"),
        ("false $HOME", "$"),
        ("false && true", "&"),
    ],
)
def test_what_only_a_shell_understands_gets_the_hint_at_shell(
    command: str, sign: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if command == "false | cat":
        command = "false '' | cat"
    assert execute(["compare", "--no-record", command, "true"]) == 4
    hint = capsys.readouterr().err.partition("hint: ")[2]
    known = (
        f"`{sign}` sets a variable in a shell: " if sign == "FOO=" else f"only a shell understands `{sign}`: "
    )
    assert hint.startswith(known)
    assert "`--shell`" in hint


def test_a_pipe_that_is_taken_for_words_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "--no-record", "--runs-min", "5", "--runs-max", "5", "echo a | wc", "echo 'a | b'"]
    assert execute(words) in {0, 1}
    text = capsys.readouterr().out
    assert "warning: shell: `|` in `echo a | wc` is passed on as it stands" in text
    assert "echo 'a | b'` is passed" not in text


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["FOO=1", "true"], "`--environment FOO=1` does it"),
        (["~/x"], "write the folder"),
        (["ls | wc"], "sh -c '...'"),
        (["ls -l"], "separate program and arguments"),
    ],
)
def test_measure_says_what_a_shell_would_have_done(
    words: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["measure", "--", *words]) == 4
    assert part in capsys.readouterr().err.partition("hint: ")[2]


@pytest.mark.parametrize(
    "text",
    [
        "sort words.txt",
        "grep 'a|b*' x",
        'awk "{print 1}" x',
        "curl 'http://h/?a=1&b=2'",
        r"echo a\*b \$x \~",
        "make CFLAGS=-O2",
        "x --home=~",
        "sed 's/a/$1/' f",
        "grep end$ f",
    ],
)
def test_quoted_and_escaped_signs_are_no_shell_syntax(text: str) -> None:
    assert shell_syntax(text) is None
