"""Series of a service over time in the shapes that users have, from a file to what the page says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.cli import execute
from steelyard.report.page import Prose
from steelyard.studies.colocation.analysis import analyse
from steelyard.studies.colocation.report.page import build
from steelyard.studies.colocation.tables import read_bins

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from steelyard.model import Finding, FindingSet

    Vector = NDArray[np.float64]

TIMES_S = np.round(np.arange(0, 30, 0.1), 1)
IS_BESIDE = TIMES_S >= 11


def _latency(before_ms: float, beside_ms: float, seed: int = 1) -> Vector:
    noise = np.random.default_rng(seed).lognormal(0, 0.02, TIMES_S.size)
    return np.asarray(np.where(IS_BESIDE, beside_ms, before_ms) * noise)


def _work(per_bin: float, seed: int = 2) -> Vector:
    counts = np.random.default_rng(seed).poisson(per_bin, TIMES_S.size)
    return np.where(IS_BESIDE, counts, 0).astype(float)


def _file(folder: Path, name: str, heading: str, *columns: Vector) -> Path:
    path = folder / f"{name}.csv"
    rows = [
        ",".join("" if np.isnan(each) else f"{each:.10g}" for each in row)
        for row in zip(*columns, strict=True)
    ]
    path.write_text("\n".join((heading, *rows)) + "\n")
    return path


def _series(folder: Path, name: str, mean_ms: Vector, work: Vector, p99_ms: Vector | None = None) -> Path:
    columns = (TIMES_S, mean_ms, 1.2 * mean_ms if p99_ms is None else p99_ms, work)
    return _file(folder, name, "time_s,mean_ms,p99_ms,resize_count", *columns)


def _result(files: Sequence[Path], *options: str) -> Path:
    out = files[0].parent / "result"
    assert execute(["import", "latency-bins", *map(str, files), *options, "--out", str(out)]) == 0
    return out


def _found(files: Sequence[Path], *options: str) -> FindingSet:
    return analyse(_result(files, *options))


def _only(findings: FindingSet, claim: str) -> Finding:
    (found,) = findings.of(claim)
    return found


def _page_of(result: Path) -> str:
    analyse(result)
    page = build(result)
    prose = [block for part in page.sections for block in part.blocks if isinstance(block, Prose)]
    return "\n".join(
        each.text for each in (*page.answer, *(one for block in prose for one in block.statements))
    )


def test_columns_in_any_order_and_unit_say_the_same(tmp_path: Path) -> None:
    mean_ms, work = _latency(6, 7.5), _work(4)
    verdicts = []
    for number, (heading, columns) in enumerate(
        (
            ("time_s,mean_ms,p99_ms,resize_count", (TIMES_S, mean_ms, 1.2 * mean_ms, work)),
            ("iterations,p99_us,mean_s,time_ms", (work, 1200 * mean_ms, mean_ms / 1000, 1000 * TIMES_S)),
            ("time_s,mean (ms),n,p99 (ms),iterations", (TIMES_S, mean_ms, work, 1.2 * mean_ms, work)),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = _only(_found([_file(folder, "mine", heading, *columns)]), "isolation")
        ratio = found.estimates["ratio"]
        assert ratio.value == pytest.approx(1.25, abs=0.01)
        verdicts.append((found.verdict, found.facts["origin"], found.facts["jobs_start_s"]))
    assert verdicts == [("not isolated", "imported", 11.0)] * 3


@pytest.mark.parametrize("beside_ms", [6.0, 9.0])
def test_single_requests_are_judged_by_their_own_quantiles(tmp_path: Path, beside_ms: float) -> None:
    stream = np.random.default_rng(5)
    due_s = np.sort(stream.uniform(0, 60, 20_000))
    latency_us = 1000 * np.where(due_s < 20, 6.0, beside_ms) * stream.lognormal(0, 0.02, due_s.size)
    begin_us = 1_700_000_000_000_000
    heading = "timestamp_us,latency_us"
    shuffled = stream.permutation(due_s.size)
    file = tmp_path / "raw.csv"
    lines = [f"{begin_us + round(1e6 * due_s[at])},{latency_us[at]:.1f}" for at in shuffled]
    file.write_text("\n".join((heading, *lines)) + "\n")
    findings = _found([file], "--jobs-start", "20", "--jobs-stop", "55")
    found = _only(findings, "isolation")
    assert found.verdict == ("isolated" if beside_ms == 6 else "not isolated")
    assert found.estimates["ratio_p50"].value == pytest.approx(beside_ms / 6, rel=0.01)
    assert {each.subject["quantile"] for each in findings.of("tail")} == {"p99", "p99.9"}
    assert not findings.of("best_effort")


def _raw(folder: Path, due_s: Vector, latency_ms: Vector) -> Path:
    return _result(
        [_file(folder, "raw", "time_s,latency_ms", due_s, latency_ms)],
        "--jobs-start",
        "10",
        "--jobs-stop",
        "30",
    )


def test_requests_without_a_latency_were_never_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    due_s = np.arange(0, 40, 0.01)
    noise = np.random.default_rng(6).lognormal(0, 0.02, due_s.size)
    latency_ms = np.where((due_s > 15) & (np.arange(due_s.size) % 100 == 0), np.nan, 6 * noise)
    result = _raw(tmp_path, due_s, latency_ms)
    assert "24 of 4000 requests have no latency" in capsys.readouterr().out
    found = _only(analyse(result), "isolation")
    assert found.facts["unanswered_beside"] == 14
    assert found.verdict != "isolated"


@pytest.mark.parametrize(("latency_ms", "said"), [(0.0, "No mean latency above 0"), (np.nan, "Inconclusive")])
def test_requests_without_any_time_have_a_page_that_says_so(
    tmp_path: Path, latency_ms: float, said: str
) -> None:
    result = _raw(tmp_path, np.arange(0, 40, 0.05), np.full(800, latency_ms))
    assert _page_of(result).startswith(said)


def test_too_few_requests_for_a_tail_are_isolated_by_the_rest_only(tmp_path: Path) -> None:
    due_s = np.arange(0, 40, 0.05)
    result = _raw(tmp_path, due_s, 6 * np.random.default_rng(7).lognormal(0, 0.02, due_s.size))
    text = _page_of(result)
    assert "Isolated by mean and p50: raw" in text
    assert "isolated within 10 % by mean and p50, with too few values for p99: mean latency" in text
    assert ", p99 not known" in build(result).cards[0].cards[0].note


def test_a_series_of_years_has_wider_bins(tmp_path: Path) -> None:
    result = _raw(tmp_path, np.array([0.0, 20.0, 1.7e9]), np.full(3, 6.0))
    analyse(result)
    assert read_bins(result).height <= 100_000


def test_a_file_that_does_not_say_when_jobs_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = _file(tmp_path, "mine", "time_s,mean_ms,p99_ms", TIMES_S, _latency(6, 9), _latency(7, 9))
    out = tmp_path / "out"
    assert execute(["import", "latency-bins", str(file), "--out", str(out)]) == 5
    assert "`--jobs-start 11 --jobs-stop 30`" in capsys.readouterr().err
    assert execute(["open", str(file), "--out", str(out), "--no-browser"]) == 5
    assert "as `latency-bins`: " in capsys.readouterr().err
    damaged = tmp_path / "damaged.csv"
    damaged.write_text("time_s,mean_ms,p99_ms\n0,6,7\n0,6,7\n")
    assert execute(["open", str(damaged), "--out", str(out), "--no-browser"]) == 5
    assert "as `latency-bins`: " in capsys.readouterr().err
    moments = ("--jobs-start", "31", "--jobs-stop", "30")
    assert execute(["open", str(file), "--out", str(out), "--no-browser", *moments]) == 2
    assert "allowed: 0 < start < stop" in capsys.readouterr().err
    found = _found([file], "--jobs-start", "11", "--jobs-stop", "30")
    assert _only(found, "isolation").verdict == "not isolated"


def test_a_series_without_a_count_says_nothing_of_the_jobs(tmp_path: Path) -> None:
    file = _file(tmp_path, "be", "time_s,mean_ms,p99_ms", TIMES_S, _latency(6, 6), _latency(7, 7))
    other = _series(tmp_path, "weights", _latency(6, 12), _work(4))
    findings = _found([file, other], "--jobs-start", "11", "--jobs-stop", "30")
    assert [each.subject["policy"] for each in findings.of("best_effort")] == ["weights"]
    assert not findings.of("price")
    assert _only(findings, "contest").verdict == "faster"


def test_jobs_that_finish_nothing_at_all_are_starved(tmp_path: Path) -> None:
    files = [
        _series(tmp_path, "be", _latency(6, 6), _work(0)),
        _series(tmp_path, "idle", _latency(6, 7), _work(4)),
    ]
    findings = _found(files, "--jobs-start", "11", "--jobs-stop", "30")
    assert [each.verdict for each in findings.of("best_effort")] == ["runs", "starved"]


def test_a_service_alone_is_a_control_and_no_policy(tmp_path: Path) -> None:
    files = [
        _series(tmp_path, "alone", _latency(6, 6), _work(0)),
        _series(tmp_path, "idle", _latency(6, 9), _work(4)),
    ]
    findings = _found(files)
    assert {each.subject["policy"]: each.verdict for each in findings.of("isolation")} == {
        "none": "steady",
        "idle": "not isolated",
    }
    assert [each.subject["policy"] for each in findings.of("best_effort")] == ["idle"]


def test_only_recorded_time_counts_as_a_pause(tmp_path: Path) -> None:
    is_recorded = (TIMES_S < 15) | (TIMES_S > 20)
    columns = [each[is_recorded] for each in (TIMES_S, _latency(6, 6), _latency(7, 7), _work(8))]
    file = _file(tmp_path, "be", "time_s,mean_ms,p99_ms,resize_count", *columns)
    assert _only(_found([file]), "best_effort").verdict == "runs"
    whole = np.where(is_recorded, _work(8), 0)
    (tmp_path / "whole").mkdir()
    found = _only(_found([_series(tmp_path / "whole", "be", _latency(6, 6), whole)]), "best_effort")
    assert found.verdict == "paused"


@pytest.mark.parametrize(("cpu_s", "verdict"), [(0.0, "parked"), (0.1, "runs")])
def test_jobs_are_parked_only_where_they_use_no_cpu_time(tmp_path: Path, cpu_s: float, verdict: str) -> None:
    is_still = (TIMES_S > 15) & (TIMES_S < 20)
    work = np.where(is_still, 0, _work(8))
    used = np.where(is_still, cpu_s, 0.1)
    heading = "time_s,mean_ms,p99_ms,iterations,jobs_cpu_s"
    file = _file(tmp_path, "be", heading, TIMES_S, _latency(6, 6), _latency(7, 7), work, used)
    result = _result([file])
    assert ("without CPU time" in _page_of(result)) == (verdict == "parked")
    assert _only(analyse(result), "best_effort").verdict == verdict


def test_a_queue_that_grows_by_itself_is_not_the_jobs_doing(tmp_path: Path) -> None:
    findings = _found([_series(tmp_path, "mine", (6 + 3 * TIMES_S) * _latency(1, 1), _work(4))])
    assert _only(findings, "isolation").verdict == "growing queue"
    assert _only(findings, "tail").verdict == "growing queue"


def test_few_bins_have_no_verdict_and_the_page_says_why(tmp_path: Path) -> None:
    seconds = np.arange(0.0, 30)
    beside = np.where(seconds < 11, 6.0, 12.0)
    columns = (seconds, beside, beside, np.where(seconds < 11, 0.0, 9.0))
    text = _page_of(_result([_file(tmp_path, "mine", "time_s,mean_ms,p99_ms,resize_count", *columns)]))
    assert "no interval from 10 bins before and 16 beside: 30 of each are needed" in text


def test_a_service_that_is_faster_beside_the_jobs_is_marked(tmp_path: Path) -> None:
    found = _only(_found([_series(tmp_path, "mine", _latency(9, 6), _work(4))]), "isolation")
    assert found.verdict == "isolated"
    assert any("faster beside the jobs" in warning for warning in found.warnings)


def test_the_price_has_an_interval_where_bins_have_no_iteration(tmp_path: Path) -> None:
    files = [
        _series(tmp_path, name, _latency(6, 6), _work(rate, 3)) for name, rate in (("weights", 3), ("be", 1))
    ]
    price = _only(_found(files), "price")
    assert price.verdict == "less work"
    assert price.estimates["ratio"].high is not None
    assert price.estimates["ratio"].high < 0.6


def test_moments_are_those_of_each_file(tmp_path: Path) -> None:
    late = np.where(TIMES_S >= 20, np.random.default_rng(4).poisson(5, TIMES_S.size) + 1, 0).astype(float)
    slow = np.where(TIMES_S >= 20, 9.0, 6.0)
    files = [
        _series(tmp_path, "idle", slow, late),
        _series(tmp_path, "be", _latency(6, 6), _work(4) + IS_BESIDE),
    ]
    result = _result(files)
    findings = analyse(result)
    starts = {each.subject["policy"]: each.facts["jobs_start_s"] for each in findings.of("isolation")}
    assert starts == {"idle": 20.0, "be": 11.0}
    assert _only(findings, "settings").verdict == "stated by each series"
    idle = next(each for each in findings.of("isolation") if each.subject["policy"] == "idle")
    assert idle.estimates["ratio"].value == pytest.approx(1.5)


def test_jobs_without_latencies_have_a_page_that_says_so(tmp_path: Path) -> None:
    moments = np.arange(0.0, 200)
    counts = np.where((moments < 12) | (moments > 165), 2.0, 0.0)
    empty = np.full(moments.size, np.nan)
    file = _file(
        tmp_path, "parked-kubernetes", "time_s,mean_ms,p99_ms,resize_count", moments, empty, empty, counts
    )
    result = _result([file])
    text = _page_of(result)
    assert "No mean latency above 0 was recorded both before and beside the jobs" in text
    assert "be (parked-kubernetes, read off a figure): the jobs finished nothing for up to 15" in text
    figure = build(result).figure
    assert figure is not None
    assert figure.spec["usermeta"] == {"panels": 1, "columns": 1}
