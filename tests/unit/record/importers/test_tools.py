"""Importers of tools that measure a system or put load on one, on files that the tools wrote."""

from __future__ import annotations

import csv
import json
import re
import statistics
from collections import Counter, defaultdict
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import DataError, UsageError
from steelyard.record.importers.foreign import ForeignFile, Source
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.interface import IMPORTERS, importer
from steelyard.record.importers.reading import ReadOptions
from steelyard.record.importers.tools.summary import BOUNDS_NOTE, NOTE, OF_A_RUN
from steelyard.record.provenance import read_provenance
from steelyard.record.published import read_published
from steelyard.record.seal import altered_tables

FILES: Final = Path(__file__).resolve().parents[3] / "fixtures/tool_files"
FORM_OF: Final = {
    "perf-stat": [
        "perf-single.csv",
        "perf-repeated.csv",
        "perf-interval.csv",
        "perf-cpus.csv",
        "perf-interval.json",
        "perf-append.csv",
    ],
    "hdr-histogram": ["hdr.hlog", "hdr.hgrm"],
    "k6": ["k6.json", "k6.csv", "k6-summary.json", "k6-export.json", "k6-new.json"],
    "wrk": ["wrk.txt", "wrk2.txt", "wrk-script.txt", "wrk-slow.txt"],
    "vegeta": [
        "vegeta.json",
        "vegeta.csv",
        "vegeta-report.json",
        "vegeta-refused.json",
        "vegeta-failures.json",
    ],
    "autocannon": ["autocannon.json", "autocannon-warmup.json"],
    "fio": [
        "fio.json",
        "fio-plus.json",
        "fio_clat.1.log",
        "fioraw_clat.1.log",
        "fio-status.json",
        "fio-ended.json",
        "fio-mixed.json",
    ],
    "iperf3": [
        "iperf3.json",
        "iperf3-udp.json",
        "iperf3-streams.json",
        "iperf3-server.json",
        "iperf3-ended.json",
    ],
    "schbench": ["schbench.txt"],
    "cyclictest": [
        "cyclictest.json",
        "cyclictest-hist.txt",
        "cyclictest-plain.json",
        "cyclictest-all.txt",
    ],
    "rtla": ["rtla-timerlat.txt", "rtla-osnoise.txt"],
    "osu": ["osu-latency.txt", "osu-allreduce.txt", "osu-tails.txt"],
    "imb": ["imb.txt"],
    "netpipe": ["netpipe.out", "netpipe-stdout.txt", "netpipe-buffers.txt"],
    "benchexec": ["benchexec.xml", "benchexec.csv"],
    "stress-ng": ["stress-ng.yaml"],
    "sysbench": ["sysbench-cpu.txt", "sysbench-memory.txt", "sysbench-fileio.txt", "sysbench-twice.txt"],
}
NAMES: Final = [(form, name) for form, names in FORM_OF.items() for name in names]
READ_ANYTHING: Final = {"csv", "messages"}
"""Formats that `steelyard open` tries last, because they read tables of others too."""
Values = dict[str, list[tuple[float, str]]]


@cache
def recognisers() -> dict[str, ForeignImporter]:
    named = {name: importer(name) for name in IMPORTERS.names() if name not in READ_ANYTHING}
    return {name: each for name, each in named.items() if isinstance(each, ForeignImporter)}


def source(name: str, content: bytes | None = None) -> Source:
    path = FILES / name
    return Source(path, path.read_bytes() if content is None else content, "a file")


def reading(form: str, name: str, content: bytes | str | None = None) -> ForeignFile:
    found = importer(form)
    assert isinstance(found, ForeignImporter)
    text = content.encode() if isinstance(content, str) else content
    return found.read(source(name, text), ReadOptions())


def values_of(found: ForeignFile, **levels: str) -> Values:
    """Give value and unit of every metric of the runs of a cell."""
    values: Values = defaultdict(list)
    for run in found.runs:
        if levels.items() <= run.levels.items():
            for section in run.sections:
                values[section.metric].append((section.value, section.unit))
    return values


def published_of(found: ForeignFile, **levels: str) -> dict[tuple[str, str], float]:
    return {
        (each.metric, each.statistic): each.value
        for each in found.published
        if levels.items() <= each.levels.items()
    }


