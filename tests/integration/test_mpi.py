"""Both MPI implementations, the real ones: what their ranks leave, and what happens when they fail."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.run import programs
from steelyard.studies.communication.trace import Operation, Trace, read_trace
from steelyard.studies.communication.transport.interface import Place, TraceOptions
from steelyard.studies.communication.transport.mpi import TRANSPORTS, Mpi
from steelyard.studies.communication.transport.mpi_thresholds import find_thresholds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.studies.communication.transport.interface import Invocation

ALLOWED = sorted(os.sched_getaffinity(0))
CPUS = (ALLOWED[0], ALLOWED[1]) if len(ALLOWED) > 1 else None
"""Two ranks that spin on one CPU wait for each other by time slices."""
MEMORY = Path("/dev/shm")  # noqa: S108 - where a library's files in memory are looked for
OPEN_MPI_HEADER = 56
"""Of each message of Open MPI's, in bytes, before its data; its declared limits include it."""
BY_NAME = {transport.name: transport for transport in TRANSPORTS}

pytestmark = [pytest.mark.slow, pytest.mark.needs_mpi]


def usable(name: str) -> Mpi:
    transport = BY_NAME[name]
    answer = transport.probe()
    if not answer.available:
        pytest.skip(f"needs_mpi: {answer.reason}")
    return transport


@pytest.fixture(params=list(BY_NAME))
def transport(request: pytest.FixtureRequest) -> Mpi:
    return usable(request.param)


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path) -> Iterator[None]:
    before = set(MEMORY.iterdir())
    yield
    end = time.monotonic() + 10
    while ranks_of(tmp_path) and time.monotonic() < end:
        time.sleep(0.02)
    assert not ranks_of(tmp_path)
    named = {path for path in MEMORY.iterdir() if path.match("vader*")}
    assert not named - before


