"""Tests that measure: those of pytest-benchmark, and those with the fixture ``steelyard``."""

from __future__ import annotations

import json
import os
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, DataError, RunError
from steelyard.record.importers.pytest_benchmark import read
from steelyard.studies.comparison.harness.driver import OF_VALUES, Driver, Listed, sections_of_file, value_of

if TYPE_CHECKING:
    from steelyard.studies.comparison.harness.driver import Place, Scratch

_FILE: Final = "benchmark.json"
_LIST: Final = "tests.json"
_PLUG_IN: Final = "steelyard_single_test"
_NO_TESTS: Final = 5
"""pytest's exit code where it collected nothing."""


def _environment(scratch: Scratch) -> dict[str, str]:
    """Find the plug-in."""
    path = os.pathsep.join(filter(None, (str(scratch.kept), os.environ.get("PYTHONPATH"))))
    return {"PYTHONPATH": path, **scratch.python_environment}


def _listed(place: Place, fixture: str) -> list[Listed]:
    scratch = place.scratch
    scratch.clear()
    source = files("steelyard.studies.comparison.harness").joinpath("single_test.py").read_text("utf-8")
    (scratch.kept / f"{_PLUG_IN}.py").write_text(source, encoding="utf-8")
    common = [f"--steelyard-seconds={place.seconds:g}"]
    timed = [f"--steelyard-json={scratch.run / _FILE}"]
    if fixture == "benchmark":
        common = ["--benchmark-enable", f"--benchmark-storage=file://{scratch.kept / 'storage'}"]
        timed = [
            "--benchmark-min-rounds=1",
            f"--benchmark-max-time={place.seconds:g}",
            f"--benchmark-json={scratch.run / _FILE}",
        ]
    words = (*place.words, "-p", _PLUG_IN, "-o", f"cache_dir={scratch.kept / 'cache'}", *common)
    environment = _environment(scratch)
    found = scratch.run / _LIST
    asked = [*words, "--collect-only", f"--steelyard-list={found}", f"--steelyard-fixture={fixture}"]
    try:
        place.ask(asked, environment, accepted=(0, _NO_TESTS))
    except RunError as error:
        raise _without_package(error, fixture) from error
    if not found.is_file():
        return []
    content = json.loads(found.read_bytes())
    _require_own_files(place, content["modules"])
    return [
        Listed(name, (*words, *timed, f"--steelyard-test={path}"), environment=environment)
        for name, path in content["tests"]
    ]


def _without_package(error: RunError, fixture: str) -> CapabilityError | RunError:
    option, package = (
        ("--benchmark", "pytest-benchmark") if fixture == "benchmark" else ("--steelyard", "steelyard")
    )
    if f"unrecognized arguments: {option}" not in error.message:
        return error
    message = f"the pytest of `command` has no plug-in `{package}`"
    return CapabilityError(
        message, hint=f"pip install {package}, where that pytest is", code="capability.package"
    )


def _require_own_files(place: Place, modules: list[str]) -> None:
    """Refuse tests that import the user's own files: every revision would measure the same code.

    Raises
    ------
    RunError
        If a module lies beside the checkout, in the folder in which the user stands, and is no installed one.
    """
    here, checkout = Path.cwd().resolve(), place.folder.resolve()
    for name in modules:
        path = Path(name).resolve()
        is_installed = {"site-packages", "dist-packages"} & set(path.parts)
        if path.is_relative_to(here) and not path.is_relative_to(checkout) and not is_installed:
            message = f"the tests of a revision import `{path}`, which is not a file of the revision"
            hint = (
                'add `pythonpath = ["src"]` to the configuration of pytest, or install the package in '
                "`build`, into an environment in the checkout: `pip install --editable` points to one folder"
            )
            raise RunError(message, hint=hint, code="run.failed")


def _read_benchmark(scratch: Scratch, statistic: str) -> float:
    return value_of(sections_of_file(scratch.run / _FILE, read, ("time",)), statistic)


def _read_fixture(scratch: Scratch, statistic: str) -> float:
    try:
        values = json.loads((scratch.run / _FILE).read_bytes())["rounds_ns"]
    except (OSError, ValueError, KeyError) as error:
        message = "the test did not call the fixture `steelyard`"
        raise DataError(message, code="data.import") from error
    return OF_VALUES[statistic](values)


BENCHMARK: Final = Driver(partial(_listed, fixture="benchmark"), _read_benchmark)
FIXTURE: Final = Driver(partial(_listed, fixture="steelyard"), _read_fixture)