def document(name: str) -> Any:
    return json.loads((FILES / name).read_text(encoding="utf-8"), parse_float=Decimal)


def lines_of(name: str) -> list[str]:
    return (FILES / name).read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(("form", "name"), NAMES)
def test_a_file_is_read_by_the_importer_of_its_tool_alone(form: str, name: str) -> None:
    readers = []
    for other, found in recognisers().items():
        try:
            content = found.read(source(name), ReadOptions())
        except (DataError, UsageError):
            continue
        readers += [other] if content.holds_values else []
    assert readers == [form]


def test_every_file_is_listed_with_its_tool() -> None:
    kept = {path.name for path in FILES.iterdir()} - {"source.toml"}
    assert kept == {name for _, name in NAMES}
    assert all(path.stat().st_size < 30_000 for path in FILES.iterdir())


@pytest.mark.parametrize(("form", "name"), NAMES)
def test_statistics_are_published_and_no_samples(form: str, name: str) -> None:
    found = reading(form, name)
    sampled = {section.metric for run in found.runs for section in run.sections}
    assert sampled
    assert not sampled & {each.metric for each in found.published}
    for run in found.runs:
        single = Counter(
            section.metric
            for section in run.sections
            if section.metric.rpartition("_")[2] in OF_A_RUN and not section.metric.endswith("_of_interval")
        )
        assert all(count == 1 for count in single.values()), single
    assert (NOTE in found.notes) == any(
        each.statistic.split()[0] in OF_A_RUN for each in found.published
    ) or (BOUNDS_NOTE in found.notes)


@pytest.mark.parametrize("form", FORM_OF)
def test_several_files_become_one_sealed_result(form: str, tmp_path: Path) -> None:
    first = FILES / FORM_OF[form][0]
    copy = tmp_path / first.name
    copy.write_bytes(first.read_bytes())
    found = importer(form)
    assert isinstance(found, ForeignImporter)
    summary = found.import_files([first, copy], tmp_path / "r")
    assert summary.runs == 2 * len([run for run in reading(form, first.name).runs if run.sections])
    assert altered_tables(tmp_path / "r") == []
    assert read_provenance(tmp_path / "r").origins[0].facts["tool"]
    expected = bool(reading(form, first.name).published)
    assert (read_published(tmp_path / "r") is not None) == expected


def test_perf_stat_names_units_scopes_and_what_was_not_counted() -> None:
    single = values_of(reading("perf-stat", "perf-single.csv"))
    rows = [line.split(",") for line in lines_of("perf-single.csv") if line[:1].isdigit()]
    assert single["task-clock"] == [(float(Decimal(rows[0][0]) * 10**6), "ns")]
    assert single["page-faults"] == [(float(rows[3][0]), "count")]
    assert "`cycles` is not supported, left out: 1" in reading("perf-stat", "perf-single.csv").notes
    cpus = reading("perf-stat", "perf-cpus.csv")
    assert [run.levels["scope"] for run in cpus.runs] == ["CPU0", "CPU1"]
    interval = reading("perf-stat", "perf-interval.csv")
    switches = [s.iteration for s in interval.runs[0].sections if s.metric == "context-switches"]
    assert switches == [1, 4]
    assert "`context-switches` is not counted, left out: 2" in interval.notes
    lines = [json.loads(line) for line in lines_of("perf-interval.json") if line.startswith("{")]
    counted = [float(each["counter-value"]) for each in lines if each["counter-value"][0].isdigit()]
    found = values_of(reading("perf-stat", "perf-interval.json"))
    assert sorted(v / (10**6 if u == "ns" else 1) for pair in found.values() for v, u in pair) == sorted(
        counted
    )


def test_perf_stat_over_launches_gives_means_and_their_error() -> None:
    found = reading("perf-stat", "perf-repeated.csv")
    assert set(values_of(found)) == {
        f"{name}_mean" for name in ("task-clock", "context-switches", "cpu-migrations", "page-faults")
    }
    fields = next(line.split(",") for line in lines_of("perf-repeated.csv") if ",task-clock," in line)
    assert published_of(found)["task-clock", "mean"] == float(Decimal(fields[0]) * 10**6)
    assert published_of(found)["task-clock", "relative standard error"] == float(fields[3].rstrip("%"))


