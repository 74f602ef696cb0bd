"""Files of harnesses: what becomes a run and an iteration, which digits are kept, what is only published."""

from __future__ import annotations

import json
import math
import statistics
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.errors import DataError
from steelyard.model.plan import read_plan
from steelyard.record.importers.foreign import Source
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.interface import IMPORTERS, importer
from steelyard.record.importers.reading import ReadOptions
from steelyard.record.provenance import read_provenance
from steelyard.record.published import read_published
from steelyard.record.tables import read_measurements, read_runs

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).resolve().parents[4] / "golden/importers"
HARNESSES = GOLDEN / "harnesses"
ASV = HARNESSES / "asv/bench/2e82f51b-virtualenv-py3.11.json"
GO = sorted((HARNESSES / "go-bench").glob("run-*.txt"))

Rows = list[dict[str, Any]]


def importing(form: str, result: Path, *files: Path) -> Any:
    found = importer(form)
    assert isinstance(found, ForeignImporter)
    return found.import_files(files, result)


def rows_of(result: Path) -> Rows:
    """Give the measurements with their run's number and the levels of its cell."""
    runs = {row["run_id"]: row for row in read_runs(result).to_pylist()}
    cells = {cell.number: cell.levels for cell in read_plan(result / "plan.json").cells}
    return [
        {**row, "run": runs[row["run_id"]]["iteration"], **cells[runs[row["run_id"]]["cell"]]}
        for row in read_measurements(result).to_pylist()
    ]


def imported(form: str, result: Path, *files: Path) -> Rows:
    importing(form, result, *files)
    return rows_of(result)


def published(result: Path) -> dict[tuple[int, str, str], float]:
    table = read_published(result)
    assert table is not None
    return {(row["cell"], row["metric"], row["statistic"]): row["value"] for row in table.to_pylist()}


def values(rows: Rows, metric: str, workload: str = "") -> list[float]:
    return [row["value"] for row in rows if row["metric"] == metric and workload in row["workload"]]


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)


def test_every_file_is_read_by_its_own_importer_and_no_other() -> None:
    options = {
        "csv": ReadOptions(unit="ms"),
        "messages": ReadOptions(unit="ns"),
        "plogp": ReadOptions(unit="us"),
        "latency-bins": ReadOptions(stated={"jobs_start_s": 1.0, "jobs_stop_s": 2.0}),
    }
    expected = {
        "vitest-3": "vitest",
        "vitest-stored": "tinybench",
        "sample": "criterion",
        "summary": "gungraun",
    }
    expected |= {"benchmarks": "", "benchmark": "", "run-1": "go-bench", ASV.stem: "asv"}
    places = (*GOLDEN.glob("*.json"), *(GOLDEN / "criterion").rglob("*.json"), *HARNESSES.rglob("*.*"))
    files = sorted(path for path in places if path.is_file() and path.suffix != ".toml")
    importers = {
        name: found for name in IMPORTERS.names() if isinstance(found := importer(name), ForeignImporter)
    }
    assert len(importers) > 20
    for path in (path for path in files if path not in GO[1:]):
        readers = []
        for name, found in importers.items():
            source = Source(path, path.read_bytes(), found.expected)
            try:
                read = found.read(source, options.get(name, ReadOptions()))
            except DataError:
                continue
            readers += [name] if read.holds_values else []
        form = expected.get(path.stem, path.stem)
        assert readers == ([form] if form else []), path


def test_go_processes_are_runs_and_lines_are_iterations(tmp_path: Path) -> None:
    summary = importing("go-bench", tmp_path / "r", *GO)
    assert (summary.cells, summary.runs, summary.measurements) == (10, 50, 600)
    rows = rows_of(tmp_path / "r")
    printed = [line.split() for path in GO for line in path.read_text().splitlines() if "ns/op" in line]
    times = [words[words.index("ns/op") - 1] for words in printed]
    assert sorted(row["printed"] for row in rows if row["metric"] == "time") == sorted(times)
    assert {row["gomaxprocs"] for row in rows} == {"1", "2"}
    assert {row["iteration"] for row in rows} == {1, 2, 3, 4}
    assert read_provenance(tmp_path / "r").origins[0].facts["goarch"] == "amd64"


