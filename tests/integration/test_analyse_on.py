"""Analysis in processes and on a cluster of Dask: the same bytes, and what happens when something is lost."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fixtures.dask_cluster import START_S, missing, scheduler, worker
from fixtures.private_mount import can_mount_privately
from fixtures.simulated_result import Spec, build, lognormal
from fixtures.simulated_result import Study as SimulatedStudy
from fixtures.stability_sample import plan
from steelyard.cli import execute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import distributed

FEW_S = 60.0
"""What is over within seconds, on a slow machine."""
needs_dask = [
    pytest.mark.needs_dask,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.long("starts a scheduler and workers of Dask: no other test sees their faults"),
]
pytestmark = pytest.mark.timeout(300)
DIES_AT_WORK = """
import os, threading, time

def dask_setup(worker):
    def watch():
        while not worker.state.executing:
            time.sleep(0.001)
        os._exit(9)

    threading.Thread(target=watch, daemon=True).start()
"""
NEVER_BEGINS = """
from distributed import Status

def dask_setup(worker):
    worker.status = Status.paused
"""
FAILS = """
from steelyard.analyse.mapping import dask_cluster

def recurse():
    recurse()

class Failing:
    def __init__(self, task):
        self.name = task.name

    def compute(self):
        {how}

    def needed_bytes(self):
        return 0

def dask_setup(worker):
    perform = dask_cluster._perform
    dask_cluster._perform = lambda task, folder: perform(Failing(task), folder)
"""


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An analysed result of ten cells."""
    folder = tmp_path_factory.mktemp("analysed")
    values = np.random.default_rng(3).gamma(20, 0.05, (10, 20, 200))
    lines = [
        f"w{cell},{run},{value}"
        for cell, runs in enumerate(values)
        for run, of_run in enumerate(runs)
        for value in of_run
    ]
    (folder / "t.csv").write_text("\n".join(["workload,run,value", *lines, ""]), encoding="utf-8")
    result = folder / "result"
    assert execute(["import", "csv", str(folder / "t.csv"), "--unit", "s", "--out", str(result)]) == 0
    assert execute(["analyse", str(result)]) == 0
    return result


@pytest.fixture
def result(analysed: Path, tmp_path: Path) -> Path:
    """A copy of it without findings."""
    copy = shutil.copytree(analysed, tmp_path / "result")
    (copy / "findings.json").unlink()
    shutil.rmtree(copy / "tables")
    return copy


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with scheduler(tmp_path_factory.mktemp("scheduler")) as found:
        yield found


def command(result: Path, on: str) -> list[str]:
    return [sys.executable, "-m", "steelyard", "analyse", str(result), "--on", on]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def analyse(result: Path, on: str) -> subprocess.CompletedProcess[str]:
    words = command(result, on)
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment(), timeout=240)


def analyse_where_it_fails(
    result: Path, address: str, folder: Path, how: str
) -> subprocess.CompletedProcess[str]:
    (folder / "fails.py").write_text(FAILS.format(how=how), encoding="utf-8")
    with worker(address, folder, "--preload", str(folder / "fails.py")), waiting_for(address, 1):
        return analyse(result, f"dask:{address}")


def require_refused(done: subprocess.CompletedProcess[str], result: Path, code: int, *said: str) -> None:
    """Check that an analysis was refused by an error that says this, and wrote nothing."""
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    for text in said:
        assert text in done.stderr
    assert not (result / "findings.json").exists()
    assert not (result / "tables").exists()


def require_same(analysed: Path, result: Path) -> None:
    for name in ("findings.json", *(f"tables/{path.name}" for path in (analysed / "tables").iterdir())):
        assert (result / name).read_bytes() == (analysed / name).read_bytes(), name


@pytest.mark.long("starts processes that each import the analysis")
def test_processes_give_the_same_bytes(analysed: Path, result: Path) -> None:
    assert analyse(result, "pool:2").returncode == 0
    require_same(analysed, result)


def test_a_study_with_nothing_to_map_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replace(plan(), study="scaling").freeze().write(tmp_path / "plan.json")
    assert execute(["analyse", str(tmp_path), "--on", "pool:2"]) == 2
    assert "cannot place the analysis of `scaling` on `pool:2`" in capsys.readouterr().err