def test_perf_stat_reads_sockets_and_other_separators() -> None:
    text = "S0,4,120.5,msec,cpu-clock,1,100.00,1.000,CPUs utilized\nS1,4,7,,context-switches,5,50.00,,\n"
    found = reading("perf-stat", "x", text)
    assert [run.levels["scope"] for run in found.runs] == ["S0", "S1"]
    assert "perf scaled its value" in found.notes[0]
    again = reading("perf-stat", "x", text.replace(",", ";"))
    assert values_of(again) == values_of(found)


def test_hdr_histogram_log_gives_the_counts_and_quantiles_of_its_histograms() -> None:
    found = reading("hdr-histogram", "hdr.hlog")
    assert [run.levels["tag"] for run in found.runs] == ["reads", "writes"]
    stated = [line.split(",") for line in lines_of("hdr.hlog") if line.startswith("Tag=reads")]
    reads = values_of(found, tag="reads")
    assert reads["recorded"] == [(400.0, "count")] * 3
    for (value, _), row in zip(reads["value_max_of_interval"], stated, strict=True):
        largest = float(Decimal(row[3]) * 1000)
        # Three significant digits: the largest value that counts as equal is up to 1/1024 larger.
        assert largest <= value <= largest * (1 + 1 / 1024)
    # SOURCE: getValueAtPercentile of hdr-histogram-js for the three histograms of `reads` added up.
    assert published_of(found, tag="reads")["value", "p50 at most"] == 260_735
    assert published_of(found, tag="reads")["value", "p99 at most"] == 1_177_599


def test_hdr_histogram_distribution_bounds_its_quantiles() -> None:
    published = published_of(reading("hdr-histogram", "hdr.hgrm"))
    rows = [line.split() for line in lines_of("hdr.hgrm") if re.match(r"\s+\d", line)]
    at = next(place for place, row in enumerate(rows) if float(row[1]) >= 0.5)
    assert published["value", "p50 at most"] == float(rows[at][0])
    assert published["value", "p50 at least"] == float(rows[at - 1][0])
    assert published["value", "mean"] == 700.373
    given = importer("hdr-histogram")
    assert isinstance(given, ForeignImporter)
    in_us = given.read(source("hdr.hgrm"), ReadOptions(unit="us"))
    assert values_of(in_us)["value_mean"] == [(700_373.0, "ns")]


def test_k6_trends_are_samples_counters_are_summed_and_rates_are_shares() -> None:
    rows = list(csv.DictReader(lines_of("k6.csv")))
    found = reading("k6", "k6.csv")
    target = values_of(found, workload="http://127.0.0.1:18080/")
    durations = [
        float(Decimal(r["metric_value"]) * 10**6) for r in rows if r["metric_name"] == "http_req_duration"
    ]
    assert [value for value, _ in target["http_req_duration"]] == durations
    assert target["http_reqs"] == [(12.0, "count")]
    assert target["http_req_failed_share"] == [(0.0, "ratio")]
    sent = sum(float(row["metric_value"]) for row in rows if row["metric_name"] == "data_sent")
    assert values_of(found, workload="test")["data_sent"] == [(sent, "bytes")]
    points = [json.loads(line) for line in lines_of("k6.json")]
    expected = sum(p["type"] == "Point" and p["metric"] == "http_req_duration" for p in points)
    assert len(values_of(reading("k6", "k6.json"))["http_req_duration"]) == expected


@pytest.mark.parametrize("name", ["k6-summary.json", "k6-export.json", "k6-new.json"])
def test_k6_summaries_of_every_form_give_the_same_kinds_of_numbers(name: str) -> None:
    found = reading("k6", name)
    assert values_of(found)["http_reqs"] == [(12.0, "count")]
    assert {"mean", "min", "p50", "max", "p90", "p95"} == {
        statistic for metric, statistic in published_of(found) if metric == "http_req_duration"
    }
    metrics = document(name).get("metrics") or document(name)["results"]["metrics"]
    one = (
        metrics["http_req_duration"]
        if isinstance(metrics, dict)
        else next(each for each in metrics if each["name"] == "http_req_duration")
    )
    average = one.get("values", one)["avg"]
    assert published_of(found)["http_req_duration", "mean"] == float(average * 10**6)


