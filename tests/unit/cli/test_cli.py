from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from steelyard.cli import execute, overview
from steelyard.cli.verbs import VERBS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", VERBS)
def test_the_overview_says_of_a_verb_what_the_verb_says_of_itself(name: str) -> None:
    module, _, function = VERBS[name].target.partition(":")
    docstring = inspect.getdoc(getattr(import_module(module), function))
    assert docstring is not None
    assert docstring.splitlines()[0] == VERBS[name].summary


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"steelyard {name}" in text
    assert "xample" in text


def test_an_unknown_option_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["doctor", "--frobnicate"]) == 2
    assert "frobnicate" in capsys.readouterr().err


def test_the_overview_imports_no_library() -> None:
    watched = "{'cyclopts', 'numpy', 'rich'}"
    code = f"import sys, steelyard.cli as c; c.overview(); print([m for m in sys.modules if m in {watched}])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


FIRST_RUN = """
import sys
from steelyard.cli import execute
from steelyard.run.executor.worker import Worker

def say_what_is_loaded(*_, **__):
    watched = {"numpy", "polars", "pyarrow", "pydantic", "scipy.special", "scipy.stats"}
    print(*sorted(watched & sys.modules.keys()))
    raise SystemExit

Worker.execute = say_what_is_loaded
execute(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("words", "needed"),
    [(("compare", "true", "true"), "numpy pydantic"), (("measure", "--", "true"), "")],
    ids=["compare", "measure"],
)
def test_before_the_first_run_only_what_it_needs_is_imported(
    words: tuple[str, ...], needed: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", FIRST_RUN, *words]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == needed


def test_the_overview_names_every_verb() -> None:
    assert all(f"  {name} " in overview() for name in VERBS)


def test_a_bug_shows_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        message = "boom"
        raise ZeroDivisionError(message)

    monkeypatch.setattr("steelyard.cli._execute_verb", broken)
    assert execute(["doctor"]) == 70
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert "ZeroDivisionError: boom" in error
