"""The traces that `steelyard-comm` leaves, and how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.errors import DesignError
from steelyard.run.programs import comm_program
from steelyard.studies.communication.trace import OPERATION, Endpoint, Operation, read_trace
from steelyard.studies.communication.transport import Place, TraceOptions
from steelyard.studies.communication.transport.native import NATIVE, SHM, TCP, canary_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.timing

TRANSPORTS = ("pipe", "unix", "tcp", "shm")
LOCAL = {Operation.TEST, Operation.IPROBE, Operation.WTIME}
CPUS = sorted(os.sched_getaffinity(0))
TWO_CPUS = (CPUS[0], CPUS[-1])

needs_two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")


def write_plan(path: Path, steps: Sequence[tuple[str, int]]) -> Path:
    path.write_text("op,size\n" + "".join(f"{op},{size}\n" for op, size in steps), encoding="utf-8")
    return path


def execute(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(comm_program()), *map(str, words)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


def trace_of(folder: Path, transport: str, steps: Sequence[tuple[str, int]], *words: str) -> Path:
    plan = write_plan(folder / "given.csv", steps)
    out = folder / "trace"
    answer = execute("--transport", transport, "--plan", plan, "--out", out, *words)
    assert (answer.returncode, answer.stderr) == (0, "")
    return out


def mixed_steps(count: int, seed: int = 5) -> list[tuple[str, int]]:
    draws = np.random.default_rng(seed)
    names = [operation.name.lower() for operation in Operation]
    sizes = [0, 1, 8, 119, 120, 121, 4096, 16384, 16385, 70_000, 1_100_000]
    return [(names[draws.integers(8)], sizes[draws.integers(11)]) for _ in range(count)]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_trace_says_what_both_endpoints_did(tmp_path: Path, transport: str) -> None:
    steps = mixed_steps(600)
    out = trace_of(tmp_path, transport, steps, "--block", "100", "--probes", "7")
    trace = read_trace(out)
    assert trace.is_complete
    assert (out / "plan.csv").read_text() == (tmp_path / "given.csv").read_text()
    first, second = (endpoint.operations for endpoint in trace.endpoints)
    assert list(first["seq"]) == list(range(600))
    assert [(Operation(row["op"]).name.lower(), row["size"]) for row in first] == steps
    shared = first[[Operation(op) not in LOCAL for op in first["op"]]]
    for column in ("seq", "op", "size"):
        assert np.array_equal(shared[column], second[column])
    for endpoint in trace.endpoints:
        check_stamps(endpoint)
        assert list(endpoint.blocks["seq"]) == list(range(0, 601, 100))
        assert np.all(np.diff(endpoint.blocks["run_delay_ns"].astype(np.int64)) >= 0)
        header = endpoint.header
        assert (header["operations"], header["transport"], header["ended_by"]) == (600, transport, "plan")
        assert 0 < header["stamp_cost_ns"] < 10_000
        assert header["planned"] == 600
    check_causes(shared, second)
    assert np.bincount(trace.probes["seq"])[[0, 100, 500, 600]].tolist() == [500, 7, 7, 500]
    # Both endpoints have one clock here.
    assert np.all(trace.probes["send0"] <= trace.probes["time1"])
    assert np.all(trace.probes["time1"] <= trace.probes["recv0"])


def check_stamps(endpoint: Endpoint) -> None:
    rows = endpoint.operations
    assert np.all(rows["start_ns"] <= rows["end_ns"])
    between = rows["mid_ns"] > 0
    assert np.all(rows["start_ns"][between] <= rows["mid_ns"][between])
    assert np.all(rows["mid_ns"][between] <= rows["end_ns"][between])
    assert np.all(rows["end_ns"][:-1] <= rows["start_ns"][1:])
    stamped = {Operation(op) for op in rows["op"][between]}
    expected = {Operation.PINGPONG} if endpoint.header["rank"] else {Operation.PINGPONG, Operation.ISEND}
    assert stamped == expected


def check_causes(first: np.ndarray, second: np.ndarray) -> None:
    """No message is received before it is sent."""
    pingpong = first["op"] == Operation.PINGPONG
    assert np.all(second["mid_ns"][pingpong] >= first["start_ns"][pingpong])
    assert np.all(first["end_ns"][pingpong] >= second["mid_ns"][pingpong])
    assert np.all(second["end_ns"][~pingpong] >= first["start_ns"][~pingpong])
    late = first["op"] == Operation.RECV
    assert np.all(second["start_ns"][late] >= first["start_ns"][late])
    posted = first["op"] == Operation.SEND
    # An endpoint may lose its CPU just before it stamps, on a busy host; mostly it does not.
    assert np.mean(second["start_ns"][posted] <= first["start_ns"][posted]) > 0.5


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_empty_and_large_messages_are_carried(tmp_path: Path, transport: str) -> None:
    steps = [("pingpong", 0), ("stream", 64 << 20), ("pingpong", 0), ("isend", 64 << 20), ("recv", 0)]
    trace = read_trace(trace_of(tmp_path, transport, steps))
    assert trace.is_complete
    for endpoint in trace.endpoints:
        assert endpoint.operations["size"].tolist() == [size for _, size in steps]
    durations = trace.endpoints[0].operations["end_ns"] - trace.endpoints[0].operations["start_ns"]
    # 64 MiB in less than 0.2 ms would be more than 300 GB/s.
    assert durations[1] > 200_000


@needs_two_cpus
def test_the_canary_is_timed_at_each_block(tmp_path: Path) -> None:
    cpus = f"{TWO_CPUS[0]},{TWO_CPUS[1]}"
    steps = [("pingpong", 8)] * 40
    words = ("--block", "10", "--canary", str(tmp_path / "line"), "--cpus", cpus)
    trace = read_trace(trace_of(tmp_path, "pipe", steps, *words))
    first, second = trace.endpoints
    assert first.header["has_canary"] is True
    timed = first.blocks["canary_ns"]
    assert len(timed) == 5
    assert np.all(timed[~np.isnan(timed)] > 5)
    assert np.sum(~np.isnan(timed)) >= 1
    assert np.all(np.isnan(second.blocks["canary_ns"]))
    assert {int(cpu) for cpu in first.blocks["cpu"]} == {TWO_CPUS[0]}
    assert {int(cpu) for cpu in second.blocks["cpu"]} == {TWO_CPUS[1]}


@needs_two_cpus
def test_the_canary_alone_answers_in_json() -> None:
    answer = subprocess.run(canary_command(TWO_CPUS), check=True, capture_output=True, timeout=60)
    found = json.loads(answer.stdout)
    assert found["cpus"] == list(TWO_CPUS)
    assert 5 < found["fastest_ns"] <= found["round_trip_ns"] <= found["slowest_ns"]


def test_what_recording_costs_is_told_by_one_command(tmp_path: Path) -> None:
    command = [str(comm_program()), "overhead", "--messages", "500", "--json"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    answer = subprocess.run(command, check=True, capture_output=True, timeout=60, env=environment)
    found = json.loads(answer.stdout)
    assert found["messages"] == 500
    assert found["stamp_cost_ns"] > 0
    # Bytes per second of a copy by two cores, from far too slow to impossible.
    assert 1e7 < found["bytes"] / found["elapsed_s"] < 1e12
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("transport", ["unix", "shm"])
def test_a_budget_ends_a_run_at_a_block(tmp_path: Path, transport: str) -> None:
    steps = [("pingpong", 8)] * 5000
    words = ("--budget-ms", "30", "--gap-us", "200", "--block", "50")
    trace = read_trace(trace_of(tmp_path, transport, steps, *words))
    assert trace.is_complete
    counts = [len(endpoint.operations) for endpoint in trace.endpoints]
    assert counts[0] == counts[1] < 5000
    assert counts[0] % 50 == 0
    assert [endpoint.header["ended_by"] for endpoint in trace.endpoints] == ["budget", "budget"]


def test_a_planted_switch_is_where_it_was_planted(tmp_path: Path) -> None:
    extra_ns = 1_000_000
    # One after the other, so that on a busy host many small ones find both endpoints awake.
    steps = [("pingpong", 1000)] * 300 + [("pingpong", 1001)] * 30
    trace = read_trace(trace_of(tmp_path, "shm", steps, "--plant-switch", f"1000:{extra_ns}"))
    rows = trace.endpoints[0].operations
    half_ns = (rows["end_ns"] - rows["start_ns"]) / 2
    assert trace.endpoints[1].header["plant_switch"] == f"1000:{extra_ns}"
    assert np.all(half_ns[rows["size"] > 1000] >= extra_ns)
    assert np.quantile(half_ns[rows["size"] == 1000], 0.1) < extra_ns / 3


def lognormal_draws(seed: int, count: int, *, sigma: float, scale: float) -> Iterator[float]:
    """SplitMix64 (Steele, Lea, Flood 2014), its upper 53 bits, Box and Muller (1958)."""
    mask = (1 << 64) - 1

    def uniform() -> float:
        nonlocal seed
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        word = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & mask
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
        return (((word ^ (word >> 31)) >> 11) + 1) / 2**53

    for _ in range(count):
        radius = np.sqrt(-2 * np.log(uniform()))
        yield scale * np.exp(sigma * radius * np.cos(2 * np.pi * uniform()))


def test_planted_noise_is_drawn_from_the_seed(tmp_path: Path) -> None:
    law = "lognormal:sigma=0.5,scale_ns=100000"
    steps = [("pingpong", 8)] * 400
    trace = read_trace(trace_of(tmp_path, "shm", steps, "--plant-noise", law, "--plant-seed", "3"))
    rows = trace.endpoints[0].operations
    sending = (rows["mid_ns"] - rows["start_ns"]).astype(float)
    assert trace.endpoints[0].header["plant_noise"] == law
    assert trace.endpoints[0].header["plant_seed"] == 3
    more = sending - np.array(list(lognormal_draws(3, 400, sigma=0.5, scale=100_000.0)))
    assert np.all(more > -2)
    # What the host adds to a busy waiting that it does not interrupt.
    assert np.quantile(more, 0.1) < 20_000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--transport", "udp", "--plan", "{plan}", "--out", "{out}"), "allowed: pipe, unix, tcp, shm"),
        (("--transport", "shm", "--plan", "{out}", "--out", "{out}"), "cannot be read: No such file"),
        (
            ("--transport", "shm", "--plan", "{bad}", "--out", "{out}"),
            "line 3: size is `1e3`; allowed: whole",
        ),
        (("--transport", "shm", "--plan", "{plan}", "--out", "/proc/x"), "`/proc/x` cannot be written"),
        (("--transport", "shm", "--plan", "{plan}", "--out", "{plan}"), "`{plan}` exists"),
        (("--transport", "shm", "--plan", "{plan}", "--out", "{out}", "--block", "x"), "`--block` is `x`"),
        (
            ("--transport", "shm", "--plan", "{plan}", "--out", "{out}", "--cpus", "0,9999"),
            "CPU 9999; allowed",
        ),
        (
            ("--transport", "tcp", "--plan", "{plan}", "--out", "{out}", "--address", "x"),
            "allowed: HOST:PORT",
        ),
    ],
)
def test_a_wrong_request_ends_with_one_line(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    places = {
        "plan": write_plan(tmp_path / "plan.csv", [("pingpong", 8)]),
        "bad": tmp_path / "bad.csv",
        "out": tmp_path / "out",
    }
    places["bad"].write_text("op,size\nsend,1\nsend,1e3\n")
    answer = execute(*(word.format(**places) for word in words))
    assert answer.returncode == 2
    lines = [line for line in answer.stderr.splitlines() if line and not line.startswith("hint: ")]
    assert len(lines) == 1
    assert said.format(**places) in lines[0]
    assert not places["out"].exists()


def test_a_trace_is_never_overwritten(tmp_path: Path) -> None:
    out = trace_of(tmp_path, "shm", [("pingpong", 8)])
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    answer = execute("--transport", "shm", "--plan", tmp_path / "given.csv", "--out", out)
    assert answer.returncode == 2
    assert "never overwritten" in answer.stderr
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_refusal_of_endpoint_1_is_told_once_and_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "trace"
    out.mkdir()
    (out / "blocks.1.bin").write_bytes(b"of another run")
    plan = write_plan(tmp_path / "plan.csv", [("pingpong", 8)])
    answer = execute("--transport", "pipe", "--plan", plan, "--out", out)
    assert answer.returncode == 2
    assert answer.stderr.startswith("steelyard-comm: endpoint 1: `")
    assert answer.stderr.count("never overwritten") == 1
    assert [path.name for path in out.iterdir()] == ["blocks.1.bin"]


class Started:
    """A long run in its own session, with the numbers of its two processes."""

    def __init__(self, folder: Path, transport: str) -> None:
        plan = write_plan(folder / "given.csv", [("pingpong", 64), ("stream", 3000)] * 50_000)
        self.out = folder / "trace"
        command = [str(comm_program()), "--transport", transport, "--plan", str(plan), "--out", str(self.out)]
        self.process = subprocess.Popen(
            [*command, "--gap-us", "500"], stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.wait_for_operations(200)
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        (self.child,) = map(int, children)

    def wait_for_operations(self, count: int) -> None:
        path = self.out / "operations.1.bin"
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                rows = np.frombuffer(path.read_bytes(), dtype=OPERATION)
                if np.count_nonzero(rows["end_ns"]) >= count:
                    return
            time.sleep(0.01)
        pytest.fail("the run does not get on")

    def said(self) -> tuple[int, str]:
        _, text = self.process.communicate(timeout=20)
        return self.process.returncode, text

    def clean(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@pytest.fixture(params=TRANSPORTS)
def started(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Started]:
    run = Started(tmp_path, request.param)
    try:
        yield run
    finally:
        run.clean()


def assert_readable(out: Path) -> tuple[Endpoint, Endpoint]:
    trace = read_trace(out)
    assert not trace.is_complete
    for endpoint in trace.endpoints:
        assert len(endpoint.operations) >= 200
        check = endpoint.operations
        assert np.array_equal(check["seq"], np.arange(len(check)))
        assert np.all(check["start_ns"] <= check["end_ns"])
        assert len(endpoint.blocks) >= 1
    assert len(trace.probes) >= 500
    return trace.endpoints


def is_gone(process: int) -> bool:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_endpoint_1_killed(started: Started) -> None:
    os.kill(started.child, signal.SIGKILL)
    code, text = started.said()
    assert code == 3
    assert text.startswith("steelyard-comm: the other endpoint was lost after ")
    assert "of 100000 operations: it was ended by signal 9\n" in text
    first, second = assert_readable(started.out)
    assert (first.header["ended_by"], second.header["ended_by"]) == ("peer lost", None)
    assert first.header["operations"] == len(first.operations)


def test_endpoint_0_killed(started: Started) -> None:
    os.kill(started.process.pid, signal.SIGKILL)
    assert is_gone(started.child)
    code, text = started.said()
    assert code == -signal.SIGKILL
    assert text.count("the other endpoint was lost after ") == 1
    first, second = assert_readable(started.out)
    assert (first.header["ended_by"], second.header["ended_by"]) == (None, "peer lost")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_both_endpoints(started: Started, number: signal.Signals) -> None:
    if number is signal.SIGINT:
        # As a terminal does it.
        os.killpg(started.process.pid, number)
    else:
        started.process.send_signal(number)
    code, text = started.said()
    assert code == 128 + number
    assert text == "steelyard-comm: interrupted; what was stamped so far is kept\n"
    assert is_gone(started.child)
    first, second = assert_readable(started.out)
    assert (first.header["ended_by"], second.header["ended_by"]) == ("signal", "signal")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def test_two_invocations_meet_by_tcp(tmp_path: Path) -> None:
    plan = write_plan(tmp_path / "plan.csv", mixed_steps(200))
    address = f"127.0.0.1:{free_port()}"
    folders = [tmp_path / "near", tmp_path / "far"]
    own = [str(comm_program()), "--transport", "tcp", "--address", address]
    far = subprocess.Popen([*own, "--role", "connect", "--out", str(folders[1])])
    near = execute(*own[1:], "--role", "listen", "--plan", plan, "--out", folders[0])
    assert (near.returncode, near.stderr) == (0, "")
    assert far.wait(timeout=20) == 0
    assert sorted(path.name for path in folders[1].iterdir()) == [
        "blocks.1.bin",
        "header.1.json",
        "operations.1.bin",
    ]
    for path in folders[1].iterdir():
        path.rename(folders[0] / path.name)
    trace = read_trace(folders[0])
    assert trace.is_complete
    assert len(trace.endpoints[0].operations) == 200


def test_another_program_at_the_address_is_no_endpoint(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        words = ("--role", "connect", "--address", address, "--out", str(tmp_path / "out"))
        process = subprocess.Popen(
            [str(comm_program()), "--transport", "tcp", *words], stderr=subprocess.PIPE, text=True
        )
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + b" " * 100)
            _, text = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "the endpoints disagree" in text
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("transport", NATIVE.values(), ids=lambda transport: transport.name)
def test_every_native_transport_is_available(transport: object) -> None:
    assert transport.probe().available  # type: ignore[attr-defined]


def test_only_tcp_crosses_hosts(tmp_path: Path) -> None:
    place = Place(addresses=("10.0.0.1", "10.0.0.2"), enter=(("in", "A"), ("in", "B")))
    first, second = TCP.invocations(tmp_path, tmp_path, TraceOptions(), place)
    assert first.command[:2] == ("in", "A")
    assert second.command[:2] == ("in", "B")
    assert "--plan" not in second.command
    with pytest.raises(DesignError, match="cannot connect endpoints"):
        SHM.invocations(tmp_path, tmp_path, TraceOptions(), place)


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs_root: mounts a small file system")
def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    plan = write_plan(tmp_path / "plan.csv", [("pingpong", 8)] * 5000)
    mounting = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if subprocess.run(mounting, check=False, capture_output=True).returncode != 0:
        pytest.skip("needs_root: may not mount here")
    try:
        answer = execute("--transport", "shm", "--plan", plan, "--out", disk / "trace")
        assert answer.returncode == 2
        assert "no room for " in answer.stderr
        assert list((disk / "trace").iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)
