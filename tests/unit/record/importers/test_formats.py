"""Every foreign format: what becomes a run and an iteration, which digits are kept, what is left out."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard.errors import DataError, UsageError
from steelyard.model.plan import read_plan
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.interface import importer
from steelyard.record.importers.reading import ReadOptions
from steelyard.record.provenance import read_provenance
from steelyard.record.published import read_published
from steelyard.record.seal import altered_tables
from steelyard.record.tables import read_measurements, read_runs
from steelyard.studies.communication.trace import read_trace

ROOT = Path(__file__).resolve().parents[4]
GOLDEN = ROOT / "tests/golden/importers"
SHARED = ROOT.parent / "shared/data"


def importing(form: str, files: list[Path], result: Path, options: ReadOptions | None = None) -> Any:
    found = importer(form)
    assert isinstance(found, ForeignImporter)
    return found.import_files(files, result, options)


def rows_of(result: Path) -> list[dict[str, Any]]:
    """Give the measurements with the columns of their run."""
    runs = {row["run_id"]: row for row in read_runs(result).to_pylist()}
    rows = read_measurements(result).to_pylist()
    return [{**runs[row["run_id"]], **{f"m_{key}": value for key, value in row.items()}} for row in rows]


JMH = [
    {
        "jmhVersion": "1.37",
        "benchmark": "org.example.Sort.run",
        "mode": "sample",
        "threads": 2,
        "forks": 2,
        "jdkVersion": "21",
        "params": {"size": "10", "worker": "a"},
        "primaryMetric": {
            "score": 2.5,
            "scoreError": "NaN",
            "scoreUnit": "us/op",
            "rawDataHistogram": [[[[1.5, 2], [4.0, 1]], [[3.0, 1]]], [[[2.0, 3]]]],
        },
        "secondaryMetrics": {
            "\u00b7gc.alloc.rate": {"score": 5.0, "scoreUnit": "MB/sec", "rawData": [[5.0, "NaN"], [5.5]]}
        },
    },
    {
        "jmhVersion": "1.37",
        "benchmark": "org.example.Sum.run",
        "mode": "thrpt",
        "threads": 1,
        "primaryMetric": {"score": 7.0, "scoreError": 1.0, "scoreUnit": "ops/ms", "rawData": [[6.0, 8.0]]},
        "secondaryMetrics": {},
    },
]


def test_jmh_forks_are_runs_and_histograms_give_every_value(tmp_path: Path) -> None:
    source = tmp_path / "jmh.json"
    source.write_text(json.dumps(JMH), encoding="utf-8")
    summary = importing("jmh", [source], tmp_path / "r")
    assert (summary.cells, summary.runs) == (2, 3)
    rows = rows_of(tmp_path / "r")
    sampled = [row for row in rows if row["m_metric"] == "time"]
    assert [(row["iteration"], row["m_iteration"], row["m_value"]) for row in sampled] == [
        (1, 1, 1500.0),
        (1, 1, 1500.0),
        (1, 1, 4000.0),
        (1, 2, 3000.0),
        (2, 1, 2000.0),
        (2, 1, 2000.0),
        (2, 1, 2000.0),
    ]
    throughput = [row for row in rows if row["m_metric"] == "throughput"]
    assert [(row["m_value"], row["m_unit"]) for row in throughput] == [(6.0, "ops/ms"), (8.0, "ops/ms")]
    assert {row["m_unit"] for row in rows if row["m_metric"] == "gc.alloc.rate"} == {"MB/sec"}
    assert read_provenance(tmp_path / "r").notes == (
        "1 values of `gc.alloc.rate` are not numbers and were not taken",
    )
    plan = read_plan(tmp_path / "r" / "plan.json")
    assert list(plan.factors) == ["workload", "mode", "threads", "size", "parameter_worker"]
    assert plan.factors["size"] == ("10", "none")
    published = read_published(tmp_path / "r")
    assert published is not None
    assert [(row["statistic"], row["value"]) for row in published.to_pylist()] == [
        ("score", 2500.0),
        ("score", 7.0),
        ("scoreError", 1.0),
    ]


@pytest.mark.needs_recorded_data
@pytest.mark.parametrize(
    ("name", "runs", "values"),
    [("JakobMei+ba_grpc_rest", 40, 200), ("twineworks+collections-benchmarks", 80, 800)],
)
def test_shared_jmh_files_are_taken_whole(tmp_path: Path, name: str, runs: int, values: int) -> None:
    source = SHARED / f"replication/{name}-jmh-result.json"
    summary = importing("jmh", [source], tmp_path / "r")
    assert (summary.runs, summary.measurements) == (runs, values)
    entries = json.loads(source.read_text(encoding="utf-8"), parse_float=Decimal)
    expected = Counter(
        str(value) for entry in entries for fork in entry["primaryMetric"]["rawData"] for value in fork
    )
    assert Counter(row["printed"] for row in read_measurements(tmp_path / "r").to_pylist()) == expected
    assert altered_tables(tmp_path / "r") == []


def test_hyperfine_launches_are_runs_with_exact_nanoseconds(tmp_path: Path) -> None:
    summary = importing("hyperfine", [GOLDEN / "hyperfine.json"], tmp_path / "r")
    assert (summary.cells, summary.runs, summary.measurements) == (2, 24, 24)
    content = json.loads((GOLDEN / "hyperfine.json").read_text(encoding="utf-8"), parse_float=Decimal)
    times = [time for result in content["results"] for time in result["times"]]
    rows = rows_of(tmp_path / "r")
    assert [row["m_value"] for row in rows] == [float(time * 10**9) for time in times]
    assert [row["m_printed"] for row in rows] == [str(time) for time in times]
    assert {row["exit_code"] for row in rows} == {0}
    assert "means in the file" in summary.notes[0]
    published = read_published(tmp_path / "r")
    assert published is not None
    assert {row["metric"] for row in published.to_pylist()} == {"wall", "cpu_user", "cpu_system"}


def test_hyperfine_failures_parameters_and_memory_are_kept(tmp_path: Path) -> None:
    result = {
        "command": "x 1",
        "times": [0.1, 0.2, 0.3],
        "exit_codes": [0, 3, None],
        "memory_usage_byte": [10, 20, 30],
        "parameters": {"n": "1"},
    }
    (tmp_path / "h.json").write_text(json.dumps({"results": [result]}), encoding="utf-8")
    importing("hyperfine", [tmp_path / "h.json"], tmp_path / "r")
    runs = read_runs(tmp_path / "r").to_pylist()
    assert [run["status"] for run in runs] == ["completed", "nonzero_exit", "signalled"]
    assert {run["n"] for run in runs} == {"1"}
    memory = [row["m_value"] for row in rows_of(tmp_path / "r") if row["m_metric"] == "peak_memory"]
    assert memory == [10.0, 20.0, 30.0]


def test_google_benchmark_repetitions_are_iterations_and_aggregates_are_no_samples(tmp_path: Path) -> None:
    source = GOLDEN / "google-benchmark.json"
    summary = importing("google-benchmark", [source], tmp_path / "r")
    rows = rows_of(tmp_path / "r")
    entries = json.loads(source.read_text(encoding="utf-8"))["benchmarks"]
    measured = [e for e in entries if e["run_type"] == "iteration" and not e.get("error_occurred")]
    wall = [row for row in rows if row["m_metric"] == "wall"]
    assert [row["m_value"] for row in wall] == [entry["real_time"] for entry in measured]
    assert [row["m_iteration"] for row in wall] == [1, 2, 3, 4, 5] * 2
    assert {row["m_metric"] for row in rows} == {"wall", "cpu", "items_per_second", "size"}
    assert (summary.runs, summary.cells) == (2, 2)
    assert "5 repetitions of `BM_fail` failed" in summary.notes[0]
    assert read_provenance(tmp_path / "r").origin.facts["num_cpus"] == "2"  # type: ignore[union-attr]


def test_google_benchmark_aggregates_alone_are_refused_with_the_remedy(tmp_path: Path) -> None:
    content = json.loads((GOLDEN / "google-benchmark.json").read_text(encoding="utf-8"))
    content["benchmarks"] = [each for each in content["benchmarks"] if each["run_type"] == "aggregate"]
    (tmp_path / "g.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DataError, match="--benchmark_report_aggregates_only"):
        importing("google-benchmark", [tmp_path / "g.json"], tmp_path / "r")


def test_pyperf_processes_are_runs_with_their_warm_ups(tmp_path: Path) -> None:
    for name in ("p.json", "p.json.gz"):
        content = (GOLDEN / "pyperf.json").read_bytes()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        summary = importing("pyperf", [tmp_path / name], tmp_path / f"r-{name}")
        assert (summary.cells, summary.runs, summary.measurements) == (2, 8, 32)
        rows = rows_of(tmp_path / f"r-{name}")
        assert Counter(row["m_phase"] for row in rows) == {"warmup": 8, "measure": 24}
        assert [row["m_iteration"] for row in rows[:4]] == [1, 2, 3, 4]


def test_pytest_benchmark_rounds_are_iterations_and_parameters_are_factors(tmp_path: Path) -> None:
    summary = importing("pytest-benchmark", [GOLDEN / "pytest-benchmark.json"], tmp_path / "r")
    assert (summary.cells, summary.runs, summary.measurements) == (3, 3, 36)
    plan = read_plan(tmp_path / "r" / "plan.json")
    assert plan.factors == {
        "workload": ("test_b.py::test_sort", "test_b.py::test_sum"),
        "size": ("10", "40", "none"),
    }


def test_pytest_benchmark_without_data_says_how_to_save_it(tmp_path: Path) -> None:
    content = json.loads((GOLDEN / "pytest-benchmark.json").read_text(encoding="utf-8"))
    del content["benchmarks"][1]["stats"]["data"]
    (tmp_path / "p.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DataError, match=r"at `benchmarks\[1\].stats`: no member `data`") as caught:
        importing("pytest-benchmark", [tmp_path / "p.json"], tmp_path / "r")
    assert "--benchmark-save-data" in (caught.value.hint or "")


def test_moobench_files_are_blocks_and_their_name_tells_the_factors(tmp_path: Path) -> None:
    files = []
    for loop in (1, 2):
        files.append(tmp_path / f"kieker-raw-{loop}-10-3.csv")
        files[-1].write_text("0;100\n1;90\n0;80\n", encoding="utf-8")
    importing("moobench", files, tmp_path / "r")
    runs = read_runs(tmp_path / "r").to_pylist()
    assert [(run["block"], run["worker"], run["worker_label"]) for run in runs] == [
        (0, 0, "0"),
        (0, 1, "1"),
        (1, 0, "0"),
        (1, 1, "1"),
    ]
    assert {(run["workload"], run["recursion_depth"], run["configuration"]) for run in runs} == {
        ("kieker", "10", "3")
    }
    assert [row["m_value"] for row in rows_of(tmp_path / "r")] == [100.0, 80.0, 90.0] * 2
    assert len(read_provenance(tmp_path / "r").origins) == 2


@pytest.mark.needs_recorded_data
def test_shared_moobench_mpi_and_skampi_files_are_taken_whole(tmp_path: Path) -> None:
    data = SHARED / "communication"
    moobench = importing("moobench", [SHARED / "replication/otel-python-raw-2-10-2.csv"], tmp_path / "m")
    assert (moobench.runs, moobench.measurements) == (1, 91_745)
    pingpong = data / "graphene-eth1g/graphene_eth_PingPong.csv"
    mpi = importing("mpi", [pingpong], tmp_path / "p")
    # A send and a receive that began with it are a round trip.
    assert 2 * mpi.measurements == len(pingpong.read_text(encoding="utf-8").splitlines())
    source = data / "griffon/griffon_skampi_pt2pt.ski.dat"
    skampi = importing("skampi", [source], tmp_path / "s")
    lines = [line for line in source.read_text(encoding="utf-8").splitlines() if line.startswith("count")]
    assert (skampi.measurements, skampi.study) == (len(lines), "communication")
    first = read_trace(tmp_path / "s/traces/000000.01").endpoints[0].operations[0]
    assert (first["size"], first["end_ns"] - first["start_ns"]) == (1, 109_200)
    published = read_published(tmp_path / "s")
    assert published is not None
    assert published.slice(0, 3).to_pylist()[1:] == [
        {"cell": 0, "block": 0, "metric": "time of 1 B", "statistic": name, "value": value, "unit": "ns"}
        | {"printed": f"{value / 1000} us"}
        for name, value in (("standard error", 200.0), ("mean of process 0", 106_700.0))
    ]
    assert read_provenance(tmp_path / "s").origin.facts["version"] == "5.0.4 rev. 355"  # type: ignore[union-attr]


@pytest.mark.needs_recorded_data
def test_two_columns_are_a_table(tmp_path: Path) -> None:
    source = SHARED / "communication/griffon/pingpong-in.dat"
    (tmp_path / "part.dat").write_text("".join(source.read_text().splitlines(keepends=True)[:200]))
    columns = ReadOptions({"size_bytes": "1", "value": "2"}, "us")
    found = importing("csv", [tmp_path / "part.dat"], tmp_path / "r", columns)
    assert found.measurements == 200
    assert [row["m_value"] for row in rows_of(tmp_path / "r")][:3] == [98_000.0, 100_000.0, 100_000.0]


CRITERION = {"sampling_mode": "Linear", "iters": [1.0, 3.0], "times": [10.0, 31.0]}


def test_criterion_gives_the_time_per_loop_and_what_it_comes_from(tmp_path: Path) -> None:
    for name in ("first", "second"):
        folder = tmp_path / "criterion" / name / "new"
        folder.mkdir(parents=True)
        (folder / "sample.json").write_text(json.dumps(CRITERION), encoding="utf-8")
        (folder / "benchmark.json").write_text(json.dumps({"full_id": f"group/{name}"}), encoding="utf-8")
    summary = importing("criterion", [tmp_path / "criterion"], tmp_path / "r")
    assert (summary.cells, summary.runs) == (2, 2)
    rows = rows_of(tmp_path / "r")
    assert [row["m_value"] for row in rows[:6]] == [10.0, 10.0, 1.0, 31.0 / 3.0, 31.0, 3.0]
    assert [row["m_metric"] for row in rows[:3]] == ["time", "batch_time", "batch_loops"]
    assert {row["workload"] for row in rows} == {"group/first", "group/second"}


def test_a_folder_of_criterion_is_taken_whole(tmp_path: Path) -> None:
    summary = importing("criterion", [GOLDEN / "criterion"], tmp_path / "r")
    assert (summary.cells, summary.runs, summary.measurements) == (2, 2, 2 * 12 * 3)
    assert {run["workload"] for run in read_runs(tmp_path / "r").to_pylist()} == {
        "sum/iter/64",
        "sum/iter/1024",
    }
    assert read_plan(tmp_path / "r" / "plan.json").blocks == 1


def test_criterion_raw_csv_gives_the_same(tmp_path: Path) -> None:
    header = (
        "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count\n"
    )
    (tmp_path / "raw.csv").write_text(header + "g,f,,,,10.0,ns,1\ng,f,,,,31.0,ns,3\n", encoding="utf-8")
    importing("criterion", [tmp_path / "raw.csv"], tmp_path / "r")
    rows = [row for row in rows_of(tmp_path / "r") if row["m_metric"] == "time"]
    assert [(row["workload"], row["m_value"]) for row in rows] == [("g/f", 10.0), ("g/f", 31.0 / 3.0)]


TABLE = "pid,time,kind,size\n1,0.5,warmup,a\n1,0.25,measure,a\n2,0.125,measure,b\n"
COLUMNS = {"value": "time", "run": "pid", "phase": "kind", "size": "size"}


def test_tables_take_roles_from_named_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    (tmp_path / "t.tsv").write_text(TABLE.replace(",", "\t"), encoding="utf-8")
    table = pa.table(
        {
            "pid": [1, 1, 2],
            "time": [0.5, 0.25, 0.125],
            "kind": ["warmup", "measure", "measure"],
            "size": list("aab"),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    for name in ("t.csv", "t.tsv", "t.parquet"):
        importing("csv", [tmp_path / name], tmp_path / f"r-{name}", ReadOptions(COLUMNS, "ms"))
        rows = rows_of(tmp_path / f"r-{name}")
        assert [(row["size"], row["m_phase"], row["m_value"], row["m_printed"]) for row in rows] == [
            ("a", "warmup", 500_000.0, "0.5"),
            ("a", "measure", 250_000.0, "0.25"),
            ("b", "measure", 125_000.0, "0.125"),
        ]


def test_tables_without_header_take_columns_by_number(tmp_path: Path) -> None:
    (tmp_path / "t.dat").write_text("1 98\n2 100\n", encoding="utf-8")
    options = ReadOptions({"value": "2", "size": "1"}, "boxes")
    summary = importing("csv", [tmp_path / "t.dat"], tmp_path / "r", options)
    rows = rows_of(tmp_path / "r")
    assert [(row["size"], row["m_value"], row["m_unit"]) for row in rows] == [
        ("1", 98.0, "boxes"),
        ("2", 100.0, "boxes"),
    ]
    assert "no column `run`" in "\n".join(summary.notes)


def test_blocks_of_a_table_keep_their_order_and_labels(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("commit,t\nzz,1\nzz,2\naa,3\n", encoding="utf-8")
    importing(
        "csv", [tmp_path / "t.csv"], tmp_path / "r", ReadOptions({"value": "t", "block": "commit"}, "s")
    )
    plan = read_plan(tmp_path / "r" / "plan.json")
    assert (plan.blocks, json.loads(str(plan.options["block_labels"]))) == (2, ["zz", "aa"])


def test_a_table_without_unit_or_with_an_unknown_column_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    with pytest.raises(UsageError, match="the unit of the values is not given"):
        importing("csv", [tmp_path / "t.csv"], tmp_path / "r", ReadOptions(COLUMNS))
    with pytest.raises(DataError, match="no column `tme`; columns are: `pid`, `time`"):
        importing("csv", [tmp_path / "t.csv"], tmp_path / "r", ReadOptions({"value": "tme"}, "s"))


@pytest.mark.parametrize(
    ("text", "options", "part"),
    [
        ("value,value\n1,2\n", {}, "cannot choose a column `value`: columns 1 and 2 are called so"),
        ("t,t,t\n1,2,3\n", {"columns": {"value": "t"}}, "columns 1, 2 and 3 are called so"),
        ("a,b,a\n1,2,3\n", {"wide": "workload"}, "cannot choose a column `a`"),
        ("1,1\n1,2\n", {"wide": "iteration"}, "cannot choose a column `1`"),
        ("time_us\n1\n", {"columns": {"value": "time_us"}}, "cannot read column `time_us` in ms"),
        ("a_us,b_ms\n1,2\n", {"wide": "workload"}, "cannot read column `a_us` in ms"),
        ("value,workload\n1,a\n", {"workload": "b"}, "cannot take the workload from `--workload b`"),
        ("value,run\n1,a\n", {"rows": "run"}, "cannot take the run from `--rows run`: column `run` tells it"),
        ("value,b\n1,a\n", {"columns": {"value": "1", "x": "1"}}, "for values and a role"),
        ("a,b\n1,2\n", {"wide": "workload", "workload": "c"}, "`--workload c`: the headings tell it"),
        ("a,b\n1,2\n", {"wide": "run", "rows": "run"}, "`--rows run`: the headings tell it"),
    ],
)
def test_a_table_that_contradicts_itself_or_its_options_is_refused(
    tmp_path: Path, text: str, options: dict[str, Any], part: str
) -> None:
    (tmp_path / "x").write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        importing("csv", [tmp_path / "x"], tmp_path / "r", ReadOptions(**{"unit": "ms", **options}))
    assert part in caught.value.message


@pytest.mark.parametrize(
    ("options", "option"), [({"has_header": False}, "--no-header"), ({"comment": "#"}, "--comment")]
)
def test_options_of_lines_are_refused_of_a_parquet_file(
    tmp_path: Path, options: dict[str, Any], option: str
) -> None:
    pq.write_table(pa.table({"value": [1.0, 2.0]}), tmp_path / "x")
    with pytest.raises(DataError, match=f"cannot take `{option}`: a Parquet file"):
        importing("csv", [tmp_path / "x"], tmp_path / "r", ReadOptions(unit="ms", **options))


def test_a_file_is_not_imported_twice(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("value\n1\n", encoding="utf-8")
    (tmp_path / "y").symlink_to(tmp_path / "x")
    with pytest.raises(UsageError, match=r"cannot import a file twice: .*x` and .*y` are one file"):
        importing("csv", [tmp_path / "x", tmp_path / "y"], tmp_path / "r", ReadOptions(unit="ms"))


@pytest.mark.parametrize(
    ("form", "text", "part"),
    [
        (
            "hyperfine",
            '{"results": [{"command": "c", "times": [1], "times": [2]}]}',
            "an object has the member `times` twice",
        ),
        (
            "criterion",
            "group,function,value,unit,sample_measured_value,iteration_count,unit\na,b,c,ns,1,1,ms\n",
            "cannot choose a column `unit`: columns 4 and 7",
        ),
        ("jmh", '[{"benchmark": "b"', "line 1, column"),
        ("jmh", '{"results": []}', "at the top: `.*` is not a list"),
        (
            "jmh",
            '[{"benchmark": "b", "mode": "m", "primaryMetric": {"scoreUnit": "u", "rawData": [[1, "x"]]}}]',
            r"at `\[0\].primaryMetric.rawData\[0\]\[1\]`: `x` is not a number",
        ),
        (
            "hyperfine",
            '{"results": [{"command": "c", "times": [0.1, -1]}]}',
            r"at `results\[0\].times\[1\]`: `-1`",
        ),
        ("hyperfine", '{"results": [{"command": "c", "times": [1e999]}]}', "between 1e-100 and 1e100"),
        ("hyperfine", '{"results": [{"command": "c", "times": [1e174]}]}', "between 1e-100 and 1e100"),
        ("moobench", "0;1.2510849423603206e+174\n0;18140", "line 1"),
        (
            "google-benchmark",
            '{"benchmarks": [{"name": "b", "real_time": 1, "time_unit": "h"}]}',
            "`h` is not one of",
        ),
        ("criterion", '{"iters": [1], "times": []}', "at `times`"),
        ("criterion", "a,b\n", "line 1: no column `group`"),
        ("pyperf", '{"benchmarks": [{"runs": [{}]}]}', r"at `benchmarks\[0\].runs\[0\]`"),
        ("moobench", "0;1\n0;x\n1\n", "line 2: response time is `x`"),
        ("skampi", "count= 1 1 2.0\n", "line 1: `count= 1 1 2.0` is not a result"),
        ("mpi", "MPI_Send,1,2.0,3.0\nLimit, Name\n", "line 2: 2 fields; expected 4"),
        ("mpi", "op,size,start,duration\nMPI_Send,1.5,2.0,3.0\n", "line 2: size is `1.5`"),
        ("mpi", "MPI_Send,1,2.0,3.0\nMPI_Send,1,x,-1\n", "line 2: start is `x`"),
        ("mpi", "op,size,start,duration\n", "no value in the file"),
        ("zoo", "1 MPI_Send 0 1 MPI_Recv 0\n", "line 1: 6 fields; expected 7"),
        ("zoo", "# x\n1 MPI_Send 0 1 MPI_Recv 3 2\n", "line 2: end1 is `2`; expected no time before start1"),
        ("zoo", "1 MPI_Wait 0 1 MPI_Recv 0 1\n", "no value in the file"),
        ("plogp", "1: 2 3 4\n1: 2 3\n", "line 2: 3 fields; expected at least 4"),
        ("csv", "value\n1\nfast\n", "line 3: value is `fast`; expected a number"),
        ("csv", "value\n1\n-1\n", "line 3: value is `-1`; expected a number from 0"),
        ("csv", "x,value\n1,10,5\n", "line 2: 3 fields; expected 2"),
        ("hyperfine", '{"results": []}', "no value in the file"),
        ("hyperfine", "[" * 100_000, "nested too deeply|not JSON"),
    ],
)
def test_damage_is_named_with_its_place_and_the_format(
    tmp_path: Path, form: str, text: str, part: str
) -> None:
    (tmp_path / "x").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=part) as caught:
        importing(
            form,
            [tmp_path / "x"],
            tmp_path / "r",
            ReadOptions(unit="ms") if form in {"csv", "plogp"} else None,
        )
    assert str(tmp_path / "x") in caught.value.message
    assert (caught.value.hint or "").startswith("expected ")
    assert not (tmp_path / "r").exists()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("long", ["a" * 400_000, "# on cluster : x" + " " * 400_000 + "y", "a=" * 200_000])
def test_a_long_line_of_skampi_is_read_in_time(long: str, tmp_path: Path) -> None:
    path = tmp_path / "skampi.txt"
    path.write_text(f"count= 1 1 109.2 0.2 32 106.7 107.7\n{long}\n", encoding="utf-8")
    if long.startswith("#"):
        importer("skampi").import_file(path, tmp_path / "r")
        return
    with pytest.raises(DataError, match="line 2"):
        importer("skampi").import_file(path, tmp_path / "r")
