"""The launcher's own tests on every layout of control groups, in a guest that has nothing else.

The test executable is one static program that is test, launcher and test program in turn.
"""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path

import pytest

from fixtures.guest_needs import guest_tools
from fixtures.launcher_tests import built_launcher_tests, host_triple
from steelyard.errors import RunError
from steelyard.run.guest.execution import GuestJob, execute_in_guest

EMULATION_SCALE = 20
EVERY_LAYOUT = "STEELYARD_EVERY_LAYOUT"


@pytest.fixture(scope="module")
def program() -> Path:
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo to build the launcher's tests")
    return built_launcher_tests(host_triple(), "--test", "launcher")["launcher"]


def _other_layouts() -> list[str]:
    """Give the layouts that the same tests cannot show on this host natively, as a lane of Rust."""
    has_version_1 = Path("/sys/fs/cgroup/cpu").is_dir() or Path("/sys/fs/cgroup/cpu,cpuacct").is_dir()
    here = {"v1", "hybrid"} if has_version_1 else {"v2"}
    every = ["v2", "v1", "hybrid", "none"]
    return [layout for layout in every if layout not in here or EVERY_LAYOUT in os.environ]


@pytest.mark.slow
@pytest.mark.needs_vm
@pytest.mark.timeout(600)
@pytest.mark.parametrize("layout", _other_layouts())
def test_the_launcher_holds_its_promises(
    layout: str, patience_s: float, request: pytest.FixtureRequest
) -> None:
    tools = guest_tools()
    program: Path = request.getfixturevalue("program")
    said = io.StringIO()
    job = GuestJob(
        program,
        arguments=("--color=never",),
        cgroup=layout,  # type: ignore[arg-type]
        cpus=2,
        timeout_s=patience_s,
        environment=(f"STEELYARD_EXPECT_CGROUP={layout}", f"STEELYARD_TIME_SCALE={EMULATION_SCALE}"),
        tools=tools,
    )
    try:
        code = execute_in_guest(job, said)
    except RunError as error:
        pytest.fail(f"{error.message}; it wrote\n{said.getvalue()[-6000:]}")
    assert code == 0, said.getvalue()[-6000:]
    assert "test result: ok" in said.getvalue()