@pytest.mark.long("starts processes that each import the analysis")
@pytest.mark.parametrize("study", ["stability", "communication"])
def test_cells_that_travel_to_processes_give_the_same_bytes(study: str, tmp_path: Path) -> None:
    here = tmp_path / "here"
    if study == "stability":
        loads = [("single", 1), ("parallel-homogenous", 2)]
        measured = [
            Spec(isolation, *load, "w/x", lognormal(0.05, 0.01, 0.003))
            for isolation in ("bare", "sandbox")
            for load in loads
        ]
        build(here, measured, SimulatedStudy(blocks=5, iterations=12))
    else:
        size = np.arange(1, 401) * 100
        taken = 5e-6 + 2e-10 * size * np.random.default_rng(4).lognormal(0, 0.1, size.size)
        rows = [f"{n},{s!r}" for n, s in zip(size.tolist(), taken.tolist(), strict=True)]
        (tmp_path / "m.csv").write_text("\n".join(["size,time", *rows, ""]), encoding="utf-8")
        words = ["import", "messages", str(tmp_path / "m.csv"), "--unit", "s", "--out", str(here)]
        assert execute(words) == 0
    there = shutil.copytree(here, tmp_path / "there")
    assert execute(["analyse", str(here)]) == 0
    done = analyse(there, "pool:2")
    assert (done.returncode, done.stderr) == (0, "")
    require_same(here, there)


@pytest.mark.parametrize(
    "on", ["", "pool:", "pool:0", "pool:x", "dask", "dask:", "local-cluster:-1", "ssh:a"]
)
def test_a_place_that_is_none_is_refused(on: str, result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["analyse", str(result), f"--on={on}"]) == 2
    assert "`pool[:N]`, `local-cluster[:N]` or `dask:ADDRESS`" in capsys.readouterr().err


