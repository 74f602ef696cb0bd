from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import CapabilityError, InternalError
from steelyard.model.cell import NeighbourKind
from steelyard.run import programs
from steelyard.run.executor import neighbour_programs
from steelyard.run.machine.calibration import truth_iterations

if TYPE_CHECKING:
    from collections.abc import Callable

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler, `cc`")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    "locate",
    [
        programs.launcher_path,
        programs.work_path,
        programs.truth_path,
        programs.packets_program,
        programs.comm_program,
        programs.load_program,
    ],
    ids=["launch", "work", "truth", "packets", "comm", "load"],
)
def test_programs_are_installed_and_static(locate: Callable[[], Path]) -> None:
    path = locate()
    assert os.access(path, os.X_OK)
    # A program with an interpreter segment needs a dynamic linker that a container may lack.
    assert b"ld-linux" not in path.read_bytes()[:4096]


def test_the_truth_has_no_start_up_code() -> None:
    content = programs.truth_path().read_bytes()
    assert len(content) < 32_768
    assert b"GLIBC" not in content


def test_a_missing_program_names_its_path_and_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "PACKAGE", tmp_path)
    with pytest.raises(InternalError, match="steelyard-work") as caught:
        programs.work_path()
    assert "make setup" in (caught.value.hint or "")


def test_truth_iterations_are_a_positive_number() -> None:
    assert truth_iterations(1) > 1000


def test_the_folder_holds_the_script_and_stays_the_same(cache: Path) -> None:
    first = programs.workloads_path()
    assert first.is_relative_to(cache)
    assert (first / "python" / "qsort.py").read_text(encoding="utf-8").startswith('"""Quicksort in Python')
    assert programs.workloads_path() == first


@needs_cc
@pytest.mark.usefixtures("cache")
def test_the_c_program_is_built_once_and_recorded() -> None:
    program = programs.build_c()
    built_at = program.stat().st_mtime_ns
    assert programs.build_c() == program
    assert program.stat().st_mtime_ns == built_at
    (record,) = programs.built_programs()
    assert record.language == "c"
    assert "-O0" in record.flags
    assert record.version
    assert [entry.name for entry in sorted(program.parent.iterdir())] == ["build.json", "kernels"]


@pytest.mark.needs_java
@pytest.mark.skipif(shutil.which("javac") is None, reason="needs a Java compiler, `javac`")
@pytest.mark.usefixtures("cache")
def test_the_java_program_is_built_into_one_class_file() -> None:
    program = programs.build_java()
    assert program.name == "Qsort.class"
    assert [record.language for record in programs.built_programs()] == ["java"]


@needs_cc
@pytest.mark.usefixtures("cache")
def test_a_new_compiler_gets_a_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = programs.workloads_path()
    other = tmp_path / "bin"
    other.mkdir()
    shutil.copy(shutil.which("cc") or "", other / "cc")
    monkeypatch.setenv("PATH", f"{other}:{os.environ['PATH']}")
    assert programs.workloads_path() != before


@pytest.mark.usefixtures("cache")
def test_a_missing_compiler_is_a_capability_with_its_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(CapabilityError, match="`cc` is not on the PATH") as caught:
        programs.build_c()
    assert "apt-get install" in (caught.value.hint or "")
    with pytest.raises(CapabilityError, match="`javac` is not on the PATH"):
        programs.build_java()


@pytest.mark.usefixtures("cache")
def test_a_failing_compiler_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "bin" / "cc"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho no stdio here >&2\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken.parent}:{os.environ['PATH']}")
    with pytest.raises(CapabilityError, match="no stdio here"):
        programs.build_c()
    assert not list(tmp_path.rglob("kernels"))


def test_a_cache_that_is_no_folder_is_an_error_with_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(CapabilityError, match="cannot write built workloads") as caught:
        programs.workloads_path()
    assert "XDG_CACHE_HOME" in (caught.value.hint or "")


@pytest.mark.parametrize("kind", list(NeighbourKind))
@pytest.mark.parametrize("path", [os.environ["PATH"], "/nonexistent"], ids=["stress-ng", "native"])
def test_a_neighbour_is_busy_and_leaves_when_told(
    kind: NeighbourKind, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", path)
    command = neighbour_programs.neighbour_command(kind, 30)
    assert Path(command[0]).is_absolute()
    neighbour = subprocess.Popen(command, env={})
    try:
        time.sleep(0.6)
        assert neighbour.poll() is None, "it ended by itself"
    finally:
        neighbour.terminate()
        neighbour.wait(timeout=20)


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs the rights of root, to make a PID namespace")
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL], ids=["told", "orphaned"])
def test_a_stressor_that_is_first_in_its_pid_namespace_leaves(ending: signal.Signals) -> None:
    command = ["unshare", "--pid", "--fork", str(programs.work_path()), "stress", "cpu", "--seconds", "30"]
    outside = subprocess.Popen(command, env={"PATH": os.environ["PATH"]})
    children = Path(f"/proc/{outside.pid}/task/{outside.pid}/children")
    time.sleep(0.5)
    stressor = int(children.read_text(encoding="ascii"))
    # Told: the stressor itself, which no signal reaches without a handler. Orphaned: its parent.
    os.kill(stressor if ending is signal.SIGTERM else outside.pid, ending)
    assert outside.wait(timeout=10) == (0 if ending is signal.SIGTERM else -signal.SIGKILL)
    state = Path(f"/proc/{stressor}/stat")
    end = time.monotonic() + 10
    while state.exists() and ") Z " not in state.read_text(encoding="ascii"):
        assert time.monotonic() < end, "the stressor lives on"
        time.sleep(0.02)


def test_the_neighbour_inside_an_isolation_uses_the_placeholder() -> None:
    command = neighbour_programs.native_neighbour_command(NeighbourKind.MEMCPY, 5)
    assert command == ("{work}", "stress", "memcpy", "--seconds", "5")


def fake_mpicc(folder: Path, name: str = "mpicc") -> Path:
    """Give a compiler that counts its calls."""
    path = folder / name
    path.write_text(
        '#!/bin/sh\necho call >> "$0.calls"\n'
        'while [ $# -gt 0 ]; do [ "$1" != -o ] || echo built > "$2"; shift; done\n',
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path


@pytest.mark.usefixtures("cache")
def test_the_mpi_programs_are_built_once_per_compiler_version_and_flags(tmp_path: Path) -> None:
    compiler = fake_mpicc(tmp_path)
    first = programs.build_mpi(compiler, "MPI 1.0")
    assert sorted(entry.name for entry in first.iterdir()) == ["build.json", "rank", "thresholds"]
    assert programs.build_mpi(compiler, "MPI 1.0") == first
    calls = tmp_path / "mpicc.calls"
    assert calls.read_text(encoding="utf-8").count("call") == 2
    others = {
        programs.build_mpi(compiler, "MPI 2.0"),
        programs.build_mpi(compiler, "MPI 1.0", flags=("-DSTEELYARD_SIMULATED",)),
        programs.build_mpi(fake_mpicc(tmp_path, "other"), "MPI 1.0"),
    }
    assert len(others | {first}) == 4


@pytest.mark.usefixtures("cache")
def test_an_mpi_compiler_that_fails_is_quoted_and_leaves_no_program(tmp_path: Path) -> None:
    broken = tmp_path / "mpicc"
    broken.write_text("#!/bin/sh\necho no mpi.h here >&2\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    with pytest.raises(CapabilityError, match=r"no mpi\.h here"):
        programs.build_mpi(broken, "MPI 1.0")
    assert not list(tmp_path.rglob("rank"))
