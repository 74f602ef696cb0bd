"""What tools write with other options, of runs that failed, and several launches in one file."""

from __future__ import annotations

import codecs
import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from steelyard.errors import DataError
from steelyard.record.importers.foreign import Source, unpacked
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.interface import importer
from steelyard.record.importers.reading import ReadOptions
from steelyard.record.tables import read_measurements

if TYPE_CHECKING:
    from steelyard.record.importers.foreign import ForeignFile, ForeignRun

FILES: Final = Path(__file__).resolve().parents[3] / "fixtures/tool_files"


def reading(form: str, name: str, text: str | None = None, *, unit: str = "") -> ForeignFile:
    found = importer(form)
    assert isinstance(found, ForeignImporter)
    content = (FILES / name).read_bytes() if text is None else text.encode()
    return found.read(Source(FILES / name, content, "a file"), ReadOptions(unit=unit))


def first_values(run: ForeignRun) -> dict[str, float]:
    """Give the first value of each metric."""
    return {section.metric: section.value for section in reversed(run.sections)}


def statistics(found: ForeignFile) -> set[str]:
    return {each.metric for each in found.published}


def test_launches_that_perf_appends_are_runs_of_their_own() -> None:
    found = reading("perf-stat", "perf-append.csv")
    assert [first_values(run)["task-clock"] for run in found.runs] == [860_000.0, 970_000.0]
    assert all({section.iteration for section in run.sections} == {1} for run in found.runs)
    lines = (FILES / "perf-append.csv").read_text(encoding="utf-8").splitlines()
    unheaded = "\n".join(line for line in lines if not line.startswith("#"))
    assert reading("perf-stat", "x", unheaded).runs == found.runs


def test_perf_stat_reads_decimal_commas_and_groups_of_processes() -> None:
    line = "0.73;msec;task-clock;726617;100.00;0.143;CPUs utilized\n"
    found = reading("perf-stat", "x", line.replace(".", ","))
    assert first_values(found.runs[0]) == {"task-clock": 730_000.0}
    group = reading("perf-stat", "x", "12.5,msec,task-clock,user.slice,12500,100.00,,\n")
    assert group.runs[0].levels["scope"] == "user.slice"


def test_a_terse_line_of_fio_is_no_event_of_perf() -> None:
    terse = "3;fio-3.33;seqread;0;0;" + ";".join(["4096"] * 60) + "\n"
    with pytest.raises(DataError, match="`seqread` has no time and share of time"):
        reading("perf-stat", "x", terse)


@pytest.mark.parametrize(("form", "name"), [("wrk", "wrk-slow.txt"), ("vegeta", "vegeta-refused.json")])
def test_without_an_answer_there_is_no_latency(form: str, name: str) -> None:
    found = reading(form, name)
    assert not any("latency" in metric for run in found.runs for metric in first_values(run))
    assert "latency" not in statistics(found)


def test_requests_that_failed_are_a_metric_of_the_run() -> None:
    assert first_values(reading("vegeta", "vegeta-refused.json").runs[0]) == {"failures": 6.0}
    report = reading("vegeta", "vegeta-failures.json")
    values = first_values(report.runs[0])
    assert (values["requests"], values["failures"], values["success"]) == (50.0, 14.0, 0.72)
    assert "latencies of the report include those of 14 requests that failed" in report.notes
    content = json.loads((FILES / "vegeta-failures.json").read_text(encoding="utf-8"))
    content["status_codes"] = {"0": 50}
    assert "latency_p99" not in first_values(reading("vegeta", "x", json.dumps(content)).runs[0])


def test_autocannon_without_an_answer_has_no_latency_and_its_warm_up_is_left_out() -> None:
    found = reading("autocannon", "autocannon-warmup.json")
    assert [run.levels["connections"] for run in found.runs] == ["4"]
    assert "the warm-up is not taken" in found.notes
    lines = (FILES / "autocannon-warmup.json").read_text(encoding="utf-8").splitlines()
    silent = json.loads(lines[0])
    silent["requests"]["total"] = 0
    values = first_values(reading("autocannon", "x", json.dumps(silent)).runs[0])
    assert "latency_p99" not in values
    assert values["requests"] == 0.0