def test_dask_is_not_imported_unless_it_is_asked_for(analysed: Path) -> None:
    program = (
        "import sys; from steelyard.cli import execute; execute(['analyse', sys.argv[1]]);"
        "sys.exit(bool({'dask', 'distributed'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(analysed)], check=False, env=environment())
    assert done.returncode == 0


def test_dask_that_is_absent_is_named_with_what_installs_it(
    result: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "steelyard.analyse.mapping.dask_cluster", raising=False)
    assert execute(["analyse", str(result), "--on", "local-cluster"]) == 3
    assert "pip install 'steelyard[dask]'" in capsys.readouterr().err


@contextmanager
def listening(answer: bytes) -> Iterator[str]:
    """Give the address of somebody who accepts every connection, answers this, and says no more."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                held.append(connection)
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection in held:
            connection.close()


class TestWithDask:
    pytestmark = needs_dask

    def test_a_local_cluster_gives_the_same_bytes(self, analysed: Path, result: Path) -> None:
        done = analyse(result, "local-cluster:2")
        assert (done.returncode, done.stderr) == (0, "")
        require_same(analysed, result)

    def test_a_local_cluster_that_does_not_start_is_said(
        self, result: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        import distributed  # noqa: PLC0415 - an extra

        def fail(**_options: object) -> None:
            message = "Nanny failed to start."
            raise RuntimeError(message)

        monkeypatch.setattr(distributed, "LocalCluster", fail)
        assert execute(["analyse", str(result), "--on", "local-cluster:2"]) == 3
        said = capsys.readouterr().err
        assert "cannot start 2 workers of Dask on this machine: Nanny failed to start." in said
        assert "start fewer" in said

    def test_a_worker_that_dies_at_work_is_made_up_for(
        self, analysed: Path, result: Path, address: str, tmp_path: Path
    ) -> None:
        (tmp_path / "dies.py").write_text(DIES_AT_WORK, encoding="utf-8")
        with (
            worker(address, tmp_path, "--preload", str(tmp_path / "dies.py")) as dying,
            worker(address, tmp_path),
            waiting_for(address, 2),
        ):
            done = analyse(result, f"dask:{address}")
            assert (done.returncode, done.stderr) == (0, "")
            assert dying.wait(START_S) == 9
        require_same(analysed, result)

    @pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(range(256)) * 40])
    def test_somebody_else_at_the_address_is_said_within_seconds(self, answer: bytes, result: Path) -> None:
        with listening(answer) as place:
            begin = time.monotonic()
            done = analyse(result, f"dask:{place}")
            assert time.monotonic() - begin < FEW_S
        require_refused(done, result, 3, f"no scheduler of Dask answers at `{place}`")

    @pytest.mark.parametrize("place", ["tcp://127.0.0.1:1", "nowhere", "tls://127.0.0.1:1", "x://y:1"])
    def test_an_address_without_a_scheduler_is_said(
        self, place: str, result: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert execute(["analyse", str(result), "--on", f"dask:{place}"]) == 3
        assert f"no scheduler of Dask answers at `{place}`" in capsys.readouterr().err

    def test_a_scheduler_without_workers_is_said(self, result: Path, address: str) -> None:
        require_refused(analyse(result, f"dask:{address}"), result, 3, f"`{address}` has no worker")

    def test_a_worker_of_another_version_is_named_with_both(
        self, result: Path, address: str, tmp_path: Path
    ) -> None:
        told = tmp_path / "other/steelyard-77.7.dist-info"
        told.mkdir(parents=True)
        (told / "METADATA").write_text("Metadata-Version: 2.1\nName: steelyard\nVersion: 77.7\n")
        own = re.escape(subprocess.check_output([sys.executable, "-m", "steelyard", "--version"], text=True))
        with worker(address, tmp_path, path=str(told.parent)), waiting_for(address, 1):
            done = analyse(result, f"dask:{address}")
        require_refused(done, result, 5, "has steelyard 77.7, this process")
        assert any(word in done.stderr for word in own.replace("\\", "").split()[1:])

    @pytest.mark.skipif(not can_mount_privately(), reason="needs a mount that nobody else sees")
    def test_a_worker_that_does_not_see_the_folder_is_named_with_it(
        self, result: Path, address: str, tmp_path: Path
    ) -> None:
        hide = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(result)]
        with worker(address, tmp_path, before=hide), waiting_for(address, 1):
            done = analyse(result, f"dask:{address}")
        seen = f"`{socket.gethostname()}` does not see `{result / 'plan.json'}`"
        require_refused(done, result, 5, seen)

    def test_a_cell_that_a_worker_cannot_hold_is_named(
        self, result: Path, address: str, tmp_path: Path
    ) -> None:
        with worker(address, tmp_path, "--memory-limit", "280MB"), waiting_for(address, 1):
            done = analyse(result, f"dask:{address}")
        require_refused(done, result, 6, "cannot compute cell", "each thread of a worker has 267")

    def test_a_scheduler_that_falls_silent_is_said(
        self,
        result: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        from steelyard.analyse.mapping import dask_cluster  # noqa: PLC0415 - an extra

        for name in ("SILENT_S", "ANSWER_S", "_LOOK_S"):
            monkeypatch.setattr(dask_cluster, name, 1.0 if name != "ANSWER_S" else 3.0)
        (tmp_path / "paused.py").write_text(NEVER_BEGINS, encoding="utf-8")
        with (
            scheduler(tmp_path) as place,
            worker(place, tmp_path, "--preload", str(tmp_path / "paused.py")),
            waiting_for(place, 1) as client,
        ):
            number = client.run_on_scheduler(os.getpid)

            def stop_it_at_work() -> None:
                wait_until(lambda: tasks_of(client) > 0)
                os.kill(number, signal.SIGSTOP)

            stopping = threading.Thread(target=stop_it_at_work)
            stopping.start()
            try:
                assert execute(["analyse", str(result), "--on", f"dask:{place}"]) == 3
            finally:
                stopping.join()
                os.kill(number, signal.SIGCONT)
        said = capsys.readouterr().err
        assert f"the scheduler at `{place}` does not answer any more" in said
        assert "Traceback" not in said
        assert not (result / "findings.json").exists()

    def test_a_file_that_a_worker_cannot_read_is_named_with_the_worker(
        self, result: Path, address: str, tmp_path: Path
    ) -> None:
        done = analyse_where_it_fails(
            result, address, tmp_path, 'raise FileNotFoundError(2, "no values here")'
        )
        require_refused(done, result, 5, f"`{socket.gethostname()}` fails at cell", "no values here")

    def test_an_error_that_is_too_deep_to_be_pickled_is_waited_for_no_longer_than_any(
        self, result: Path, address: str, tmp_path: Path
    ) -> None:
        done = analyse_where_it_fails(result, address, tmp_path, "recurse()")
        require_refused(done, result, 70, "a bug in steelyard: RecursionError: maximum recursion depth")

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
    def test_an_interrupted_analysis_writes_nothing(
        self, number: signal.Signals, code: int, result: Path, address: str, tmp_path: Path
    ) -> None:
        (tmp_path / "paused.py").write_text(NEVER_BEGINS, encoding="utf-8")
        before = sorted(result.rglob("*"))
        with ExitStack() as stack:
            stack.enter_context(worker(address, tmp_path, "--preload", str(tmp_path / "paused.py")))
            client = stack.enter_context(waiting_for(address, 1))
            words = command(result, f"dask:{address}")
            with subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True) as process:
                wait_until(lambda: tasks_of(client) > 0)
                process.send_signal(number)
                _, said = process.communicate(timeout=START_S)
            assert process.returncode == code
            assert "Traceback" not in said
            # The scheduler does not keep what nobody waits for.
            wait_until(lambda: tasks_of(client) == 0)
        assert sorted(result.rglob("*")) == before


@contextmanager
def waiting_for(address: str, workers: int) -> Iterator[distributed.Client]:
    """Give a client when exactly so many workers are there."""
    from distributed import Client  # noqa: PLC0415 - an extra

    with Client(address, set_as_default=False) as client:
        wait_until(lambda: len(client.nthreads()) == workers)
        yield client


def tasks_of(client: distributed.Client) -> int:
    return len(client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks)))


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + START_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)
