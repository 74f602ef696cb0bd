"""Files as tools write them on odd days: other units, locales, names and endings, damage, failed runs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from steelyard.errors import DataError
from steelyard.record.importers.foreign import Source, unpacked
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.interface import importer
from steelyard.record.importers.reading import ReadOptions

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.record.importers.foreign import ForeignFile

NAN: Final = float("nan")
MS: Final = ReadOptions(unit="ms")


@dataclass(frozen=True)
class Odd:
    """A file with what it says, or why it is refused."""

    form: str
    name: str
    content: str | bytes
    values: dict[str, list[float]] = field(default_factory=dict)
    """Of each metric, in order; with the workload before a bar where there are several."""
    refused: str = ""
    noted: str = ""
    unit: str = "ns"
    options: ReadOptions = field(default_factory=ReadOptions)

    def __str__(self) -> str:
        return f"{self.form}-{self.name}"


def hyperfine(*results: dict[str, Any]) -> str:
    return json.dumps({"results": list(results)})


def command(name: str = "c", times: Any = (0.5, 0.25), **more: Any) -> dict[str, Any]:
    return {"command": name, "mean": 0.375, "stddev": None, "user": 0.1, "times": times, **more}


def google(*entries: dict[str, Any]) -> str:
    return json.dumps({"context": {"library_version": "v1.9"}, "benchmarks": list(entries)})


def repetition(name: str = "a", real: float = 2.0, unit: str = "us", **more: Any) -> dict[str, Any]:
    kind = {"name": name, "run_name": name, "run_type": "iteration", "threads": 1, "iterations": 10}
    return {**kind, "real_time": real, "cpu_time": 1.0, "time_unit": unit, **more}


def jmh(*entries: dict[str, Any]) -> str:
    return json.dumps(list(entries))


def forks(name: str = "o.A", unit: str = "us/op", raw: Any = ((1.5, 2.0),), **more: Any) -> dict[str, Any]:
    mode = "thrpt" if unit.startswith("ops") else "avgt"
    metric = {"score": 1.75, "scoreError": "NaN", "scoreUnit": unit, "rawData": raw}
    return {"benchmark": name, "mode": mode, "threads": 1, "primaryMetric": metric, **more}


def pyperf(*runs: dict[str, Any], **metadata: str) -> str:
    shared = {"name": "n", "unit": "second", **metadata}
    return json.dumps({"version": "1.0", "metadata": shared, "benchmarks": [{"runs": list(runs)}]})


def of_pytest(test: str, data: list[float], **parameters: Any) -> dict[str, Any]:
    label = "-".join(map(str, parameters.values()))
    full = f"t.py::{test}[{label}]" if parameters else f"t.py::{test}"
    return {"fullname": full, "params": parameters or None, "param": label or None, "stats": {"data": data}}


def pytests(*tests: dict[str, Any]) -> str:
    return json.dumps({"version": "5.3.1", "benchmarks": list(tests)})


def catch2(value: str, root: str = "Catch2TestRun") -> str:
    mean = f'<mean value="{value}" lowerBound="7" upperBound="8" ci="0.95"/>'
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} name="t" catch2-version="3.4.0">'
        f'<TestCase name="\u00fc &quot;q&quot;"><BenchmarkResults name="b" samples="9">{mean}'
        f"</BenchmarkResults></TestCase></{root}>"
    )


def criterion(loops: list[float], times: list[float]) -> str:
    return json.dumps({"sampling_mode": "Flat", "iters": loops, "times": times})


GO: Final = "goos: linux\ngoarch: amd64\npkg: ex/p\n"
TEST: Final = "\nrunning 1 test\n{}\n"
WRK: Final = (
    "Running 1s test @ http://h/\n  1 threads and 2 connections\n"
    "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n"
    "    Latency    57.03us    1.78ms   1.20s    62.16%\n    Req/Sec    3.42k    10.35    50.00     60.00%\n"
    "  37 requests in 1.10m, 4.30KB read\nRequests/sec:     32.53\nTransfer/sec:      3.78MB\n"
)
PERF: Final = "# started on Sun Nov 29 13:32:19 2026\n\n"
SYSBENCH: Final = (
    "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nNumber of threads: 1\n\n"
    "Running memory speed test with the following options:\n\n"
    "Total operations: 1048576 (1511577.48 per second)\n\n1024.00 MiB transferred (1476.15 MiB/sec)\n\n"
)
FIO: Final = {"total_ios": 5, "iops": 2.5, "bw_bytes": 4096, "io_bytes": 20480, "runtime": 2000}
FIO_FILE: Final = {"fio version": "fio-3.33", "jobs": [{"jobname": "j\u00fc/1", "error": 0, "read": FIO}]}

FILES: Final = [
    # Several units in one file, and each of its own.
    Odd("google-benchmark", "ns", google(repetition(unit="ns")), {"wall": [2.0], "cpu": [1.0]}),
    Odd("google-benchmark", "us", google(repetition(unit="us")), {"wall": [2e3], "cpu": [1e3]}),
    Odd("google-benchmark", "ms", google(repetition(unit="ms")), {"wall": [2e6], "cpu": [1e6]}),
    Odd("google-benchmark", "s", google(repetition(unit="s")), {"wall": [2e9], "cpu": [1e9]}),
    Odd(
        "google-benchmark",
        "several-units",
        google(repetition("a", unit="ns"), repetition("b", unit="s")),
        {"a|wall": [2.0], "b|wall": [2e9], "a|cpu": [1.0], "b|cpu": [1e9]},
    ),
    Odd("google-benchmark", "minutes", google(repetition(unit="min")), refused="`min` is not one of `ns`"),
    Odd("jmh", "ns", jmh(forks(unit="ns/op")), {"time": [1.5, 2.0]}),
    Odd("jmh", "us", jmh(forks(unit="us/op")), {"time": [1.5e3, 2e3]}),
    Odd("jmh", "ms", jmh(forks(unit="ms/op")), {"time": [1.5e6, 2e6]}),
    Odd("jmh", "s", jmh(forks(unit="s/op")), {"time": [1.5e9, 2e9]}),
    Odd("jmh", "rate", jmh(forks(unit="ops/us")), {"throughput": [1.5, 2.0]}, unit="ops/us"),
    Odd("pyperf", "seconds", pyperf({"values": [0.25, 1e-9]}), {"time": [2.5e8, 1.0]}),
    Odd("pyperf", "bytes", pyperf({"values": [1024]}, unit="byte"), {"memory": [1024.0]}, unit="bytes"),
    Odd("pyperf", "counts", pyperf({"values": [-3]}, unit="integer"), {"value": [-3.0]}, unit="as counted"),
    Odd("pyperf", "hours", pyperf({"values": [1]}, unit="hour"), refused="one of the units second"),
    Odd("criterion", "loops", criterion([10, 20], [1000.0, 2500.0]), {"time": [100.0, 125.0]}),
    Odd(
        "libtest",
        "groups",
        TEST.format("test a ... bench:   1,234,567 ns/iter (+/- 12,345)"),
        {"median_time": [1234567.0]},
    ),
    Odd(
        "libtest",
        "parts",
        TEST.format("test \u00fc::b ... bench:        0.50 ns/iter (+/- 0.01)"),
        {"median_time": [0.5]},
    ),
    Odd(
        "go-bench",
        "exponents",
        GO + "BenchmarkA-8 1 1.5e+09 ns/op\nBenchmarkA-8 9 0.2500 ns/op\n",
        {"time": [1.5e9, 0.25]},
    ),
    Odd("go-bench", "seconds", GO + "BenchmarkA-8 1 0.000006 sec/op\n", {"time": [6000.0]}),
    Odd("catch2", "exponent", catch2("1.5e+06"), {"mean_time": [1.5e6]}),
    Odd("catch2", "version-2", catch2("7.5", "Catch"), {"mean_time": [7.5]}),
    Odd("moobench", "raw-1-10-2", "0;100\n0;300\n", {"response_time": [100.0, 300.0]}),
    Odd(
        "perf-stat",
        "msec",
        PERF + "1.49,msec,task-clock,1493681,100.00,0.007,CPUs utilized\n",
        {"task-clock": [1.49e6]},
    ),
    Odd(
        "perf-stat",
        "decimal-comma",
        PERF + "1,49;msec;task-clock;1493681;100,00;0,007;CPUs utilized\n",
        {"task-clock": [1.49e6]},
    ),
    Odd(
        "cyclictest",
        "us",
        "T: 0 (9) P:80 I:1000 C: 300 Min: 3 Act: 7 Avg: 4 Max: 14\n",
        {"latency_mean": [4e3], "latency_max": [14e3]},
    ),
    Odd(
        "cyclictest",
        "ns",
        "T: 0 (9) P:80 I:1000 C: 300 Min: 3 Act: 7 Avg: 4 Max: 14\n",
        {"latency_mean": [4.0], "latency_max": [14.0]},
        options=ReadOptions(unit="ns"),
    ),
    Odd("wrk", "prefixes", WRK, {"latency_mean": [57_030.0], "latency_max": [1.2e9], "duration": [66e9]}),
    Odd("wrk", "bytes", WRK, {"transferred": [4403.2]}, unit="bytes"),
    Odd("wrk", "rates", WRK, {"transferred_per_s": [3.78 * 1024**2]}, unit="bytes/s"),
    Odd("fio", "bytes", json.dumps(FIO_FILE), {"bandwidth": [4096.0]}, unit="bytes/s"),
    Odd("fio", "runtime", json.dumps(FIO_FILE), {"duration": [2e9]}),
    Odd("fio", "f_bw.1.log", "0, 17213, 0, 4096, 0\n", {"bandwidth": [17213.0]}, unit="KiB/s"),
    Odd("fio", "f_clat.1.log", "0, 237947, 1, 4096, 0\n", {"clat": [237947.0]}),
    Odd(
        "csv",
        "exponents",
        "value\n1e3\n1E-3\n+5\n.5\n5.\n-0\n",
        {"value": [1e9, 1e3, 5e6, 5e5, 5e6, 0.0]},
        options=MS,
    ),
    Odd("csv", "huge", "value\n" + "9" * 90 + "\n", {"value": [1e96]}, options=MS),
    Odd(
        "csv",
        "negative-score",
        "value\n-1.5\n",
        {"value": [-1.5]},
        unit="score",
        options=ReadOptions(unit="score"),
    ),
    # Locales, encodings and ends of lines.
    Odd(
        "csv", "bom-and-crlf", "\ufeffvalue,run\r\n1.5,a\r\n2.5,b\r\n", {"value": [1.5e6, 2.5e6]}, options=MS
    ),
    Odd("csv", "utf-16", "value\n1.5\n".encode("utf-16"), {"value": [1.5e6]}, options=MS),
    Odd("csv", "utf-16-unmarked", "value\n1.5\n".encode("utf-16-le"), refused="a byte of zero", options=MS),
    Odd("csv", "latin-1", b"value,name\n1.5,\xe9\n", refused="line 2: byte 0xe9 is not UTF-8", options=MS),
    Odd("csv", "old-mac", "value\r1\r2\r", {"value": [1e6, 2e6]}, options=MS),
    Odd(
        "csv",
        "decimal-comma",
        "value;run\n1,5;a\n2,25;b\n",
        {"value": [1.5e6, 2.25e6]},
        options=ReadOptions(unit="ms", decimal=","),
    ),
    Odd("csv", "comma-not-told", "value;run\n1,5;a\n", refused="value is `1,5`", options=MS),
    Odd("csv", "groups", 'value,run\n"1,234.5",a\n', refused="value is `1,234.5`", options=MS),
    Odd(
        "csv",
        "thin-space",
        "value;run\n1\u202f234,5;a\n",
        refused="expected a number from 0",
        options=ReadOptions(unit="ms", decimal=","),
    ),
    Odd("csv", "underscore", "value\n1_000\n", refused="value is `1_000`", options=MS),
    Odd("csv", "hexadecimal", "value\n0x10\n", refused="value is `0x10`", options=MS),
    Odd("csv", "tabs", "value\trun\n1.5\ta\n", {"value": [1.5e6]}, options=MS),
    Odd("csv", "blanks-around", " value , run \n 1.5 , a \n", {"value": [1.5e6]}, options=MS),
    Odd("csv", "quoted", '"value","run"\n"1.5","a"\n', {"value": [1.5e6]}, options=MS),
    Odd("hyperfine", "utf-16", hyperfine(command("\u00fc")).encode("utf-16"), {"wall": [5e8, 2.5e8]}),
    Odd("hyperfine", "bom", "\ufeff" + hyperfine(command()), {"wall": [5e8, 2.5e8]}),
    Odd(
        "go-bench", "crlf", (GO + "BenchmarkA-8 100 12 ns/op\nPASS\n").replace("\n", "\r\n"), {"time": [12.0]}
    ),
    Odd("go-bench", "decimal-comma", GO + "BenchmarkA-8 9 10,5 ns/op\n", refused="`10,5` should be numbers"),
    Odd("moobench", "decimal-comma", "0;100,5\n", refused="response time is `100,5`"),
    Odd("moobench", "bom", "\ufeff7;5\n7;6\n", {"response_time": [5.0, 6.0]}),
    Odd("catch2", "decimal-comma", catch2("7,5"), refused="`value` is `7,5`; expected a number"),
    # No value where one is expected.
    Odd(
        "hyperfine",
        "nan",
        hyperfine(command(times=(0.5, NAN))),
        refused=r"times\[1\]`: `NaN` is not a finite",
    ),
    Odd("hyperfine", "null", hyperfine(command(times=None)), refused="`null` is not a list"),
    Odd("hyperfine", "text", hyperfine(command(times=("0.5",))), refused="`0.5` is not a number"),
    Odd(
        "hyperfine",
        "no-memory",
        hyperfine(command(memory_usage_byte=[123, None])),
        {"peak_memory": [123.0]},
        unit="bytes",
    ),
    Odd(
        "google-benchmark",
        "nan",
        google(repetition(real=NAN)),
        {"cpu": [1e3]},
        noted="not finite, left out: 1",
    ),
    Odd(
        "google-benchmark",
        "counters",
        google(repetition(x=NAN, y=float("inf"), z=3)),
        {"z": [3.0]},
        noted="not finite, left out: 2",
        unit="as counted",
    ),
    Odd(
        "jmh",
        "infinity",
        jmh(forks(raw=(("NaN", 1.0), ("Infinity",)))),
        {"time": [1e3]},
        noted="2 values of `time` are not numbers",
    ),
    Odd(
        "go-bench",
        "nan",
        GO + "BenchmarkA-8 1 NaN ns/op\nBenchmarkA-8 1 +Inf ns/op\nBenchmarkA-8 1 7 ns/op\n",
        {"time": [7.0]},
        noted="not finite, left out: 2",
    ),
    Odd("pyperf", "nan", pyperf({"values": [NAN]}), refused=r"values\[0\]`: `NaN` is not a finite"),
    Odd("catch2", "nan", catch2("nan"), refused="`value` is `nan`; expected a time from 0"),
    Odd("criterion", "nan", criterion([10], [NAN]), refused=r"times\[0\]`: `NaN`"),
    Odd("csv", "infinity", "value\n1\ninf\n", refused="line 3: value is `inf`", options=MS),
    Odd("csv", "nan", "value\n1\nNaN\n", refused="line 3: value is `NaN`", options=MS),
    Odd(
        "csv",
        "missing",
        "value,run\n1,a\nNA,b\n",
        {"value": [1e6]},
        noted="values that are not there: 1",
        options=ReadOptions(unit="ms", missing=("NA",)),
    ),
    Odd(
        "perf-stat",
        "not-counted",
        PERF + "<not counted>,,cycles,0,0.00,,\n75,,page-faults,9,100.00,,\n",
        {"page-faults": [75.0]},
        noted="`cycles` is not counted, left out: 1",
        unit="count",
    ),
    # Negative times are damage; zero is what coarse clocks say.
    Odd("hyperfine", "zero", hyperfine(command(times=(0.0, 0.25))), {"wall": [0.0, 2.5e8]}),
    Odd("hyperfine", "negative", hyperfine(command(times=(-1,))), refused="`-1` is not a number from 0"),
    Odd(
        "google-benchmark", "negative", google(repetition(real=-1.0)), refused="`-1.0` is not a number from 0"
    ),
    Odd("jmh", "negative", jmh(forks(raw=((-1.0,),))), refused="`-1.0` is not a time from 0"),
    Odd("pyperf", "negative", pyperf({"values": [-0.5]}), refused="`-0.5` is not a number from 0"),
    Odd("go-bench", "negative", GO + "BenchmarkA-8 9 -1 ns/op\n", refused="a time is negative"),
    Odd("criterion", "negative", criterion([10], [-1.0]), refused="`-1.0` is not a number from 0"),
    Odd("criterion", "no-loops", criterion([0], [1.0]), refused="`0` is not a number of loops from 1"),
    Odd("moobench", "negative", "0;-1\n", refused="response time is `-1`"),
    Odd("csv", "negative", "value\n-1\n", refused="line 2: value is `-1`", options=MS),
    # Names.
    Odd(
        "hyperfine",
        "same-command",
        hyperfine(command("make", (1.0,)), command("make", (2.0,))),
        {"make|wall": [1e9], "make (2)|wall": [2e9]},
        noted="numbered: 1",
    ),
    Odd(
        "hyperfine",
        "scan",
        hyperfine(command(times=(1.0,), parameters={"n": "1"}), command(times=(2.0,), parameters={"n": "2"})),
        {"wall": [1e9, 2e9]},
    ),
    Odd(
        "hyperfine",
        "quotes",
        hyperfine(command('a "q" \'/\u00fc\n')),
        {'a "q" \'/\u00fc\n|wall': [5e8, 2.5e8]},
    ),
    Odd("hyperfine", "nameless", hyperfine(command("")), refused="results.0..command`: `` is not a text"),
    Odd(
        "google-benchmark",
        "same-name",
        google(repetition(family_index=0), repetition(real=9.0, family_index=1)),
        {"a|wall": [2e3], "a (2)|wall": [9e3], "a|cpu": [1e3], "a (2)|cpu": [1e3]},
        noted="numbered: 1",
    ),
    Odd(
        "google-benchmark",
        "repeated",
        google(repetition(family_index=0), repetition(family_index=0)),
        {"wall": [2e3, 2e3]},
    ),
    Odd(
        "jmh",
        "parameter-workload",
        jmh(
            forks("o.A", params={"workload": "w", "mode": "m"}),
            forks("o.B", raw=((9.0,),), params={"workload": "w", "mode": "m"}),
        ),
        {"o.A|time": [1.5e3, 2e3], "o.B|time": [9e3]},
    ),
    Odd(
        "pytest-benchmark",
        "parameter-workload",
        pytests(of_pytest("a", [0.5], workload="w"), of_pytest("b", [9], workload="w")),
        {"t.py::a|time": [5e8], "t.py::b|time": [9e9]},
    ),
    Odd(
        "pytest-benchmark",
        "slash",
        pytests(of_pytest("a", [0.5], n=10, name="\u00fc/x")),
        {"t.py::a|time": [5e8]},
    ),
    Odd("catch2", "quotes", catch2("7.5"), {'\u00fc "q"/b|mean_time': [7.5]}),
    Odd("go-bench", "slashes", GO + 'Benchmark\u00c4/"q"/n=1-8 5 7 ns/op\n', {'ex/p.\u00c4/"q"|time': [7.0]}),
    Odd(
        "csv",
        "newline",
        'value,workload\n1,"a\nb"\n2,"c ""q"" /\u00fc"\n',
        {"a\nb|value": [1e6], 'c "q" /\u00fc|value': [2e6]},
        options=MS,
    ),
    Odd("csv", "same-heading", "value,value\n1,2\n", refused="columns 1 and 2 are called so", options=MS),
    # Runs that failed.
    Odd(
        "google-benchmark",
        "error",
        google(repetition(error_occurred=True), repetition("b")),
        {"b|wall": [2e3], "b|cpu": [1e3]},
        noted="1 repetitions of `a` failed",
    ),
    Odd(
        "google-benchmark",
        "skipped",
        google(repetition(skipped="no GPU"), repetition("b")),
        {"b|wall": [2e3], "b|cpu": [1e3]},
        noted="1 repetitions of `a` failed",
    ),
    Odd(
        "go-bench",
        "panic",
        GO + "BenchmarkA-8 9 12 ns/op\npanic: x\n\ngoroutine 1 [running]:\nexit status 2\nFAIL\tex/p\t0.1s\n",
        {"time": [12.0]},
        noted="packages that failed",
    ),
    Odd(
        "tinybench",
        "aborted",
        json.dumps([{"name": "a", "result": {"state": "aborted"}}]),
        noted="benchmarks that failed, left out: 1",
    ),
    Odd(
        "iperf3",
        "refused",
        json.dumps({"start": {}, "intervals": [], "end": {}, "error": "unable to connect"}),
        noted="a test failed: unable to connect",
    ),
    # A tool that was killed, and two invocations in one file.
    Odd("hyperfine", "empty", "", refused="not JSON: Expecting value"),
    Odd("hyperfine", "cut-off", hyperfine(command())[:-2] + ",", refused="it was cut off"),
    Odd(
        "hyperfine",
        "two",
        hyperfine(command()) + "\n" + hyperfine(command()),
        refused="another document begins",
    ),
    Odd("google-benchmark", "cut-off", google(repetition())[:-2] + ",\n", refused="it was cut off"),
    Odd(
        "jmh", "two", jmh(forks()) + "\n" + jmh(forks()), refused="line 2, column 1: another document begins"
    ),
    Odd("jmh", "empty", "[]"),
    Odd("catch2", "cut-off", catch2("7.5")[:-30], refused="not XML"),
    Odd("catch2", "two", catch2("7.5") + catch2("7.5"), refused="not XML: "),
    Odd(
        "go-bench",
        "cut-off",
        GO + "BenchmarkA-8 9 12 ns/op\nBenchmarkB-8 100 12",
        refused="line 5: `BenchmarkB-8",
    ),
    Odd(
        "go-bench",
        "two",
        (GO + "BenchmarkA-8 9 10 ns/op\nPASS\nok  \tex/p\t1s\n") * 2,
        {"time": [10.0, 10.0]},
    ),
    Odd(
        "libtest", "cut-off", TEST.format("test b ... bench:  "), refused="line 3: `test b ... bench:` is not"
    ),
    Odd("wrk", "two", WRK + WRK, {"latency_mean": [57_030.0] * 2}),
    Odd("wrk", "cut-off", WRK[: WRK.index("Requests/sec")], refused="has no line `Requests/sec:`"),
    Odd("sysbench", "cut-off", SYSBENCH, refused="the run was cut off"),
    Odd("csv", "cut-off", 'value,run\n1,a\n2,"b\n', refused="line 3: not CSV", options=MS),
    Odd("csv", "heading-alone", "value\n", noted="no column `workload`", options=MS),
    # Files of something else.
    Odd("csv", "page", "<html><body>404</body></html>", refused="no column of values", options=MS),
    Odd("hyperfine", "table", "command,mean,stddev\na,1,2\n", refused="line 1, column 1: not JSON"),
    Odd(
        "google-benchmark",
        "other-json",
        hyperfine(command()),
        refused="no member `benchmarks`; there are: results",
    ),
    Odd("jmh", "other-json", hyperfine(command()), refused="at the top: .* is not a list"),
    Odd("pyperf", "other-json", google(repetition()), refused="no member `runs`"),
    Odd("criterion", "estimates", json.dumps({"mean": {"point_estimate": 1}}), refused="no member `iters`"),
    Odd("fio", "terse", "3;fio-3.33;seqread;0;0;4096\n", refused="neither fio's JSON, nor a log"),
    Odd(
        "vegeta", "text", "Requests      [total, rate, throughput]  50, 51.04, 30.01\n", refused="expected 12"
    ),
    Odd("perf-stat", "text", " Performance counter stats for 'sleep':\n", refused="is not an event"),
    Odd("wrk", "refused", "unable to connect to h:80 Connection refused\n", refused="not of this format"),
    Odd("autocannon", "text", "Running 1s test @ http://h/\n", refused="not JSON: Expecting value"),
]


def read(odd: Odd, folder: Path) -> ForeignFile:
    found = importer(odd.form)
    assert isinstance(found, ForeignImporter)
    content = odd.content if isinstance(odd.content, bytes) else odd.content.encode()
    source = unpacked(Source(folder / odd.name, content, found.expected))
    return found.read(source, odd.options)


def values_of(found: ForeignFile, odd: Odd) -> dict[str, list[float]]:
    """Give the measured values in the unit of the file, of the metrics and workloads that it expects."""
    values: dict[str, list[float]] = {}
    for run in [*found.runs, *(found.table or ())]:
        for each in run.sections:
            named = f"{run.levels['workload']}|{each.metric}"
            key = named if any("|" in name for name in odd.values) else each.metric
            if each.unit == odd.unit:
                values.setdefault(key, []).append(each.value)
    metrics = {name.rpartition("|")[2] for name in odd.values}
    return {key: each for key, each in values.items() if key.rpartition("|")[2] in metrics}


@pytest.mark.parametrize("odd", FILES, ids=str)
def test_an_odd_file_is_read_as_its_tool_means_it_or_refused(odd: Odd, tmp_path: Path) -> None:
    if odd.refused:
        with pytest.raises(DataError, match=odd.refused) as refused:
            read(odd, tmp_path)
        assert (refused.value.hint or "").startswith("expected ")
        assert odd.name in refused.value.message
        return
    found = read(odd, tmp_path)
    assert odd.noted in "\n".join(found.notes)
    if not odd.values:
        assert not found.holds_values
    got = values_of(found, odd)
    assert got.keys() == odd.values.keys()
    for name, expected in odd.values.items():
        assert got[name] == pytest.approx(expected, rel=1e-15), name
