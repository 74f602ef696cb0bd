"""What the real harnesses wrote, read: names of benchmarks, and the time that a run reports."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import get_args

import pytest

from steelyard.errors import DataError, RunError
from steelyard.studies.comparison.harness import listing
from steelyard.studies.comparison.harness.cargo import leaves, times_ns
from steelyard.studies.comparison.harness.driver import Place, Reading, Scratch, exactly
from steelyard.studies.comparison.harness.go import packages_of
from steelyard.studies.comparison.harness.jmh import benchmarks_of
from steelyard.studies.comparison.harness.listing import HarnessKind, driver_of

FILES = Path(__file__).resolve().parents[4] / "fixtures/harnesses"
GOLDEN = Path(__file__).resolve().parents[4] / "golden/importers"


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    found = Scratch(tmp_path / "scratch")
    found.clear()
    return found


def value_ns(kind: HarnessKind, scratch: Scratch, statistic: str = "mean") -> float:
    return Reading(scratch, driver_of(kind).read, {}, statistic).value_ns()


def test_each_kind_has_a_driver() -> None:
    assert set(get_args(HarnessKind)) == set(listing._DRIVERS)
    for kind in get_args(HarnessKind):
        driver_of(kind)


def test_names_of_go_have_no_number_of_processors_and_failures_stay() -> None:
    found = packages_of((FILES / "go-events.jsonl").read_text())
    assert list(found) == ["example.org/work"]
    assert found["example.org/work"].names == ["BenchmarkOdd/a_b-8", "BenchmarkOdd/x/y", "BenchmarkBroken"]


def test_a_package_of_go_that_cannot_be_compiled_is_an_error() -> None:
    with pytest.raises(RunError, match=r"cannot compile the tests: .*undefined: missing"):
        packages_of((FILES / "go-build-fails.jsonl").read_text())


def test_parameters_of_jmh_are_listed() -> None:
    found = dict(benchmarks_of((FILES / "jmh-list.txt").read_text()))
    assert found == {
        "org.example.Work.same": {"n": ["1000", "20000"]},
        "org.example.Work.work": {"n": ["1000", "20000"]},
    }


def test_leaves_of_divans_tree_are_paths() -> None:
    found = ["::".join(path) for path in leaves((FILES / "divan-tree.txt").read_text())]
    assert found == [
        "div::threaded::t=1",
        "div::threaded::t=2",
        "div::work::1000",
        "div::work::20000",
        "div::inner::same",
        "div::typed::u8",
        "div::typed::u16",
    ]


def test_means_of_divan_are_times_alone() -> None:
    assert list(times_ns((FILES / "divan-one.txt").read_text(), "mean")) == [2388.0]
    assert list(times_ns((FILES / "divan-all.txt").read_text(), "mean"))[:4] == [
        2671.0,
        2426.0,
        2357.0,
        127_400.0,
    ]


VALUES = {
    "pytest-benchmark": '{"benchmarks": [{"fullname": "t", "stats": {"data": [5e-9, 1e-9, 3e-9, 7e-9]}}]}',
    "pytest": '{"rounds_ns": [5, 1, 3, 7]}',
    "pyperf": '{"benchmarks": [{"runs": [{"warmups": [[1, 9]], "values": [5e-9, 1e-9, 3e-9, 7e-9]}]}]}',
    "jmh": """[{"benchmark": "b", "mode": "sample", "primaryMetric": {"scoreUnit": "us/op",
        "rawDataHistogram": [[[[0.005, 1], [0.001, 1], [0.003, 1], [0.007, 1]]]]}}]""",
}
"""Four times of one process [ns]: 1, 3, 5 and 7."""


@pytest.mark.parametrize("kind", get_args(HarnessKind))
def test_a_process_is_read_by_each_statistic_that_its_harness_reports(
    kind: HarnessKind, scratch: Scratch
) -> None:
    expected = {"mean": 4.0, "median": 4.0, "min": 1.0}
    if kind in VALUES:
        (scratch.run / "benchmark.json").write_text(VALUES[kind])
    elif kind == "divan":
        shutil.copy(FILES / "divan-one.txt", scratch.output)
        expected = {"min": 2359.0, "median": 2370.0, "mean": 2388.0}
    elif kind == "criterion":
        folder = scratch.run / "criterion/b/new"
        folder.mkdir(parents=True)
        # Two samples of one and of three loops.
        (folder / "sample.json").write_text('{"iters": [1, 3], "times": [6, 12]}')
        expected = {"min": 4.0, "median": 5.0, "mean": 18 / 4, "slope": (6 + 36) / 10}
    else:
        assert listing.STATISTICS[kind] == ("mean",)
        return
    assert {each: value_ns(kind, scratch, each) for each in listing.STATISTICS[kind]} == pytest.approx(
        expected
    )


def test_equally_long_samples_have_no_slope(scratch: Scratch) -> None:
    folder = scratch.run / "criterion/b/new"
    folder.mkdir(parents=True)
    (folder / "sample.json").write_text('{"iters": [3, 3], "times": [6, 12]}')
    with pytest.raises(DataError, match="equally long, so that they have no slope"):
        value_ns("criterion", scratch, "slope")


def test_jmh_is_asked_for_samples_where_its_mean_is_not_wanted(scratch: Scratch, tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\nprintf 'Benchmarks: \\na.b\\n'\n")
    java.chmod(0o755)

    def words(statistic: str) -> tuple[str, ...]:
        place = Place(("./java",), tmp_path, scratch, 0.1, statistic=statistic)
        return driver_of("jmh").listed(place)[0].words

    assert "-bm" not in words("mean")
    assert words("min")[words("min").index("-bm") + 1] == "sample"


def test_several_results_in_one_run_are_refused(scratch: Scratch) -> None:
    shutil.copy(FILES / "divan-all.txt", scratch.output)
    with pytest.raises(DataError, match="reported 7 times instead of one"):
        value_ns("divan", scratch)
    scratch.output.write_text("BenchmarkA-2  1  5.0 ns/op\nBenchmarkA-4  1  6.0 ns/op\n")
    with pytest.raises(DataError, match="reported 2 values"):
        value_ns("go", scratch)
    shutil.copy(GOLDEN / "pytest-benchmark.json", scratch.run / "benchmark.json")
    with pytest.raises(DataError, match=r"ran \d+ benchmarks: leave names out of `command`"):
        value_ns("pytest-benchmark", scratch)


def test_criterions_mean_is_that_of_all_iterations(scratch: Scratch) -> None:
    shutil.copytree(FILES / "criterion", scratch.run / "criterion")
    times = [999478, 10092503, 2975726, 16095763, 25201997, 14339982, 27175600, 30692036, 35341748, 30234856]
    assert value_ns("criterion", scratch) == pytest.approx(sum(times) / (447 * 55), rel=1e-12)


def test_a_rate_of_jmh_becomes_a_time(scratch: Scratch) -> None:
    shutil.copy(FILES / "jmh-throughput.json", scratch.run / "benchmark.json")
    assert value_ns("jmh", scratch) == pytest.approx(1000 / 0.049256303367191986)


@pytest.mark.parametrize(("text", "value"), [("0.2500 ns/op", 0.25), ("12345 ns/op\t 16 B/op", 12345)])
def test_values_of_go(scratch: Scratch, text: str, value: float) -> None:
    scratch.output.write_text(f"cpu: x\nBenchmarkA/n=1-2  \t  100\t  {text}\nPASS\n")
    assert value_ns("go", scratch) == value


def test_a_failed_benchmark_says_so(scratch: Scratch) -> None:
    shutil.copy(FILES / "google-failed.json", scratch.run / "benchmark.json")
    with pytest.raises(DataError, match="1 repetitions of `broken` failed"):
        value_ns("google-benchmark", scratch)


@pytest.mark.parametrize("kind", get_args(HarnessKind))
def test_a_run_that_wrote_nothing_has_no_value(kind: HarnessKind, scratch: Scratch) -> None:
    scratch.output.write_text("all went well\n")
    with pytest.raises(DataError):
        value_ns(kind, scratch)


@pytest.mark.parametrize("value", ["0", "NaN", "1e999"])
def test_a_time_that_none_can_have_is_refused(scratch: Scratch, value: str) -> None:
    (scratch.run / "benchmark.json").write_text(f'{{"rounds_ns": [{value}]}}')
    with pytest.raises(DataError, match="it reported"):
        value_ns("pytest", scratch)


def test_patterns_fit_one_name() -> None:
    assert exactly("a.b[c]*") == r"^a\.b\[c\]\*$"
