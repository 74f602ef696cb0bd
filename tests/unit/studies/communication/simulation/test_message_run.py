from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from fixtures.cost_models import MODEL, with_noise
from steelyard.errors import CapabilityError, RunError
from steelyard.studies.communication.export.simgrid import to_simgrid
from steelyard.studies.communication.export.simgrid_defaults import default_simgrid
from steelyard.studies.communication.export.simgrid_noise import to_noise
from steelyard.studies.communication.simulation import message_run as simulation
from steelyard.studies.communication.simulation.message_run import simulate, simulate_trace
from steelyard.studies.communication.trace import Operation, read_trace

has_simgrid = shutil.which("smpirun") is not None and shutil.which("smpicc") is not None
needs_simgrid = pytest.mark.skipif(not has_simgrid, reason="needs SimGrid: `make deps-communication`")

GENERATOR = np.random.default_rng(20)
BOUNDARIES = [0, 1, 1194, 1195, 29920, 29921, 65480, 65481, 65557, 65558, 130727, 130728]
SIZES = np.concatenate([BOUNDARIES, np.floor(10 ** GENERATOR.uniform(0, 6.5, 2000)).astype(np.int64)])


@pytest.fixture
def only_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let all temporary files be made in one folder, whose name has a blank."""
    place = tmp_path / "only here"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr("tempfile.tempdir", None)
    return place


def processes_in(folder: Path) -> list[str]:
    """Give what still runs in a folder, also in one that is gone."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str((process / "cwd").readlink()).startswith(str(folder)):
                found.append((process / "cmdline").read_text(encoding="utf-8"))
    return found


@pytest.mark.needs_simgrid
@needs_simgrid
@pytest.mark.parametrize("profile", ["rtt", "os"])
def test_simgrid_answers_what_the_formula_says_and_the_model_meant(profile: str, only_here: Path) -> None:
    simgrid = to_simgrid(MODEL, profile)  # type: ignore[arg-type]
    found = simulate(simgrid, SIZES)
    assert found.sizes.tolist() == SIZES.tolist()
    # Stamps are whole picoseconds: that is all that may be between both, at 5 us and more.
    assert np.max(np.abs(found.half_round_trips_s / simgrid.half_round_trips(SIZES) - 1)) <= 1e-6
    assert np.max(np.abs(found.send_durations_s - simgrid.send_durations(SIZES))) <= 2e-12
    truth = np.array([MODEL.predict(float(size)) for size in SIZES])
    assert np.max(np.abs(found.half_round_trips_s / truth - 1)) <= 1e-3
    assert not list(only_here.iterdir())


@pytest.mark.needs_simgrid
@needs_simgrid
def test_smpis_own_factors_are_the_ones_we_compare_with(tmp_path: Path) -> None:
    # SMPI as it comes, on a link so long that its window limits the rate; no option but the clock's price.
    bandwidth, latency = 1.25e9, 1e-2
    (tmp_path / "platform.xml").write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        '<platform version="4.1"><zone id="z" routing="Full"><host id="a" speed="1Gf"/>'
        f'<host id="b" speed="1Gf"/><link id="l" bandwidth="{bandwidth}Bps" latency="{latency}s" '
        'sharing_policy="SPLITDUPLEX"/><route src="a" dst="b"><link_ctn id="l" direction="UP"/></route>'
        "</zone></platform>\n",
        encoding="utf-8",
    )
    (tmp_path / "hosts").write_text("a\nb\n", encoding="utf-8")
    sizes = [1, 240, 242, 1409, 1411, 9000, 65455, 65457, 3_000_000]
    plan = "".join(f"pingpong,{size}\n" for size in [0, *sizes])
    (tmp_path / "plan.csv").write_text(f"op,size\n{plan}", encoding="utf-8")
    simulation.build_rank_program(tmp_path / "rank")
    command = "smpirun -np 2 -platform platform.xml -hostfile hosts --cfg=smpi/wtime:0 "
    command += "--cfg=smpi/simulate-computation:no --log=root.thres:critical "
    command += "./rank --plan plan.csv --out . --stamps-ps --probes 0"
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True, timeout=60)
    found = read_trace(tmp_path).endpoints[0].operations[1:]
    defaults = default_simgrid("defaults", bandwidth_bytes_per_s=bandwidth, latency_s=latency)
    half = (found["end_ns"] - found["start_ns"]) * 0.5e-12
    assert half == pytest.approx(defaults.half_round_trips(sizes), rel=1e-6)


