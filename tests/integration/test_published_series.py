"""Series as the source's figures show them, imported by their names: the verdicts are the source's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.cli import execute
from steelyard.report.page import Prose
from steelyard.studies.colocation.analysis import analyse
from steelyard.studies.colocation.report.page import build

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.model import FindingSet

    Vector = NDArray[np.float64]

STREAM = np.random.default_rng(30)
TIMES_S = np.round(np.arange(0, 30, 0.1), 1)
IS_BESIDE = TIMES_S >= 11


def _noisy(mean_ms: Vector | float, spread: float) -> Vector:
    return np.asarray(mean_ms * STREAM.lognormal(0, spread, TIMES_S.size))


def _changing(before_ms: float, beside_ms: float, spread: float) -> Vector:
    """Give latencies whose spread grows with their mean."""
    change = beside_ms / before_ms
    wide = np.where(IS_BESIDE, spread * change**0.5, spread)
    return np.asarray(np.where(IS_BESIDE, beside_ms, before_ms) * np.exp(STREAM.normal(0, 1, 300) * wide))


def _work(per_s: float) -> Vector:
    return np.where(IS_BESIDE, STREAM.poisson(per_s / 10, TIMES_S.size), 0).astype(float)


def _web(beside: float) -> Vector:
    """Give latencies with spikes that other programs cause, before and beside the jobs alike."""
    spikes = np.where(STREAM.random(TIMES_S.size) < 0.03, STREAM.exponential(25, TIMES_S.size), 0)
    return _changing(12, 12 * beside, 0.05) + spikes


def _throttled() -> tuple[Vector, Vector, Vector]:
    """Give a queue that grows, faster beside the jobs, with a spike whenever they get their share."""
    is_share = IS_BESIDE & (np.arange(300) % 10 == 4)
    mean = np.where(IS_BESIDE, 39 + 9 * (TIMES_S - 11), 6 + 3 * TIMES_S) + 60 * is_share
    return _noisy(mean, 0.02), _noisy(1.3 * mean, 0.02), np.where(is_share, 3 + STREAM.poisson(2, 300), 0)


def _parked() -> tuple[Vector, Vector, Vector]:
    """Give a queue that grows at the same pace, and jobs that go on when it is empty again."""
    mean = _noisy(6 + 5 * TIMES_S, 0.02)
    return mean, 1.2 * mean, np.where(TIMES_S > 28.4, 1 + STREAM.poisson(2, 300), 0)


def _of(mean: Vector, work: Vector) -> tuple[Vector, Vector, Vector]:
    return mean, mean * (1 + np.abs(STREAM.normal(0.05, 0.02, TIMES_S.size))), work


SERIES: dict[str, Callable[[], tuple[Vector, Vector, Vector]]] = {
    "srv-bg-unedited-low": lambda: _of(_changing(5.99, 13.5, 0.02), _work(60)),
    "srv-bg-unedited-high": lambda: _of(_changing(6.27, 25.4, 0.03), _work(40)),
    "srv-bg-idle-low": lambda: _of(_changing(6.03, 7.4, 0.02), _work(50)),
    "srv-bg-idle-high": lambda: _of(_changing(6.2, 13.1, 0.03), _work(30)),
    "srv-bg-schedbe-low": lambda: _of(_noisy(6.02, 0.01), _work(40)),
    # Few iterations are no parking.
    "srv-bg-schedbe-high": lambda: _of(_noisy(6.15, 0.02), _work(0.9)),
    "srv-bg-rt-low": lambda: _of(_noisy(6.0, 0.01), _work(35)),
    "srv-bg-rt-high": lambda: _of(_noisy(6.02, 0.01), _work(1.5)),
    "overload-rt": _throttled,
    "overload-schedbe": _parked,
    "kubernetes-unedited": lambda: _of(_web(3.0), _work(4)),
    "kubernetes-idle": lambda: _of(_web(1.5), _work(3)),
    "kubernetes-schedbe": lambda: _of(_web(1.0), _work(2)),
}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("series")
    for name, make in SERIES.items():
        rows = ["time_s,mean_ms,p99_ms,resize_count"]
        rows += [f"{t},{m:.3f},{p:.3f},{n:.0f}" for t, m, p, n in zip(TIMES_S, *make(), strict=True)]
        (folder / f"{name}.csv").write_text("\n".join(rows) + "\n")
    moments = np.round(np.arange(0, 200, 0.1), 1)
    works = (moments < 12) | ((moments > 165) & (moments < 190))
    counts = np.where(works, STREAM.poisson(0.3, moments.size), 0)
    text = "\n".join(f"{t},,,{n}" for t, n in zip(moments, counts, strict=True))
    (folder / "parked-kubernetes.csv").write_text(f"time_s,mean_ms,p99_ms,resize_count\n{text}\n")
    out = folder / "result"
    files = map(str, sorted(folder.glob("*.csv")))
    assert execute(["import", "latency-bins", *files, "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def findings(result: Path) -> FindingSet:
    return analyse(result)


def _verdicts(findings: FindingSet, claim: str) -> dict[tuple[str, str], str]:
    return {(each.subject["policy"], each.subject["load"]): each.verdict for each in findings.of(claim)}


def test_what_the_source_calls_isolated_is_and_nothing_else(findings: FindingSet) -> None:
    found = _verdicts(findings, "isolation")
    (web,) = (
        each for each in findings.of("isolation") if each.subject == {"policy": "be", "load": "kubernetes"}
    )
    del found["be", "kubernetes"]
    assert found == {
        ("weights", "85"): "not isolated",
        ("weights", "95"): "not isolated",
        ("idle", "85"): "not isolated",
        ("idle", "95"): "not isolated",
        ("be", "85"): "isolated",
        ("be", "95"): "isolated",
        ("fifo", "85"): "isolated",
        ("fifo", "95"): "isolated",
        ("be", "100"): "growing queue",
        ("fifo", "100"): "growing queue",
        ("weights", "kubernetes"): "not isolated",
        ("idle", "kubernetes"): "not isolated",
    }
    # "Not entirely without spikes", "the median latency stays stable": spikes leave the mean open at worst.
    assert web.verdict != "not isolated"
    median = web.estimates["ratio_p50"]
    assert median.high is not None
    assert median.high < 1.1


def test_jobs_pause_where_the_source_says_parked_and_few_iterations_are_no_pause(
    findings: FindingSet,
) -> None:
    found = _verdicts(findings, "best_effort")
    assert {key for key, verdict in found.items() if verdict == "paused"} == {
        ("be", "100"),
        ("be", "parked-kubernetes"),
    }
    assert "parked" not in found.values()
    (long,) = (each for each in findings.of("best_effort") if each.subject["load"] == "parked-kubernetes")
    assert float(str(long.facts["longest_parked_s"])) == pytest.approx(153, abs=4)


def test_only_the_overloaded_real_time_service_seems_throttled(findings: FindingSet) -> None:
    found = _verdicts(findings, "throttled")
    assert found["fifo", "95"] == "no sign of throttling"
    assert {key for key, verdict in found.items() if verdict == "seems throttled"} == {("fifo", "100")}


def test_the_answer_names_policy_and_experiment(result: Path, findings: FindingSet) -> None:
    assert findings.findings
    page = build(result)
    prose = [block for section in page.sections for block in section.blocks if isinstance(block, Prose)]
    text = "\n".join(
        each.text for each in (*page.answer, *(one for block in prose for one in block.statements))
    )
    assert "fifo (100 %, read off a figure)" in text
    assert "fifo (100 %, read off a figure): the kernel seems to throttle the real-time service" in text
    assert "idle (kubernetes, read off a figure): not isolated by" in text
    assert "be (parked-kubernetes, read off a figure): the jobs finished nothing for up to 15" in text
    assert " at kubernetes %" not in text