def test_go_json_is_read_like_text(tmp_path: Path) -> None:
    source = HARNESSES / "go-bench.json"
    events = [json.loads(line) for line in source.read_text().splitlines()]
    text = "".join(event.get("Output", "") for event in events)
    (tmp_path / "same.txt").write_text(text, encoding="utf-8")
    summary = importing("go-bench", tmp_path / "json", source)
    assert (summary.cells, summary.runs) == (2, 2)
    assert summary.notes == (
        "benchmarks that failed, left out: 1",
        "packages that failed, whose benchmarks may be incomplete: 1",
    )
    unlike = {"run_id"}
    kept = [
        [{key: value for key, value in row.items() if key not in unlike} for row in rows]
        for rows in (
            rows_of(tmp_path / "json"),
            imported("go-bench", tmp_path / "text", tmp_path / "same.txt"),
        )
    ]
    assert kept[0] == kept[1]


def test_go_packages_that_print_at_once_are_kept_apart(tmp_path: Path) -> None:
    lines = [
        ("a", "pkg: a\nBenchmarkX-2 \t"),
        ("b", "pkg: b\nBenchmarkX-2 \t 5\t 70 ns/op\n"),
        ("a", " 9\t 30 ns/op\n"),
    ]
    events = [json.dumps({"Action": "output", "Package": one, "Output": text}) for one, text in lines]
    (tmp_path / "g.json").write_text("\n".join(events), encoding="utf-8")
    rows = imported("go-bench", tmp_path / "r", tmp_path / "g.json")
    assert {row["workload"]: row["value"] for row in rows} == {"a.X": 30.0, "b.X": 70.0}


def test_go_settings_that_change_are_factors_and_odd_lines_are_not_results(tmp_path: Path) -> None:
    lines = [
        "goos: linux",
        "pkg: a.org/x",
        "commit: 1",
        "Benchmarking is fun",
        "BenchmarkOne-4 \t 10 \t 5 ns/op \t NaN p99/op",
        "--- FAIL: BenchmarkTwo",
        "BenchmarkThree",
        "PASS",
        "ok  \ta.org/x\t1.2s",
        "pkg: a.org/x",
        "commit: 2",
        "BenchmarkOne/k=1/k=2/plain-4 7 2.50 ns/op 1e3 keys/s",
        "BenchmarkOne-4 10 0.000006 sec/op",
    ]
    (tmp_path / "b.txt").write_text("\n".join(lines), encoding="utf-8")
    summary = importing("go-bench", tmp_path / "r", tmp_path / "b.txt")
    assert (summary.cells, summary.runs, summary.measurements) == (3, 3, 4)
    assert summary.notes == ("benchmarks that failed, left out: 1", "values that are not finite, left out: 1")
    rows = rows_of(tmp_path / "r")
    assert [row["commit"] for row in rows if row["metric"] == "time"] == ["1", "2", "2"]
    assert values(rows, "time") == [5.0, 2.5, 6000.0]
    assert {row["workload"] for row in rows} == {"a.org/x.One", "a.org/x.One/k=2/plain"}


def test_libtest_text_and_json_say_the_same_of_their_own_runs(tmp_path: Path) -> None:
    text = imported("libtest", tmp_path / "text", HARNESSES / "libtest.txt")
    assert values(text, "median_time") == [52949.24, 29.78]
    assert values(text, "throughput") == [151.0]
    events = [json.loads(line) for line in (HARNESSES / "libtest.json").read_text().splitlines()]
    medians = [event["median"] for event in events if event["type"] == "bench"]
    assert (
        values(imported("libtest", tmp_path / "json", HARNESSES / "libtest.json"), "median_time") == medians
    )
    assert published(tmp_path / "text")[0, "time", "maximum - minimum"] == 15144.14
    assert read_provenance(tmp_path / "json").notes[1:] == (
        "benchmarks that failed, left out: 1",
        "benchmarks and tests that were not run: 2",
    )


def test_libtest_is_read_where_it_is_quiet(tmp_path: Path) -> None:
    lines = [
        "running 4 tests",
        "i 1/4",
        "t::bad --- FAILED",
        "itest t::noisy ... bench:           0.32 ns/iter (+/- 8.63)",
        "test t::slow  ... bench:     170,033.82 ns/iter (+/- 1,040,823.65)",
    ]
    (tmp_path / "l.txt").write_text("\n".join(lines), encoding="utf-8")
    summary = importing("libtest", tmp_path / "r", tmp_path / "l.txt")
    assert {row["workload"] for row in rows_of(tmp_path / "r")} == {"t::noisy", "t::slow"}
    assert "benchmarks that failed, left out: 1" in summary.notes
    assert "benchmarks and tests that were not run: 1" in summary.notes


