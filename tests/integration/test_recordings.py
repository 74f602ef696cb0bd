"""Messages that other programs recorded become cost models by the ordinary verbs, and say what they lack."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from steelyard.cli import execute
from steelyard.model.cost_model import read_cost_model
from steelyard.model.finding import read_findings

if TYPE_CHECKING:
    from steelyard.model import FindingSet
    from steelyard.model.cost_model import CostModel

SHARED = Path(__file__).resolve().parents[3] / "shared/data/communication"
SWITCH = 65_480
OFFSET = 1_234_567


def planted_s(size: np.ndarray) -> np.ndarray:
    """Give the planted cost: a line, and beyond the switch a dearer one."""
    return np.where(size <= SWITCH, 5e-6 + 2e-10 * size, 3e-5 + 1.9e-10 * size)


def drawn(count: int, seed: int, largest: float = 6.5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    size = np.floor(10 ** rng.uniform(0, largest, count)).astype(np.int64)
    return size, planted_s(size) * (0.97 + rng.lognormal(-3.5, 0.6, count))


def write_legs(path: Path, count: int, seed: int, *, with_probes: bool = True) -> Path:
    """Write round trips as two legs each, the second clock ahead, with probes of both beside."""
    size, one_way = drawn(count, seed)
    lines, now, probes = ["seq,op,size,start0,end0,start1,end1"], 5_000_000, ["send0,time1,recv0"]
    for at, (n, s) in enumerate(zip(size.tolist(), (one_way * 1e9).astype(int).tolist(), strict=True)):
        there, back = now + s, now + 2 * s
        posted, got, sent = (each + OFFSET for each in (now - 500, there, there + 900))
        lines.append(f"{at},ping,{n},{now},{now + 900},{posted},{got}")
        lines.append(f"{at},pong,{n},{now + 900},{back},{got},{sent}")
        if at % 50 == 0:
            probes.append(f"{now - 3000},{now - 2400 + OFFSET},{now - 1800}")
        now = back + 4000
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if with_probes:
        path.with_suffix(".sync.csv").write_text("\n".join(probes) + "\n", encoding="utf-8")
    return path


def analysed(folder: Path, *words: str) -> FindingSet:
    assert execute(["import", *words, "--out", str(folder)]) == 0
    assert execute(["analyse", str(folder)]) == 0
    return read_findings(folder / "findings.json")


def model_of(folder: Path) -> CostModel:
    (path,) = folder.glob("models/*.json")
    return read_cost_model(path)


def cannot(findings: FindingSet) -> str:
    (finding,) = findings.of("recording")
    return str(finding.facts["cannot"])


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FindingSet]:
    folder = tmp_path_factory.mktemp("legs")
    paths = [str(write_legs(folder / f"{seed}.csv", 1500, seed)) for seed in (1, 2)]
    return folder / "r", analysed(folder / "r", "messages", *paths, "--link", "40Gbps,3us")


def test_the_planted_curve_is_found_and_predicts_a_recording_it_has_not_seen(
    two: tuple[Path, FindingSet], capsys: pytest.CaptureFixture[str]
) -> None:
    result, findings = two
    own = next(each for each in findings.of("prediction") if each.subject["predictor"] == "model")
    assert own.estimates["median"].value is not None
    assert own.estimates["median"].value < 3
    assert any("nominal link" in each.subject["predictor"] for each in findings.of("prediction"))
    assert execute(["predict", str(result), "--size", "1,60000,70000,1000000", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    sizes = np.array([row["size_bytes"] for row in answer["predictions"]])
    said = np.array([row["seconds"] for row in answer["predictions"]])
    assert answer["timed"] == "half a round trip"
    assert np.abs(said / planted_s(sizes) - 1).max() < 0.04
    switch = next(each for each in findings.of("boundary") if each.verdict == "protocol")
    low, high = switch.estimates["at"].low, switch.estimates["at"].high
    assert low is not None
    assert high is not None
    assert low <= SWITCH < high


def test_probes_put_both_clocks_on_one(two: tuple[Path, FindingSet]) -> None:
    for clock in two[1].of("clock"):
        offset = clock.estimates["offset"]
        assert offset.low is not None
        assert offset.high is not None
        assert offset.low <= OFFSET <= offset.high


@pytest.mark.slow
def test_exports_verification_and_packages_work_as_for_measured_results(
    two: tuple[Path, FindingSet], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result, _ = two
    assert execute(["export", "simgrid", str(result), "--out", str(tmp_path / "s"), "--noise"]) == 0
    assert execute(["export", "model", str(result), "--format", "python"]) == 0
    names: dict[str, Any] = {}
    exec(capsys.readouterr().out.partition('"""')[2].join(['"""', ""]), names)  # noqa: S102 - what was exported
    assert names["seconds"](1000) == pytest.approx(float(planted_s(np.array([1000]))[0]), rel=0.04)
    assert execute(["verify", str(result)]) == 0
    assert execute(["report", str(result)]) == 0
    page = (result / "report.html").read_text(encoding="utf-8")
    assert "was recorded by another program" in page
    assert execute(["pack", str(result), "--output", str(tmp_path / "p.zip")]) == 0


def test_two_imports_are_compared_like_measured_results(
    two: tuple[Path, FindingSet], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "r"
    analysed(other, "messages", str(write_legs(tmp_path / "3.csv", 1500, 3)))
    assert execute(["compare-results", str(two[0]), str(other)]) == 0
    assert "messages: nothing is certainly different" in capsys.readouterr().out


def test_without_probes_one_way_times_are_withheld_and_the_rest_is_said(tmp_path: Path) -> None:
    findings = analysed(
        tmp_path / "r", "messages", str(write_legs(tmp_path / "a.csv", 400, 1, with_probes=False))
    )
    assert "one-way times are withheld: the recording has no probes of the clocks of its ends" in cannot(
        findings
    )
    assert not findings.of("clock")
    assert model_of(tmp_path / "r").predict(1000) == pytest.approx(5.2e-6, rel=0.04)


def zoo(path: Path, count: int, seed: int) -> str:
    """Write messages of one direction, with a clock of 1 us, as section 5 of the source has them."""
    rng = np.random.default_rng(seed)
    size = np.floor(10 ** rng.uniform(0, 7, count)).astype(np.int64)
    send = np.where(size < 65_000, 4.2e-6 + 1.1e-9 * size, 4.155e-4 + 8.497e-9 * size)
    send *= rng.lognormal(0, 0.1, count)
    begin = np.cumsum(send + 1e-4)
    rows = zip(size.tolist(), begin.tolist(), send.tolist(), strict=True)
    path.write_text(
        "".join(
            f"{n} MPI_Send {t:.6f} {t + s:.6f} MPI_Recv {t - 1e-4:.6f} {t + 1.2 * s:.6f}\n"
            for n, t, s in rows
        ),
        encoding="utf-8",
    )
    return str(path)


def test_messages_of_one_direction_have_a_model_of_the_send_and_few_findings(tmp_path: Path) -> None:
    path = zoo(tmp_path / "zoo.dat", 20_000, 1)
    begun = time.process_time()
    findings = analysed(tmp_path / "r", "zoo", path)
    assert time.process_time() - begun < 10
    assert len(findings.findings) < 100
    model = model_of(tmp_path / "r")
    assert model.timed == "the sending call of a message"
    assert "it has no round trips" in cannot(findings)
    switches = [each for each in findings.of("boundary") if each.verdict == "protocol"]
    assert [each.estimates["at"].low <= 65_000 <= each.estimates["at"].high for each in switches] == [True]  # type: ignore[operator]
    assert model.predict(10**6) == pytest.approx(4.155e-4 + 8.497e-3, rel=0.03)
    assert execute(["export", "simgrid", str(tmp_path / "r")]) == 0


@pytest.mark.parametrize("seed", range(3))
def test_a_switch_among_a_thousand_times_of_a_coarse_clock_is_found(tmp_path: Path, seed: int) -> None:
    findings = analysed(tmp_path / "r", "zoo", zoo(tmp_path / "zoo.dat", 1000, seed))
    places = [each.estimates["at"] for each in findings.of("boundary")]
    assert any(each.low <= 65_000 <= each.high for each in places)  # type: ignore[operator]


def test_ends_that_read_one_clock_have_one_way_times(tmp_path: Path) -> None:
    findings = analysed(tmp_path / "r", "zoo", zoo(tmp_path / "zoo.dat", 1000, 1), "--one-clock")
    assert "one-way" not in cannot(findings)
    assert model_of(tmp_path / "r").predict(10**6, curve="one_way") == pytest.approx(
        1.2 * (4.155e-4 + 8.497e-3), rel=0.05
    )


def test_means_make_a_curve_and_one_finding_that_says_what_they_hide(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    lines = ['# begin result "Pingpong_Send_Recv"']
    for size in (2**power for power in range(24)):
        mean = 2e6 * float(planted_s(np.array([size]))[0]) * (1 + 0.004 * rng.normal())
        lines.append(f"count= {size} {size} {mean:.2f} {0.004 * mean:.2f} 32 {mean:.2f} {mean:.2f}")
    path = tmp_path / "s.dat"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    findings = analysed(tmp_path / "r", "skampi", str(path))
    assert len(findings.findings) < 25
    assert "each time is a mean of 32 repetitions" in cannot(findings)
    model = model_of(tmp_path / "r")
    assert model.noise == ()
    sizes = np.array([1, 1024, 32_768, 131_072, 4_194_304])
    assert [model.predict(float(size)) for size in sizes] == pytest.approx(
        planted_s(sizes).tolist(), rel=0.03
    )


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(1024, 10), (1024, 11), (1024, 12)], {1024: 11e-6}),
        ([(2**power, 5) for power in range(6)], {1: 5e-6, 32: 5e-6}),
        ([(1000 * at, 20 + at) for at in range(1, 6)], {5000: 25e-6, 2500: 22.5e-6}),
    ],
)
def test_few_messages_make_what_they_can(
    tmp_path: Path, rows: list[tuple[int, int]], expected: dict[int, float]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("size,time_us\n" + "".join(f"{n},{t}\n" for n, t in rows), encoding="utf-8")
    findings = analysed(tmp_path / "r", "messages", str(path))
    assert "it has too few messages for a prediction to be judged" in cannot(findings)
    model = model_of(tmp_path / "r")
    assert model.noise == ()
    assert {size: model.predict(size) for size in expected} == pytest.approx(expected, rel=1e-6)
    assert execute(["report", str(tmp_path / "r")]) == 0
    assert execute(["export", "simgrid", str(tmp_path / "r")]) == 0


@pytest.mark.parametrize("operation", ["MPI_Iprobe", "MPI_Test", "MPI_Wtime"])
@pytest.mark.parametrize("count", [1, 2, 300])
def test_calls_alone_are_described_without_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], operation: str, count: int
) -> None:
    lasted = 1e-7 * np.random.default_rng(5).gamma(20, 0.2, count)
    rows = "".join(f"{operation},1,{at / 1000:.6f},{time:.6e}\n" for at, time in enumerate(lasted))
    (tmp_path / "calls.csv").write_text(rows, encoding="utf-8")
    found = analysed(tmp_path / "r", "mpi", str(tmp_path / "calls.csv"))
    assert "calls without a message: their times are described" in capsys.readouterr().out
    (mean,) = [finding.estimates["mean"] for finding in found.of("cell")]
    assert mean.value == pytest.approx(np.mean(lasted) * 1e9, abs=1)
    assert execute(["report", str(tmp_path / "r")]) == 0


def test_options_of_recordings_are_refused_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("size,time_us\n1,2\n", encoding="utf-8")
    for words, part in (
        (["jmh", str(path), "--link", "1Gbps,50us"], "`--link` is for `messages`"),
        (["messages", str(path), "--operation", "bcast"], "`--operation bcast`: allowed: `pingpong`"),
        (["messages", str(path), "--link", "fast"], "`--link fast`"),
        (["messages", str(path), "--probes", "a", "--probes", "b"], "2 `--probes` for 1 recordings"),
        (["messages", str(path), "--column", "n=size"], "`n` is not a column of messages"),
        (["messages", str(path), "--wide", "n"], "options of tables are for the format `csv`"),
    ):
        assert execute(["import", *words, "--out", str(tmp_path / "r")]) == 2
        assert part in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.needs_recorded_data
def test_recordings_of_open_mpi_predict_each_other_as_their_readme_says(tmp_path: Path) -> None:
    paths = [str(SHARED / f"recordings/tcplo_{name}.csv") for name in ("pp", "rep202")]
    findings = analysed(tmp_path / "r", "messages", *paths)
    own = next(each for each in findings.of("prediction") if each.subject["predictor"] == "model")
    assert own.estimates["median"].value is not None
    assert own.estimates["median"].value < 2
    eager = min(
        (each.estimates["at"] for each in findings.of("boundary") if each.verdict == "protocol"),
        key=lambda at: abs((at.value or 0) - SWITCH),
    )
    # SOURCE: README of the recordings: the largest eager size is 65480 B; the true offset of the clocks is 0.
    assert eager.low is not None
    assert eager.high is not None
    assert eager.low <= SWITCH <= eager.high
    for clock in findings.of("clock"):
        offset = clock.estimates["offset"]
        assert offset.low is not None
        assert offset.high is not None
        assert offset.low <= 0 <= offset.high


@pytest.mark.needs_recorded_data
def test_skampi_of_the_source_has_the_bandwidth_of_its_link(tmp_path: Path) -> None:
    findings = analysed(tmp_path / "r", "skampi", str(SHARED / "griffon/griffon_skampi_pt2pt.ski.dat"))
    assert len(findings.findings) < 30
    model = model_of(tmp_path / "r")
    # Section 1: a round trip of the smallest takes 109.7 us; the link is Gigabit Ethernet.
    assert model.predict(1) == pytest.approx(109.73e-6 / 2, rel=0.01)
    assert 0.93 < model.bandwidth_bytes_per_s / 1.25e8 < 0.95


@pytest.mark.slow
@pytest.mark.needs_recorded_data
def test_files_of_a_calibration_make_one_model_of_every_call(tmp_path: Path) -> None:
    names = ("PingPong", "Isend", "Recv", "Test", "Iprobe", "Wtime")
    paths = [str(SHARED / f"graphene-eth1g/graphene_eth_{name}.csv") for name in names]
    analysed(tmp_path / "r", "mpi", *paths)
    model = model_of(tmp_path / "r")
    assert set(model.curves) == {"delay", "send", "isend", "recv"}
    assert set(model.costs_s) == {"test", "iprobe"}
    assert model.timed == "half a round trip"


@pytest.mark.parametrize("count", [440, 1000, 4400])
def test_sizes_that_double_give_the_curve_between_them(tmp_path, count):
    def truth(size: np.ndarray) -> np.ndarray:
        steep = 415.5 + 8.497e-3 * size
        return np.where(size < 3000, 5.0, np.where(size < 65_000, 4.2 + 1.112e-3 * size, steep))

    rng = np.random.default_rng(3)
    size = 2 ** rng.integers(0, 22, count)
    times = truth(size) * (0.95 + rng.gamma(3, 0.02, count))
    rows = "".join(f"{n},{us:.3f}\n" for n, us in zip(size, times, strict=True))
    (tmp_path / "m.csv").write_text("size,time_us\n" + rows, encoding="utf-8")
    analysed(tmp_path / "out", "messages", str(tmp_path / "m.csv"))
    (path,) = (tmp_path / "out/models").glob("*.json")
    sizes = np.array([16, 700, 6000, 12_000, 25_000, 100_000, 180_000, 350_000, 700_000, 1.5e6, 2.0**21])
    model = read_cost_model(path)
    found = np.array([model.predict(float(each)) for each in sizes]) * 1e6
    assert found == pytest.approx(truth(sizes), rel=0.05)