@pytest.mark.needs_simgrid
@needs_simgrid
@pytest.mark.parametrize("profile", ["rtt", "os"])
def test_drawn_ratios_have_the_quantiles_of_their_class(profile: str, only_here: Path) -> None:
    noisy = with_noise(MODEL)
    simgrid = to_simgrid(noisy, profile)  # type: ignore[arg-type]
    sizes = np.repeat([100, 500_000], 3000)
    found = simulate(simgrid, sizes, noise=to_noise(noisy, seed=4))
    ratio = found.half_round_trips_s / simgrid.half_round_trips(sizes)
    for each, drawn in zip(noisy.noise, np.split(ratio, 2), strict=True):
        # A quantile of 3000 draws lies between these of the law but once in 1000.
        for p, spread in ((0.05, 0.014), (0.5, 0.031), (0.95, 0.014)):
            low, high = np.interp([p - spread, p + spread], np.linspace(0, 1, 101), each.quantiles)
            assert low <= np.quantile(drawn, p) <= high
    assert not list(only_here.iterdir())


@pytest.mark.needs_simgrid
@needs_simgrid
def test_every_operation_of_a_plan_is_simulated() -> None:
    names = ["pingpong", "stream", "send", "recv", "isend"] * 3
    found = simulate(to_simgrid(MODEL, "os"), np.full(15, 1000), operations=names)
    records = found.trace.endpoints[0].operations
    assert [Operation(code).name.lower() for code in records["op"]] == names
    assert np.isnan(found.half_round_trips_s).tolist() == [name != "pingpong" for name in names]
    blocking = np.array([name != "isend" for name in names])
    assert np.isnan(found.send_durations_s).tolist() == (~blocking).tolist()
    expected = MODEL.predict(1000, curve="send")
    assert found.send_durations_s[blocking] == pytest.approx(expected, rel=1e-6)


@pytest.mark.needs_simgrid
@needs_simgrid
def test_the_operations_of_a_trace_are_simulated_in_their_order() -> None:
    simgrid = to_simgrid(MODEL)
    first = simulate(simgrid, [5, 70_000, 3], operations=["pingpong", "stream", "pingpong"])
    again = simulate_trace(simgrid, first.trace)
    for name in ("op", "size"):
        values = [each.trace.endpoints[0].operations[name].tolist() for each in (first, again)]
        assert values[0] == values[1]
    assert again.half_round_trips_s[[0, 2]] == pytest.approx(first.half_round_trips_s[[0, 2]], rel=1e-6)


@pytest.mark.needs_simgrid
@needs_simgrid
def test_a_simulation_that_takes_too_long_leaves_nothing(
    only_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    ended = os.killpg

    def look_and_end(group: int, number: int) -> None:
        seen.extend(processes_in(only_here))
        ended(group, number)

    monkeypatch.setattr("os.killpg", look_and_end)
    with pytest.raises(RunError, match=r"did not end within 0\.3 s"):
        simulate(to_simgrid(MODEL), np.full(3000, 3_000_000), timeout_s=0.3)
    assert not list(only_here.iterdir())
    assert seen
    assert not processes_in(only_here)


@pytest.mark.needs_simgrid
@needs_simgrid
def test_a_simulation_that_fails_says_what_simgrid_said(only_here: Path) -> None:
    # More than the buffers can hold: the rank program refuses it.
    with pytest.raises(RunError, match=r"ended with status .*[\s\S]*plan smaller ones"):
        simulate(to_simgrid(MODEL), [2**60])
    assert not list(only_here.iterdir())


def test_without_simgrid_the_next_step_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CapabilityError, match="`smpirun` is not on the PATH") as caught:
        simulate(to_simgrid(MODEL), [1])
    assert "make deps-communication" in str(caught.value.hint)


def test_a_simgrid_that_cannot_compile_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("smpirun", "echo SimGrid version 3.32"), ("smpicc", "echo no headers >&2; exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(CapabilityError, match=r"cannot compile the rank program:\nno headers"):
        simulate(to_simgrid(MODEL), [1])


@pytest.mark.parametrize(
    ("said", "version"), [("SimGrid version 3.32", (3, 32)), ("SimGrid version 4.1", (4, 1))]
)
def test_the_version_is_what_smpirun_says(
    said: str, version: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "smpirun").write_text(f"#!/bin/sh\necho {said}\n", encoding="utf-8")
    (tmp_path / "smpirun").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert simulation.simgrid_version() == version