def test_libtest_programs_are_told_apart_where_cargo_names_them(tmp_path: Path) -> None:
    result = "test a ... bench:       {} ns/iter (+/- 1)\n"
    named = "     Running benches/{0}.rs (target/release/deps/{0}-f67ea2d4a596e8fa)\n\nrunning 1 test\n"
    text = "".join(
        named.format(name) + result.format(time) for name, time in (("one", "1,234"), ("two", "7"))
    )
    (tmp_path / "b.txt").write_text(text, encoding="utf-8")
    rows = imported("libtest", tmp_path / "r", tmp_path / "b.txt")
    assert [(row["binary"], row["value"]) for row in rows] == [("one", 1234.0), ("two", 7.0)]


def test_gungraun_counts_are_values_of_a_run_and_rates_are_published(tmp_path: Path) -> None:
    summary = importing("gungraun", tmp_path / "r", HARNESSES / "gungraun")
    assert (summary.cells, summary.runs) == (2, 2)
    rows = rows_of(tmp_path / "r")
    assert values(rows, "Ir", "long") == [12534.0]
    assert values(rows, "Ir", "short") == [187.0]
    assert {row["unit"] for row in rows if row["metric"] == "DHAT.TotalBytes"} == {"bytes"}
    assert not [row for row in rows if row["metric"].endswith("Rate")]
    assert published(tmp_path / "r")[0, "Ir", "earlier process"] in (187.0, 12534.0)


def test_catch2_means_are_values_of_a_process_and_bounds_are_published(tmp_path: Path) -> None:
    rows = imported("catch2", tmp_path / "r", HARNESSES / "catch2.xml")
    assert [(row["workload"], row["metric"], row["value"]) for row in rows] == [
        ("sorting/std::sort", "mean_time", 7824.18),
        ("sorting/stable/std::stable_sort", "mean_time", 12885.6),
        ("summing/accumulate", "mean_time", 1909.03),
    ]
    assert published(tmp_path / "r")[0, "time", "mean, lower bound (0.95)"] == 6988.85
    provenance = read_provenance(tmp_path / "r")
    assert "benchmarks that failed, left out: 1" in provenance.notes
    assert provenance.origins[0].facts["tool_version"] == "3.7.1"


def test_nanobench_epochs_are_iterations_of_whole_calls(tmp_path: Path) -> None:
    source = HARNESSES / "nanobench.json"
    rows = imported("nanobench", tmp_path / "r", source)
    epochs = [epoch for each in document(source)["results"] for epoch in each["measurements"]]
    assert values(rows, "time") == [float(epoch["elapsed"] * 10**9) for epoch in epochs]
    assert values(rows, "loops") == [epoch["iterations"] for epoch in epochs]
    assert values(rows, "batch") == [100.0, 1000.0]
    assert "cycles" not in {row["metric"] for row in rows}
    assert "did not count: `pagefaults`, `cpucycles`" in read_provenance(tmp_path / "r").notes[1]


def test_nanobench_counters_are_taken_where_the_machine_counted(tmp_path: Path) -> None:
    found = json.loads((HARNESSES / "nanobench.json").read_text())
    found["results"][0]["measurements"][2]["cpucycles"] = 77.5
    (tmp_path / "n.json").write_text(json.dumps(found), encoding="utf-8")
    rows = imported("nanobench", tmp_path / "r", tmp_path / "n.json")
    assert sum(values(rows, "cycles")) == 77.5
    assert len(values(rows, "cycles")) == len(values(rows, "time"))


def test_nanobench_sizes_of_one_name_are_cells_and_time_stands_before_batch(tmp_path: Path) -> None:
    document = json.loads((HARNESSES / "nanobench.json").read_text(encoding="utf-8"))
    first = document["results"][0] | {"complexityN": 10, "batch": 4}
    document["results"] = [first, first | {"complexityN": 100}]
    (tmp_path / "n.json").write_text(json.dumps(document), encoding="utf-8")
    rows = imported("nanobench", tmp_path / "r", tmp_path / "n.json")
    times = [row for row in rows if row["metric"] == "time"]
    assert {row["complexity_n"] for row in times} == {"10", "100"}
    assert len(times) == 2 * len(first["measurements"])
    assert rows[0]["metric"] == "time"
    assert [row["value"] for row in rows if row["metric"] == "batch"] == [4.0, 4.0]