def test_wrk_totals_are_values_and_its_percentiles_are_published() -> None:
    found = reading("wrk", "wrk.txt")
    assert found.runs[0].levels == {"workload": "http://127.0.0.1:18080/", "threads": "2", "connections": "8"}
    text = "\n".join(lines_of("wrk.txt"))
    requests, rate = re.search(r"(\d+) requests in", text), re.search(r"Requests/sec: +([\d.]+)", text)
    assert requests is not None
    assert rate is not None
    assert values_of(found)["requests"] == [(float(requests[1]), "count")]
    assert values_of(found)["requests_per_s"] == [(float(rate[1]), "1/s")]
    printed = {section.metric: section.printed for section in found.runs[0].sections}
    assert printed["transferred"] == "6.35MB"
    assert published_of(found)["latency", "p50"] == 221_000.0
    assert published_of(found)["latency", "p99"] == 44_780_000.0


def test_wrk2_has_bounds_from_its_spectrum_and_two_launches_are_two_runs() -> None:
    found = reading("wrk", "wrk2.txt")
    assert found.facts["tool"] == "wrk2"
    assert published_of(found)["latency", "p50 at most"] == 1_951_000.0
    assert ("latency", "p50") not in published_of(found)
    assert values_of(found)["recorded"] == [(597.0, "count")]
    twice = "\n".join([*lines_of("wrk.txt"), *lines_of("wrk.txt")])
    assert len(reading("wrk", "x", twice).runs) == 2
    errors = (
        twice + "\n  Socket errors: connect 1, read 2, write 0, timeout 4\n  Non-2xx or 3xx responses: 7\n"
    )
    last = {section.metric: section.value for section in reading("wrk", "x", errors).runs[1].sections}
    assert (last["errors_connect"], last["errors_timeout"], last["errors_status"]) == (1, 4, 7)


def test_vegeta_requests_are_iterations_in_both_forms() -> None:
    requests = [json.loads(line) for line in lines_of("vegeta.json")]
    for name in ("vegeta.json", "vegeta.csv"):
        found = reading("vegeta", name)
        assert found.runs[0].levels == {"workload": "home: GET http://127.0.0.1:18080/"}
        latencies = values_of(found)["latency"]
        assert latencies == [(float(each["latency"]), "ns") for each in requests]


def test_vegeta_requests_that_failed_are_counted_and_no_latency() -> None:
    lines = lines_of("vegeta.json")
    lines[3] = lines[3].replace('"code":200', '"code":500')
    found = reading("vegeta", "x", "\n".join(lines))
    assert [s.iteration for s in found.runs[0].sections if s.metric == "latency"] == [1, 2, 3, *range(5, 21)]
    assert found.notes == ["requests that failed with status 500, left out: 1"]


def test_vegeta_reports_publish_quantiles_and_bounds_of_buckets() -> None:
    found, content = reading("vegeta", "vegeta-report.json"), document("vegeta-report.json")
    assert published_of(found)["latency", "p99"] == float(content["latencies"]["99th"])
    assert published_of(found)["latency", "p50 at most"] == 1_000_000.0
    assert values_of(found)["latency_p50"] == [(float(content["latencies"]["50th"]), "ns")]


def test_autocannon_keeps_every_percentile_as_published() -> None:
    found, content = reading("autocannon", "autocannon.json"), document("autocannon.json")
    assert published_of(found)["latency", "p99.9"] == float(content["latency"]["p99_9"]) * 10**6
    assert values_of(found)["requests"] == [(float(content["requests"]["total"]), "count")]
    assert "requests_per_s_p99" not in values_of(found)


def test_fio_jobs_are_workers_and_directions_are_cells() -> None:
    found, content = reading("fio", "fio.json"), document("fio.json")
    read, write = content["jobs"][0]["read"], content["jobs"][0]["write"]
    assert values_of(found, direction="read")["iops"] == [(float(read["iops"]), "1/s")]
    assert values_of(found, direction="write")["clat_mean"] == [(float(write["clat_ns"]["mean"]), "ns")]
    assert found.facts["version"] == "fio-3.42"
    two = reading("fio", "fio-plus.json")
    assert [run.worker_label for run in two.runs] == ["job 1", "job 2"]
    assert len({each.statistic for each in two.published if each.metric == "lat"}) == 2 * 4