def ranks_of(folder: Path) -> list[int]:
    """Give the living processes whose command line names a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(folder) in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def write_plan(folder: Path, operations: list[tuple[str, int]]) -> Path:
    lines = "".join(f"{name},{size}\n" for name, size in operations)
    (folder / "plan.csv").write_text(f"op,size\n{lines}", encoding="ascii")
    return folder / "plan.csv"


def mixed(count: int) -> list[tuple[str, int]]:
    """Give operations of every kind, with sizes from 0 to 1 MB."""
    generator = np.random.default_rng(5)
    sizes = (10.0 ** generator.uniform(0, 6, count)).astype(int) - 1
    names = [operation.name.lower() for operation in Operation]
    return [(names[i % len(names)], int(size)) for i, size in enumerate(sizes)]


def start(invocation: Invocation) -> subprocess.Popen[str]:
    return subprocess.Popen(
        invocation.command,
        env={**os.environ, **invocation.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def execute(invocation: Invocation) -> tuple[int, str]:
    process = start(invocation)
    _, said = process.communicate(timeout=300)
    return process.returncode, said


def run_plan(
    transport: Mpi, folder: Path, operations: list[tuple[str, int]], options: TraceOptions | None = None
) -> tuple[int, str]:
    plan = write_plan(folder, operations)
    (invocation,) = transport.invocations(plan, folder, options or TraceOptions(cpus=CPUS))
    return execute(invocation)


def assert_plausible(trace: Trace, operations: list[tuple[str, int]]) -> None:
    planned = [(Operation[name.upper()], size) for name, size in operations]
    local = {Operation.TEST, Operation.IPROBE, Operation.WTIME}
    for rank, endpoint in enumerate(trace.endpoints):
        expected = [(i, *each) for i, each in enumerate(planned) if rank == 0 or each[0] not in local]
        found = endpoint.operations
        assert [tuple(int(word) for word in row) for row in found[["seq", "op", "size"]]] == expected
        assert np.all(found["start_ns"] <= found["end_ns"])
        assert np.all(found["start_ns"][1:] >= found["end_ns"][:-1])
        middle = found["mid_ns"] > 0
        has_middle = np.isin(
            found["op"], [Operation.PINGPONG] if rank else [Operation.PINGPONG, Operation.ISEND]
        )
        assert np.array_equal(middle, has_middle)
        assert np.all(found["mid_ns"][middle] >= found["start_ns"][middle])
        assert np.all(found["mid_ns"][middle] <= found["end_ns"][middle])
        assert endpoint.blocks["seq"][0] == 0
        assert endpoint.blocks["seq"][-1] == len(operations)
        assert np.all(np.diff(endpoint.blocks["run_delay_ns"].astype(np.int64)) >= 0)


def test_every_operation_is_recorded_on_both_sides(transport: Mpi, tmp_path: Path) -> None:
    operations = mixed(600)
    options = TraceOptions(block=100, probes=7, canary=tmp_path / "canary", cpus=CPUS)
    status, said = run_plan(transport, tmp_path, operations, options)
    assert (status, said) == (0, "")
    trace = read_trace(tmp_path)
    assert trace.is_complete
    assert_plausible(trace, operations)
    for endpoint in trace.endpoints:
        assert endpoint.header["transport"] == transport.name
        assert endpoint.header["operations"] == len(operations)
        assert endpoint.header["ended_by"] == "plan"
        assert endpoint.header["has_canary"] is True
        assert transport.implementation in endpoint.header["mpi_library"].replace("Version", "")
        assert list(endpoint.blocks["seq"]) == list(range(0, 700, 100))
    assert trace.endpoints[0].header["checksum"] == trace.endpoints[1].header["checksum"]


def test_the_true_offset_of_one_shared_clock_is_within_the_bounds(transport: Mpi, tmp_path: Path) -> None:
    status, said = run_plan(
        transport, tmp_path, [("pingpong", 1)] * 50, TraceOptions(block=10, probes=7, cpus=CPUS)
    )
    assert (status, said) == (0, "")
    probes = read_trace(tmp_path).probes
    assert len(probes) == 500 + 4 * 7 + 500
    # SOURCE: the offset of clock 1 against clock 0 is at most time1 - send0 and at least time1 - recv0.
    answered = probes["time1"].astype(np.int64)
    assert np.max(answered - probes["recv0"].astype(np.int64)) <= 0
    assert np.min(answered - probes["send0"].astype(np.int64)) >= 0


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_a_budget_ends_both_ranks_at_a_block(name: str, tmp_path: Path) -> None:
    transport = usable(name)
    operations = [("pingpong", 8)] * 100_000
    options = TraceOptions(block=50, budget_ms=100, gap_us=100, cpus=CPUS)
    status, said = run_plan(transport, tmp_path, operations, options)
    assert (status, said) == (0, "")
    trace = read_trace(tmp_path)
    done = trace.endpoints[0].header["operations"]
    assert trace.is_complete
    assert 0 < done < len(operations)
    assert done % 50 == 0
    assert_plausible(trace, operations[:done])
    assert [endpoint.header["ended_by"] for endpoint in trace.endpoints] == ["budget", "budget"]


def test_thresholds_are_the_declared_limits(transport: Mpi) -> None:
    declared = transport.declared()
    found = find_thresholds(transport, cpus=CPUS)
    if transport.name == "openmpi":
        expected = (
            int(declared["btl_vader_max_inline_send"]),
            int(declared["btl_vader_eager_limit"]) - OPEN_MPI_HEADER,
        )
    elif transport.name == "openmpi-tcp":
        expected = (int(declared["btl_tcp_eager_limit"]) - OPEN_MPI_HEADER,) * 2
    else:
        if "UCX_POSIX_SEG_SIZE" not in declared:
            pytest.skip("needs_mpi: `ucx_info` says what MPICH's layer declares, and is not installed")
        # Eager while one byte of the segment stays free.
        expected = (int(declared["UCX_POSIX_SEG_SIZE"]) - 1,) * 2
    assert (found.detached_bytes, found.asynchronous_bytes) == expected
    assert not found.detached_is_lower_bound
    assert not found.asynchronous_is_lower_bound


def long_run(transport: Mpi, folder: Path) -> subprocess.Popen[str]:
    """Start a run of some hundred seconds, and come back when its ranks exchange messages."""
    plan = write_plan(folder, [("pingpong", 8)] * 200_000)
    (invocation,) = transport.invocations(plan, folder, TraceOptions(block=16, gap_us=1000, cpus=CPUS))
    process = start(invocation)
    end = time.monotonic() + 30
    while not headers_are_there(folder) or stamped(folder) < 100:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end, "the ranks did not begin"
        time.sleep(0.02)
    return process


def headers_are_there(folder: Path) -> bool:
    return all((folder / f"header.{rank}.json").exists() for rank in (0, 1))


def stamped(folder: Path) -> int:
    return min(len(endpoint.operations) for endpoint in read_trace(folder).endpoints)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_rank_ends_the_other_in_one_line_and_the_trace_stays(
    transport: Mpi, rank: int, tmp_path: Path
) -> None:
    process = long_run(transport, tmp_path)
    victim = json.loads((tmp_path / f"header.{rank}.json").read_text(encoding="utf-8"))["pid"]
    os.kill(victim, signal.SIGKILL)
    killed_at = time.monotonic()
    _, said = process.communicate(timeout=30)
    assert time.monotonic() - killed_at < 10
    assert process.returncode == 3
    assert f"error: rank {rank} was killed by signal 9" in said.splitlines()
    trace = read_trace(tmp_path)
    assert not trace.is_complete
    counts = [len(endpoint.operations) for endpoint in trace.endpoints]
    assert min(counts) >= 100
    assert abs(counts[0] - counts[1]) <= 1


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_a_run_that_is_told_to_end_takes_its_ranks_along(name: str, tmp_path: Path) -> None:
    process = long_run(usable(name), tmp_path)
    assert len(ranks_of(tmp_path)) >= 3
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert not ranks_of(tmp_path)
    assert not read_trace(tmp_path).is_complete


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_what_a_killed_start_leaves_is_removed_by_the_next(name: str, tmp_path: Path) -> None:
    transport = usable(name)
    process = long_run(transport, tmp_path)
    scratches = list(MEMORY.glob(f"steelyard-mpi-{process.pid}-*"))
    assert len(scratches) == 1
    process.kill()
    process.communicate(timeout=30)
    end = time.monotonic() + 10
    while ranks_of(tmp_path) and time.monotonic() < end:
        time.sleep(0.02)
    assert not ranks_of(tmp_path), "the ranks outlive who started them"
    assert scratches[0].exists()
    assert run_plan(transport, tmp_path, [("pingpong", 1)])[0] == 0
    assert not scratches[0].exists()


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_ranks_that_executed_different_plans_are_an_error(name: str, tmp_path: Path) -> None:
    transport = usable(name)
    found = transport.installation
    folder = programs.build_mpi(found.compiler, found.version, flags=("-DSTEELYARD_PLANTED_MISMATCH",))
    plan = write_plan(tmp_path, [("pingpong", 8), ("wtime", 8)])
    (invocation,) = transport.invocations(plan, tmp_path, TraceOptions())
    words = [
        str(folder / "rank") if word == str(transport.folder / "rank") else word
        for word in invocation.command
    ]
    status, said = execute(replace(invocation, command=tuple(words)))
    assert status == 1
    assert "error: the ranks executed different plans (2 operations, checksum" in said
    assert not read_trace(tmp_path).is_complete


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("op,size\npingpong,8\nsing,8\n", "line 3 of the plan"),
        ("op,size\npingpong,-1\n", "line 2 of the plan"),
        ("op,size\npingpong\n", "line 2 of the plan"),
        ("size,op\n8,pingpong\n", "does not begin with the heading `op,size`"),
    ],
    ids=["operation", "size", "column", "heading"],
)
def test_a_wrong_plan_is_refused_with_its_line(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "plan.csv").write_text(text, encoding="ascii")
    (invocation,) = usable("mpich").invocations(tmp_path / "plan.csv", tmp_path, TraceOptions())
    status, said = execute(invocation)
    assert status == 2
    assert complaint in said
    assert len([line for line in said.splitlines() if line.startswith("error: ")]) == 1


@pytest.mark.parametrize("name", ["openmpi-tcp", "mpich"])
@pytest.mark.parametrize(
    ("content", "status", "complaint"),
    [
        (None, 2, "cannot open the hostfile"),
        ("host.invalid\nother.invalid\n", 4, "cannot reach a host"),
    ],
    ids=["missing", "unknown-host"],
)
def test_a_wrong_hostfile_is_named(
    name: str, content: str | None, status: int, complaint: str, tmp_path: Path
) -> None:
    transport = usable(name)
    hostfile = tmp_path / "hosts"
    if content is not None:
        hostfile.write_text(content, encoding="ascii")
    plan = write_plan(tmp_path, [("pingpong", 8)])
    (invocation,) = transport.invocations(plan, tmp_path, TraceOptions(), Place(hostfile=hostfile))
    found, said = execute(invocation)
    assert found == status
    assert complaint in said
    assert "hint: " in said


def test_messages_beyond_the_memory_are_refused_before_the_first(tmp_path: Path) -> None:
    status, said = run_plan(usable("mpich"), tmp_path, [("pingpong", 2**60)])
    assert status == 1
    assert "error: messages of 1152921504606846976 bytes need" in said


@pytest.mark.slow
def test_messages_above_the_counts_of_the_library_are_whole(tmp_path: Path) -> None:
    size = 2**31 + 7
    memory = Path("/proc/meminfo").read_text(encoding="ascii")
    available_kib = next(int(line.split()[1]) for line in memory.splitlines() if "MemAvailable" in line)
    if available_kib * 1024 < 7 * size:
        pytest.skip("needs_mpi: messages of 2 GiB need 15 GB of memory")
    operations = [("pingpong", 0), ("pingpong", size), ("recv", 0)]
    status, said = run_plan(usable("openmpi"), tmp_path, operations)
    assert (status, said) == (0, "")
    trace = read_trace(tmp_path)
    assert_plausible(trace, operations)
    large = trace.endpoints[0].operations[1]
    # No memory copies 100 GB/s on one core: less time would mean that not all was moved.
    assert int(large["end_ns"] - large["start_ns"]) > 2 * size / 100


@pytest.mark.parametrize("name", ["mpicc.openmpi", "mpicc.mpich", "smpicc"])
def test_the_sources_compile_without_a_warning(name: str, tmp_path: Path) -> None:
    compiler = shutil.which(name)
    if compiler is None:
        pytest.skip(f"needs_mpi: `{name}` is not on the PATH")
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-Wno-unused-function"]
    simulated = ["-DSTEELYARD_SIMULATED"] if name == "smpicc" else []
    sources = programs.PACKAGE / "_workloads" / "mpi"
    for program in ("rank", "thresholds"):
        words = [*programs.MPI_FLAGS, *strict, *simulated, "-o", str(tmp_path / program)]
        command = [compiler, *words, str(sources / f"{program}.c"), "-lm"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="zone" routing="Full">
<host id="a" speed="1Gf"/><host id="b" speed="1Gf"/>
<link id="cable" bandwidth="1GBps" latency="1us" sharing_policy="SPLITDUPLEX"/>
<route src="a" dst="b"><link_ctn id="cable" direction="UP"/></route>
</zone></platform>
"""


