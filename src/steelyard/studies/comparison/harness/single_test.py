"""A plug-in of pytest that lists the tests with a fixture, or runs one test; it needs nothing of Steelyard.

It is copied beside the checkouts, as the pytest of a project is not the one of Steelyard.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


def pytest_addoption(parser: Any) -> None:
    """Add the options."""
    group = parser.getgroup("steelyard-suite")
    group.addoption("--steelyard-list", metavar="FILE", help="write the tests with a fixture into a file")
    group.addoption("--steelyard-fixture", metavar="NAME", help="the fixture")
    group.addoption("--steelyard-test", metavar="PATH", help="run this test alone: FILE::TEST")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: Any) -> None:
    """Run the test in this process, also where the configuration asks pytest-xdist for several."""
    if hasattr(config.option, "numprocesses"):
        config.option.numprocesses, config.option.dist, config.option.tx = 0, "no", []


def pytest_configure(config: Any) -> None:
    """Collect the file of the one test, whatever the command names."""
    wanted = config.getoption("--steelyard-test")
    if wanted:
        config.args = [wanted]


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_benchmark_generate_machine_info() -> dict[str, str]:
    """Spare pytest-benchmark a second of asking about the CPU in each run; what is known stands elsewhere."""
    return {"node": ""}


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_benchmark_generate_commit_info() -> dict[str, str]:
    """Spare pytest-benchmark its calls of Git."""
    return {"id": ""}


def pytest_collection_finish(session: Any) -> None:
    """Write the tests that use the fixture, and the files of all modules."""
    target = session.config.getoption("--steelyard-list")
    if not target:
        return
    fixture = session.config.getoption("--steelyard-fixture")
    tests = [
        (item.nodeid, "::".join((str(item.path), *item.nodeid.split("::")[1:])))
        for item in session.items
        if fixture in getattr(item, "fixturenames", ())
    ]
    content = {"tests": tests, "modules": sorted(_module_files())}
    Path(target).write_text(json.dumps(content), encoding="utf-8")


def _module_files() -> Iterator[str]:
    """Give the files of the imported modules that are not part of an installation of Python."""
    installed = (sys.prefix, sys.base_prefix)
    for name, module in list(sys.modules.items()):
        found = getattr(module, "__file__", None)
        if name != "__main__" and isinstance(found, str) and not found.startswith(installed):
            yield found