def test_fio_bins_enclose_the_values_of_its_percentiles() -> None:
    published = published_of(reading("fio", "fio-plus.json"))
    bins = document("fio-plus.json")["jobs"][0]["read"]["clat_ns"]["bins"]
    counted = sorted((int(middle), count) for middle, count in bins.items())
    values = [middle for middle, count in counted for _ in range(count)]
    for quantile in (0.5, 0.9, 0.99):
        middle = values[round(len(values) * quantile) - 1]
        name = f"p{100 * quantile:g}"
        low, high = (published["clat", f"{name} {word} of job 1"] for word in ("at least", "at most"))
        assert low <= middle <= high
        assert high - low <= middle / 32


def test_fio_logs_are_operations_or_means_of_intervals() -> None:
    raw = [line.split(", ") for line in lines_of("fioraw_clat.1.log")]
    found = reading("fio", "fioraw_clat.1.log")
    assert values_of(found, direction="read")["clat"] == [(float(r[1]), "ns") for r in raw if r[2] == "0"]
    assert values_of(found, direction="write")["clat"] == [(float(r[1]), "ns") for r in raw if r[2] == "1"]
    averaged = reading("fio", "fio_clat.1.log")
    assert set(values_of(averaged)) == {"clat_mean_of_interval"}
    assert "log_avg_msec" in averaged.notes[0]
    bandwidth = reading("fio", "job_bw.2.log", "10, 400, 0, 0, 0\n20, 500, 0, 0, 0\n")
    assert values_of(bandwidth)["bandwidth"] == [(400.0, "KiB/s"), (500.0, "KiB/s")]
    assert bandwidth.runs[0].worker_label == "job 2"


def test_fio_remarks_before_its_json_are_passed_over() -> None:
    text = "fio: this platform does not support process shared mutexes\n" + "\n".join(lines_of("fio.json"))
    assert values_of(reading("fio", "x", text)) == values_of(reading("fio", "fio.json"))


def test_iperf3_intervals_are_iterations_and_totals_are_of_the_run() -> None:
    found, content = reading("iperf3", "iperf3.json"), document("iperf3.json")
    rates = [float(each["sum"]["bits_per_second"]) for each in content["intervals"]]
    assert values_of(found)["throughput"] == [(rate, "bit/s") for rate in rates]
    received = content["end"]["sum_received"]["bits_per_second"]
    assert values_of(found)["throughput_received"] == [(float(received), "bit/s")]
    assert found.runs[0].levels["streams"] == "2"
    content["intervals"][0]["sum"]["omitted"] = True
    omitted = reading("iperf3", "x", json.dumps(content, default=float))
    phases = [s.phase for s in omitted.runs[0].sections if s.metric == "throughput"]
    assert phases == ["warmup", "measure", "measure", "measure"]
    content["error"] = "the server has terminated"
    failed = reading("iperf3", "x", json.dumps(content, default=float))
    assert [run.exit_code for run in failed.runs] == [1]
    assert failed.notes[0] == "a test failed: the server has terminated"


def test_schbench_publishes_its_last_report() -> None:
    found = reading("schbench", "schbench.txt")
    last = [line for line in lines_of("schbench.txt") if "99.0th" in line][-2:]
    expected = [float(re.sub(r".*th: (\d+).*", r"\1", line)) for line in last]
    published = published_of(found)
    assert [published[f"{name}_latency", "p99"] / 1000 for name in ("wakeup", "request")] == expected
    assert len(values_of(found)["requests_per_s_current"]) == 2
    assert values_of(found)["requests_per_s"] == [(419.75, "1/s")]