def test_catch2_says_which_means_are_of_several_sections(tmp_path: Path) -> None:
    text = (HARNESSES / "catch2.xml").read_text(encoding="utf-8")
    begin, end = text.index("<BenchmarkResults"), text.index("</BenchmarkResults>") + 19
    (tmp_path / "c.xml").write_text(text[:end] + text[begin:end] + text[end:], encoding="utf-8")
    notes = importing("catch2", tmp_path / "r", tmp_path / "c.xml").notes
    assert "benchmarks that ran for several sections or generated values, kept together: 1" in notes


@pytest.mark.parametrize(("form", "name"), [("tinybench", "tinybench.json"), ("vitest", "vitest.json")])
def test_sorted_samples_are_in_one_iteration(tmp_path: Path, form: str, name: str) -> None:
    rows = imported(form, tmp_path / "r", HARNESSES / name)
    found = document(HARNESSES / name)
    if form == "vitest":
        tasks = found["testResults"][0]["assertionResults"][0]["benchmarks"][0]["tasks"]
        assert {row["workload"] for row in rows} == {
            "sort.bench.ts > sort > orders > numeric",
            "sort.bench.ts > sort > orders > text",
        }
    else:
        tasks = [task["result"] for task in found if "latency" in task["result"]]
    samples = [sample for task in tasks for sample in task["latency"]["samples"]]
    assert values(rows, "time") == [float(sample * 10**6) for sample in samples]
    assert {row["iteration"] for row in rows} == {1}
    mean = published(tmp_path / "r")[0, "time", "mean"]
    assert math.isclose(mean, statistics.fmean(values(rows, "time", "numeric")), rel_tol=1e-12)


def test_results_of_tinybench_before_version_3_are_read(tmp_path: Path) -> None:
    kept = {"hz": 400.0, "mean": 2.5, "sd": 0.5, "min": 2, "max": 3, "samples": [2, 3]}
    tasks = [{"name": "a", "result": kept}, {"name": "b", "result": {"error": {}}}]
    (tmp_path / "t.json").write_text(json.dumps(tasks), encoding="utf-8")
    assert values(imported("tinybench", tmp_path / "r", tmp_path / "t.json"), "time") == [2e6, 3e6]
    assert published(tmp_path / "r")[0, "throughput", "mean"] == 400.0
    assert "benchmarks that failed, left out: 1" in read_provenance(tmp_path / "r").notes


def test_vitest_without_samples_gives_a_mean_of_the_process(tmp_path: Path) -> None:
    summary = importing("vitest", tmp_path / "r", HARNESSES / "vitest-3.json")
    rows = rows_of(tmp_path / "r")
    assert values(rows, "mean_time") == [2888343.7500000186, 3544787.1249999707]
    assert "whose samples are not in the file: 2" in summary.notes[0]
    assert summary.notes[1] == "benchmarks that failed, left out: 1"


def test_vitest_leaves_out_what_an_earlier_process_stored(tmp_path: Path) -> None:
    found = json.loads((HARNESSES / "vitest.json").read_text())
    found["testResults"][0]["assertionResults"][0]["benchmarks"][0]["tasks"][0]["fromStore"] = True
    (tmp_path / "v.json").write_text(json.dumps(found), encoding="utf-8")
    assert {row["workload"] for row in imported("vitest", tmp_path / "r", tmp_path / "v.json")} == {
        "sort.bench.ts > sort > orders > text"
    }


def test_benchmark_js_cycles_are_iterations(tmp_path: Path) -> None:
    source = HARNESSES / "benchmark-js.json"
    rows = imported("benchmark-js", tmp_path / "r", source)
    sample = document(source)["0"]["stats"]["sample"]
    assert values(rows, "time", "numeric") == [float(each * 10**9) for each in sample]
    assert [row["iteration"] for row in rows if row["workload"] == "numeric"] == list(range(1, 9))
    array = [json.loads(source.read_text())[str(place)] for place in range(3)]
    (tmp_path / "array.json").write_text(json.dumps(array), encoding="utf-8")
    assert values(imported("benchmark-js", tmp_path / "a", tmp_path / "array.json"), "time") == values(
        rows, "time"
    )