def test_what_a_script_of_wrk_prints_is_passed_over() -> None:
    found = reading("wrk", "wrk-script.txt")
    assert first_values(found.runs[0])["requests_per_s"] == 23391.25
    assert "what a script of wrk printed behind the results is not taken" in found.notes


def test_fio_reports_of_a_run_that_goes_on_are_not_runs() -> None:
    found = reading("fio", "fio-status.json")
    assert [first_values(run)["operations"] for run in found.runs] == [600.0]
    assert "reports of `--status-interval`, which the last one includes, left out: 1" in found.notes
    text = (FILES / "fio-status.json").read_text(encoding="utf-8")
    normal = "st: (g=0): rw=randread, bs=4096B\nfio-3.33\n" + text + "\nst: (groupid=0, jobs=1): err= 0\n"
    assert reading("fio", "x", normal).runs == found.runs


def test_fio_that_was_interrupted_says_so_and_mixed_directions_are_one() -> None:
    ended = reading("fio", "fio-ended.json")
    assert "fio was ended by signal 2: its numbers are of the time until then" in ended.notes
    mixed = reading("fio", "fio-mixed.json")
    assert [run.levels["direction"] for run in mixed.runs] == ["mixed"]
    text = (FILES / "fio-mixed.json").read_text(encoding="utf-8")
    both = json.loads(text)
    both["jobs"][0]["read"] = both["jobs"][0]["mixed"]
    found = reading("fio", "x", json.dumps(both))
    assert [run.levels["direction"] for run in found.runs] == ["read"]


def test_iperf3_repeats_members_for_each_of_its_streams() -> None:
    text = (FILES / "iperf3-streams.json").read_text(encoding="utf-8")
    assert text.count('"sock_bufsize"') == 3
    run = reading("iperf3", "iperf3-streams.json").runs[0]
    assert run.levels["streams"] == "3"
    assert [s.phase for s in run.sections if s.metric == "throughput"] == ["warmup", "measure", "measure"]
    with pytest.raises(DataError, match="an object has the member `sock_bufsize` twice"):
        reading("iperf3", "x", text.replace('"sock_bufsize":\t0', '"sock_bufsize":\t8', 1))


def test_an_end_of_iperf3_says_nothing_that_only_the_other_knows() -> None:
    tests = reading("iperf3", "iperf3-server.json").runs
    assert [run.levels["workload"] for run in tests] == ["iperf3 TCP", "iperf3 UDP"]
    received = first_values(tests[0])
    assert received["throughput_received"] > 0
    assert not {"throughput_sent", "cpu_remote"} & received.keys()
    sent = first_values(reading("iperf3", "iperf3-udp.json").runs[0])
    assert {"jitter_received", "lost_packets_received", "packets_sent"} <= sent.keys()
    assert not {"jitter_sent", "lost_packets_sent"} & sent.keys()
    text = (FILES / "iperf3.json").read_text(encoding="utf-8")
    reverse = json.loads(text)
    for stream in reverse["end"]["streams"]:
        stream["sender"] |= {"min_rtt": 0, "mean_rtt": 0, "max_rtt": 0}
    assert not any("rtt" in metric for metric in statistics(reading("iperf3", "x", json.dumps(reverse))))


def test_a_test_of_iperf3_that_was_ended_is_a_failed_run(tmp_path: Path) -> None:
    run = reading("iperf3", "iperf3-ended.json").runs[0]
    assert run.exit_code == 1
    assert sum(section.metric == "throughput" for section in run.sections) == 2
    refused = {"start": {"version": "3"}, "intervals": [], "end": {}, "error": "unable to connect to server"}
    (tmp_path / "f").write_text(json.dumps(refused), encoding="utf-8")
    with pytest.raises(DataError, match="no value in the file; a test failed: unable to connect to server"):
        importer("iperf3").import_file(tmp_path / "f", tmp_path / "r")


