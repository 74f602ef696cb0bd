"""What the verbs do where the package that draws figures is not installed."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from contextlib import contextmanager, nullcontext
from importlib.metadata import requires
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.cli import execute
from steelyard.cli.missing_package import BASE
from steelyard.errors import CapabilityError
from steelyard.report.drawing import engine
from steelyard.report.drawing.figures import write_figures
from steelyard.report.html import engine_of
from steelyard.report.page import Page

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPARED = ["--runs-min", "8", "--runs-max", "8", "--budget", "2s", "true", "sleep 0.002"]
NOTE = (
    "reports have no figures: the Python package `vl-convert-python`, which draws figures, is not installed"
)
INSTALL = "pip install 'steelyard[figures]'"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real result with its page and figures."""
    folder = tmp_path_factory.mktemp("result") / "compared"
    assert execute(["compare", "--out", str(folder), "--report", *COMPARED]) in {0, 1}
    assert engine_of((folder / "report.html").read_text()) is not None
    return folder


@pytest.fixture
def result(drawn: Path, tmp_path: Path) -> Path:
    return shutil.copytree(drawn, tmp_path / "compared")


@contextmanager
def without_engine() -> Iterator[None]:
    """Let Python find no `vl_convert`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "vl_convert", None)
        engine._library.cache_clear()
        yield
    engine._library.cache_clear()


@pytest.fixture
def undrawn() -> Iterator[None]:
    with without_engine():
        yield


@pytest.mark.usefixtures("undrawn")
def test_a_page_has_its_tables_and_says_that_its_figures_are_missing(
    result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(result / "figures")
    with_figures = (result / "report.html").read_text()
    assert execute(["report", str(result)]) == 0
    said = capsys.readouterr()
    assert f"{NOTE}; install it with `{INSTALL}`; then `steelyard report {result}` draws them" in said.err
    assert "figures:" not in said.out
    assert not (result / "figures").exists()
    page = (result / "report.html").read_text()
    assert "The figures are missing" in page
    assert INSTALL in page.replace("&#39;", "'")
    assert page.count("<table data-") == with_figures.count("<table data-") > 0
    assert 'data-chart="' not in page
    assert page.count("This figure is missing. It shows: ") == with_figures.count('data-chart="') > 0


@pytest.mark.usefixtures("undrawn")
def test_a_page_with_figures_is_verified_but_for_the_engine(
    result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["verify", str(result)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("confirmed: ")
    assert said.err.startswith("not compared: the chart engine inside `report.html`: ")
    assert INSTALL in said.err
    assert execute(["verify", str(result), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["confirmed"], answer["problems"], len(answer["not_compared"])) == (True, [], 1)


@pytest.mark.usefixtures("undrawn")
def test_an_altered_word_beside_the_engine_is_found(result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = result / "report.html"
    page.write_text(page.read_text().replace("Point at a number", "Point at no number"))
    assert execute(["verify", str(result)]) == 1
    assert "it says `" in capsys.readouterr().out


@pytest.mark.parametrize("has_engine", [True, False])
def test_a_page_that_is_no_text_is_found(
    has_engine: bool,  # noqa: FBT001 - a case
    result: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (result / "report.html").write_bytes(b"\xff\xfe" * 100)
    with nullcontext() if has_engine else without_engine():
        assert execute(["verify", str(result)]) == 1
    assert r"it says `\xff\xfe" in capsys.readouterr().out


@pytest.mark.usefixtures("undrawn")
def test_an_altered_engine_does_not_fit_the_page_that_admits_it_by_its_hash(
    result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = result / "report.html"
    page.write_text(page.read_text().replace("window.vegaEmbed=", "window.hacked=1;window.vegaEmbed=", 1))
    assert execute(["verify", str(result)]) == 1
    assert "script-src" in capsys.readouterr().out


def test_a_page_without_figures_is_confirmed_where_they_could_be_drawn(
    result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with without_engine():
        assert execute(["report", str(result)]) == 0
    capsys.readouterr()
    assert engine.has_engine()
    assert execute(["verify", str(result)]) == 0
    assert "not compared" not in capsys.readouterr().err


@pytest.mark.usefixtures("undrawn")
def test_packing_says_what_was_not_compared(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "compared.zip"
    assert execute(["pack", str(result), "-o", str(package)]) == 0
    assert "not compared: the chart engine" in capsys.readouterr().err
    assert execute(["verify", str(package)]) == 0
    assert "not compared: the chart engine" in capsys.readouterr().err
    assert execute(["repository", "index", str(tmp_path), "--verify"]) == 0
    assert "not compared: the chart engine" in capsys.readouterr().err


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("line", "is_said"),
    [
        ("compare --report false true", True),
        ("compare false true", False),
        ("run stability", True),
        ("run stability --no-analyse", False),
    ],
)
def test_what_a_report_will_lack_is_said_before_the_first_run(
    line: str,
    is_said: bool,  # noqa: FBT001 - a case
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("steelyard.cli.measuring.run.execute_study", stop)
    monkeypatch.setattr("steelyard.cli.measuring.compare.compare_commands", stop)
    assert execute(line.split()) == 130
    assert capsys.readouterr().err.startswith(f"note: {NOTE}; install it with `{INSTALL}`\n") is is_said


@pytest.mark.usefixtures("undrawn")
def test_a_history_is_a_page_without_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "history.html"
    for name, values in (("a", "10.1\n10.3"), ("b", "10.2\n10.4")):
        (tmp_path / f"{name}.csv").write_text(f"value\n{values}\n", encoding="utf-8")
        words = [
            "import",
            "csv",
            str(tmp_path / f"{name}.csv"),
            "--unit",
            "ms",
            "--out",
            str(tmp_path / name),
        ]
        assert execute(words) == 0
    capsys.readouterr()
    assert execute(["history", str(tmp_path / "a"), str(tmp_path / "b"), "--html", str(page)]) in {0, 1}
    assert NOTE in capsys.readouterr().err
    assert "The figures are missing" in page.read_text()


@pytest.mark.usefixtures("undrawn")
def test_drawing_names_the_command_that_makes_it_possible(tmp_path: Path) -> None:
    with pytest.raises(CapabilityError) as caught:
        engine.drawn_chart("{}")
    assert (caught.value.exit_code, caught.value.hint) == (3, INSTALL)
    assert write_figures(Page("s", "?", (), (), (), (), ()), tmp_path) == []


@pytest.mark.parametrize(
    ("package", "hint"),
    [
        ("vl_convert", INSTALL),
        ("scipy.special", "pip install --upgrade steelyard"),
        ("someones_study", "install the package that provides the Python module `someones_study`"),
    ],
)
def test_a_missing_package_is_no_bug(
    package: str, hint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> int:
        message = f"No module named {package!r}"
        raise ModuleNotFoundError(message, name=package)

    monkeypatch.setattr("steelyard.cli._execute_verb", broken)
    assert execute(["doctor"]) == 3
    said = capsys.readouterr().err
    assert f"cannot use the Python package `{package.partition('.')[0]}`: No module named" in said
    assert said.endswith(f"hint: {hint}\n")


def test_a_missing_module_of_our_own_is_a_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> int:
        message = "No module named 'steelyard.forgotten'"
        raise ModuleNotFoundError(message, name="steelyard.forgotten")

    monkeypatch.setattr("steelyard.cli._execute_verb", broken)
    assert execute(["doctor"]) == 70
    assert "a bug in steelyard" in capsys.readouterr().err


def test_the_base_packages_are_those_that_are_declared() -> None:
    declared = [line for line in requires("steelyard") or [] if "extra ==" not in line]
    root = Path(__file__).parents[3] / "pyproject.toml"
    if root.exists():  # what is installed may be older than the sources
        declared = tomllib.loads(root.read_text())["project"]["dependencies"]
    assert {re.split(r"[^\w-]", line)[0] for line in declared} == BASE