@pytest.mark.needs_simgrid
@pytest.mark.skipif(shutil.which("smpicc") is None, reason="needs_simgrid: `smpicc` is not on the PATH")
@pytest.mark.parametrize("unit", ["ns", "ps"])
def test_the_same_program_is_simulated_unchanged(unit: str, tmp_path: Path) -> None:
    compiler = Path(shutil.which("smpicc") or "")
    folder = programs.build_mpi(compiler, "SimGrid", flags=("-DSTEELYARD_SIMULATED",))
    operations = mixed(160)
    plan = write_plan(tmp_path, operations)
    (tmp_path / "platform.xml").write_text(PLATFORM, encoding="ascii")
    (tmp_path / "hosts").write_text("a\nb\n", encoding="ascii")
    quiet = ["--log=root.thres:critical", "--cfg=smpi/simulate-computation:no"]
    machine = ["-np", "2", "-platform", str(tmp_path / "platform.xml"), "-hostfile", str(tmp_path / "hosts")]
    words = ["--plan", str(plan), "--out", str(tmp_path), *(["--stamps-ps"] if unit == "ps" else [])]
    command = ["smpirun", *machine, *quiet, str(folder / "rank"), *words]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    trace = read_trace(tmp_path)
    assert trace.is_complete
    assert_plausible(trace, operations)
    assert [endpoint.header["stamp_unit"] for endpoint in trace.endpoints] == [unit, unit]
    # A megabyte takes its time on a cable of 1 GB/s, whatever the factors of the model.
    found = trace.endpoints[0].operations
    largest = max(found[found["op"] == Operation.PINGPONG], key=lambda row: row["size"])
    duration_ns = int(largest["end_ns"] - largest["start_ns"]) / (1000 if unit == "ps" else 1)
    assert 2 * largest["size"] < duration_ns < 4 * largest["size"] + 100_000