def test_cyclictest_has_no_quantiles_without_a_histogram_or_beyond_its_end() -> None:
    plain = reading("cyclictest", "cyclictest-plain.json")
    assert [set(first_values(run)) for run in plain.runs] == [{"cycles", "latency_mean", "latency_max"}] * 2
    found = reading("cyclictest", "cyclictest-all.txt")
    assert [run.worker_label for run in found.runs] == ["thread 0", "thread 1"]
    values = first_values(found.runs[0])
    assert values["latency_p50"] == 74_000.0
    assert "latency_p99" not in values
    published = {(each.statistic): each.value for each in found.published}
    assert published["p99 at most of thread 0"] == 2_939_000.0


def test_the_unit_of_cyclictests_text_may_be_given() -> None:
    line = "T: 0 (10522) P:80 I:1000 C:    300 Min:  34000 Act: 79000 Avg: 44400 Max: 1402300\n"
    assert first_values(reading("cyclictest", "x", line, unit="ns").runs[0])["latency_max"] == 1_402_300.0
    assert "taken as us" in reading("cyclictest", "x", line).notes[-1]


def test_sysbench_launches_in_one_file_are_runs_of_their_own() -> None:
    found = reading("sysbench", "sysbench-twice.txt")
    assert [first_values(run)["events"] for run in found.runs] == [2515.0, 3470.0]
    text = (FILES / "sysbench-twice.txt").read_text(encoding="utf-8")
    between = text.replace("Latency (ms):", "[ 1s ] Checkpoint report:\nLatency (ms):", 1)
    with pytest.raises(DataError, match="run sysbench without"):
        reading("sysbench", "x", between)


def test_go_results_that_a_program_broke_in_two_are_counted() -> None:
    lines = ["BenchmarkA-2 20 5 ns/op", "BenchmarkB-2 \thello", "      20\t 7 ns/op", "FAIL\tm/sub\t0.1s"]
    found = reading("go-bench", "x", "\n".join(lines))
    assert [first_values(run) for run in found.runs] == [{"time": 5.0}]
    assert found.notes == [
        "packages that failed, whose benchmarks may be incomplete: 1",
        "results broken in two by what the program printed, left out: 1",
    ]


@pytest.mark.parametrize(
    "pack",
    [
        gzip.compress,
        lambda content: codecs.BOM_UTF8 + content,
        lambda content: content.decode().encode("utf-16"),
        lambda content: codecs.BOM_UTF16_BE + content.decode().encode("utf-16-be"),
        lambda content: content.replace(b"\n", b"\r\n"),
    ],
    ids=["gzip", "utf-8", "utf-16", "utf-16-be", "crlf"],
)
@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("k6", "k6.json"),
        ("vegeta", "vegeta.json"),
        ("cyclictest", "cyclictest.json"),
        ("benchexec", "benchexec.xml"),
        ("wrk", "wrk2.txt"),
        ("fio", "fioraw_clat.1.log"),
    ],
)
def test_packed_files_and_other_encodings_are_read(
    form: str, name: str, pack: object, tmp_path: Path
) -> None:
    assert callable(pack)
    (tmp_path / name).write_bytes(pack((FILES / name).read_bytes()))
    importer(form).import_file(tmp_path / name, tmp_path / "r")
    importer(form).import_file(FILES / name, tmp_path / "same")
    values = [read_measurements(tmp_path / each)["value"].to_pylist() for each in ("r", "same")]
    assert values[0] == values[1]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (gzip.compress(b"x" * 100, mtime=0)[:-9], "gzip that was cut off"),
        (b"\x1f\x8b" + b"x" * 20, "damaged gzip"),
        (b"\xff\xfex", "not UTF-16"),
    ],
    ids=["cut off", "damaged", "utf-16"],
)
def test_a_damaged_packing_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        unpacked(Source(Path("x"), content, "a file"))