def test_cyclictest_forms_agree_on_each_thread() -> None:
    as_json, text = reading("cyclictest", "cyclictest.json"), reading("cyclictest", "cyclictest-hist.txt")
    for found in (as_json, text):
        assert [run.worker_label for run in found.runs] == ["thread 0", "thread 1"]
        assert values_of(found)["cycles"] == [(907.0, "count"), (1000.0, "count")]
    threads = document("cyclictest.json")["thread"]
    values = [int(k) for k, count in threads["0"]["histogram"].items() for _ in range(count)]
    median = sorted([*values, *[10**6] * (threads["0"]["cycles"] - len(values))])[(907 + 1) // 2 - 1]
    for found in (as_json, text):
        published = published_of(found)
        assert published["latency", "p50 at least of thread 0"] == median * 1000
        assert published["latency", "p50 at most of thread 0"] == (median + 1) * 1000
        # 41 of 907 values lie beyond the histogram; the largest value is known.
        assert published["latency", "p99 at most of thread 0"] == threads["0"]["max"] * 1000


def test_cyclictest_last_lines_tell_priority_and_interval() -> None:
    line = "T: 0 (10522) P:80 I:1000 C:    300 Min:     34 Act:   79 Avg:  444 Max:   14023\n"
    found = reading("cyclictest", "x", "# /dev/cpu_dma_latency set to 0us\n" + line)
    assert found.runs[0].levels == {"workload": "cyclictest", "priority": "80", "interval_us": "1000"}
    assert values_of(found)["latency_max"] == [(14_023_000.0, "ns")]


def test_rtla_columns_are_contexts_and_cpus() -> None:
    found = reading("rtla", "rtla-timerlat.txt")
    assert [(run.levels["context"], run.worker_label) for run in found.runs] == [
        ("IRQ", "CPU 000"),
        ("Thr", "CPU 000"),
        ("IRQ", "CPU 001"),
        ("Thr", "CPU 001"),
    ]
    published = published_of(found, context="Thr")
    assert published["latency", "p50 at most of CPU 000"] == 3000.0
    assert published["latency", "p99.9 at most of CPU 000"] == 41_000.0
    noise = published_of(reading("rtla", "rtla-osnoise.txt"))
    assert noise["latency", "p90 at least of CPU 001"] == 10_000.0
    assert noise["latency", "p90 at most of CPU 001"] == 20_000.0


def test_osu_columns_are_published_for_each_size() -> None:
    found = reading("osu", "osu-allreduce.txt")
    assert [run.levels["size_bytes"] for run in found.runs] == [str(2**power) for power in range(2, 11)]
    assert published_of(found, size_bytes="8") == {
        ("latency", "mean"): 600.0,
        ("latency", "min"): 480.0,
        ("latency", "max"): 720.0,
    }
    assert found.facts["version"] == "7.4"
    assert published_of(reading("osu", "osu-tails.txt"), size_bytes="1").keys() == {
        ("latency", statistic) for statistic in ("mean", "p50", "p90", "p99")
    }
    rates = "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n# [ pairs: 1 ] [ window size: 64 ]\n"
    rates += "# Datatype: MPI_CHAR.\n# Size                  MB/s        Messages/s\n1   8.40   8396636.10\n"
    assert values_of(reading("osu", "x", rates), pairs="1") == {
        "bandwidth_mean": [(8.4, "MB/s")],
        "message_rate_mean": [(8396636.1, "1/s")],
    }


def test_imb_benchmarks_are_cells_with_their_processes() -> None:
    found = reading("imb", "imb.txt")
    assert Counter(run.levels["workload"] for run in found.runs) == {
        "PingPong": 10,
        "Allreduce": 8,
        "Barrier": 1,
    }
    assert {run.levels["processes"] for run in found.runs} == {"2"}
    cell = published_of(found, workload="Allreduce", size_bytes="4")
    assert cell == {("latency", "min"): 460.0, ("latency", "max"): 640.0, ("latency", "mean"): 550.0}


def test_netpipe_file_and_print_agree_in_form() -> None:
    for name in ("netpipe.out", "netpipe-stdout.txt"):
        found = reading("netpipe", name)
        assert {run.levels["workload"] for run in found.runs} == {"NetPIPE"}
        assert {unit for _, unit in values_of(found)["bandwidth_max"]} == {"Mibit/s"}
    assert values_of(reading("netpipe", "netpipe.out"), size_bytes="1")["latency_shortest_mean"] == [
        (13_280.0, "ns")
    ]
    with pytest.raises(DataError, match=r"line 2: 8 bytes in 0\.1 s are not 9 Mbit/s"):
        reading("netpipe", "x", "1 0.574398 0.00001328\n8 9 0.1\n")


def test_benchexec_runs_are_runs_with_their_units() -> None:
    found = reading("benchexec", "benchexec.xml")
    assert [run.levels["run_set"] for run in found.runs] == ["plain", "plain"]
    assert values_of(found)["memory"] == [(507904.0, "bytes"), (524288.0, "bytes")]
    table = reading("benchexec", "benchexec.csv")
    assert values_of(table, run_set="plain.files")["cputime"] == values_of(found)["cputime"]
    text = "\n".join(lines_of("benchexec.xml"))
    killed = text.replace('title="status" value="unknown"', 'title="status" value="TIMEOUT"', 1)
    assert [run.is_signalled for run in reading("benchexec", "x", killed).runs] == [True, False]
    failed = text.replace('title="status" value="unknown"', 'title="status" value="ERROR (3)"', 1)
    assert [run.exit_code for run in reading("benchexec", "x", failed).runs] == [3, 0]
    entity = text.replace("<result ", '<!DOCTYPE x [<!ENTITY a "b">]><result ', 1)
    with pytest.raises(DataError, match="defines entities"):
        reading("benchexec", "x", entity)


def test_stress_ng_stressors_are_cells() -> None:
    found = reading("stress-ng", "stress-ng.yaml")
    text = "\n".join(lines_of("stress-ng.yaml"))
    names = re.findall(r"stressor: (\S+)", text)
    assert [run.levels["workload"] for run in found.runs] == names
    operations = [float(each) for each in re.findall(r"^ {6}bogo-ops: (\d+)", text, re.MULTILINE)]
    assert [value for value, _ in values_of(found)["operations"]] == operations
    walls = [
        float(Decimal(each) * 10**9)
        for each in re.findall(r"^ {6}wall-clock-time: ([\d.]+)", text, re.MULTILINE)
    ]
    assert [value for value, _ in values_of(found)["wall"]] == walls
    assert found.notes == ["numbers of single instances, which the totals include, left out: 3"]


def test_sysbench_tests_are_told_apart_and_buckets_bound_quantiles() -> None:
    found = reading("sysbench", "sysbench-cpu.txt")
    assert found.runs[0].levels == {"workload": "sysbench cpu", "threads": "2"}
    assert [value for value, _ in values_of(found)["events_per_s"]] == [712.97, 718.41]
    buckets = [re.fullmatch(r"\s+([\d.]+) \|\**\s+(\d+)", line) for line in lines_of("sysbench-cpu.txt")]
    values = [float(each[1]) for each in buckets if each for _ in range(int(each[2]))]
    published, median = published_of(found), statistics.median_low(values) * 10**6
    assert published["latency", "p50 at least"] <= median <= published["latency", "p50 at most"]
    assert published["latency", "p50 at most"] < median * 1.02
    assert published["latency", "p95"] == 20_370_000.0
    memory = values_of(reading("sysbench", "sysbench-memory.txt"), workload="sysbench memory")
    assert memory["operations"][0][1] == "count"
    line = "[ 1s ] thds: 2 tps: 3.5 qps: 70.0 (r/w/o: 49.0/14.0/7.0) lat (ms,95%): 250.7 err/s: 0.1"
    database = "\n".join(line if "[ 1s ]" in each else each for each in lines_of("sysbench-cpu.txt"))
    asked = values_of(reading("sysbench", "x", database.replace("Prime numbers limit", "SQL statistics")))
    assert asked["reads_per_s"] == [(49.0, "1/s")]
    assert asked["errors_per_s"] == [(0.1, "errors/s")]
    files = values_of(reading("sysbench", "sysbench-fileio.txt"), workload="sysbench fileio")
    assert {"reads_per_s", "written", "latency_p95"} <= files.keys()


@pytest.mark.parametrize(
    ("form", "text", "part"),
    [
        ("perf-stat", "1.0,msec,task-clock\n", "line 1: `1.0,msec,task-clock` is not an event"),
        ("perf-stat", '{"counter-value": "x", "unit": "", "event": "e", "pcnt-running": 1}\n', "line 1: `x`"),
        ("perf-stat", '{"counter-value": "1", "event": "e"}\n', "line 1, at the top: no member `unit`"),
        ("hdr-histogram", "Tag=a,1.0,1.0,1.0,HISTAAAA\n", "line 1: the histogram is damaged"),
        (
            "hdr-histogram",
            "Value Percentile TotalCount 1/(1-Percentile)\n5 0.1 3 1\n4 0.2 4 1\n",
            "line 3: value",
        ),
        (
            "k6",
            "metric_name,timestamp\n",
            "line 1: the heading does not begin with metric_name,timestamp,metric_value",
        ),
        (
            "k6",
            '{"root_group": {}, "metrics": {"vus": {"value": "x"}}}',
            "at `metrics.vus.value`: `x` is not",
        ),
        (
            "wrk",
            "Running 1s test @ u\n  1 threads and 1 connections\n",
            "no line `Requests/sec:`; it was cut off",
        ),
        (
            "wrk",
            "Running 1s test @ u\n  1 threads and 1 connections\nx\n",
            "line 3: `x` is not a line of wrk",
        ),
        ("autocannon", '{"url": "u", "connections": 1}', "no member `pipelining`"),
        ("vegeta", "1,2,3\n", "line 1: 3 fields; expected 12"),
        ("vegeta", '{"latencies": {}, "requests": 1}', "no member `duration`"),
        ("fio", '{"fio version": "fio-3.42", "jobs": [{}]}', r"at `jobs\[0\]`: no member `jobname`"),
        ("iperf3", '{"start": {}, "end": {}, "intervals": []}', "at `start`: no member `version`"),
        ("schbench", "Wakeup Latencies percentiles (usec) runtime 2 (s)\nx\n", "line 2: `x` is not a line"),
        ("cyclictest", "# Histogram\n000001 000002\n", "the file was cut off|it was cut off"),
        (
            "rtla",
            "# RTLA timerlat histogram\n# Time unit is microseconds (us)\nIndex IRQ-000\n0 1 2\n",
            "line 4: 3 fields",
        ),
        ("osu", "# OSU MPI Latency Test v7.4\n# Size  Latency (us)\n1 x\n", "line 3: `x` should be a number"),
        (
            "imb",
            "# Intel(R) MPI Benchmarks 2021, MPI-1 part\n# Benchmarking P\n#bytes t[usec]\n1 2 3\n",
            "line 4: 3 fields",
        ),
        ("benchexec", "<result tool='a'><run/></result>", "run 1: the run has no name"),
        ("benchexec", "<result tool='a'>", "line 1, column 17: not XML: no element found"),
        ("benchexec", "tool\ta\n", "line 1: the lines `tool`, `run set`"),
        ("stress-ng", "system-info:\n  a\n", "line 2: `a` is not a line of stress-ng's YAML"),
        ("stress-ng", "system-info:\n  cpus: 2\n", "run stress-ng with `--metrics`"),
        ("sysbench", "sysbench 1.0.20\nNumber of threads: 1\n", "line 2: the lines below `Latency"),
    ],
)
def test_damage_is_named_with_its_place(form: str, text: str, part: str) -> None:
    with pytest.raises(
        DataError, match=re.escape(part) if "|" not in part and "\\" not in part else part
    ) as caught:
        reading(form, "x", text)
    assert str(FILES / "x") in caught.value.message
    assert (caught.value.hint or "").startswith("expected ")


@pytest.mark.parametrize(("form", "name"), [(form, names[0]) for form, names in FORM_OF.items()])
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_cut_and_overwritten_files_are_read_or_refused(form: str, name: str, data: st.DataObject) -> None:
    content = bytearray((FILES / name).read_bytes())
    words = [match.span() for match in re.finditer(rb"[\w.<>%-]+", content)]
    for _ in range(data.draw(st.integers(0, 3))):
        first, _ = data.draw(st.sampled_from(words))
        odd = data.draw(
            st.sampled_from([b"", b"-1", b"nan", b"1e999", b"9" * 30, b"\xff", b"null", b"[]", b"%", b"x"])
        )
        content[first : first + len(odd)] = odd
    end = data.draw(st.integers(0, len(content)))
    try:
        found = reading(form, name, bytes(content[:end]))
    except DataError:
        return
    for run in found.runs:
        for section in run.sections:
            assert abs(section.value) < 1e120
            assert section.metric
            assert section.unit
