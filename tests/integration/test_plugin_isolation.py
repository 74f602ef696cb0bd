"""An isolation technology of an installed package is used by every verb like one of ours."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.plug_ins import Beside, install

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.needs_tc]

STUDY = """\
study = "stability"
quick = true
isolation = ["bare", "offline"]
blocks = 2
iterations = 3
workers = [1]
setups = ["single"]
workloads = ["bsearch/bsearch"]
target_iteration_ms = 5
"""
CONNECT = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2)"
OWN = (
    "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname(), 2)"
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Beside:
    made = ["unshare", "--net", "ip", "link"]
    if shutil.which("unshare") is None or subprocess.run(made, check=False).returncode:
        pytest.skip("needs network namespaces, `unshare` and `ip`")
    return install("plugin-isolation", tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def result(installed: Beside, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    (folder / "mine.toml").write_text(STUDY, encoding="utf-8")
    words = ("run", "stability", "--study-file", "mine.toml", "--out", "two")
    # What so few runs on a busy machine say is not asked for: 1 stands for "not stable".
    installed.steelyard(folder, *words, allowed=(0, 1))
    return folder / "two"


@pytest.fixture
def port_of_the_host() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield str(server.getsockname()[1])


def measured(beside: Beside, folder: Path, isolation: str, *command: str, allowed: int = 0) -> dict[str, Any]:
    words = ("measure", "--isolation", isolation, "--json", "--", *command)
    document: dict[str, Any] = json.loads(beside.steelyard(folder, *words, allowed=(allowed,)).stdout)
    return document


def test_a_program_in_it_reaches_itself_and_nobody_else(
    installed: Beside, tmp_path: Path, port_of_the_host: str
) -> None:
    reach = ("python3", "-c", CONNECT, port_of_the_host)
    assert measured(installed, tmp_path, "bare", *reach)["status"] == "completed"
    refused = measured(installed, tmp_path, "offline", *reach, allowed=4)
    assert "ConnectionRefusedError" in refused["outcomes"][0]["standard_error"]["text"]
    assert measured(installed, tmp_path, "offline", "python3", "-c", OWN)["status"] == "completed"


def test_limits_and_sources_are_those_of_a_bare_run(installed: Beside, tmp_path: Path) -> None:
    words = ("measure", "--isolation", "offline", "--wall-time", "200ms", "--json", "--", "sleep", "9")
    ended = json.loads(installed.steelyard(tmp_path, *words, allowed=(4,)).stdout)
    assert (ended["status"], ended["limit"]) == ("wall_timeout", "wall_time")
    places = [measured(installed, tmp_path, each, "true")["outcomes"][0] for each in ("bare", "offline")]
    assert places[0]["quantities"]["wall_ns"]["source"] == places[1]["quantities"]["wall_ns"]["source"]


def test_a_study_has_runs_in_it_and_records_its_version(installed: Beside, result: Path) -> None:
    provenance = json.loads((result / "provenance.json").read_text(encoding="utf-8"))
    assert provenance["versions"]["steelyard-offline"] == "1.0.0"
    recorded = provenance["technologies"]["offline"]
    assert recorded["available"]
    assert "util-linux" in recorded["version"]
    page = installed.said(result.parent, "report", "two", "--format", "markdown")
    assert "offline" in page
    assert "confirmed" in installed.said(result.parent, "verify", "two")


def test_without_the_package_its_results_are_still_read(result: Path) -> None:
    without = Beside(result.parent / "nowhere")
    assert "confirmed" in without.said(result.parent, "verify", "two")
    refused = without.steelyard(
        result.parent, "measure", "--isolation", "offline", "--", "true", allowed=(2,)
    )
    assert "`offline` is not an isolation technology" in refused.stderr


def test_doctor_lists_it_with_its_package(installed: Beside, tmp_path: Path) -> None:
    found = json.loads(installed.said(tmp_path, "doctor", "--json"))
    [offline] = [each for each in found["isolation"] if each["name"] == "offline"]
    assert offline["available"]
    [plug_in] = found["plug_ins"]
    assert (plug_in["package"], plug_in["version"], plug_in["reason"]) == ("steelyard-offline", "1.0.0", None)