def test_asv_samples_memory_and_parameters(tmp_path: Path) -> None:
    rows = imported("asv", tmp_path / "r", ASV)
    times = document(ASV)["results"]["sorting.Sorting.time_sorted"]
    point = [row for row in rows if row["workload"].endswith("time_sorted") and row["size"] == "1000"]
    assert [row["value"] for row in point] == [float(each * 10**9) for each in times[-1][2]]
    assert {row["kind"] for row in point} == {"'numbers'"}
    assert {row["unit"] for row in rows if row["metric"] == "peak_memory"} == {"bytes"}
    assert {(row["value"], row["unit"]) for row in rows if row["metric"] == "value"} == {(12.0, "entries")}
    notes = read_provenance(tmp_path / "r").notes
    assert notes[:2] == ("benchmarks that failed, left out: 1", "benchmarks and tests that were not run: 2")


def test_asv_without_samples_and_descriptions_gives_medians(tmp_path: Path) -> None:
    found = json.loads(ASV.read_text())
    place = found["result_columns"].index("samples")
    for row in found["results"].values():
        del row[place:]
    (tmp_path / "a.json").write_text(json.dumps(found), encoding="utf-8")
    rows = imported("asv", tmp_path / "r", tmp_path / "a.json")
    assert values(rows, "median_time", "time_plain") == [found["results"]["sorting.time_plain"][0][0] * 1e9]
    assert not values(rows, "time")
    assert {row["param1"] for row in rows if "Sorting" in row["workload"]} == {"100", "1000"}
    assert {row["unit"] for row in rows if row["metric"] == "value"} == {"as counted"}


def test_dotnet_launches_are_runs_with_warm_ups(tmp_path: Path) -> None:
    source = HARNESSES / "benchmark-dotnet.json"
    rows = imported("benchmark-dotnet", tmp_path / "r", source)
    first = document(source)["Benchmarks"][0]
    one = [row for row in rows if row["workload"] == "Yard.Sorting.Quick" and row["Size"] == "64"]
    assert {row["run"] for row in one} == {1, 2}
    assert {row["job"].partition("(")[0] for row in one} == {"Job-QKVWXD"}
    actual = [
        each["Nanoseconds"] / each["Operations"]
        for each in first["Measurements"]
        if (each["IterationMode"], each["IterationStage"]) == ("Workload", "Actual")
    ]
    measured = [row for row in one if row["phase"] == "measure"]
    assert values(measured, "time") == [float(each) for each in actual]
    assert len([row for row in one if row["phase"] == "warmup" and row["metric"] == "time"]) == 2 * 7
    assert values(measured, "time_less_overhead") == [float(x) for x in first["Statistics"]["OriginalValues"]]
    assert [row["unit"] for row in one if row["metric"] == "Allocated Memory"] == ["bytes"]
    assert "benchmarks that failed, left out: 1" in read_provenance(tmp_path / "r").notes


def test_julia_trials_have_the_keys_of_their_groups(tmp_path: Path) -> None:
    summary = importing("julia", tmp_path / "r", HARNESSES / "julia.json")
    rows = rows_of(tmp_path / "r")
    assert list(dict.fromkeys(row["workload"] for row in rows)) == [
        "sort/(1000, :quick)",
        "sort/(1000, :merge)",
        "sum",
    ]
    assert len(values(rows, "time", "sum")) == 10
    assert sorted(values(rows, "allocated")) == [0.0, 8064.0, 12096.0]
    assert summary.notes[0].startswith("estimates, ratios and parameters, left out")
    assert read_provenance(tmp_path / "r").origins[0].facts["tool_version"] == "1.8.0"


def test_damage_of_great_size_is_refused_at_once(tmp_path: Path) -> None:
    found = json.loads(ASV.read_text())
    found["results"]["sorting.Sorting.time_sorted"][1] = [["1"] * 1000] * 9
    (tmp_path / "a.json").write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(DataError, match="one per combination of parameters"):
        importing("asv", tmp_path / "r", tmp_path / "a.json")
    spaces = " " * 1_000_000
    (tmp_path / "b.txt").write_text(f"test a{spaces}x\nRunning {'(' * 1_000_000}\n", encoding="utf-8")
    for form in ("libtest", "go-bench"):
        with pytest.raises(DataError, match="no value in the file"):
            importing(form, tmp_path / "r", tmp_path / "b.txt")


def replaced(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


DAMAGED = {
    "go-cut": (
        "go-bench",
        "BenchmarkSort-8 1468 7125\n",
        "line 1: `BenchmarkSort-8 1468 7125` is not a result",
    ),
    "go-count": (
        "go-bench",
        "\nBenchmarkSort-8 many 7 ns/op\n",
        "line 2: `BenchmarkSort-8 many 7 ns/op` is not",
    ),
    "go-word": ("go-bench", "BenchmarkSort-8 1468 x ns/op\n", "line 1: `x` should be numbers"),
    "go-negative": ("go-bench", "BenchmarkSort-8 1468 -1 ns/op\n", "line 1: a time is negative"),
    "go-json": ("go-bench", '{"Action":"start"}\n{"Action":', "line 2, column 11: not JSON"),
    "go-nothing": ("go-bench", "PASS\n", "no value in the file"),
    "libtest-cut": (
        "libtest",
        "\ntest a ... bench: 1 ns/i\n",
        "line 2: `test a ... bench: 1 ns/i` is not a result",
    ),
    "libtest-json": (
        "libtest",
        '{"type":"bench","name":"a","deviation":1}',
        "line 1, at the top: no member `median`",
    ),
    "catch2-root": ("catch2", "<testsuites/>", "line 1: `testsuites` is not `Catch2TestRun` or `Catch`"),
    "catch2-cut": (
        "catch2",
        "<Catch2TestRun>\n<TestCase name='a'>",
        "line 2, column 20: not XML: no element found",
    ),
    "catch2-entity": (
        "catch2",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><Catch2TestRun/>",
        "a document type is declared",
    ),
    "gungraun-version": (
        "gungraun",
        '{"version":"6","module_path":"a","profiles":[]}',
        "at `version`: `6` is not version `7`",
    ),
    "julia-type": (
        "julia",
        '[{"Julia":"1","BenchmarkTools":"1"},[["Trail",{}]]]',
        "at `[1][0][0]`: `Trail` is not",
    ),
    "tinybench-other": ("tinybench", '[{"name":"a"}]', "at `[0]`: no member `hz`"),
    "vitest-tests": (
        "vitest",
        '{"testResults":[{"name":"a.ts","assertionResults":[{"status":"passed"}]}]}',
        "no member `benchmarks`",
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_refused_with_its_place(tmp_path: Path, damage: str) -> None:
    form, text, reason = DAMAGED[damage]
    (tmp_path / "f").write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as refused:
        importing(form, tmp_path / "r", tmp_path / "f")
    assert reason in refused.value.message
    assert refused.value.hint
    assert not (tmp_path / "r").exists()


ALTERED = {
    "benchmark-dotnet.json": (
        replaced('"Operations": 16,', '"Operations": 0,'),
        "`0` is not a number of operations",
    ),
    "benchmark-js.json": (
        replaced('"sample": [', '"sample": ["x", '),
        "at `0.stats.sample[0]`: `x` is not a number",
    ),
    "nanobench.json": (replaced('"elapsed": ', '"elapsed": -'), "measurements[0].elapsed`: `-"),
    "julia.json": (replaced('"gctimes": [', '"gctimes": [0, '), "is not a list of 9 entries"),
}


@pytest.mark.parametrize("name", ALTERED)
def test_a_value_that_cannot_be_is_refused_with_its_path(tmp_path: Path, name: str) -> None:
    change, reason = ALTERED[name]
    (tmp_path / name).write_text(change((HARNESSES / name).read_text()), encoding="utf-8")
    with pytest.raises(DataError) as refused:
        importing(name.removesuffix(".json"), tmp_path / "r", tmp_path / name)
    assert reason in refused.value.message


def test_dotnet_without_measurements_says_which_export_has_them(tmp_path: Path) -> None:
    found = json.loads((HARNESSES / "benchmark-dotnet.json").read_text())
    for each in found["Benchmarks"]:
        del each["Measurements"]
    (tmp_path / "brief.json").write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(DataError, match=r"export with `JsonExporter\.Full`"):
        importing("benchmark-dotnet", tmp_path / "r", tmp_path / "brief.json")
